"""PreBind plugins with a Preparation: objects that must change before the pod can be bound."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import ObjectRef, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodUnschedulable
from fairlead.engine.core.status import Code, Status, error, unschedulable
from fairlead.engine.framework.cluster_event import EventKind
from fairlead.engine.framework.interface import Locality, Preparation
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.waiting_pods import Wait
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.testing.storage_builders import (
    make_claim,
    make_claim_volumes,
    make_storage_class,
    make_volume,
)

WAIT = Status(Code.WAIT)
PREPARING = ("patch", "a", {"nominatedNodeName": "n1"})
BIND = ("bind", "a", "n1")
BOUND = ("event", "a", "Scheduled", "Successfully assigned default/a to n1")


class Preparer:
    """A plugin that requests writes; is_prepared returns `answer` after ten seconds."""

    locality = Locality.CLUSTER
    events: frozenset[EventKind] = frozenset()

    def __init__(self, *objects, name="Prepares"):
        self.name = name
        self.objects = objects
        self.answer = None
        self.log = []

    def is_woken_by(self, pod, event):
        return True

    def reserve(self, state, pod, node):
        self.log.append("reserve")

    def unreserve(self, state, pod, node):
        self.log.append("unreserve")

    def pre_bind(self, state, pod, node):
        commands = tuple(PatchObject(ObjectRef("ConfigMap", "", one), {}) for one in self.objects)
        return Preparation(commands, seconds(1), seconds(10), "too late")

    def is_prepared(self, state, pod, node):
        self.log.append("asked")
        return self.answer


@pytest.fixture
def staged(stage):
    """Makes a node, the pod `a`, and the default profile with `plugins` after all others."""

    def make(*plugins, **more):
        order = (*DEFAULT_PLUGINS, *((one.name, 0) for one in plugins))
        factories = {one.name: (lambda _handle, _args, one=one: one) for one in plugins}
        config = {"profiles": (Profile(plugins=order),), "out_of_tree": factories}
        return stage(make_node("n1"), make_pod("a"), **config, **more)

    return make


def failed(message):
    return [
        ("event", "a", "FailedScheduling", message),
        ("patch", "a", {"nominatedNodeName": None}, ("PodScheduled", "False", "SchedulerError",
                                                     message)),
    ]  # fmt: skip


def test_claims_are_released_if_the_pod_is_not_bound(stage):
    """The release precedes the record of the failure, as in upstream's Unreserve."""
    pod = make_pod("a", spec=make_pod_resource_claims("c"))
    status = make_claim_status("n1", "gpu-0", reserved_for=[pod.metadata.uid])
    claim = make_resource_claim("c", status=status)
    scene = stage(make_node("n1"), make_device_class(), make_slice("n1"), claim, pod)
    assert scene.step() == [BIND]
    released, event, _ = scene.refused()
    assert released == ("patch", "c", {"reservedFor": None})
    assert event[2:] == ("FailedScheduling", 'running Bind plugin "DefaultBinder": no')


def test_a_pod_is_bound_after_its_preparation_is_complete(staged):
    """The pod is nominated first; is_prepared is called one second after the last outcome."""
    plugin = Preparer("x", "y")
    scene = staged(plugin)
    assert scene.step() == [PREPARING, ("write", "x"), ("write", "y")]
    assert scene.on("n1") == ["default/a"]
    scene.done("patch")
    assert (scene.done("write"), scene.engine.next_deadline()) == ([], None)
    assert scene.done("write") == []
    assert not scene.is_due()
    assert scene.step(1) == [BIND]
    assert scene.done() == [BOUND]
    assert plugin.log == ["reserve", "asked"]


def test_is_prepared_is_called_until_it_succeeds(staged):
    """It is called once per second."""
    plugin = Preparer("x")
    plugin.answer = WAIT
    scene = staged(plugin)
    scene.step()
    scene.all_done()
    assert [scene.step(1) for _ in range(3)] == [[], [], []]
    plugin.answer = None
    assert scene.step(1) == [BIND]
    assert plugin.log.count("asked") == 4


def test_a_preparation_may_have_no_commands(staged):
    """is_prepared is still called first after one second."""
    scene = staged(Preparer())
    assert scene.step() == [PREPARING]
    assert scene.step(1) == [BIND]


def test_other_pods_are_scheduled_during_a_preparation(staged):
    """Many pods may be prepared at once, and their resources are reserved."""
    scene = staged(Preparer("x"))
    scene.put(make_pod("b", requests={"cpu": "4"}), make_pod("c"))
    assert [command[:2] for command in scene.steps()] == [
        *(("patch", "a"), ("write", "x")),
        *(("patch", "b"), ("write", "x")),
        *(("patch", "c"), ("write", "x")),
    ]
    assert scene.all_done() == []
    scene.now += seconds(1)
    assert [command[:2] for command in scene.steps()] == [("bind", "a"), ("bind", "b"),
                                                         ("bind", "c")]  # fmt: skip


