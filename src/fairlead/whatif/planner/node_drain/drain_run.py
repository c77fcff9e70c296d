"""Runs the drains of a plan in a simulation, to measure their time and their effect on workloads.

The simulation's drain controller evicts through the eviction API, so its evictions violate no
budget. The run shows how long budgets delay the drains, and whether workloads without a budget
stop.

The drains begin when the cluster is at rest. The cluster is also simulated without drains. Pending
pods and violations of budgets that occur in that simulation are not counted as effects of the
drains.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.kind import NODE, STATEFUL_SET
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.instant import DurationNs, Instant, seconds, to_seconds
from fairlead.engine.workloads.drain.rolling_drain import RollingDrainOptions
from fairlead.engine.workloads.node_annotation import DONE, DRAIN, IN_TURN
from fairlead.whatif.change import commands
from fairlead.whatif.change.rolling_drain import nodes_at_once
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.outcome.comparison.difference import WAITS_FOR_LOWER
from fairlead.whatif.outcome.outage import DrainProgress
from fairlead.whatif.outcome.run_outcome import (
    ObjectError,
    PodEnd,
    RunOutcome,
    UndrainedCause,
    negative_workloads,
)
from fairlead.whatif.outcome.scheduling_message import reasons_of
from fairlead.whatif.outcome.workload import POD, WorkloadRef
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import ExperimentRun, run_experiment
from fairlead.whatif.run.parallel.forked_call import can_fork, in_child, in_children
from fairlead.whatif.run.parallel.run_pair import has_missed_end, outcome_until
from fairlead.whatif.run.progress import PhasesInTurn, Progress
from fairlead.whatif.snapshot.manifest import Manifest

SOURCE: Final = "plan"
_HORIZON: Final = seconds(7 * 24 * 3600)


class DrainPace(Struct, frozen=True):
    """A pace of drains: at most `max_unavailable` nodes at a time.

    Each node returns after `away`; if `away` is None, no node returns. `share` is a percentage of
    the nodes of each round, such as "5%". If `share` is set, `max_unavailable` is the number of
    nodes for the largest round.
    """

    max_unavailable: int
    away: DurationNs | None = None
    share: str = ""

    @property
    def words(self) -> str:
        """The pace as text: `one at a time`, or a number such as `4 at a time`."""
        return "one at a time" if self.max_unavailable == 1 else f"{self.max_unavailable} at a time"

    def of(self, nodes: int) -> int:
        """Return how many of `nodes` nodes are drained at the same time."""
        return nodes_at_once(self.share, nodes) if self.share else self.max_unavailable


class DrainRound(Struct, frozen=True):
    """A group of nodes to drain. The `added` objects, such as surge nodes, exist during the drains.

    The added nodes are drained and deleted before the next round begins, or before the run ends.
    """

    nodes: tuple[str, ...]
    added: tuple[Manifest, ...] = ()

    @property
    def added_nodes(self) -> list[str]:
        """The names of the added nodes."""
        return [one.ref.name for one in self.added if one.kind is NODE]


class StoppedWorkload(Struct, frozen=True):
    """A workload that wants `wanted` pods, and had no ready pod for a time.

    `stopped_for` is this time (ns); None if it lasted to the end.
    """

    workload: WorkloadRef
    wanted: int
    stopped_for: DurationNs | None


class UncreatedPods(Struct, frozen=True):
    """A `workload` that cannot create some of its pods; `pods` is their number."""

    workload: WorkloadRef
    pods: int
    why: str

    @property
    def is_refused(self) -> bool:
        """Whether the API server refuses the pods.

        If the result is False, a StatefulSet creates the pods only after its lower ordinals are
        ready.
        """
        return self.why != WAITS_FOR_LOWER

    @property
    def reason(self) -> str:
        """The part of `why` that names the rule: the text after the name of the refused pod."""
        before, _, after = self.why.partition(" is forbidden: ")
        return after or before


class _Baseline(Struct, frozen=True):
    """The result of a simulation without a drain."""

    after: DurationNs  # the time from the start until the cluster was at rest
    # Pods without a node at the end.
    pending: dict[str, WorkloadRef]  # {key: workload}
    lost: frozenset[str]  # pods that are gone for good
    breaches: int  # the number of evictions in violation of a budget
    missing: dict[str, int]  # {object: the number of pods that it failed to create}
    failed_jobs: list[ObjectError]  # the Jobs that failed or can no longer succeed
    # The number of displaced pods that each StatefulSet has not created again.
    shortages: Counter[WorkloadRef]
    # The first instant after the simulation at which a pod or a Job would have ended by itself;
    # None if there is no such instant.
    next_end: Instant | None


class DrainTimes(Struct, frozen=True):
    """The times of the drain of `node`; a time is None if the drain did not reach this stage.

    `begun` counts from the start of all drains. `emptied` (the node was empty) and `back` (it was
    in service again) count from the beginning of this drain.
    """

    node: str
    begun: DurationNs | None
    emptied: DurationNs | None
    back: DurationNs | None


class DrainRun(Struct, frozen=True):
    """The result of draining `pace.max_unavailable` nodes at a time.

    The fields `pending`, `pending_negative`, `lost`, `breaches`, `uncreated` and `failed_jobs`
    contain only effects of the drains. A run with `breaches` is not safe.
    """

    pace: DrainPace
    # The time until the last node was empty and, if nodes return, back in service; None if there
    # are `unfinished` nodes.
    took: DurationNs | None
    evicted: int  # the number of evictions
    waited: int  # the number of pods whose eviction a budget refused at least once
    unfinished: tuple[str, ...]  # nodes that never became empty or never returned
    # The workloads that had no ready pod for a time, without those with a negative priority.
    stopped: tuple[StoppedWorkload, ...]
    pending: dict[str, str]  # {pod without a node at the end: the scheduler's reason}
    # Pods that had no controller, and were displaced from nodes that were not to be drained.
    lost: tuple[str, ...]
    breaches: int  # the number of evictions in violation of a budget
    # Pods that were displaced and cannot be created again.
    uncreated: tuple[UncreatedPods, ...] = ()
    failed_jobs: tuple[ObjectError, ...] = ()  # the Jobs that failed or can no longer succeed
    times: tuple[DrainTimes, ...] = ()
    # {budget: the pods in `waited`}
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unbegun: tuple[str, ...] = ()  # the `unfinished` nodes whose drain never began
    held_up_by: tuple[str, ...] = ()  # the budgets that refused evictions until the end
    # {pod that finalizers keep on a node: the reason}
    kept: dict[str, str] = field(default_factory=dict)
    # Names the pods whose images might not support the platform of the pods' new nodes.
    image_notes: tuple[str, ...] = ()
    # The number of evictions of pods that replace a pod that was evicted before. Such a replacement
    # was on a node that was drained later.
    evicted_again: int = 0
    # Whether a Job had no ready pod for a time because its pods were displaced. Workloads of other
    # kinds whose pods end by themselves count as Jobs.
    stops_jobs: bool = False
    # Name the extenders with failed calls that were ignored, and the checks that admission skipped.
    rule_notes: tuple[str, ...] = ()
    # Pods with a negative priority that have no node at the end. They exist to give way to other
    # pods, so they are not in `pending`. This includes pods that a StatefulSet creates only when
    # its other pods have a node; these are not in `uncreated`.
    pending_negative: tuple[str, ...] = ()
    # Whether a workload with a negative priority had no ready pod for a time.
    stops_negative: bool = False

    @property
    def away(self) -> dict[str, DurationNs]:
        """The time from the beginning of a node's drain until the node was back, by node."""
        return {one.node: one.back for one in self.times if one.back is not None}

    @property
    def is_safe(self) -> bool:
        """Whether all nodes are drained, all pods run again, and no replicated workload stops.

        If a Job fails, the run is not safe. A run can be safe although the drained nodes lose pods
        that have no controller.
        """
        replicated = [one for one in self.stopped if one.wanted > 1]
        missing = self.pending or self.uncreated or self.failed_jobs or self.lost
        return not (self.unfinished or replicated or missing or self.breaches)


