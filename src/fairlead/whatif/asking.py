"""The two questions: what happens in a scenario, and what a change to a snapshot would do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairlead.core.instant import DurationNs
from fairlead.whatif.change import Change, steps_of_change
from fairlead.whatif.difference import Difference, Move, difference
from fairlead.whatif.experiment import Experiment
from fairlead.whatif.outcome import Outcome
from fairlead.whatif.progress import NoProgress, Progress
from fairlead.whatif.run import Finished, run
from fairlead.whatif.scheduler_config import read_scheduler_config
from fairlead.whatif.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Both runs of a what-if and what differs; `finished` is the one with the change."""

    source: str
    change: Change
    seed: int
    without: Outcome
    finished: Finished
    difference: Difference

    @property
    def changed(self) -> Outcome:
        """The outcome of the run with the change."""
        return self.finished.outcome


def what_if(
    snapshot: Snapshot,
    change: Change,
    *,
    seed: int,
    horizon: DurationNs,
    progress: Progress | None = None,
) -> Answer:
    """Run `snapshot` with and without `change`, and compare. Raises InputError.

    The run with the change comes first: what is wrong with the change shows at its start.
    """
    progress = progress or NoProgress()
    without = Experiment(
        title=snapshot.source,
        source=snapshot.source,
        initial=snapshot.manifests,
        start=snapshot.taken_at,
        horizon=horizon,
        seed=seed,
    )
    changed = replace(
        without,
        steps=tuple(steps_of_change(change, snapshot)),
        scheduler=read_scheduler_config(change.config),
    )
    finished = run(changed, "with the change", progress)
    baseline = run(without, "without it", progress).outcome
    return Answer(
        source=snapshot.source,
        change=change,
        seed=seed,
        without=baseline,
        finished=finished,
        difference=difference(baseline, finished.outcome),
    )


def moved_on_the_way(outcome: Outcome) -> list[Move]:
    """The pods of one run that ended on another node than the one they were displaced from."""
    moves = {}
    for one in (*outcome.preempted, *outcome.evicted):
        end = outcome.pods.get(one.pod.key)
        if end is not None and end.is_placed:
            moves.setdefault(one.pod.key, Move(end, one.node, end.node))
    return [moves[key] for key in sorted(moves) if moves[key].origin != moves[key].target]
