"""next_steps: chooses the next steps of an answer from a table that has rows for each outcome."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.plugins.node_resources.fit import INSUFFICIENT
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.next_steps.breached_budget import add_replicas
from fairlead.whatif.next_steps.drain import (
    add_flags,
    allow_evictions,
    drain_before_deletion,
    perform_drain,
    simulate_to_the_end,
)
from fairlead.whatif.next_steps.step_context import ELSEWHERE, NAMES_MAX, Ask, StepContext
from fairlead.whatif.next_steps.unavailable_workload import (
    keep_available,
    replace_pods_of_failed_nodes,
    shorten_failures,
)
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.run.parallel.independent_run import independent_runs
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.snapshot import PLACEHOLDER

STEPS_MAX: Final = 5
SEEDS: Final = 20
_DEFAULT: Final = SchedulerConfig()
_PHASE: Final = "with a possible next step"


class NextSteps(Struct, frozen=True):
    """The next steps of an answer, and notes about steps that would not help.

    `causes` are notes that explain why pods are pending; they come before all other notes.
    """

    steps: tuple[NextStep, ...]
    notes: tuple[str, ...]
    causes: tuple[str, ...] = ()


def next_steps(  # noqa: PLR0913 - the answer, and what its next steps depend on
    answer: WhatIfAnswer,
    manifests: Sequence[Manifest],
    ask: Callable[[Progress], Ask],
    progress: Progress,
    *,
    scheduler: SchedulerConfig = _DEFAULT,
    arguments: Sequence[str] = (PLACEHOLDER,),
    awaited: Sequence[ObjectRef] = (),
    written: Sequence[ObjectRef] = (),
    in_one_process: bool = False,
) -> NextSteps:
    """Return at most STEPS_MAX steps; the steps against the worst outcome come first.

    `manifests` are the objects of the snapshot. `ask(progress)` returns a function that tries a
    step and reports to `progress`. Rows of `_STEPS` that try steps use several cores, except if
    `in_one_process` is set. `scheduler` is the configuration of the run with the change.
    `arguments` are the command-line words with which another command reads the same cluster and the
    scheduler's current configuration. `awaited` are the unready pods for which rollouts of the
    change wait. `written` are the objects that the manifests and edits of the change write.
    """
    kinds: dict[_Row, OutcomeKind] = {}  # a row that serves two outcomes is used for the first
    for one in answer.verdict.findings:
        for row in _STEPS.get(one.kind, ()):
            kinds.setdefault(row, one.kind)
    rows = list(kinds)

    def found_by(number: int, progress: Progress) -> NextSteps:
        row = rows[number]
        tried = ask(progress)
        context = StepContext(
            answer, manifests, tried, [], [], scheduler, arguments, awaited, written
        )
        steps = tuple(replace(step, outcome=kinds[row]) for step in row.steps(context))
        return NextSteps(steps, tuple(context.notes), tuple(context.causes))

    trying = [number for number, row in enumerate(rows) if row.tries]
    if trying:
        progress.begin(_PHASE, 0)
    trials = independent_runs(
        lambda index, progress: found_by(trying[index], progress),
        [_PHASE] * len(trying),
        progress,
        in_one_process=in_one_process or len(trying) < 2,
    )
    with closing(trials) as tried:
        found = [
            next(tried) if number in trying else found_by(number, progress)
            for number in range(len(rows))
        ]
    steps = [step for one in found for step in one.steps]
    chosen: dict[str, NextStep] = {}
    for step in (*steps, *perform_drain(answer, manifests), *_more_seeds(answer)):
        chosen.setdefault(step.code, step)
    return NextSteps(
        tuple(chosen.values())[:STEPS_MAX],
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
        tuple(dict.fromkeys(cause for one in found for cause in one.causes)),
    )


# --- the table ---------------------------------------------------------------------------------


def _add_nodes(context: StepContext) -> Iterator[NextStep]:
    # Imported here, because few changes leave pods pending.
    from fairlead.whatif.next_steps.pending_pod import add_nodes  # noqa: PLC0415

    return add_nodes(context)


def _relax_spread(context: StepContext) -> Iterator[NextStep]:
    # Imported here, because few changes leave pods pending.
    from fairlead.whatif.next_steps.topology_spread import relax_spread  # noqa: PLC0415

    return relax_spread(context)


def _ignore_failed_nodes(context: StepContext) -> Iterator[NextStep]:
    if not context.answer.effect.waited:
        return iter(())
    # Imported here, because few changes make pods wait for a node.
    from fairlead.whatif.next_steps.topology_spread import ignore_failed_nodes  # noqa: PLC0415

    return ignore_failed_nodes(context)


def _name_absent_labels(context: StepContext) -> Iterator[NextStep]:
    if not context.answer.changed.absent_labels:
        return iter(())
    # Imported here, because few changes leave pods pending for this reason.
    from fairlead.whatif.next_steps.absent_label import name_absent_labels  # noqa: PLC0415

    return name_absent_labels(context)


def _name_sizes(context: StepContext) -> Iterator[NextStep]:
    if not any(INSUFFICIENT in one.reason for one in context.answer.difference.pending):
        return iter(())
    # Imported here, because most changes leave no pod pending for this reason.
    from fairlead.whatif.next_steps.node_size import name_sizes  # noqa: PLC0415

    return name_sizes(context)


def _raise_limits(context: StepContext) -> Iterator[NextStep]:
    autoscaling = context.answer.changed.autoscaling
    if autoscaling is None or not autoscaling.limits:
        return iter(())
    # Imported here, because most answers have no autoscaler.
    from fairlead.whatif.next_steps.autoscaler_limit import raise_limits  # noqa: PLC0415

    return raise_limits(context, autoscaling)


def _name_volumes(context: StepContext) -> Iterator[NextStep]:
    if not any(ELSEWHERE in one.reason for one in context.answer.difference.pending):
        return iter(())
    # Imported here, because few changes leave pods pending for this reason.
    from fairlead.whatif.next_steps.volume_place import name_volumes  # noqa: PLC0415

    return name_volumes(context)


def _shorten_waits(context: StepContext) -> Iterator[NextStep]:
    if not context.answer.effect.waited:
        return iter(())
    # Imported here, because few changes make pods wait for a node.
    from fairlead.whatif.next_steps.pending_pod import shorten_waits  # noqa: PLC0415

    return shorten_waits(context)


def _raise_quotas(context: StepContext) -> Iterator[NextStep]:
    # Imported here, because few changes lead to errors.
    from fairlead.whatif.next_steps.quota import raise_quotas  # noqa: PLC0415

    return raise_quotas(context)


def _raise_quotas_for_replacements(context: StepContext) -> Iterator[NextStep]:
    # Imported here, because few changes lead to refused pods.
    from fairlead.whatif.next_steps.quota import raise_quotas_for_replacements  # noqa: PLC0415

    return raise_quotas_for_replacements(context)


def _raise_backoff_limits(context: StepContext) -> Iterator[NextStep]:
    if not any(one.is_failed_job for one in context.answer.effect.lasting_errors):
        return iter(())
    # Imported here, because few changes make Jobs fail.
    from fairlead.whatif.next_steps.failed_job import raise_backoff_limits  # noqa: PLC0415

    return raise_backoff_limits(context)


def _allow_unavailable_pods(context: StepContext) -> Iterator[NextStep]:
    # Imported here, because few changes stop a rollout.
    from fairlead.whatif.next_steps.rollout import allow_unavailable_pods  # noqa: PLC0415

    if not any(one.outdated for one in context.answer.effect.workloads):
        return iter(())
    return allow_unavailable_pods(context)


def _note_forced_rollback(context: StepContext) -> Iterator[NextStep]:
    if not any(one.outdated for one in context.answer.effect.workloads):
        return iter(())
    # Imported here, because few changes stop a rollout.
    from fairlead.whatif.next_steps.rollout import note_forced_rollback  # noqa: PLC0415

    return note_forced_rollback(context)


def _delete_awaited_pods(context: StepContext) -> Iterator[NextStep]:
    if not context.awaited:
        return iter(())
    # Imported here, because few changes wait for pods.
    from fairlead.whatif.next_steps.rollout import delete_awaited_pods  # noqa: PLC0415

    return delete_awaited_pods(context)


def _move_replica_limits(context: StepContext) -> Iterator[NextStep]:
    # Imported here, because few changes exceed limits of HorizontalPodAutoscalers.
    from fairlead.whatif.next_steps.replica_limit import move_replica_limits  # noqa: PLC0415

    return move_replica_limits(context)


def _keep_volumes(context: StepContext) -> Iterator[NextStep]:
    """Yield a command that keeps the volumes of the deleted claims."""
    lost = [one for one in context.answer.effect.deleted_claims if not one.keeps_data]
    volumes = sorted({one.volume for one in lost})
    if len(volumes) <= NAMES_MAX:
        retain = '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
        which = "volume" if len(volumes) == 1 else "volumes"
        yield NextStep(
            f"before the change, make Kubernetes keep the {which} (reclaim policy Retain)",
            command=shlex.join(("kubectl", "patch", "pv", *volumes, "-p", retain)),
        )


class _Row(NamedTuple):
    """A function that yields steps; `tries` is set if the function may try steps in simulations."""

    steps: Callable[[StepContext], Iterable[NextStep]]
    tries: bool = False


_DRAIN_BEFORE_DELETION: Final = _Row(drain_before_deletion)
_DELETE_AWAITED_PODS: Final = _Row(_delete_awaited_pods, tries=True)
_KEEP_AVAILABLE: Final = _Row(keep_available, tries=True)
_MOVE_REPLICA_LIMITS: Final = _Row(_move_replica_limits, tries=True)
_RAISE_QUOTAS: Final = _Row(_raise_quotas, tries=True)
_ADD_NODES: Final = _Row(_add_nodes, tries=True)
_RAISE_LIMITS: Final = _Row(_raise_limits, tries=True)
# The rows about pods without a place, whatever their priority is.
_FIND_PLACES: Final = (
    _ADD_NODES,
    _RAISE_LIMITS,
    _Row(_relax_spread, tries=True),
    _Row(_name_volumes),
    _Row(_name_absent_labels),
    _Row(_name_sizes),
)
_STEPS: Final[Mapping[OutcomeKind, tuple[_Row, ...]]] = {
    OutcomeKind.REFUSED: (_Row(add_flags),),
    OutcomeKind.UNDRAINED: (_Row(allow_evictions, tries=True),),
    OutcomeKind.UNFINISHED: (_DELETE_AWAITED_PODS, _Row(simulate_to_the_end)),
    OutcomeKind.DATA_DELETED: (_Row(_keep_volumes),),
    OutcomeKind.PENDING: (
        _Row(_allow_unavailable_pods, tries=True),
        _Row(_note_forced_rollback),
        *_FIND_PLACES,
    ),
    OutcomeKind.ERROR: (_RAISE_QUOTAS, _Row(_raise_backoff_limits, tries=True)),
    OutcomeKind.NOT_CREATED: (_RAISE_QUOTAS,),
    OutcomeKind.REPLACEMENTS_REFUSED: (_Row(_raise_quotas_for_replacements, tries=True),),
    OutcomeKind.DOWN: (_Row(replace_pods_of_failed_nodes, tries=True),),
    OutcomeKind.BREACHED: (_DRAIN_BEFORE_DELETION, _Row(add_replicas, tries=True)),
    OutcomeKind.UNAVAILABLE: (_DRAIN_BEFORE_DELETION, _KEEP_AVAILABLE),
    OutcomeKind.BRIEFLY_UNAVAILABLE: (_DRAIN_BEFORE_DELETION, _KEEP_AVAILABLE),
    OutcomeKind.RESCALED: (_MOVE_REPLICA_LIMITS,),
    OutcomeKind.LIMITED: (_MOVE_REPLICA_LIMITS,),
    OutcomeKind.UNCHANGED: (_DELETE_AWAITED_PODS, _MOVE_REPLICA_LIMITS),
    OutcomeKind.DISPLACED: (
        _Row(_ignore_failed_nodes),
        _Row(shorten_failures, tries=True),
        _Row(_shorten_waits, tries=True),
    ),
    OutcomeKind.NEGATIVE_PRIORITY_PENDING: _FIND_PLACES,
}


# --- steps of every answer -----------------------------------------------------------------------


def _more_seeds(answer: WhatIfAnswer) -> Iterator[NextStep]:
    # The seed also determines the order in which a DaemonSet updates its pods.
    is_stopped = any(
        one.workload.is_daemon_set and one.is_harmed and (one.updated or one.outdated)
        for one in answer.effect.workloads
    )
    is_random = answer.changed.choices_among_equals > 0 or is_stopped
    if is_random and not answer.effect.is_none and answer.seeds == 1:
        yield NextStep("ask which outcomes depend on the seed", f"--seeds {SEEDS}")