def run_drains(
    experiment: Experiment,
    rounds: Sequence[DrainRound],
    paces: Sequence[DrainPace],
    progress: Progress,
    *,
    first_alone: bool = False,
    ignores_negative: bool = True,
) -> list[DrainRun]:
    """Simulate the drains of `rounds` at each of `paces`, up to the first pace that is not safe.

    A round begins when the nodes of the previous round are back. The nodes that were added for the
    previous round (`DrainRound.added`), such as surge nodes, must also be empty. Raises InputError
    if `experiment` cannot be run.

    Runs at several paces are simulated at the same time, one on each core. If the run at the first
    pace is not safe, the other runs are discarded. If this is likely, callers set `first_alone`:
    the other runs then begin after the first run has ended. The result is the same in both cases.

    If `ignores_negative` is False, pods with a negative priority count like all other pods: a run
    is not safe if they are pending at its end, or if their workload stops.
    """
    base = replace(experiment, steps_begin=None, horizon=_HORIZON)

    def compared(pace: DrainPace, outcome: RunOutcome) -> DrainRun:
        known, until = baseline, outcome.ended_at
        if has_missed_end(known.next_end, outcome):
            known = _baseline_of(outcome_until(base, known.after, until, progress))
        return _drain_run(pace, rounds, outcome, known, ignores_negative=ignores_negative)

    # The connections to extenders cannot be shared with a forked process.
    if experiment.scheduler.extenders or not can_fork():
        baseline = _baseline_of(run_experiment(base, "at rest", progress).outcome)
        after = baseline.after
        return _until_unsafe(
            compared(pace, _run_apart(base, rounds, pace, after, progress)) for pace in paces
        )
    run = ExperimentRun(base, None)
    run.start("loading", progress)
    shared = run.keep_state()
    forked = in_child(lambda: _baseline_of(run.finish(progress).outcome), shared)
    # None if the forked process failed, perhaps for lack of memory.
    baseline = forked or _baseline_of(run_experiment(base, "at rest", progress).outcome)
    after = baseline.after
    phases = PhasesInTurn(progress)
    calls = [
        partial(_finish, run, rounds, pace, after, phases.phase(number, _phase_of(pace)))
        for number, pace in enumerate(paces)
    ]

    def outcomes() -> Generator[RunOutcome | None, None, None]:
        for part in (calls[:1], calls[1:]) if first_alone else (calls,):
            with closing(in_children(part, shared)) as found:
                yield from found

    def drained() -> Generator[DrainRun, None, None]:
        with closing(outcomes()) as found:
            for pace, outcome in zip(paces, found, strict=True):
                known = outcome or _run_apart(base, rounds, pace, after, progress)
                phases.end_phase()
                yield compared(pace, known)

    with closing(drained()) as runs:
        return _until_unsafe(runs)


