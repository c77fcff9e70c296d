"""More replicas of a workload, as a trial and as a next step.

If nodes fail, the replicas are created before the failure (`earlier_change`).
"""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.whatif.next_steps.earlier_change import step_before_failure, with_later_failure
from fairlead.whatif.next_steps.step_context import StepContext, scaled
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect


def with_replicas(one: WorkloadEffect, count: int, context: StepContext) -> Effect | None:
    """Run the user's what-if again with `count` more replicas of `one`; return the effect.

    Returns None if the what-if with these replicas is invalid.
    """
    change = context.answer.change
    scale = (*change.scale, f"{one.workload}={one.readiness.wanted + count}")
    return context.ask(with_later_failure(replace(change, scale=scale)))


def replicas_step(one: WorkloadEffect, count: int, context: StepContext) -> NextStep:
    """Return the what-if that `with_replicas` tries."""
    return step_before_failure(scaled(one, count), "created", context.answer.change)