def test_a_refused_command_reverts_the_placement(staged):
    """The message is the API server's error; outcomes of other commands are ignored."""
    plugin = Preparer("x", "y")
    scene = staged(plugin)
    scene.step()
    scene.done("patch")
    text = 'running PreBind plugin "Prepares": it changed meanwhile'
    assert scene.refused(message="it changed meanwhile")[0] == failed(text)[0]
    assert (scene.on("n1"), scene.place("a"), plugin.log[-1]) == ([], "error_backoff", "unreserve")
    assert scene.done("write") == []
    (record,) = scene.records.of(PodUnschedulable)
    assert (record.is_error, record.is_binding) == (True, True)


def test_a_failed_preparation_reverts_the_placement(staged):
    """An error names the plugin; a rejection has the plugin's own message."""
    for answer, message, place in (
        (error("broken"), 'running PreBind plugin "Prepares": broken', "error_backoff"),
        (unschedulable("taken"), "0/1 nodes are available: 1 taken.", "unschedulable"),
    ):
        plugin = Preparer("x")
        plugin.answer = answer
        scene = staged(plugin)
        scene.step()
        scene.all_done()
        event, _ = scene.step(1)
        assert event[3] == message
        assert (scene.on("n1"), scene.place("a")) == ([], place)


def test_a_plugin_that_raises_reverts_the_placement(staged):
    """Like a plugin that returns an error."""
    plugin = Preparer("x")
    plugin.is_prepared = lambda *_: 1 / 0
    scene = staged(plugin)
    scene.step()
    scene.all_done()
    event, _ = scene.step(1)
    assert "Prepares" in event[3]
    assert scene.on("n1") == []


def test_a_preparation_has_a_timeout(staged):
    """Ten seconds after the last outcome, is_prepared is not called any more."""
    plugin = Preparer("x")
    plugin.answer = WAIT
    scene = staged(plugin)
    scene.step()
    scene.now += seconds(60)
    scene.all_done()
    for _ in range(9):
        assert scene.step(1) == []
    plugin.answer = None
    assert scene.step(1)[0] == failed('running PreBind plugin "Prepares": too late')[0]
    assert scene.on("n1") == []


def test_plugins_prepare_concurrently(staged):
    """The pod is bound when the last preparation is complete."""
    first, second = Preparer("x", name="First"), Preparer("y", name="Second")
    first.answer = second.answer = WAIT
    scene = staged(first, second)
    assert scene.step()[1:] == [("write", "x"), ("write", "y")]
    scene.all_done()
    second.answer = None
    scene.now += seconds(1)
    assert scene.steps() == []
    first.answer = None
    scene.now += seconds(1)
    assert scene.steps() == [BIND]
    assert second.log.count("asked") == 1


def test_no_plugin_is_called_after_a_failed_preparation(staged):
    """The placement has been reverted."""
    first, second = Preparer("x", name="First"), Preparer("y", name="Second")
    scene = staged(first, second)
    scene.step()
    scene.done("patch")
    scene.refused()
    scene.all_done()
    scene.now += seconds(1)
    scene.steps()
    assert "asked" not in second.log


def test_the_first_failed_preparation_ends_all_preparations(staged):
    """Another plugin that is due at the same instant is not called."""
    first, second = Preparer("x", name="First"), Preparer("y", name="Second")
    first.answer = error("broken")
    scene = staged(first, second)
    scene.step()
    scene.all_done()
    scene.now += seconds(1)
    assert scene.steps()[0][3].endswith("broken")
    assert "asked" not in second.log


def test_one_pod_is_prepared_while_another_waits_at_permit(staged):
    """The next deadline is the earlier one."""
    plugin = Preparer()
    plugin.permit = lambda _state, pod, _node: Wait(seconds(5)) if pod.key == "default/b" else None
    scene = staged(plugin)
    scene.put(make_pod("b"))
    scene.steps()
    assert scene.step(1) == [BIND]
    event, _ = scene.step(4)
    assert event[1] == "b"


def test_the_outcome_of_a_command_counts_only_for_its_pod(staged):
    """The commands of both pods are equal."""
    scene = staged(Preparer("x"))
    scene.put(make_pod("b"))
    scene.steps()
    patches = [scene.sent[0], scene.sent[2]]
    for_a, for_b = scene.sent[1], scene.sent[3]
    assert for_a == for_b
    scene.sent = [for_b, for_a, *patches]
    scene.done("write")
    scene.refused()
    scene.now += seconds(1)
    assert ("bind", "b", "n1") in scene.steps()


