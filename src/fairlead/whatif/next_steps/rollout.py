"""Next steps for rollouts that stop.

A rollout of a Deployment may stop because its new pods find no place beside the old pods. A rollout
of a StatefulSet with the policy OrderedReady waits for each pod that is not ready. The rollout does
not replace an unready pod, even if the pod has an old template.

upstream: pkg/controller/statefulset/stateful_set_control.go: processReplica
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import Deployment, StatefulSet
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DEPLOYMENT, STATEFUL_SET
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.workloads.deployment.rolling_update import ROLLING_UPDATE, Bounds
from fairlead.engine.workloads.stateful_set.rule import is_ordered
from fairlead.whatif.next_steps.step_context import NAMES_MAX, StepContext, is_named
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef

_STRATEGY: Final = "spec.strategy"


def allow_unavailable_pods(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if in which stopped rollouts may delete an old pod before a new pod is ready.

    With the default strategy, a Deployment of up to three replicas deletes an old pod only when a
    new pod is ready. If the new pod needs the place of the old pod, such as the host port or the
    volume of the old pod, the rollout never ends. The what-if sets maxUnavailable to 1 and is tried
    for up to NAMES_MAX Deployments together. The what-if is yielded for the Deployments that then
    have more updated pods. The step names the Deployments that then have no ready pod for a time.
    """
    stopped = _stopped_rollouts(context)
    edits = {
        ref: f"{ref}:{_STRATEGY}.rollingUpdate.maxUnavailable=1"
        for ref in sorted(stopped, key=lambda ref: (-stopped[ref].outdated, ref))[:NAMES_MAX]
    }
    tried = context.with_edits(*edits.values()) if edits else None
    if tried is None:
        return
    rows = {one.workload: one for one in tried.workloads if one.workload in edits}
    helped = [ref for ref in edits if ref in rows and _is_better(rows[ref], stopped[ref])]
    down = [ref for ref in helped if rows[ref].had_no_ready_pod]
    if helped:
        rollouts = "rollout" if len(helped) == 1 else "rollouts"
        whose = listed([str(ref) for ref in helped])
        yield NextStep(
            f"ask again with one unavailable pod allowed during the {rollouts} of {whose}"
            f"{_price(down, helped)}",
            shlex.join(word for ref in helped for word in ("--set", edits[ref])),
        )


def delete_awaited_pods(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if that also deletes the unready pods for which rollouts of the change wait.

    The what-if is tried for up to NAMES_MAX pods together, and yielded only if more pods of their
    workloads are then ready.
    """
    pods = [one for one in context.awaited if _deletion(one) not in context.answer.change.delete]
    pods = pods[:NAMES_MAX]
    if not pods:
        return
    change, deleted = context.answer.change, tuple(map(_deletion, pods))
    tried = context.ask(replace(change, delete=(*change.delete, *deleted)))
    if tried is None or _ready_pods(tried.changed) <= _ready_pods(context.answer.changed):
        return
    names, whose = listed([one.key for one in pods]), "rollout" if len(pods) == 1 else "rollouts"
    verb = "waits" if len(pods) == 1 else "wait"
    yield NextStep(
        f"ask again, and delete {names}, for which the {whose} {verb}",
        shlex.join(word for one in deleted for word in ("--delete", one)),
    )


def note_forced_rollback(context: StepContext) -> Iterator[NextStep]:
    """Yield nothing; note how to undo rollouts of StatefulSets that stop because of the change.

    A StatefulSet with the policy OrderedReady does not replace its pending pod, even if the
    template is reverted. Kubernetes' documentation calls the necessary steps a forced rollback.
    """
    rows = [
        one.workload
        for one in context.answer.effect.workloads
        if one.outdated and one.pending and one.workload.kind == STATEFUL_SET.kind
    ]
    owners = context.workloads(rows) if rows else {}
    for ref, owner in owners.items():
        if is_ordered(decode_as(StatefulSet, owner.value)):
            pending = context.answer.difference.pending
            names = [one.key for one in pending if one.workload == ref]
            these, are = ("this pod", "it is") if len(names) == 1 else ("these pods", "they are")
            context.notes.append(
                f"To undo the rollout of {ref}, revert the template, and then delete "
                f"{listed(names)}: the StatefulSet does not replace {these} before "
                f"{are} ready (podManagementPolicy)."
            )
    yield from ()


def _deletion(pod: ObjectRef) -> str:
    """Return the value of --delete for `pod`."""
    return f"pod/{pod.key}"


def _ready_pods(run: RunOutcome) -> int:
    """Return the number of ready pods of all workloads at the end of `run`."""
    return sum(one.at_end for one in run.workloads.values())


def _stopped_rollouts(context: StepContext) -> dict[WorkloadRef, WorkloadEffect]:
    """Return the Deployments whose rollouts stop, and whose strategy allows no unavailable pod.

    A rollout stops if new pods are pending while old pods run. A Deployment with the strategy
    Recreate is left out, and so is a Deployment whose strategy the user's what-if sets.
    """
    edited = [
        one for one in context.answer.change.set if one.partition(":")[2].startswith(_STRATEGY)
    ]
    rows = {
        one.workload: one
        for one in context.answer.effect.workloads
        if one.outdated
        and one.pending
        and one.workload.kind == DEPLOYMENT.kind
        and not is_named(one.workload.name, edited)
    }
    present = context.workloads(rows)
    strategies = {ref: decode_as(Deployment, present[ref].value).spec.strategy for ref in present}
    return {
        ref: rows[ref]
        for ref, strategy in strategies.items()
        if strategy.type == ROLLING_UPDATE
        and not Bounds.of(strategy, rows[ref].readiness.wanted).unavailable
    }


def _price(down: Sequence[WorkloadRef], helped: Sequence[WorkloadRef]) -> str:
    """Return a clause which says that the Deployments `down` have no ready pod for a time.

    `helped` are all Deployments of the step. Returns "" if `down` is empty.
    """
    if not down:
        return ""
    names = "it" if len(helped) == 1 else listed([str(ref) for ref in down])
    return f"; {names} then {'has' if len(down) == 1 else 'have'} no ready pod for a time"


def _is_better(tried: WorkloadEffect, present: WorkloadEffect) -> bool:
    """Return whether fewer pods of a workload have the old template in the trial `tried`.

    The result is False if, compared with the user's what-if (`present`), more pods are pending or
    fewer pods are ready at the end.
    """
    runs = tried.pending <= present.pending and tried.readiness.at_end >= present.readiness.at_end
    return runs and tried.outdated < present.outdated
