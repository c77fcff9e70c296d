"""Runs an experiment with and without its steps, from one loaded state if possible.

Loading, and all work due at the start, are the same in both runs. So the process is forked after
the start. The child process runs without the steps and sends its outcome. The parent process runs
with the steps. Both processes share unchanged memory.

If the caller wants to run further experiments with the same cluster, such as the trials of next
steps, the run with the steps is a second child process. Then the parent process keeps the loaded
cluster, and each further experiment is another child process (`StartedRun`).

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import vary
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.run.experiment import Experiment, starts_alike
from fairlead.whatif.run.experiment_run import CommandLog, ExperimentRun, run_experiment
from fairlead.whatif.run.parallel.forked_call import can_fork, in_child
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.garbage_collection import collect_if_grown, has_frozen_objects

if TYPE_CHECKING:
    from fairlead.worlds.decision_log import Logging

WITHOUT: Final = "without the change"
WITH: Final = "with the change"
# Keeping the start costs 0.06 s at 6,000 pods: a forked process copies the memory that it changes,
# and its outcome is sent. A smaller cluster is loaded again in about this time.
_KEPT_OBJECTS_MIN: Final = 10_000


class StartedRun(Struct, frozen=True):
    """A run of `experiment` that has loaded the cluster and performed all work due at its start.

    `shared` are the nodes and pods at this time. Forked processes continue the run with different
    steps, so the cluster is loaded once for all of them.
    """

    run: ExperimentRun
    experiment: Experiment
    shared: Sequence[object]

    def __repr__(self) -> str:
        """Return the experiment; a text with all shared objects would be very long."""
        return f"<StartedRun: {self.experiment!r}>"

    def outcome(self, experiment: Experiment, progress: Progress) -> RunOutcome | None:
        """Return the outcome of `experiment`, computed in a forked process.

        The result is None if `experiment` starts in another way, or if the forked process fails,
        perhaps for lack of memory. Raises InputError.
        """
        if not (starts_alike(self.experiment, experiment) and can_fork()):
            return None

        def finish() -> RunOutcome | InputError:
            self.run.continue_with(experiment)
            try:
                return self.run.finish(progress).outcome
            except InputError as error:
                return error

        found = in_child(finish, self.shared)
        if isinstance(found, InputError):
            raise found
        return found


class RunPair(Struct, frozen=True):
    """The outcomes of the runs without and with the change.

    `started` is the run before the steps of the change; None if it was not kept.
    """

    before: RunOutcome
    after: RunOutcome
    started: StartedRun | None = None

    def outcome_of(self, experiment: Experiment, phase: str, progress: Progress) -> RunOutcome:
        """Return the outcome of another experiment with this cluster.

        If `started` is not None and `experiment` starts in the same way, the started run is
        continued. `phase` is the name in the progress display. Raises InputError.
        """
        if self.started is not None:
            progress.begin(phase, 0)
            found = self.started.outcome(experiment, progress)
            if found is not None:
                return found
        return run_experiment(experiment, phase, progress).outcome


def run_pair(
    without: Experiment,
    changed: Experiment,
    progress: Progress,
    command_log: CommandLog | None = None,
    logging: Logging | None = None,
    *,
    keeps_start: bool = False,
) -> RunPair:
    """Return the outcomes of the runs `without` and `changed`.

    The steps of `changed` begin at `without.steps_begin` if it is set. If it is None, the steps
    begin when the cluster has come to rest in the run `without`. If the cluster does not come to
    rest, the steps begin at the start.

    If `without` has `commands_before_steps`, a first run finds the time at which the steps begin. A
    second run executes these commands. The run `without` is also repeated if `has_missed_end`
    returns True, or if it did not settle and ended earlier than the run `changed`.

    If loads vary and `without.steps_begin` is not set, a run with constant loads finds the time at
    which the steps and the loads begin.

    `command_log` receives the commands of the run with the change. `logging` wraps the reporter of
    that run in a reporter that logs decisions. Raises InputError.

    If `keeps_start` is set and the cluster is large, the result has the started run if possible.
    The run with the change then takes place in a forked process, too. If `command_log` or `logging`
    is given, the started run is not kept.
    """
    if without.steps_begin is None and vary(without.loads):
        rest = run_experiment(without, WITHOUT, progress).outcome.rest
        begun = {"steps_begin": rest.after or 0}
        runs = replace(without, **begun), replace(changed, **begun)
        pair = run_pair(*runs, progress, command_log, logging, keeps_start=keeps_start)
        return replace(pair, before=replace(pair.before, rest=rest))
    keeps_start = keeps_start and command_log is None and logging is None
    pair = _run_both(without, changed, progress, command_log, logging, keeps_start=keeps_start)
    before, after = pair.before, pair.after
    begin = _begin(without, before)
    if without.commands_before_steps:
        released = replace(without, steps_begin=begin)
        again = run_experiment(released, WITHOUT, progress).outcome
        before = replace(again, rest=before.rest)
    is_cut = not before.settled and before.ended_at < after.ended_at
    if is_cut or has_missed_end(before.next_end, after):
        longer = outcome_until(without, begin, after.ended_at, progress)
        before = replace(longer, rest=before.rest, settled=before.settled)
    return replace(pair, before=before)


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
    *,
    keeps_start: bool,
) -> RunPair:
    if not _is_shareable(without, changed):
        return _run_apart(without, changed, progress, command_log, logging)
    run = ExperimentRun(without, command_log, logging=logging)
    with _frozen_after(lambda: run.start(WITHOUT, progress)):

        def finish_without_steps() -> RunOutcome:
            run.stop_logging()
            return run.finish(progress).outcome

        shared = run.keep_state()
        before = in_child(finish_without_steps, shared)
        if before is None:
            return _run_apart(without, changed, progress, command_log, logging)
        progress.begin(WITH, 0)
        changed = _after(before, without, changed)
        if keeps_start and len(without.initial) >= _KEPT_OBJECTS_MIN:
            started = StartedRun(run, without, shared)
            after = started.outcome(changed, progress)
            if after is not None:
                return RunPair(before, after, started)
        run.continue_with(changed)
        return RunPair(before, run.finish(progress).outcome)


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
) -> RunPair:
    before = run_experiment(without, WITHOUT, progress).outcome
    changed = _after(before, without, changed)
    after = run_experiment(changed, WITH, progress, command_log, logging=logging).outcome
    return RunPair(before, after)


def _after(before: RunOutcome, without: Experiment, changed: Experiment) -> Experiment:
    """Return `changed` with what `before`, the outcome of `without`, says about its steps."""
    begin = _begin(without, before)
    return replace(changed, steps_begin=begin, known_failures=before.failed_nodes)


def _begin(without: Experiment, before: RunOutcome) -> DurationNs:
    given = without.steps_begin
    return (before.rest.after or 0) if given is None else given


def _is_shareable(without: Experiment, changed: Experiment) -> bool:
    """Return True if the runs start alike (`starts_alike`), and if the process can be forked.

    Runs with extenders are not forked, because their connections cannot be shared.
    """
    return starts_alike(without, changed) and not without.scheduler.extenders and can_fork()
