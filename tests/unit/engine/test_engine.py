"""Engine: stimuli change the state, then controllers run in order; one unit per deadline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.objects import Node, Pod
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.compose import build_engine, build_scheduler_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.command import (
    Bind,
    CreateObject,
    DeleteObject,
    IssuedCommand,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import earliest
from fairlead.engine.core.interest import Interest, WritesTo
from fairlead.engine.core.issuer import controller_account
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
)
from fairlead.engine.engine import Engine
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.scheduling.release_1_19 import V1_19
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.builders import make_node, make_pod


def command(name):
    return DeleteObject(ObjectRef("Pod", "default", name))


def issued(name):
    return IssuedCommand(command(name), controller_account(name))


class Spy:
    """A controller that records its calls and the state at each call."""

    def __init__(self, name, diary, due=None):
        self.issuer = controller_account(name)
        self.name = name
        self.diary = diary
        self.due = due
        self.cluster = None

    def handle(self, stimulus, now):
        nodes = self.cluster.table.count if self.cluster else None
        self.diary.append((self.name, type(stimulus).__name__, now, nodes))
        return [command(self.name)]

    def next_deadline(self):
        return self.due

    def handle_deadline(self, now):
        self.diary.append((self.name, "deadline", now))
        self.due = None
        return [command(self.name)]


@pytest.fixture
def diary():
    return []


def engine_of(*spies):
    engine = Engine(Cluster(), spies)
    for spy in spies:
        spy.cluster = engine.cluster
    return engine


def test_all_controllers_handle_a_stimulus_after_the_state(diary):
    """In order, and their commands are returned in the same order."""
    engine = engine_of(Spy("a", diary), Spy("b", diary))
    assert engine.handle(ObjectChanged(make_node("n")), 7) == [issued("a"), issued("b")]
    assert diary == [("a", "ObjectChanged", 7, 1), ("b", "ObjectChanged", 7, 1)]


def test_all_controllers_handle_outcomes(diary):
    """The controller that sent the command recognizes it."""
    engine = engine_of(Spy("a", diary), Spy("b", diary))
    engine.handle(CommandSucceeded(command("x")), 1)
    assert [name for name, *_ in diary] == ["a", "b"]


@pytest.mark.parametrize(
    ("stimulus", "concerned"),
    [
        pytest.param(ObjectChanged(make_pod("p")), ["a"], id="a changed pod"),
        pytest.param(ObjectChanged(make_node("n")), ["a", "b"], id="a changed node"),
        pytest.param(ObjectDeleted(make_node("n")), ["a"], id="a deleted node"),
        pytest.param(CommandSucceeded(command("x")), ["a"], id="a deletion that succeeded"),
        pytest.param(
            CommandFailed(command("x"), FailureReason.CONFLICT, ""),
            ["a", "b"],
            id="a deletion that failed",
        ),
        pytest.param(ObjectsLoaded([]), ["a", "b"], id="a load concerns everyone"),
    ],
)
def test_a_controller_gets_what_its_interest_includes(diary, stimulus, concerned):
    a, b = Spy("a", diary), Spy("b", diary)
    b.interest = Interest(changed=(Node,), deleted=(), succeeded=(), failed=(DeleteObject,))
    engine_of(a, b).handle(stimulus, 1)
    assert [name for name, *_ in diary] == concerned


def test_readiness_changes_are_handled_only_by_interested_controllers(diary):
    """For all others the stimulus is a changed pod."""
    a, b, c = (Spy(name, diary) for name in "abc")
    a.interest, b.interest = Interest(readiness=False), Interest(changed=(Node,))
    engine_of(a, b, c).handle(ReadinessChanged(make_pod("p")), 1)
    assert diary == [("c", "ReadinessChanged", 1, 0)]


@pytest.mark.parametrize("keeps_readiness", [True, False])
def test_the_state_contains_the_newest_readiness_if_it_is_read(keeps_readiness):
    """The readiness is part of a later change of another kind."""
    cluster = Cluster(keeps_readiness=keeps_readiness)
    cluster.apply(ObjectChanged(make_node("n")))
    before, after = (make_pod("p", uid="p", node="n") for _ in range(2))
    cluster.apply(ObjectChanged(before))
    cluster.apply(ReadinessChanged(after))
    assert cluster.pods["default/p"].pod is (after if keeps_readiness else before)
    assert len(cluster.changes) == keeps_readiness
    cluster.apply(ObjectChanged(after))
    assert cluster.pods["default/p"].pod is after


def unused(handle, args):
    """The factory of a plugin that no profile names."""
    raise NotImplementedError


@pytest.mark.parametrize(
    ("config", "keeps"),
    [
        pytest.param(EngineConfig(), False, id="nothing reads it"),
        pytest.param(
            EngineConfig(karpenter=KarpenterConfig(pools=(), types=())), True, id="an autoscaler"
        ),
        pytest.param(
            EngineConfig(scheduler=SchedulerConfig(out_of_tree={"Own": unused})),
            True,
            id="a plugin of the user",
        ),
        pytest.param(
            EngineConfig(scheduler=SchedulerConfig(version=V1_19)), True, id="an older queue"
        ),
    ],
)
def test_the_state_keeps_readiness_only_if_a_controller_reads_it(config, keeps):
    """Otherwise, changes of readiness are not passed to the scheduler either."""
    engine = build_engine(config, SilentReporter())
    assert engine.cluster.keeps_readiness is keeps
    assert engine.find(Scheduler).interest.readiness is keeps


class PodSpy(Spy):
    """A PodHandler that records its calls."""

    def handle_pod(self, pod, now):
        self.diary.append((self.name, pod.metadata.name, now))
        return ()


def test_a_pod_handler_gets_changed_pods_and_all_other_stimuli(diary):
    engine = engine_of(Spy("a", diary), PodSpy("b", diary))
    assert engine.handle(ObjectChanged(make_pod("p")), 1) == [issued("a")]
    engine.handle(ObjectDeleted(make_pod("p")), 2)
    engine.handle(ObjectChanged(make_node("n")), 3)
    assert [entry[:2] for entry in diary if entry[0] == "b"] == [
        ("b", "p"),
        ("b", "ObjectDeleted"),
        ("b", "ObjectChanged"),
    ]


class ReadinessSpy(PodSpy):
    """A ReadinessHandler that records its calls."""

    def handle_readiness(self, pod, now):
        self.diary.append((self.name, f"readiness of {pod.metadata.name}", now))
        return ()


def test_changes_of_readiness_go_to_the_most_specific_method(diary):
    engine = engine_of(Spy("a", diary), PodSpy("b", diary), ReadinessSpy("c", diary))
    assert engine.handle(ReadinessChanged(make_pod("p")), 1) == [issued("a")]
    engine.handle(ObjectChanged(make_pod("q")), 2)
    assert [entry[:2] for entry in diary] == [
        ("a", "ReadinessChanged"),
        ("b", "p"),
        ("c", "readiness of p"),
        ("a", "ObjectChanged"),
        ("b", "q"),
        ("c", "q"),
    ]


@pytest.mark.parametrize(
    ("written", "concerned"),
    [
        pytest.param(PatchStatus(ObjectRef("Pod", "ns", "p")), ["a", "b"], id="a pod's status"),
        pytest.param(PatchStatus(ObjectRef("Node", "", "n")), ["a"], id="a node's status"),
        pytest.param(PatchObject(ObjectRef("Pod", "ns", "p"), {}), ["a"], id="a pod's labels"),
        pytest.param(CreateObject({"kind": "Job"}), ["a", "b"], id="a new Job"),
        pytest.param(CreateObject({"kind": "Pod"}), ["a"], id="a new pod"),
        pytest.param(Bind(ObjectRef("Pod", "ns", "p"), "n"), ["a", "b"], id="a whole class"),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_an_interest_may_name_the_kinds_that_a_command_writes(diary, written, concerned, fails):
    a, b = Spy("a", diary), Spy("b", diary)
    needed = (WritesTo(PatchStatus, ("Pod",)), WritesTo(CreateObject, ("Job",)), Bind)
    b.interest = Interest(succeeded=needed, failed=needed)
    failed = CommandFailed(written, FailureReason.CONFLICT, "")
    engine_of(a, b).handle(failed if fails else CommandSucceeded(written), 1)
    assert [name for name, *_ in diary] == concerned


def test_successes_are_filtered_by_kind_only_for_controllers_that_name_kinds(diary):
    """Also after other successes of the class, in one engine."""
    a, b = Spy("a", diary), Spy("b", diary)
    b.interest = Interest(succeeded=(WritesTo(PatchStatus, ("Pod",)), Bind))
    engine, pod = engine_of(a, b), ObjectRef("Pod", "ns", "p")
    node = ObjectRef("Node", "", "n")
    for written in [
        *[PatchStatus(node), PatchStatus(pod)] * 2,
        *[Bind(pod, "n")] * 2,
        *[DeleteObject(pod)] * 2,
    ]:
        engine.handle(CommandSucceeded(written), 1)
        diary.append(("", "", 0, 0))
    handled = "".join(name or " " for name, *_ in diary).split()
    assert handled == ["a", "ab", "a", "ab", "ab", "ab", "a", "a"]


@pytest.mark.parametrize(
    ("issuer", "concerned"),
    [
        pytest.param(controller_account("a"), ["a"], id="of one controller"),
        pytest.param(controller_account("b"), ["b"], id="of another controller"),
        pytest.param(controller_account("x"), [], id="of no controller"),
        pytest.param(None, ["a", "b"], id="not stated"),
    ],
)
def test_successes_go_to_the_controllers_with_the_issuer_of_the_command(diary, issuer, concerned):
    """If the world does not state the issuer, they go to all interested controllers."""
    a, b, c = Spy("a", diary), Spy("b", diary), Spy("c", diary)
    c.interest = Interest(succeeded=())
    engine = engine_of(a, b, c)
    for _ in range(2):
        engine.handle(CommandSucceeded(command("p"), controller_account("a")), 1)
        diary.clear()
        engine.handle(CommandSucceeded(command("p"), issuer), 1)
        assert [name for name, *_ in diary] == concerned


def test_successes_that_are_filtered_by_kind_go_only_to_their_issuer_too(diary):
    a, b = Spy("a", diary), Spy("b", diary)
    a.interest = Interest(succeeded=(WritesTo(PatchStatus, ("Pod",)),))
    engine, status = engine_of(a, b), PatchStatus(ObjectRef("Pod", "ns", "p"))
    for issuer in (a.issuer, b.issuer, None, a.issuer):
        engine.handle(CommandSucceeded(status, issuer), 1)
        diary.append(("", "", 0, 0))
    assert "".join(name or " " for name, *_ in diary).split() == ["a", "b", "ab", "a"]


def test_an_interest_also_limits_the_successes_of_own_commands(diary):
    a, b = Spy("a", diary), Spy("b", diary)
    a.interest = Interest(succeeded=(Bind,))
    engine, pod = engine_of(a, b), ObjectRef("Pod", "ns", "p")
    for written in (Bind(pod, "n"), DeleteObject(pod)):
        engine.handle(CommandSucceeded(written, a.issuer), 1)
    assert [name for name, *_ in diary] == ["a"]


@pytest.mark.parametrize(
    ("dues", "expected"),
    [((None, None), None), ((None, 5), 5), ((9, 5), 5), ((0, 5), 0), ((-3, None), -3)],
)
def test_the_next_deadline_is_the_earliest(diary, dues, expected):
    """It is None if only a stimulus can cause work."""
    engine = engine_of(*(Spy(str(i), diary, due) for i, due in enumerate(dues)))
    assert engine.next_deadline() == expected


def test_a_deadline_does_one_unit_of_work(diary):
    """The first controller with due work acts, not the one with the earliest deadline."""
    engine = engine_of(Spy("a", diary, 5), Spy("b", diary, 3), Spy("c", diary, 9))
    assert engine.handle_deadline(5) == [issued("a")]
    assert engine.handle_deadline(5) == [issued("b")]
    assert engine.handle_deadline(5) == []
    assert engine.next_deadline() == 9


def test_a_cached_deadline_is_read_again_after_each_handler(diary):
    """Deadlines of controllers without an interest are read each time."""
    a, b = Spy("a", diary, 5), Spy("b", diary, 7)
    a.interest = Interest()
    engine = engine_of(a, b)
    assert engine.next_deadline() == 5
    a.due, b.due = 1, 3
    assert engine.next_deadline() == 3
    engine.handle(ObjectChanged(make_node("n")), 0)
    assert engine.next_deadline() == 1
    assert engine.handle_deadline(1) == [issued("a")]
    assert engine.next_deadline() == 3


class Timer:
    """A controller whose next deadline changes at each call, to the next one of `dues`."""

    def __init__(self, name, dues, interest):
        self.issuer = controller_account(name)
        self.name = name
        self.interest = interest
        self.dues = dues
        self.calls = 0
        self.questions = 0

    def handle(self, stimulus, now):
        self.calls += 1
        return []

    @property
    def due(self):
        return self.dues[self.calls % len(self.dues)]

    def next_deadline(self):
        self.questions += 1
        return self.due

    def handle_deadline(self, now):
        self.calls += 1
        return [command(self.name)]


INTERESTS = Interest(), Interest(changed=(Node,)), Interest(changed=(Pod,)), Interest(changed=())
TIMERS = st.lists(
    st.tuples(
        st.lists(st.none() | st.integers(-2, 3), min_size=1, max_size=4),
        st.sampled_from(INTERESTS),
    ),
    min_size=1,
    max_size=4,
)
CALLS = st.lists(st.sampled_from(["node", "pod", "deadline", "overdue", "ask"]), max_size=12)


def at_once_if_past(due):
    """Return a deadline; all deadlines before the time 0 mean the same as 0."""
    return None if due is None else max(due, 0)


@given(TIMERS, CALLS)
def test_cached_deadlines_equal_those_of_all_controllers(timers, calls):
    timers = [Timer(str(place), *parts) for place, parts in enumerate(timers)]
    engine = Engine(Cluster(), timers)
    for call in calls:
        due = [one.name for one in timers if one.due is not None and one.due <= 0]
        match call:
            case "node":
                engine.handle(ObjectChanged(make_node("n")), 0)
            case "pod":
                engine.handle(ObjectChanged(make_pod("p")), 0)
            case "deadline":
                assert engine.handle_deadline(0) == [issued(name) for name in due[:1]]
            case "overdue":
                assert engine.handle_overdue(0) == [issued(name) for name in due]
            case _:
                expected = earliest(*(one.due for one in timers))
                assert at_once_if_past(engine.next_deadline()) == at_once_if_past(expected)


def test_only_deadlines_of_controllers_that_ran_are_read_again():
    busy, idle = (Timer(one, [5], INTERESTS[at]) for at, one in enumerate(["a", "b"], 2))
    engine = Engine(Cluster(), [idle, busy])
    for _ in range(3):
        engine.handle(ObjectChanged(make_pod("p")), 0)
        engine.next_deadline()
        engine.next_deadline()
    assert (idle.questions, busy.questions) == (1, 3)


def test_a_due_controller_is_asked_once_before_it_works():
    """`handle_deadline` relies on the answers to `next_deadline` at the same instant."""
    first, second = (Timer(name, dues, Interest()) for name, dues in (("a", [9]), ("b", [0, 9])))
    engine = Engine(Cluster(), [first, second])
    assert (engine.next_deadline(), engine.handle_deadline(0)) == (0, [issued("b")])
    assert (first.questions, second.questions) == (1, 1)
    engine.next_deadline()
    engine.handle(ObjectChanged(make_node("n")), 0)
    assert engine.handle_deadline(0) == [issued("b")]


def test_controllers_after_the_first_with_due_work_are_asked_later():
    """Their deadlines are not needed until the controllers before them have no due work."""
    first, second = (Timer(name, [0, 9], Interest()) for name in "ab")
    engine = Engine(Cluster(), [first, second])
    assert engine.next_deadline() == 0
    assert engine.handle_deadline(0) == [issued("a")]
    assert (second.questions, engine.next_deadline(), second.questions) == (0, 0, 1)


def test_every_controller_with_due_work_runs(diary):
    engine = engine_of(Spy("a", diary, 5), Spy("b", diary, 9), Spy("c", diary, 3))
    assert engine.handle_overdue(5) == [issued("a"), issued("c")]
    assert engine.next_deadline() == 9


@pytest.mark.parametrize("build", [build_engine, build_scheduler_engine])
def test_composed_engines_schedule(build):
    """With all other controllers, and with the scheduler alone."""
    engine = build(EngineConfig(seed=3, start=100), SilentReporter())
    assert engine.next_deadline() is None
    engine.handle(ObjectsLoaded([make_pod("p"), make_node("n")]), 100)
    assert engine.next_deadline() is not None
    found = []
    while (due := engine.next_deadline()) is not None and due <= 100 and not found:
        found = engine.handle_deadline(100)
    assert [type(one.command).__name__ for one in found] == ["Bind"]


def test_an_engine_has_each_controller_once():
    """Two autoscalers would both create nodes for the same pods."""
    config = EngineConfig(
        autoscaler=ClusterAutoscalerConfig(()), karpenter=KarpenterConfig(pools=(), types=())
    )
    engine = build_engine(config, SilentReporter())
    classes = [type(controller).__name__ for controller in engine.controllers]
    assert {"ClusterAutoscaler", "Karpenter"} <= set(classes)
    assert len(classes) == len(set(classes))
