"""More replicas of a workload, as a trial and as a next step.

If nodes fail, the replicas are created before the failure. In a real cluster, replicas that are
created only at the failure are too late: they may not be ready when the pods of the failed nodes
are evicted, or may be placed on the failed nodes.
"""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.next_steps.step_context import StepContext, scaled
from fairlead.whatif.next_steps.topology_spread import EARLIER
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect


def with_replicas(one: WorkloadEffect, count: int, context: StepContext) -> Effect | None:
    """Run the user's what-if again with `count` more replicas of `one`; return the effect.

    If nodes fail, they fail when the replicas exist.
    """
    change = context.answer.change
    scale = (*change.scale, f"{one.workload}={one.readiness.wanted + count}")
    delayed = replace(change.failures, at=EARLIER) if _is_delayed(change) else change.failures
    return context.ask(replace(change, scale=scale, failures=delayed))


def replicas_step(one: WorkloadEffect, count: int, context: StepContext) -> NextStep:
    """Return the what-if that `with_replicas` tries."""
    step = scaled(one, count)
    if not _is_delayed(context.answer.change):
        return step
    words = f"{step.words}, created {EARLIER} before the failure"
    return NextStep(words, f"{step.options} --at {EARLIER}")


def _is_delayed(change: ClusterChange) -> bool:
    """Return whether nodes fail, and the user's what-if has no delay of its own."""
    return change.failures.is_any and not change.failures.at
