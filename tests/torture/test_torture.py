"""Control planes under random faults: some seeds, and every scenario that has failed before."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairlead.engine.core.command import DeleteObject, IssuedCommand, ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import controller_account
from fairlead.engine.core.reporter import PodUnschedulable
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.engine import Engine
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.torture.auditor import Auditor
from fairlead.testing.torture.fault.unreliable_plugin import UnreliablePlugin
from fairlead.testing.torture.law import Law, LawBrokenError
from fairlead.testing.torture.run import run
from fairlead.testing.torture.scenario import from_yaml, to_yaml
from fairlead.testing.torture.scenario_generator import draw

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
# The first with Cluster Autoscaler and a plugin that raises, the other with Karpenter.
SEEDS = (1, pytest.param(5, marks=pytest.mark.long))
TEN_MINUTES = 600_000
HALF_AN_HOUR = 1_800_000


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenarios_that_failed_before_pass(path):
    assert run(from_yaml(path.read_text())).failure is None


@pytest.mark.parametrize("seed", SEEDS)
def test_every_law_holds_under_faults(seed):
    result = run(draw(seed, chaos_ms=HALF_AN_HOUR))
    assert result.failure is None
    commands = result.tally["commands"]
    assert commands / 20 < len(result.faults) < commands / 10


@pytest.fixture(scope="module")
def short():
    return run(draw(8, chaos_ms=TEN_MINUTES, nodes=8))


@pytest.mark.long
def test_equal_seeds_give_equal_commands(short):
    again = run(draw(8, chaos_ms=TEN_MINUTES, nodes=8))
    assert again.digest == short.digest
    assert again.tally == short.tally


@pytest.mark.long
def test_a_scenario_with_explicit_faults_gives_the_same_run(short):
    """So a failing scenario can be reduced fault by fault."""
    scenario = replace(draw(8, chaos_ms=TEN_MINUTES, nodes=8), faults=short.faults)
    assert run(from_yaml(to_yaml(scenario))).digest == short.digest


def test_every_law_is_checked(short):
    """Laws that a single run does not check are named."""
    seldom = {Law.NO_CRASH, Law.NO_LIVELOCK, Law.DETERMINISM, Law.RUNS}
    unchecked = {law for law in Law if not short.checked[law.name]}
    assert unchecked <= seldom | {Law.ZONE_RATE, Law.QUOTA, Law.TOLERATION, Law.LOWER_VICTIM}


@pytest.mark.parametrize("is_meant", [False, True])
def test_an_error_that_a_scheduler_caught_is_found(is_meant):
    """Errors of the plugin that raises on purpose do not count."""
    plugin = UnreliablePlugin.name if is_meant else "DefaultPreemption"
    message = f"0/2 nodes are available: 2 Insufficient cpu. plugin {plugin!r} failed: TypeError: x"
    ref = ObjectRef("Pod", "a", "p", "u")
    record = PodUnschedulable(ref, 0, message, (), None, False, False, 0, 1, "s")
    auditor = Auditor(Counter(), lambda *_: None)
    with nullcontext() if is_meant else pytest.raises(LawBrokenError, match="DefaultPreemption"):
        auditor.report(record)


class Evicting:
    """An engine that deletes `pod` at its deadline, because of a taint."""

    def __init__(self, pod):
        self.delete = DeleteObject(pod, why="taint")

    def handle(self, _stimulus, _now):
        return []

    def handle_deadline(self, _now):
        return [IssuedCommand(self.delete, controller_account("taint-eviction-controller"))]


@pytest.mark.parametrize(("after_s", "is_legal"), [(299, False), (300, True)])
@pytest.mark.parametrize("deleted", [False, True])
def test_tolerations_of_pods_on_deleted_nodes_expire_too(after_s, is_legal, deleted):
    """As upstream (taint_eviction.go: handleNodeUpdate), timers of deleted nodes are kept."""
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    node = make_node("a", taints=["node.kubernetes.io/unreachable:NoExecute"])
    toleration = {**taint, "operator": "Exists", "tolerationSeconds": 300}
    pod = make_pod("p", node="a", spec={"tolerations": [toleration]})
    auditor = Auditor(Counter(), lambda *_: None)
    auditor.attach(Evicting(ObjectRef("Pod", "default", "p", pod.metadata.uid)))
    for seen in (node, pod):
        auditor.handle(ObjectChanged(seen), 0)
    if deleted:
        auditor.handle(ObjectDeleted(node), seconds(10))
    with nullcontext() if is_legal else pytest.raises(LawBrokenError, match="default/p"):
        auditor.handle_deadline(seconds(after_s))


def test_a_refused_eviction_is_tried_five_times_at_most():
    """As upstream, this also holds after the taint is removed, and after a jump of the clock."""
    tainted, free = make_node("a", taints=["t:NoExecute"]), make_node("a")
    pod = make_pod("p", node="a")
    auditor = Auditor(Counter(), lambda *_: None)
    auditor.attach(Evicting(ObjectRef("Pod", "default", "p", pod.metadata.uid)))
    for seen in (tainted, pod):
        auditor.handle(ObjectChanged(seen), 0)
    auditor.handle_deadline(0)
    auditor.handle(ObjectChanged(free), 0)
    for _ in range(4):
        auditor.handle_deadline(seconds(3600))
    with pytest.raises(LawBrokenError, match="default/p"):
        auditor.handle_deadline(seconds(3600))


class Indiscriminate:
    """A controller that receives every stimulus, and whose deadline is read each time."""

    def __init__(self, controller):
        self.issuer = controller.issuer
        self.handle = controller.handle
        self.next_deadline = controller.next_deadline
        self.handle_deadline = controller.handle_deadline


@pytest.mark.long
def test_interests_exclude_only_stimuli_that_controllers_ignore(short):
    """Otherwise a controller would miss a change, and the commands would differ."""

    def with_all_stimuli(engine):
        return Engine(engine.cluster, [Indiscriminate(one) for one in engine.controllers])

    assert run(short.scenario, with_all_stimuli).digest == short.digest