def _phase_of(pace: DrainPace) -> str:
    return f"draining {pace.max_unavailable} at once"


def _until_unsafe(runs: Iterable[DrainRun]) -> list[DrainRun]:
    """Return `runs` up to and including the first unsafe run.

    The later runs drain more nodes at a time, and are not expected to be safer.
    """
    found = []
    for run in runs:
        found.append(run)
        if not run.is_safe:
            break
    return found


def _finish(
    run: ExperimentRun,
    rounds: Sequence[DrainRound],
    pace: DrainPace,
    begin: DurationNs,
    progress: Progress,
) -> RunOutcome:
    """Perform `rounds` in a run that has started, and return its outcome.

    `pace` says how many nodes of a round are drained at once. The first round begins at `begin`.
    If a round never ends, no further round begins.
    """
    steps: tuple[ScriptedStep, ...] = ()
    for drain_round in rounds:
        steps += _steps(drain_round, pace)
        if drain_round is rounds[-1] and not drain_round.added:
            break
        if not run.act(steps, begin, _Annotated(drain_round.nodes, IN_TURN, ""), progress):
            steps = ()
            break
        max_unavailable = pace.of(len(drain_round.nodes))
        leaving = tuple(_drain(name, max_unavailable, None) for name in drain_round.added_nodes)
        if not run.act(leaving, begin, _Annotated(drain_round.added_nodes, DRAIN, DONE), progress):
            steps = ()
            break
        steps = tuple(
            ScriptedStep(0, (commands.delete(one.ref),), SOURCE, one.title)
            for one in drain_round.added
        )
    run.continue_with(replace(run.experiment, steps=steps, steps_begin=begin))
    return run.finish(progress).outcome


