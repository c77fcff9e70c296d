"""Runs the drains of a plan in a simulation, to measure their time and their effect on workloads.

The simulation's drain controller evicts through the eviction API, so no budget is broken. The run
shows how long budgets delay the drains, and whether workloads without a budget stop. The cluster is
loaded once, and the drains at each pace run in a forked copy of the process. If the process cannot
be forked (extenders, threads), the cluster is loaded for each pace.

A drain begins when the cluster is at rest. What another simulation shows without any drain (pods
that stay pending, evictions against a budget) is not attributed to the drains.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.apiserver.kind import NODE
from fairlead.engine.core.instant import DurationNs, seconds, to_seconds
from fairlead.engine.kubelet.node_condition import UNKNOWN, ready_status
from fairlead.engine.workloads.drain.rolling_drain import RollingDrainOptions
from fairlead.whatif.change import commands
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.workload import POD, WorkloadRef
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import ExperimentRun, run_experiment
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.run.run_pair import in_child

SOURCE: Final = "plan"
_HORIZON: Final = seconds(7 * 24 * 3600)


class DrainPace(Struct, frozen=True):
    """A pace of drains: `at_once` nodes at a time; each returns after `away`, None for never."""

    at_once: int
    away: DurationNs | None = None


class StoppedWorkload(Struct, frozen=True):
    """A workload that had no ready pod for `stopped_for` (None: until the end).

    `wanted` is the number of pods that it should have.
    """

    workload: WorkloadRef
    wanted: int
    stopped_for: DurationNs | None


class _Baseline(Struct, frozen=True):
    """The result of a simulation without a drain, in which the cluster was at rest `after` a time.

    `pending` pods have no node at the end, and `lost` pods are gone for good; `breaches` is the
    number of evictions against a budget.
    """

    after: DurationNs
    pending: dict[str, WorkloadRef]  # {key: workload}
    lost: frozenset[str]
    breaches: int


class DrainRun(Struct, frozen=True):
    """The result of draining `pace.at_once` nodes at a time.

    `took` is the time until the last node was empty and, if nodes return, back in service; None if
    the `unfinished` nodes never became empty or never returned. `stopped` workloads had no ready
    pod for a time. `pending` pods have no node at the end because of the drain. `lost` pods had no
    controller and were evicted or preempted on other nodes because of the drain, for example pods
    of a gang that lost its minimum. A budget refused the eviction of `waited` pods at least once.
    `breaches` is the number of evictions against a budget; a run with breaches is not safe.
    `silent` are the unfinished nodes whose Ready condition is Unknown in the snapshot: their
    kubelets do not answer, so evicted pods never stop. `away` has the time from the begin of a
    node's drain until the node was back in service, of each node that returned.
    """

    pace: DrainPace
    took: DurationNs | None
    evicted: int
    waited: int
    unfinished: tuple[str, ...]
    stopped: tuple[StoppedWorkload, ...]
    pending: tuple[str, ...]
    lost: tuple[str, ...]
    breaches: int
    silent: tuple[str, ...] = ()
    away: dict[str, DurationNs] = field(default_factory=dict)  # {node: time}

    @property
    def is_safe(self) -> bool:
        """Whether all nodes are drained, every pod runs again, and no replicated workload stops.

        Pods without a controller on the drained nodes may be lost.
        """
        replicated = [one for one in self.stopped if one.wanted > 1]
        return not (self.unfinished or replicated or self.pending or self.lost or self.breaches)


def run_drains(
    experiment: Experiment, nodes: Sequence[str], paces: Sequence[DrainPace], progress: Progress
) -> list[DrainRun]:
    """Simulate the drains of `nodes` at each of `paces`, up to the first pace that is not safe.

    Raises InputError.
    """
    base = replace(experiment, steps_begin=None, horizon=_HORIZON)
    silent = _silent_nodes(experiment, nodes)
    has_extenders = bool(
        experiment.scheduler.extenders
    )  # connections to extenders cannot be shared with a forked process
    if has_extenders or not hasattr(os, "fork") or threading.active_count() > 1:
        baseline = _baseline_of(run_experiment(base, "at rest", progress).outcome)
        after = baseline.after
        return _until_unsafe(
            _drain_run(
                pace, nodes, silent, _run_apart(base, nodes, pace, after, progress), baseline
            )
            for pace in paces
        )
    run = ExperimentRun(base, None)
    run.start("loading", progress)
    shared = run.keep_state()
    forked = in_child(lambda: _baseline_of(run.finish(progress).outcome), shared)
    # None if the forked process failed, perhaps for lack of memory.
    baseline = forked or _baseline_of(run_experiment(base, "at rest", progress).outcome)
    after = baseline.after

    def drained(pace: DrainPace) -> DrainRun:
        progress.begin(f"draining {pace.at_once} at once", 0)
        outcome = in_child(partial(_finish, run, _steps(nodes, pace), after, progress), shared)
        if outcome is None:
            outcome = _run_apart(base, nodes, pace, after, progress)
        return _drain_run(pace, nodes, silent, outcome, baseline)

    return _until_unsafe(map(drained, paces))


def _silent_nodes(experiment: Experiment, nodes: Sequence[str]) -> frozenset[str]:
    """Return those of `nodes` whose Ready condition is Unknown in the snapshot."""
    wanted = frozenset(nodes)
    return frozenset(
        manifest.ref.name
        for manifest in experiment.initial
        if manifest.kind is NODE
        and manifest.ref.name in wanted
        and ready_status(manifest.node) == UNKNOWN
    )


def _until_unsafe(runs: Iterable[DrainRun]) -> list[DrainRun]:
    """Return `runs` up to the first unsafe run, because more nodes at once are never safer."""
    found = []
    for run in runs:
        found.append(run)
        if not run.is_safe:
            break
    return found


def _finish(
    run: ExperimentRun, steps: tuple[ScriptedStep, ...], begin: DurationNs, progress: Progress
) -> RunOutcome:
    run.set_steps(steps, begin)
    return run.finish(progress).outcome


def _run_apart(
    base: Experiment,
    nodes: Sequence[str],
    pace: DrainPace,
    begin: DurationNs,
    progress: Progress,
) -> RunOutcome:
    experiment = replace(base, steps=_steps(nodes, pace), steps_begin=begin)
    return run_experiment(experiment, f"draining {pace.at_once} at once", progress).outcome


def _steps(nodes: Sequence[str], pace: DrainPace) -> tuple[ScriptedStep, ...]:
    """Return the steps of the plan.

    Nodes that stay away are cordoned first, so that no pod moves twice.
    """
    steps = []
    if pace.away is None:
        steps += [ScriptedStep(0, (commands.cordon(name),), SOURCE, name) for name in nodes]
    options = RollingDrainOptions(pace.at_once, pace.away, SOURCE)
    for name in nodes:
        steps.append(ScriptedStep(0, (commands.rolling_drain(name, options),), SOURCE, name))
    return tuple(steps)


def _baseline_of(outcome: RunOutcome) -> _Baseline:
    pending = {pod.key: pod.workload for pod in outcome.pending()}
    lost = frozenset(_lost(outcome))
    return _Baseline(outcome.rest.after or 0, pending, lost, len(outcome.pdb_breaches))


def _lost(outcome: RunOutcome, drained: Container[str] = ()) -> list[str]:
    """Return the pods without a controller that were displaced from nodes that are not `drained`.

    Pods that are pending or run at the end are left out.
    """
    displaced = (*outcome.evicted, *outcome.preempted)
    found = {
        one.pod.key for one in displaced if one.pod.workload.kind == POD and one.node not in drained
    }
    return sorted(found.difference(outcome.pods))


def _pending_since(outcome: RunOutcome, baseline: _Baseline) -> tuple[str, ...]:
    """Return the pods that stay pending because of the drain.

    If a workload has N pending pods without the drain, N of its pending pods are left out, even if
    they are other pods of the workload.
    """
    expected = Counter(baseline.pending.values())
    pending = sorted(outcome.pending(), key=lambda pod: pod.key not in baseline.pending)
    found = []
    for pod in pending:
        if expected[pod.workload]:
            expected[pod.workload] -= 1
        else:
            found.append(pod.key)
    return tuple(sorted(found))


def _drain_run(
    pace: DrainPace,
    nodes: Sequence[str],
    silent: frozenset[str],
    outcome: RunOutcome,
    baseline: _Baseline,
) -> DrainRun:
    wanted = set(nodes)
    drains = [one for one in outcome.drains if one.node in wanted]
    returns = pace.away is not None
    ends = [one.back_at if returns else one.empty_at for one in drains]
    unfinished = tuple(one.node for one, end in zip(drains, ends, strict=True) if end is None)
    known = [end for end in ends if end is not None]
    took = None if unfinished else max(known, default=outcome.started_at) - outcome.started_at
    stopped = tuple(
        StoppedWorkload(ref, one.wanted, one.lowest_for)
        for ref, one in sorted(outcome.workloads.items())
        if ref.is_permanent and one.before > 0 and one.lowest == 0
    )
    refused = {pod for budget in outcome.budgets for pod in budget.refused}
    return DrainRun(
        pace,
        took,
        len(outcome.evicted),
        len(refused),
        unfinished,
        stopped,
        _pending_since(outcome, baseline),
        tuple(pod for pod in _lost(outcome, wanted) if pod not in baseline.lost),
        max(len(outcome.pdb_breaches) - baseline.breaches, 0),
        tuple(name for name in unfinished if name in silent),
        {
            one.node: one.back_at - one.begun_at
            for one in drains
            if one.begun_at is not None and one.back_at is not None
        },
    )


def pace_seconds(duration: DurationNs | None) -> float | None:
    """Return `duration` in seconds for a result; None if it is None."""
    return None if duration is None else round(to_seconds(duration), 3)