def test_the_preparation_of_a_deleted_pod_is_completed(staged):
    """The Bind fails afterwards."""
    scene = staged(Preparer("x"))
    scene.step()
    scene.gone(make_pod("a"))
    scene.all_done()
    assert scene.step(1) == [BIND]
    scene.refused(message="gone")
    assert scene.on("n1") == []


def test_a_pod_nominated_to_the_node_is_not_nominated_again(stage):
    """Its status already names the node."""
    plugin = Preparer("x")
    scene = stage(
        make_node("n1"),
        make_pod("a", nominated="n1"),
        profiles=(Profile(plugins=(*DEFAULT_PLUGINS, ("Prepares", 0))),),
        out_of_tree={"Prepares": lambda _handle, _args: plugin},
    )
    assert scene.step() == [("write", "x")]


def test_a_plugin_that_returns_a_preparation_needs_is_prepared(staged):
    """Otherwise the end of the preparation could not be detected."""

    class Silent:
        name, locality, events = "Silent", Locality.CLUSTER, frozenset()
        pre_bind = Preparer.pre_bind
        is_woken_by = Preparer.is_woken_by
        objects = ()

    scene = staged(Silent())
    event, _ = scene.step()
    assert "a plugin that returns a Preparation must have is_prepared" in event[3]
    assert scene.on("n1") == []


# --- volumes ---------------------------------------------------------------------------------


def test_a_pod_with_a_claim_waits_for_its_volume(stage):
    """From the selected-node annotation to the bound claim."""
    scene = stage(
        make_node("n1"),
        make_storage_class(),
        make_claim("c"),
        make_pod("a", spec=make_claim_volumes("c")),
    )
    assert scene.step() == [PREPARING, ("write", "c")]
    scene.all_done()
    scene.put(make_claim("c", node="n1"))
    assert scene.step(1) == []
    scene.put(make_volume("v", claim="default/c"))
    scene.put(make_claim("c", node="n1", volume="v", bound=True))
    assert scene.step(1) == [BIND]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_preempted_pod_that_waits_for_its_volume_is_not_deleted(stage, is_written):
    """Its binding is cancelled at once, and the pod is retried after its backoff."""
    big = {"requests": {"cpu": "4"}}
    waiting = make_pod("a", spec=make_claim_volumes("c"), **big)
    scene = stage(make_node("n1"), make_storage_class(), make_claim("c"), waiting)
    scene.step()
    if is_written:
        scene.all_done()
    scene.put(make_pod("p", priority=100, **big))
    said = scene.step()
    note = "Preempted by pod uid-p on node n1 (in kube-scheduler memory)."
    assert ("event", "a", "Preempted", note) in said
    text = 'running PreBind plugin "VolumeBinding": binding volumes: context canceled'
    assert scene.step()[0] == ("event", "a", "FailedScheduling", text)
    assert (scene.on("n1"), scene.place("a")) == ([], "error_backoff")
    scene.all_done()
    scene.put(make_pod("p", priority=100, nominated="n1", **big))
    assert scene.steps() == [("bind", "p", "n1")]
    assert ("delete", "a") not in said


def test_a_pod_whose_volume_cannot_be_provisioned_is_scheduled_again(stage):
    """After the provisioner has removed the selected node from the claim."""
    scene = stage(
        make_node("n1"),
        make_storage_class(),
        make_claim("c", annotations={"kept": "x"}),
        make_pod("a", spec=make_claim_volumes("c")),
    )
    scene.step()
    scene.all_done()
    scene.put(make_node("n2"), make_claim("c", node="n1"), make_claim("c", annotations={"k": "x"}))
    text = (
        'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"'
    )
    assert scene.step(1)[0] == failed(text)[0]
    scene.done("patch")
    scene.put(make_node("n1", taints=["full=:NoSchedule"]))
    assert scene.step(10)[1:] == [("write", "c")]
    assert scene.on("n2") == ["default/a"]


def test_two_pods_do_not_get_one_volume(stage):
    """The cycle of the second pod precedes the writes for the first."""
    scene = stage(
        make_node("n1"),
        make_storage_class(provisioner="kubernetes.io/no-provisioner"),
        make_volume("v"),
        make_claim("c"),
        make_claim("d"),
        make_pod("a", spec=make_claim_volumes("c")),
        make_pod("b", spec=make_claim_volumes("d")),
    )
    assert scene.step() == [PREPARING, ("write", "v")]
    event, _ = scene.step()
    assert event[1:3] == ("b", "FailedScheduling")
    assert "node(s) didn't find available persistent volumes to bind" in event[3]
