"""From Reserve to PostBind: plugins accept, refuse, wait or bind the pod themselves."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Bind
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import SUCCESS, unschedulable
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.waiting_pods import Wait
from fairlead.plugin import PostFilterResult
from fairlead.testing.builders import make_node, make_pod


class Ledger:
    """A plugin from Reserve to PostBind that records its calls and has given results."""

    def __init__(self, name, book, **answers):
        self.name = name
        self.book = book
        self.answers = answers

    def _note(self, point, pod):
        self.book.append((self.name, point, pod.pod.metadata.name))
        return self.answers.get(point)

    def reserve(self, state, pod, node):
        return self._note("reserve", pod)

    def unreserve(self, state, pod, node):
        self._note("unreserve", pod)

    def permit(self, state, pod, node):
        return self._note("permit", pod)

    def pre_bind(self, state, pod, node):
        return self._note("pre_bind", pod)

    def post_bind(self, pod, node):
        self._note("post_bind", pod)


def test_binding_plugins_run_in_order(staged):
    """Reserve, Permit and PreBind of all plugins run before the Bind, and PostBind after it."""
    book = []
    scene = staged(Ledger("A", book), Ledger("B", book), objects=[make_node("n1"), make_pod("a")])
    scene.step()
    assert [entry[:2] for entry in book] == [
        ("A", "reserve"), ("B", "reserve"), ("A", "permit"), ("B", "permit"),
        ("A", "pre_bind"), ("B", "pre_bind"),
    ]  # fmt: skip
    book.clear()
    scene.done()
    assert [entry[:2] for entry in book] == [("A", "post_bind"), ("B", "post_bind")]


def test_a_plugin_may_return_success_from_pre_bind(staged):
    """The next plugins are called, and the pod is bound."""
    book = []
    first, second = Ledger("A", book, pre_bind=SUCCESS), Ledger("B", book)
    scene = staged(first, second, objects=[make_node("n1"), make_pod("a")])
    assert scene.step() == [("bind", "a", "n1")]
    assert ("B", "pre_bind", "a") in book


@pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind"])
def test_a_rejection_unreserves_all_plugins(staged, point):
    """In reverse order; the pod waits for the events of the rejecting plugin."""
    book = []
    first = Ledger("A", book)
    second = Ledger("B", book, **{point: unschedulable("not today")})
    scene = staged(first, second, objects=[make_node("n1"), make_node("n2"), make_pod("a")])
    text = "0/1 nodes are available: 1 not today."
    assert scene.step() == [
        ("event", "a", "FailedScheduling", text),
        ("patch", "a", {}, ("PodScheduled", "False", "Unschedulable", text)),
    ]
    undone = [entry[:2] for entry in book if entry[1] == "unreserve"]
    assert undone == [("B", "unreserve"), ("A", "unreserve")]
    scene.all_done()
    assert (scene.on("n1"), scene.on("n2")) == ([], [])
    assert (scene.place("a"), scene.is_due()) == ("unschedulable", False)
    scene.put(make_node("n3"))
    assert scene.is_due()


def test_a_binding_refused_by_the_api_server_is_unreserved(staged):
    """All plugins run Unreserve."""
    book = []
    scene = staged(Ledger("A", book), objects=[make_node("n1"), make_pod("a")])
    scene.step()
    scene.refused()
    assert [entry[1] for entry in book] == ["reserve", "permit", "pre_bind", "unreserve"]


class Gang:
    """A Permit plugin that keeps pods waiting until there are `size` of them."""

    name = "Gang"

    def __init__(self, handle, size, timeout_s):
        self.waiting_pods = handle.waiting_pods
        self.size = size
        self.timeout = seconds(timeout_s)

    def permit(self, state, pod, node):
        others = self.waiting_pods.all()
        if len(others) + 1 < self.size:
            return Wait(self.timeout)
        for other in others:
            self.waiting_pods.allow(other.pod.id, self.name)
        return None


@pytest.fixture
def gang(stage):
    """Makes stages with a gang plugin; a gang has `size` pods."""

    def make(size, *objects):
        return stage(
            *objects,
            profiles=(Profile(plugins=(*DEFAULT_PLUGINS, ("Gang", 0))),),
            out_of_tree={"Gang": lambda handle, _args: Gang(handle, size, 10)},
        )

    return make


def test_pods_at_permit_wait_for_each_other(gang):
    """Waiting pods are assumed on their nodes and nominated for them; then all are bound."""
    scene = gang(3, make_node("n1"), *(make_pod(f"p{i}") for i in range(3)))
    assert scene.step() == [("patch", "p0", {"nominatedNodeName": "n1"})]
    assert scene.step() == [("patch", "p1", {"nominatedNodeName": "n1"})]
    assert scene.on("n1") == ["default/p0", "default/p1"]
    assert sorted(scene.steps()) == [("bind", f"p{i}", "n1") for i in range(3)]


def test_a_permit_timeout_frees_the_resources(gang):
    """There is an event, and the nomination is removed."""
    scene = gang(3, make_node("n1"), make_pod("p0"))
    scene.step()
    scene.done("patch")
    scene.put(make_pod("p0", nominated="n1"))
    assert not scene.is_due()
    event, patch = scene.step(10)
    assert "timeout" in event[3]
    assert "Gang" in event[3]
    assert patch[2] == {"nominatedNodeName": None}
    assert (scene.on("n1"), scene.place("p0")) == ([], "unschedulable")


def test_a_pod_deleted_at_permit_frees_its_resources(gang):
    """They are free immediately, and other pods are woken."""
    pods = [make_pod("p0", requests={"cpu": "4"}), make_pod("p1", requests={"cpu": "4"})]
    scene = gang(2, make_node("n1"), *pods)
    scene.step()
    scene.step()
    scene.all_done()
    assert (scene.on("n1"), scene.place("p1")) == (["default/p0"], "unschedulable")
    scene.gone(pods[0])
    scene.steps()
    scene.all_done()
    scene.steps()
    assert scene.on("n1") == ["default/p1"]


class Some:
    """A Bind plugin that binds only pods with labels."""

    name = "Some"

    def __init__(self):
        self.taken = []

    def bind(self, pod, node):
        if not pod.labels:
            return None
        self.taken.append(pod.pod.metadata.name)
        return Bind(pod.ref, node)


def test_a_bind_plugin_may_skip_a_pod(staged):
    """The first plugin that does not skip the pod binds it."""
    plugin, pods = Some(), [make_pod("a", labels={"x": "y"}), make_pod("b")]
    scene = staged(plugin, objects=[make_node("n1"), *pods])
    assert scene.steps() == [("bind", "a", "n1"), ("bind", "b", "n1")]
    assert plugin.taken == ["a"]


class Refuses:
    """A Bind plugin that returns an invalid status."""

    name = "Refuses"

    def bind(self, pod, node):
        return unschedulable("not today")


def test_a_bind_plugin_that_returns_a_status_fails_the_cycle(staged):
    scene = staged(Refuses(), objects=[make_node("n1"), make_pod("a")])
    event, patch = scene.step()
    assert event[3].startswith('running Bind plugin "Refuses": plugin ')
    assert event[3].endswith("expected a Bind or None")
    assert patch[3][2] == "SchedulerError"
    assert scene.on("n1") == []


def test_a_pod_that_all_bind_plugins_skip_is_not_bound(stage):
    plugins = tuple(one for one in DEFAULT_PLUGINS if one[0] != "DefaultBinder")
    scene = stage(
        make_node("n1"),
        make_pod("a"),
        profiles=(Profile(plugins=(*plugins, ("Some", 0))),),
        out_of_tree={"Some": lambda _handle, _args: Some()},
    )
    event, _ = scene.step()
    assert event[3] == "no Bind plugin bound the pod"
    assert scene.place("a") == "error_backoff"


def test_a_pod_deleted_during_its_bind_frees_its_resources(stage):
    """Unschedulable pods are woken as soon as the Bind is refused."""
    full = {"cpu": "4"}
    pods = [make_pod("p0", requests=full), make_pod("p1", requests=full)]
    scene = stage(make_node("n1"), *pods)
    assert scene.step() == [("bind", "p0", "n1")]
    scene.steps()
    bind = scene.sent.pop(0)
    scene.all_done()
    assert scene.place("p1") == "unschedulable"
    scene.gone(pods[0])
    scene.sent.insert(0, bind)
    scene.refused(FailureReason.NOT_FOUND)
    assert scene.step(300) == [("bind", "p1", "n1")]


class RejectingGang:
    """Keeps pod g waiting at Permit, and rejects it if the scheduling of another pod fails."""

    name = "RejectingGang"

    def __init__(self, handle):
        self.waiting_pods = handle.waiting_pods

    def permit(self, state, pod, node):
        return Wait(seconds(600)) if pod.pod.metadata.name == "g" else None

    def post_filter(self, state, pod, diagnosis):
        for waiting in list(self.waiting_pods.all()):
            self.waiting_pods.reject(waiting.pod.id, self.name, "no gang")
        return PostFilterResult(unschedulable("none"))


def test_a_pod_at_permit_that_a_failed_cycle_rejects_is_gone_before_the_next_cycle(stage):
    """Pod b fits only after pod g, which is rejected, has left the node."""
    config = {
        "profiles": (Profile(plugins=(("RejectingGang", 0), *DEFAULT_PLUGINS)),),
        "out_of_tree": {"RejectingGang": lambda handle, _args: RejectingGang(handle)},
    }
    gang, other = (make_pod(name, requests={"cpu": "4"}) for name in "gb")
    scene = stage(make_node("n", cpu="4"), gang, **config)
    scene.steps()
    scene.put(make_pod("a", requests={"cpu": "9"}))
    ((_, _, _, text), *_) = scene.step()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [{**condition, "message": text}]}
    # The condition is stored already, so the failed cycle only records an event.
    scene = stage(make_node("n", cpu="4"), gang, **config)
    scene.steps()
    scene.put(make_pod("a", requests={"cpu": "9"}, status=status), other)
    assert scene.step() == [("event", "a", "FailedScheduling", text)]
    assert scene.step()[0][:2] == ("event", "g")
    assert scene.step()[0][:2] == ("bind", "b")
