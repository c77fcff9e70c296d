"""Next steps for rollouts that stop because new pods find no place beside the old pods."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.objects import Deployment
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DEPLOYMENT
from fairlead.engine.workloads.deployment.rolling_update import ROLLING_UPDATE, Bounds
from fairlead.whatif.next_steps.step_context import NAMES_MAX, StepContext, is_named
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.workload import WorkloadRef

_STRATEGY: Final = "spec.strategy"


def allow_unavailable_pods(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if in which stopped rollouts of Deployments may delete an old pod first.

    With the default strategy, a Deployment of up to three replicas deletes an old pod only when a
    new pod is ready. If the new pod needs the place of the old one, such as its host port or its
    volume, the rollout never ends. The what-if sets maxUnavailable to 1 and is tried for up to
    NAMES_MAX Deployments together. It is yielded for those of which more pods are then updated. The
    step names those that then have no ready pod for a time.
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


def _stopped_rollouts(context: StepContext) -> dict[WorkloadRef, WorkloadEffect]:
    """Return the Deployments whose rollouts stop, and whose strategy allows no unavailable pod.

    A rollout stops if new pods are pending while old pods run. A Deployment with the strategy
    Recreate is left out, and so is a Deployment whose strategy the question sets.
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
    """Return words about those of the `helped` Deployments that are `down` for a time, or ""."""
    if not down:
        return ""
    names = "it" if len(helped) == 1 else listed([str(ref) for ref in down])
    return f"; {names} then {'has' if len(down) == 1 else 'have'} no ready pod for a time"


def _is_better(tried: WorkloadEffect, present: WorkloadEffect) -> bool:
    """Return whether fewer pods keep the old template, and the new pods of the trial run."""
    runs = tried.pending <= present.pending and tried.readiness.at_end >= present.readiness.at_end
    return runs and tried.outdated < present.outdated
