"""Plugins from outside: either form, every extension point, and failures that stay theirs."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.core.command import Bind
from fairlead.core.instant import seconds
from fairlead.core.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from fairlead.framework.interface import Locality, Normalization, PreFilterResult, Verdicts
from fairlead.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.framework.waiting_pods import Wait
from fairlead.testing.builders import make_node, make_pod

NODES = [make_node(f"n{i}", labels={"rack": f"r{i % 3}"}, cpu=str(2 + i % 2)) for i in range(6)]


@pytest.fixture
def staged(stage):
    """A stage whose default profile has `plugins` too: before all others, with weight 5."""

    def make(*plugins, objects=(), last=False, **more):
        named = tuple((plugin.name, 5) for plugin in plugins)
        order = (*DEFAULT_PLUGINS, *named) if last else (*named, *DEFAULT_PLUGINS)
        factories = {one.name: (lambda _handle, _args, one=one: one) for one in plugins}
        return stage(*objects, profiles=(Profile(plugins=order),), out_of_tree=factories, **more)

    return make


def play(scene, limit=200):
    """Bind whatever is decided until nothing is due; [(pod, node or reason)]."""
    story = []
    for _ in range(limit):
        if not scene.is_due():
            return story
        for command in scene.turn():
            if command[0] == "bind":
                story.append(command[1:])
                pod = scene.cluster.pods[f"default/{command[1]}"].pod
                scene.put(make_pod(command[1], node=command[2], requests=requests_of(pod)))
            elif command[0] == "event":
                story.append((command[1], command[3]))
        scene.all_done()
    raise AssertionError(story)


def requests_of(pod):
    return dict(pod.spec.containers[0].resources.requests)


# --- one schedule, whatever the form ---------------------------------------------------------


class ByNode:
    """At most two pods on a node of rack r0; the fuller node is the better one."""

    name = "Racks"
    full = unschedulable("rack is full")

    def filter(self, state, pod, node):
        crowded = node.labels["rack"] == "r0" and len(node.pods) >= 2
        return self.full if crowded else None

    def score(self, state, pod, node):
        return min(10 * len(node.pods), 100)


class ByColumns:
    name = "Racks"

    def filter_columns(self, state, pod, table, rows):
        racks = table.label_column("rack")
        crowded = (racks.ids[rows] == racks.id_of("r0")) & (table.pod_count[rows] >= 2)
        return Verdicts(crowded.astype(np.int32), (SUCCESS, ByNode.full))

    def score_columns(self, state, pod, table, rows):
        return np.minimum(10 * table.pod_count[rows], 100)


@pytest.mark.parametrize("last", [False, True], ids=["asked first", "asked last"])
@pytest.mark.parametrize("locality", [Locality.CLUSTER, Locality.ROW])
@pytest.mark.parametrize("form", [ByNode, ByColumns])
def test_the_schedule_does_not_depend_on_the_form(staged, form, locality, last):
    """Per node or over columns, kept or asked anew, before or after all others."""
    waiting = [make_pod(f"p{i}", requests={"cpu": "500m"}) for i in range(26)]

    def story(plugin):
        return play(staged(plugin, objects=[*NODES, *waiting], last=last))

    plugin = type("Racks", (form,), {"locality": locality})()
    expected = story(ByNode())
    assert story(plugin) == expected
    assert [entry for entry in expected if entry[1].startswith("0/6")]
    assert {node for _, node in expected if node.startswith("n")} == {
        n.metadata.name for n in NODES
    }


class Cores:
    """Nodes with more cores are better, relative to the best; a fact of the node alone."""

    name = "Cores"
    locality = Locality.NODE
    normalization = Normalization.SCALED

    def score(self, state, pod, node):
        return node.allocatable[0] ** 2


class CoresAnew(Cores):
    locality = Locality.CLUSTER


def test_normalised_scores_kept_or_asked_anew(staged):
    """The best node gets 100 either way."""
    objects = [*NODES, *(make_pod(f"p{i}") for i in range(6))]
    assert play(staged(Cores(), objects=objects)) == play(staged(CoresAnew(), objects=objects))
    assert {node for _, node in play(staged(Cores(), objects=objects))} == {"n1", "n3", "n5"}


# --- before filtering ------------------------------------------------------------------------


class OnlyOn:
    """Restricts every pod to some nodes."""

    name = "OnlyOn"

    def __init__(self, *names, **attributes):
        self.names = names
        self.__dict__.update(attributes)

    def pre_filter(self, state, pod):
        return PreFilterResult(self.names)

    def filter(self, state, pod, node):
        return None


@pytest.mark.parametrize("locality", [Locality.CLUSTER, Locality.NODE])
def test_a_pod_may_be_restricted_to_some_nodes(staged, locality):
    """The others are excluded by name, those that do not exist are ignored."""
    plugin = OnlyOn("n2", "nowhere", locality=locality)
    scene = staged(plugin, objects=[*NODES, make_pod("a"), make_pod("b", requests={"cpu": "9"})])
    assert scene.turn() == [("bind", "a", "n2")]
    text = scene.turn()[0][3]
    assert text.startswith(
        "0/6 nodes are available: 1 Insufficient cpu, 5 node(s) didn't satisfy plugin(s) [OnlyOn]."
    )


def test_two_restrictions_hold_both(staged):
    """Where they have nothing in common, nothing is left."""
    pinned = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}}}  # fmt: skip
    pod = make_pod("a", spec=pinned)
    assert staged(OnlyOn("n1", "n2"), objects=[*NODES, pod]).turn() == [("bind", "a", "n2")]
    assert staged(OnlyOn("n1"), objects=[*NODES, pod]).turn()[0][:3] == (
        ("event", "a", "FailedScheduling")
    )


class Answering:
    """PreFilter with a given answer; Filter refuses everything."""

    name = "Answering"

    def __init__(self, answer):
        self.answer = answer

    def pre_filter(self, state, pod):
        return self.answer

    def filter(self, state, pod, node):
        return unresolvable("refused")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "0/1 nodes are available: 1 refused."),
        (Status(Code.SUCCESS), "0/1 nodes are available: 1 refused."),
        (Status(Code.SKIP, ("none of mine",)), ""),
        (unresolvable("never"), "0/1 nodes are available: never."),
    ],
    ids=["none", "success", "skip", "rejection"],
)
def test_what_pre_filter_may_answer(staged, answer, text):
    """Any Status of the right code, not one particular object."""
    scene = staged(Answering(answer), objects=[make_node("n1"), make_pod("a")])
    kind, _, *more = scene.turn()[0]
    assert more[-1].startswith(text) if text else kind == "bind"


# --- failures --------------------------------------------------------------------------------


def broken(point, locality=Locality.CLUSTER):
    """A plugin that raises at one extension point."""

    def fail(*_arguments):
        raise ZeroDivisionError("no such luck")

    methods = {point: fail}
    if point == "unreserve":
        methods["reserve"] = lambda *_: error("cannot")
    if point == "reserve":
        methods["unreserve"] = lambda *_: None
    if point in ("pre_score", "normalize_scores"):
        methods["score"] = lambda *_: 1
    if point == "pre_filter":
        methods["filter"] = lambda *_: None
    return type("Broken", (), {"name": "Broken", "locality": locality, **methods})()


@pytest.mark.parametrize(
    ("point", "locality"),
    [
        ("pre_filter", Locality.NODE),
        ("pre_filter", Locality.CLUSTER),
        ("filter", Locality.NODE),
        ("filter", Locality.ROW),
        ("filter", Locality.CLUSTER),
        ("filter_columns", Locality.ROW),
        ("filter_columns", Locality.CLUSTER),
        ("score", Locality.NODE),
        ("score", Locality.ROW),
        ("score", Locality.CLUSTER),
        ("score_columns", Locality.ROW),
        ("pre_score", Locality.CLUSTER),
        ("normalize_scores", Locality.CLUSTER),
        ("reserve", Locality.CLUSTER),
        ("permit", Locality.CLUSTER),
        ("pre_bind", Locality.CLUSTER),
        ("unreserve", Locality.CLUSTER),
    ],
)
def test_a_plugin_that_breaks_fails_the_cycle_by_name(staged, point, locality):
    """Not the scheduler: the pod waits out an error, and no room is taken."""
    plugin = broken(point, locality)
    scene = staged(plugin, objects=[make_node("n1"), make_node("n2"), make_pod("a")])
    event, patch = scene.turn()
    assert event[2] == "FailedScheduling"
    assert "Broken" in event[3] or point == "unreserve"
    assert patch[3][2] == "SchedulerError"
    assert (scene.place("a"), scene.on("n1"), scene.on("n2")) == ("error_backoff", [], [])


@pytest.mark.parametrize("point", ["post_bind", "is_woken_by"])
def test_a_plugin_that_breaks_where_nothing_can_be_refused(staged, point):
    """Is passed over; a hint that breaks counts as hope."""
    plugin = broken(point)
    if point == "is_woken_by":
        plugin = type("Broken", (type(plugin),), {"filter": lambda *_: unschedulable("no")})()
    scene = staged(plugin, objects=[make_node("n1"), make_pod("a")])
    scene.turn()
    scene.all_done()
    scene.put(make_node("n2"))
    assert scene.place("a") in (None, "backoff")


@pytest.mark.parametrize("locality", [Locality.NODE, Locality.ROW])
def test_a_score_that_breaks_on_a_node_that_does_not_fit_does_no_harm(staged, locality):
    """Only the feasible nodes are scored, so only their scores can fail the cycle."""

    class Picky:
        name = "Picky"

        def score(self, state, pod, node):
            return 100 // (node.allocatable[0] // 1000 - 1)

    Picky.locality = locality
    nodes = [make_node("small", cpu="1"), make_node("n1"), make_node("n2")]
    scene = staged(Picky(), objects=[*nodes, make_pod("a", requests={"cpu": "2"}), make_pod("b")])
    assert scene.turn()[0][0] == "bind"
    assert "Picky" in scene.turn()[0][3]


@pytest.mark.parametrize("locality", list(Locality))
@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_fails_the_cycle(staged, score, locality):
    """It would outvote, or undercut, everything else."""

    class Loud:
        name = "Loud"

        def score(self, state, pod, node):
            return score

    Loud.locality = locality
    scene = staged(Loud(), objects=[make_node("n1"), make_node("n2"), make_pod("a")])
    text = scene.turn()[0][3]
    assert "Loud" in text
    assert str(score) in text


# --- reserve, permit, pre-bind, bind ---------------------------------------------------------


class Ledger:
    """Takes part from Reserve to PostBind, writes down what it is asked, and answers as told."""

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


def test_a_binding_is_asked_of_everybody_in_order(staged):
    """Reserve all, permit all, prepare all; PostBind once it is done."""
    book = []
    scene = staged(Ledger("A", book), Ledger("B", book), objects=[make_node("n1"), make_pod("a")])
    scene.turn()
    assert [entry[:2] for entry in book] == [
        ("A", "reserve"), ("B", "reserve"), ("A", "permit"), ("B", "permit"),
        ("A", "pre_bind"), ("B", "pre_bind"),
    ]  # fmt: skip
    book.clear()
    scene.done()
    assert [entry[:2] for entry in book] == [("A", "post_bind"), ("B", "post_bind")]


@pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind"])
def test_a_refusal_undoes_everything_before_it(staged, point):
    """In reverse order, for all; the pod waits for what the plugin hears of, and nobody wakes."""
    book = []
    first = Ledger("A", book)
    second = Ledger("B", book, **{point: unschedulable("not today")})
    scene = staged(first, second, objects=[make_node("n1"), make_node("n2"), make_pod("a")])
    text = "0/1 nodes are available: 1 not today."
    assert scene.turn() == [
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


def test_a_refused_binding_is_unreserved(staged):
    """By the API server, that is."""
    book = []
    scene = staged(Ledger("A", book), objects=[make_node("n1"), make_pod("a")])
    scene.turn()
    scene.refused()
    assert [entry[1] for entry in book] == ["reserve", "permit", "pre_bind", "unreserve"]


class Gang:
    """Keeps every pod waiting until there are `size` of them."""

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
    """A stage with a gang plugin, `size` pods to a gang."""

    def make(size, *objects):
        return stage(
            *objects,
            profiles=(Profile(plugins=(*DEFAULT_PLUGINS, ("Gang", 0))),),
            out_of_tree={"Gang": lambda handle, _args: Gang(handle, size, 10)},
        )

    return make


def test_permitted_pods_wait_for_each_other(gang):
    """Their room is taken meanwhile, and where they will go is told; then all are bound."""
    scene = gang(3, make_node("n1"), *(make_pod(f"p{i}") for i in range(3)))
    assert scene.turn() == [("patch", "p0", {"nominatedNodeName": "n1"})]
    assert scene.turn() == [("patch", "p1", {"nominatedNodeName": "n1"})]
    assert scene.on("n1") == ["default/p0", "default/p1"]
    assert sorted(scene.turns()) == [("bind", f"p{i}", "n1") for i in range(3)]


def test_who_waits_too_long_gives_its_room_back(gang):
    """And says so; the promise is taken back."""
    scene = gang(3, make_node("n1"), make_pod("p0"))
    scene.turn()
    scene.done("patch")
    scene.put(make_pod("p0", nominated="n1"))
    assert not scene.is_due()
    event, patch = scene.turn(10)
    assert "timeout" in event[3]
    assert "Gang" in event[3]
    assert patch[2] == {"nominatedNodeName": None}
    assert (scene.on("n1"), scene.place("p0")) == ([], "unschedulable")


def test_whoever_goes_while_it_waits_gives_its_room_back(gang):
    """At once; the others wake up to it."""
    pods = [make_pod("p0", requests={"cpu": "4"}), make_pod("p1", requests={"cpu": "4"})]
    scene = gang(2, make_node("n1"), *pods)
    scene.turn()
    scene.turn()
    scene.all_done()
    assert (scene.on("n1"), scene.place("p1")) == (["default/p0"], "unschedulable")
    scene.gone(pods[0])
    scene.turns()
    scene.all_done()
    scene.turns()
    assert scene.on("n1") == ["default/p1"]


class Some:
    """A Bind plugin that takes pods with labels."""

    name = "Some"

    def __init__(self):
        self.taken = []

    def bind(self, pod, node):
        if not pod.labels:
            return None
        self.taken.append(pod.pod.metadata.name)
        return Bind(pod.ref, node)


def test_a_bind_plugin_may_leave_a_pod_to_the_next(staged):
    """The first that takes it binds it."""
    plugin, pods = Some(), [make_pod("a", labels={"x": "y"}), make_pod("b")]
    scene = staged(plugin, objects=[make_node("n1"), *pods])
    assert scene.turns() == [("bind", "a", "n1"), ("bind", "b", "n1")]
    assert plugin.taken == ["a"]