class _Annotated:
    """Checks whether each of `nodes` has had `value` as its annotation `key` at some time."""

    def __init__(self, nodes: Iterable[str], key: str, value: str) -> None:
        self._left = deque(nodes)
        self._key, self._value = key, value

    def __call__(self, store: Store) -> bool:
        """Return whether each node has had the annotation at this call or an earlier call.

        A node that does not exist counts as annotated.
        """
        while self._left and self._has_value(store.find(NODE, "", self._left[0])):
            self._left.popleft()
        return not self._left

    def _has_value(self, node: Json | None) -> bool:
        annotations = {} if node is None else node["metadata"].get("annotations") or {}
        is_equal: bool = annotations.get(self._key, "") == self._value
        return node is None or is_equal


def _run_apart(
    base: Experiment,
    rounds: Sequence[DrainRound],
    pace: DrainPace,
    begin: DurationNs,
    progress: Progress,
) -> RunOutcome:
    run = ExperimentRun(replace(base, steps_begin=begin), None)
    with run.reaching_extenders():
        run.start(_phase_of(pace), progress)
        return _finish(run, rounds, pace, begin, progress)


def _steps(drain_round: DrainRound, pace: DrainPace) -> tuple[ScriptedStep, ...]:
    """Return the steps of a round.

    If the drained nodes do not return to service (`pace.away` is None), all nodes of the round are
    cordoned first. So no pod moves twice.
    """
    steps = [
        ScriptedStep(0, (commands.create(one),), SOURCE, one.title) for one in drain_round.added
    ]
    if pace.away is None:
        steps += [
            ScriptedStep(0, (commands.cordon(name),), SOURCE, name) for name in drain_round.nodes
        ]
    max_unavailable = pace.of(len(drain_round.nodes))
    return (*steps, *(_drain(name, max_unavailable, pace.away) for name in drain_round.nodes))


def _drain(node: str, max_unavailable: int, away: DurationNs | None) -> ScriptedStep:
    options = RollingDrainOptions(max_unavailable, away, SOURCE)
    return ScriptedStep(0, (commands.rolling_drain(node, options),), SOURCE, node)


def _baseline_of(outcome: RunOutcome) -> _Baseline:
    pending = {pod.key: pod.workload for pod in outcome.pending}
    lost = frozenset(_lost(outcome))
    missing = {one.subject: one.missing for one in outcome.errors}
    failed = _failed_jobs(outcome)
    breaches = len(outcome.pdb_breaches)
    after, shortages = outcome.rest.after or 0, _shortages(outcome)
    return _Baseline(after, pending, lost, breaches, missing, failed, shortages, outcome.next_end)


