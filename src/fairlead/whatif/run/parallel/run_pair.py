"""Runs an experiment with and without its steps, from one loaded state if possible.

Loading, and all work due at the start, are the same in both runs. So the process is forked after
the start. The child process runs without the steps and sends its outcome. The parent process runs
with the steps. Both processes share unchanged memory.

The run with the steps usually ends later. Two kinds of changes in this additional time are not
effects of the steps. First, a pod or a Job may end by itself, for example because of
`activeDeadlineSeconds`. Second, there are always changes if the cluster never settles, for example
under a load that repeats. In both cases, the run without the steps is repeated up to the last
change of the run with the steps. So both runs have these changes.

Loads that change over time begin together with the steps, when the cluster is at rest. To find this
time, a first run is made in which the loads stay constant.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import vary
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import CommandLog, ExperimentRun, run_experiment
from fairlead.whatif.run.parallel.forked_call import can_fork, in_child
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.garbage_collection import collect_if_grown, has_frozen_objects

if TYPE_CHECKING:
    from fairlead.worlds.decision_log import Logging

WITHOUT: Final = "without the change"
WITH: Final = "with the change"


def run_pair(
    without: Experiment,
    changed: Experiment,
    progress: Progress,
    command_log: CommandLog | None = None,
    logging: Logging | None = None,
) -> tuple[RunOutcome, RunOutcome]:
    """Return the outcomes of the runs `without` and `changed`, in this order.

    The steps of `changed` begin at `without.steps_begin` if it is set. Otherwise, they begin when
    the cluster has come to rest in the run `without`. If the cluster does not come to rest, the
    steps begin at the start.

    If `without` has `commands_before_steps`, a first run finds the time at which the steps begin. A
    second run executes these commands. The run `without` is also repeated if `has_missed_end`
    returns True, or if it did not settle and ended earlier than the run `changed`.

    If loads vary and `without.steps_begin` is not set, a run with constant loads finds the time at
    which the steps and the loads begin.

    `command_log` receives the commands of the run with the change. `logging` wraps the reporter of
    that run in a reporter that logs decisions. Raises InputError.
    """
    if without.steps_begin is None and vary(without.loads):
        rest = run_experiment(without, WITHOUT, progress).outcome.rest
        begun = {"steps_begin": rest.after or 0}
        runs = replace(without, **begun), replace(changed, **begun)
        before, after = run_pair(*runs, progress, command_log, logging)
        return replace(before, rest=rest), after
    before, after = _run_both(without, changed, progress, command_log, logging)
    begin = _begin(without, before)
    if without.commands_before_steps:
        released = replace(without, steps_begin=begin)
        again = run_experiment(released, WITHOUT, progress).outcome
        before = replace(again, rest=before.rest)
    is_cut = not before.settled and before.ended_at < after.ended_at
    if is_cut or has_missed_end(before.next_end, after):
        longer = outcome_until(without, begin, after.ended_at, progress)
        before = replace(longer, rest=before.rest, settled=before.settled)
    return before, after


def has_missed_end(next_end: Instant | None, after: RunOutcome) -> bool:
    """Return whether the run `after`, with the change, ends at `next_end` or later.

    `next_end` is the time at which a pod or Job would have ended by itself if the run without the
    change had continued; None if there is no such time. If the result is True, the run without the
    change was too short, and must be repeated up to the end of `after`.
    """
    return next_end is not None and next_end <= after.ended_at


def outcome_until(
    without: Experiment, begin: DurationNs, until: Instant, progress: Progress
) -> RunOutcome:
    """Return the outcome of `without` at the instant `until`.

    The times in the outcome count from the instant that is `begin` nanoseconds after the start.
    Raises InputError.
    """
    longer = replace(without, steps_begin=begin, duration=until - without.start)
    return run_experiment(longer, WITHOUT, progress).outcome


def _run_both(
    without: Experiment,
    changed: Experiment,
    progress: Progress,
    command_log: CommandLog | None,
    logging: Logging | None,
) -> tuple[RunOutcome, RunOutcome]:
    if not _is_shareable(without, changed):
        return _run_apart(without, changed, progress, command_log, logging)
    run = ExperimentRun(without, command_log, logging=logging)
    with _frozen_after(lambda: run.start(WITHOUT, progress)):

        def finish_without_steps() -> RunOutcome:
            run.stop_logging()
            return run.finish(progress).outcome

        before = in_child(finish_without_steps, run.keep_state())
        if before is None:
            return _run_apart(without, changed, progress, command_log, logging)
        progress.begin(WITH, 0)
        run.set_steps(
            changed.steps, _begin(without, before), before.failed_nodes, changed.steps_for
        )
        return before, run.finish(progress).outcome


@contextmanager
def _frozen_after(load: Callable[[], None]) -> Iterator[None]:
    """Call `load`, and exempt all existing objects from garbage collection within the `with` block.

    A collection would find almost no garbage, because few of the loaded objects form cycles.

    If the program has frozen objects itself, no objects are frozen, because `gc.unfreeze` would
    also unfreeze the objects of the program. Instead, there are no collections within the block.
    """
    collect_if_grown()
    was_enabled, was_frozen = gc.isenabled(), has_frozen_objects()
    gc.disable()
    try:
        load()
        if not was_frozen:
            gc.freeze()
            if was_enabled:
                gc.enable()
        yield
    finally:
        if was_enabled:
            gc.enable()
        if not was_frozen:
            gc.unfreeze()


def _run_apart(
    without: Experiment,
    changed: Experiment,
    progress: Progress,
    command_log: CommandLog | None,
    logging: Logging | None,
) -> tuple[RunOutcome, RunOutcome]:
    before = run_experiment(without, WITHOUT, progress).outcome
    changed = replace(
        changed, steps_begin=_begin(without, before), known_failures=before.failed_nodes
    )
    return before, run_experiment(changed, WITH, progress, command_log, logging=logging).outcome


def _begin(without: Experiment, before: RunOutcome) -> DurationNs:
    given = without.steps_begin
    return (before.rest.after or 0) if given is None else given


def _is_shareable(without: Experiment, changed: Experiment) -> bool:
    """Return True if the runs differ only in their steps, and if the process can be forked.

    Runs with extenders are not forked, because their connections cannot be shared.
    """
    begin = without.steps_begin
    is_same = replace(changed, steps=(), steps_begin=begin, steps_for=None) == without
    return is_same and not without.scheduler.extenders and can_fork()
