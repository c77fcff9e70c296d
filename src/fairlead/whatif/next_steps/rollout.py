"""Next steps for rollouts that stop because new pods find no place beside the old pods."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DEPLOYMENT
from fairlead.whatif.next_steps.step_context import NAMES_MAX, StepContext
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect

_STRATEGY: Final = "spec.strategy"


def allow_unavailable_pods(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if in which stopped rollouts of Deployments may delete an old pod first.

    With the default strategy, a Deployment of up to three replicas deletes an old pod only when a
    new pod is ready. If the new pod needs the place of the old one, such as its host port or its
    volume, the rollout never ends. The what-if sets maxUnavailable to 1 and is tried for up to
    NAMES_MAX Deployments together. It is yielded for those of which more pods are then updated. The
    step names those that then have no ready pod for a time.
    """
    change = context.answer.change
    edited = [one.partition(":") for one in change.set]
    named = {target.rpartition("/")[2] for target, _, path in edited if path.startswith(_STRATEGY)}
    stopped = {
        one.workload: one
        for one in context.answer.effect.workloads
        if one.outdated
        and one.pending
        and one.workload.kind == DEPLOYMENT.kind
        and one.workload.name not in named
    }
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
        whose = listed([str(ref) for ref in helped])
        rollouts = "rollout" if len(helped) == 1 else "rollouts"
        price = ""
        if down:
            names = (
                "it" if down == helped and len(down) == 1 else listed([str(ref) for ref in down])
            )
            price = f"; {names} then {'has' if len(down) == 1 else 'have'} no ready pod for a time"
        yield NextStep(
            f"ask again with one unavailable pod allowed during the {rollouts} of {whose}{price}",
            shlex.join(word for ref in helped for word in ("--set", edits[ref])),
        )


def _is_better(tried: WorkloadEffect, present: WorkloadEffect) -> bool:
    """Return whether fewer pods keep the old template, and the new pods of the trial run."""
    runs = tried.pending <= present.pending and tried.readiness.at_end >= present.readiness.at_end
    return runs and tried.outdated < present.outdated