def _shortages(outcome: RunOutcome) -> Counter[WorkloadRef]:
    """Return the number of displaced pods that each StatefulSet has not created again."""
    existing = Counter(pod.workload for pod in outcome.pods.values())
    absent = Counter(_absent(outcome).values())
    wanted = {ref: outcome.workloads[ref].wanted for ref in absent}
    return Counter({ref: min(absent[ref], wanted[ref] - existing[ref]) for ref in absent})


def _absent(outcome: RunOutcome) -> dict[str, WorkloadRef]:
    """Return the displaced pods of StatefulSets that do not exist at the end: {key: workload}."""
    displaced = {one.pod.key: one.pod.workload for one in (*outcome.evicted, *outcome.preempted)}
    return {
        key: ref
        for key, ref in sorted(displaced.items())
        if ref.kind == STATEFUL_SET.kind and key not in outcome.pods and ref in outcome.workloads
    }


def _failed_jobs(outcome: RunOutcome) -> list[ObjectError]:
    return [one for one in outcome.errors if one.is_failed_job or one.is_failing_job]


def _newly_failed(outcome: RunOutcome, baseline: _Baseline) -> Iterator[ObjectError]:
    """Yield the Jobs that, because of the drain, fail or can no longer succeed.

    A Job that exceeds its deadline without the drain is yielded, too, if it fails for another
    reason in `outcome`. The drain may have caused this failure before the deadline.
    """
    for one in _failed_jobs(outcome):
        known = [
            before
            for before in baseline.failed_jobs
            if before.subject == one.subject
            and before.is_failed_job >= one.is_failed_job
            and (one.exceeds_deadline or not before.exceeds_deadline)
        ]
        if not known:
            yield one


def _lost(outcome: RunOutcome, drained: Container[str] = ()) -> list[str]:
    """Return the lost pods without a controller, except pods displaced from `drained` nodes."""
    displaced = (*outcome.evicted, *outcome.preempted)
    found = {
        one.pod.key for one in displaced if one.pod.workload.kind == POD and one.node not in drained
    }
    return sorted(found.difference(outcome.pods))


def _uncreated(outcome: RunOutcome, baseline: _Baseline) -> Iterator[UncreatedPods]:
    """Yield the pods that cannot be created again because of the drain, by workload."""
    refused = set[WorkloadRef]()
    for one in outcome.errors:
        more = one.missing - baseline.missing.get(one.subject, 0)
        if one.workload is not None and more > 0:
            yield UncreatedPods(one.workload, more, one.message)
            refused.add(one.workload)
    # `-` drops the numbers that are not positive.
    for ref, number in sorted((_shortages(outcome) - baseline.shortages).items()):
        if ref not in refused:
            yield UncreatedPods(ref, number, WAITS_FOR_LOWER)


def _pending_since(outcome: RunOutcome, baseline: _Baseline) -> list[PodEnd]:
    """Return the pods that stay pending because of the drain, sorted by key.

    If N pods of a workload are pending in `baseline`, N of its pending pods in `outcome` are left
    out, even if their names differ.
    """
    expected = Counter(baseline.pending.values())
    pending = sorted(outcome.pending, key=lambda pod: pod.key not in baseline.pending)
    found = []
    for pod in pending:
        if expected[pod.workload]:
            expected[pod.workload] -= 1
        else:
            found.append(pod)
    return sorted(found, key=lambda pod: pod.key)


