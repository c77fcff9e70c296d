"""Asking: what would a change to a snapshot do?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from fairlead.engine.core.instant import DurationNs
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.whatif.answer import Answer
from fairlead.whatif.batch_config import AS_NEEDED, Jobs, with_jobs
from fairlead.whatif.change import Change, steps_of_change
from fairlead.whatif.controller_manager import DEFAULT
from fairlead.whatif.difference import difference
from fairlead.whatif.experiment import HORIZON_DEFAULT, Experiment
from fairlead.whatif.progress import NoProgress, Progress
from fairlead.whatif.run import CommandLog, run
from fairlead.whatif.scheduler_config import read_scheduler_config
from fairlead.whatif.snapshot import Snapshot
from fairlead.whatif.user_plugin import UserPlugins


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What holds with and without the change; `horizon` (ns) as in `Experiment`.

    `jobs` is how whole jobs are scheduled.
    """

    seed: int = 0
    horizon: DurationNs = HORIZON_DEFAULT
    node_lifecycle: NodeLifecycleConfig = DEFAULT
    jobs: Jobs = AS_NEEDED


AS_USUAL: Final = Conditions()


def what_if(
    snapshot: Snapshot,
    change: Change,
    conditions: Conditions = AS_USUAL,
    *,
    progress: Progress | None = None,
    command_log: CommandLog | None = None,
) -> Answer:
    """Run `snapshot` with and without `change`, and compare. Raises InputError.

    The run with the change comes first, because what is wrong with the change shows at its
    start; its commands go to `command_log`.
    """
    progress = progress or NoProgress()
    without = Experiment(
        title=snapshot.source,
        source=snapshot.source,
        initial=snapshot.manifests,
        start=snapshot.taken_at,
        horizon=conditions.horizon,
        seed=conditions.seed,
        node_lifecycle=conditions.node_lifecycle,
    )
    changed = replace(
        without,
        steps=tuple(steps_of_change(change, snapshot, conditions.seed)),
        scheduler=read_scheduler_config(change.config, UserPlugins(change.plugin)),
    )
    jobs = conditions.jobs
    without = with_jobs(without, jobs, changed.steps)
    new = replace(jobs, source=change.new_batch_config or jobs.source)
    changed = with_jobs(changed, new, changed.steps)
    after = run(changed, "with the change", progress, command_log).outcome
    before = run(without, "without the change", progress).outcome
    return Answer(
        source=snapshot.source,
        change=change,
        seed=conditions.seed,
        without=before,
        changed=after,
        difference=difference(before, after),
    )
