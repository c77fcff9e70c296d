"""Object changes of several watches are passed on in the order of their resource versions."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_node, make_pod
from fairlead.worlds.cluster.version_order import WAIT, VersionOrder


class Recording:
    """An engine that records the names of the objects that it receives."""

    def __init__(self):
        self.cluster = Cluster()
        self.names = []

    def handle(self, stimulus, _now):
        objects = stimulus.objects if type(stimulus) is ObjectsLoaded else [stimulus.object]
        self.names += [one.metadata.name for one in objects]
        return ()


def versioned(made, version):
    return replace(made, metadata=replace(made.metadata, resource_version=version))


def pod(name, version):
    return ObjectChanged(versioned(make_pod(name), version))


def node(name, version):
    return ObjectChanged(versioned(make_node(name), version))


def passed(*arrivals, until=10 * WAIT):
    """Return the names in the order of the engine; `arrivals` are (time, stimulus)."""
    engine, waiting = Recording(), [*arrivals]
    order = VersionOrder(engine)
    while True:
        due, [at, *_] = order.next_deadline(), waiting[0] if waiting else [until]
        if due is not None and due <= min(at, until):
            order.handle_deadline(due)
        elif waiting:
            order.handle(waiting.pop(0)[1], at)
        else:
            return engine.names


def test_a_change_that_arrives_later_with_a_lower_version_comes_first():
    assert passed((0, pod("p", "9")), (1, node("n", "8")), (2, pod("q", "10"))) == ["n", "p", "q"]


def test_versions_are_compared_as_numbers():
    assert passed((0, pod("p", "10")), (1, node("n", "9"))) == ["n", "p"]


def test_a_change_waits_no_longer_than_the_limit():
    assert passed((0, pod("p", "9")), (WAIT + 1, node("n", "8"))) == ["p", "n"]
    assert passed((0, pod("p", "9")), until=WAIT - 1) == []
    assert passed((0, pod("p", "9")), (5, pod("q", "10")), until=WAIT) == ["p"]


def test_changes_of_one_kind_keep_their_order():
    """A deletion that a list shows has the version of the object's last change."""
    gone = ObjectDeleted(versioned(make_pod("old"), "3"))
    assert passed((0, pod("p", "9")), (1, gone), (2, node("n", "8"))) == ["n", "p", "old"]


def test_a_change_whose_version_is_not_a_number_comes_after_earlier_arrivals():
    assert passed((0, pod("p", "9")), (1, node("n", "x")), (2, pod("q", "10"))) == ["p", "n", "q"]


def test_the_first_objects_are_passed_on_immediately():
    assert passed((0, ObjectsLoaded([make_node("n")])), until=0) == ["n"]


def test_changes_that_wait_at_the_end_are_passed_on():
    engine = Recording()
    order = VersionOrder(engine)
    order.handle(pod("p", "9"), 0)
    order.handle(node("n", "8"), 0)
    order.flush(0)
    assert (engine.names, order.next_deadline()) == (["n", "p"], None)