def _drain_run(
    pace: DrainPace,
    rounds: Sequence[DrainRound],
    outcome: RunOutcome,
    baseline: _Baseline,
    *,
    ignores_negative: bool,
) -> DrainRun:
    nodes = [name for drain_round in rounds for name in drain_round.nodes]
    wanted, added = set(nodes), {name for drain_round in rounds for name in drain_round.added_nodes}
    drains = [one for one in outcome.drains if one.node in wanted]
    returns = pace.away is not None
    ends = {one.node: one.back_at if returns else one.empty_at for one in drains}
    ends |= {one.node: one.empty_at for one in outcome.drains if one.node in added}
    # A node is missing in `ends` if its drain never began, because an earlier round did not end.
    nodes += [name for name in ends if name not in wanted]
    unfinished = tuple(name for name in nodes if ends.get(name) is None)
    known = [end for end in ends.values() if end is not None]
    took = None if unfinished else max(known, default=outcome.started_at) - outcome.started_at
    negative = negative_workloads(outcome) if ignores_negative else set()
    without_pods = {
        ref: StoppedWorkload(ref, one.wanted, one.lowest_for)
        for ref, one in sorted(outcome.workloads.items())
        if ref.is_permanent and one.before > 0 and one.lowest == 0
    }
    stopped = tuple(one for ref, one in without_pods.items() if ref not in negative)
    pending = _pending_since(outcome, baseline)
    ignored = {pod.key for pod in pending if ignores_negative and pod.has_negative_priority}
    uncreated, later, absent = list[UncreatedPods](), list[str](), _absent(outcome)
    for one in _uncreated(outcome, baseline):
        if one.is_refused or one.workload not in negative:
            uncreated.append(one)
        else:  # a StatefulSet creates these pods when those in `ignored` have a node
            of_workload = (key for key, ref in absent.items() if ref == one.workload)
            later += islice(of_workload, one.pods)
    refused = {pod for budget in outcome.budgets for pod in budget.refused}
    begun = {one.node for one in outcome.drains if one.begun_at is not None}
    refusals = {one.pod.key for one in outcome.undrained if one.cause is UndrainedCause.REFUSED}
    return DrainRun(
        pace,
        took,
        len(outcome.evicted),
        len(refused),
        unfinished,
        stopped,
        {pod.key: ", ".join(reasons_of(pod.reason)) for pod in pending if pod.key not in ignored},
        tuple(pod for pod in _lost(outcome, wanted | added) if pod not in baseline.lost),
        max(len(outcome.pdb_breaches) - baseline.breaches, 0),
        tuple(uncreated),
        tuple(_newly_failed(outcome, baseline)),
        _times(drains, outcome.started_at),
        {one.pdb: one.refused for one in outcome.budgets if one.refused},
        tuple(name for name in unfinished if name not in begun),
        tuple(one.pdb for one in outcome.budgets if refusals.intersection(one.refused)),
        {one.pod.key: one.why for one in outcome.undrained if one.cause is UndrainedCause.KEPT},
        outcome.image_notes,
        len(outcome.evicted) - len({one.pod.key for one in outcome.evicted}),
        _stops_jobs(outcome),
        outcome.rule_notes,
        tuple(sorted((*ignored, *later))),
        not negative.isdisjoint(without_pods),
    )


def _stops_jobs(outcome: RunOutcome) -> bool:
    """Return whether a displaced workload whose pods end by themselves had no ready pod."""
    displaced = {one.pod.workload for one in (*outcome.evicted, *outcome.preempted)}
    return any(
        found.before > 0 and found.lowest == 0
        for ref in displaced
        if not ref.is_permanent and ref.kind != POD and (found := outcome.workloads.get(ref))
    )


def _times(drains: Iterable[DrainProgress], start: Instant) -> tuple[DrainTimes, ...]:
    """Return the times of `drains`, the first drain first; drains that did not begin come last."""
    found = []
    for one in sorted(drains, key=lambda one: (one.begun_at is None, one.begun_at or 0)):
        begun = one.begun_at
        if begun is None:
            found.append(DrainTimes(one.node, None, None, None))
            continue
        emptied = None if one.empty_at is None else one.empty_at - begun
        back = None if one.back_at is None else one.back_at - begun
        found.append(DrainTimes(one.node, begun - start, emptied, back))
    return tuple(found)


def pace_seconds(duration: DurationNs | None) -> float | None:
    """Return `duration` in seconds for the JSON of a result; None if `duration` is None."""
    return None if duration is None else round(to_seconds(duration), 3)
