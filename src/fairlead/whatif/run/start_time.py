"""Estimates when the pods that wait at the end of a run will start.

Running pods that end make room for waiting pods, but their remaining runtimes are uncertain. So
several simulations (draws) are run, each with its own seed. A draw selects one of the known
runtimes of each pod. A draw ends when every waiting pod has a node, when nothing changes any more,
or at the horizon. Each row of the result is about a pod, a workload or a gang. The row contains the
percentiles of the start time over all draws:

    pod         when the pod has a node
    workload    when all its waiting pods have a node
    gang        when the number of its pods with a node reaches the number that it needs

If the pod, workload or gang has not started when a draw ends, its start time in this draw is
unknown. An unknown time counts as later than all others. Example: a pod starts in 15 of 20 draws.
Then p50 is the 10th of its start times in ascending order, and p90 is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.percentile import percentile_of_all
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.start_time import StartTimeRow, StartTimes
from fairlead.whatif.outcome.workload import POD
from fairlead.whatif.run.experiment import QUIET, Experiment
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.parallel.independent_run import independent_runs
from fairlead.whatif.run.pod_timing.runtime import RuntimeCoverage, RuntimeDraw, Runtimes
from fairlead.whatif.run.progress import Progress

LOOK_AHEAD: Final = seconds(24 * 3600)
Starts = Mapping[str, DurationNs]


class _Target(Struct, frozen=True):
    """A waiting pod, workload or gang; it has started when `needed` of its `pods` have a node."""

    kind: str
    subject: str
    pods: tuple[str, ...]
    needed: int


def start_times(
    experiments: Sequence[Experiment],
    outcome: RunOutcome,
    runtimes: Runtimes,
    covered: RuntimeCoverage,
    progress: Progress,
) -> StartTimes:
    """Return the start times of the pods that wait at the end of `outcome`.

    `experiments` repeat the experiment of `outcome`: the first with the same seed, all further
    experiments with other seeds. `covered` states how many of the running pods have a runtime in
    `runtimes`. Each experiment covers 24 hours, or its horizon if that is longer. Times count from
    the start of `outcome`. Raises InputError.
    """
    waiting = [one for one in outcome.waits if one.until is None]
    awaited = tuple(sorted(one.pod for one in waiting))

    def draw(number: int, progress: Progress) -> Starts:
        experiment = experiments[number]
        kubelet = experiment.kubelet
        durations = RuntimeDraw(runtimes, experiment.start, experiment.seed, kubelet.run_durations)
        drawn = replace(
            experiment,
            kubelet=replace(kubelet, run_durations=durations),
            quiet=max(experiment.quiet, covered.longest + QUIET),
            horizon=max(experiment.horizon, LOOK_AHEAD),
            steps_begin=outcome.started_at - experiment.start,
            ends_when_placed=awaited,
            # New pods get the names that they have in `outcome`, by which they are found again.
            ids_seed=experiments[0].seed,
        )
        return _starts(run_experiment(drawn, names[number], progress).outcome.waits, outcome)

    names = [f"draw {number} of {len(experiments)}" for number in range(1, len(experiments) + 1)]
    has_extenders = bool(experiments[0].scheduler.extenders)
    runs = list(independent_runs(draw, names, progress, in_one_process=has_extenders))
    rows = tuple(_row(target, runs) for target in _targets(waiting, outcome))
    return StartTimes(
        draws=len(runs),
        running=covered.running,
        known=covered.known,
        stated=covered.stated,
        look_ahead=max(LOOK_AHEAD, *(one.horizon for one in experiments)),
        rows=rows,
    )


def _starts(waits: Iterable[PodWait], outcome: RunOutcome) -> Starts:
    """Return when each pod first got a node, counted from the start of `outcome`."""
    found: dict[str, DurationNs] = {}
    for one in waits:
        if one.until is not None:
            after = one.until - outcome.started_at
            found[one.pod] = min(after, found.get(one.pod, after))
    return found


def _targets(waiting: Sequence[PodWait], outcome: RunOutcome) -> Iterator[_Target]:
    """Yield a target for each waiting gang, then each waiting workload, then each waiting pod."""
    needs = {one.group: one.min_member - one.ready for one in outcome.jobs.waiting}
    for gang, pods in _grouped(waiting, _gang_of).items():
        needed = min(max(needs.get(gang, len(pods)), 1), len(pods))
        yield _Target("gang", f"podgroup/{gang}", pods, needed)
    for workload, pods in _grouped(waiting, _workload_of).items():
        yield _Target("workload", workload, pods, len(pods))
    for one in sorted(waiting, key=lambda one: one.pod):
        yield _Target("pod", f"pod/{one.pod}", (one.pod,), 1)


def _gang_of(one: PodWait) -> str:
    return f"{one.pod.partition('/')[0]}/{one.group}" if one.group else ""


def _workload_of(one: PodWait) -> str:
    return "" if one.workload.kind == POD else str(one.workload)


def _grouped(
    waiting: Iterable[PodWait], name_of: Callable[[PodWait], str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in waiting:
        if name := name_of(one):
            found[name].append(one.pod)
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


def _row(target: _Target, runs: Sequence[Starts]) -> StartTimeRow:
    starts = sorted(
        times[target.needed - 1]
        for run in runs
        if len(times := sorted(run[pod] for pod in target.pods if pod in run)) >= target.needed
    )
    p10, p50, p90 = (percentile_of_all(starts, len(runs), percent) for percent in (10, 50, 90))
    return StartTimeRow(
        subject=target.subject,
        kind=target.kind,
        pods=len(target.pods),
        started=len(starts),
        p10=p10,
        p50=p50,
        p90=p90,
    )
