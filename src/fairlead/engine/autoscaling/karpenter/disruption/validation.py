"""Validation: checks a decision again after a delay, because the cluster may have changed.

upstream: pkg/controllers/disruption/validation.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.engine.autoscaling.karpenter.disruption.budget import allowed_disruptions
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    DisruptionClass,
    ShouldDisrupt,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.method import DisruptionContext
from fairlead.engine.core.instant import Instant

CHURN: Final = "churn"
BUDGET: Final = "budget"
SCHEDULING: Final = "scheduling"


def validate(
    context: DisruptionContext,
    command: DisruptionCommand,
    should_disrupt: ShouldDisrupt,
    now: Instant,
) -> str | None:
    """Return the reason why a consolidation is no longer valid; None if it is still valid.

    A consolidation is valid if all its candidates are still candidates within the budgets. In
    addition, a new simulation must place all their pods, and need as many new nodes as the command
    has replacements. All instance types of a replacement must also be possible for the new node of
    the simulation.
    """
    problem = _candidates_problem(context, command, should_disrupt, now)
    if problem is not None:
        return problem
    current = _current(context, command.candidates, should_disrupt, now)
    simulated = context.simulator.simulate(current, now, stops_early=True)
    if simulated is None or simulated.errors:
        return SCHEDULING
    if len(simulated.requests) != len(command.replacements):
        return SCHEDULING
    if command.replacements:
        possible = {one.name for one in simulated.requests[0].instance_types}
        wanted = {one.name for one in command.replacements[0].instance_types}
        if not wanted <= possible:
            return SCHEDULING
    return _candidates_problem(context, command, should_disrupt, now)


def _candidates_problem(
    context: DisruptionContext,
    command: DisruptionCommand,
    should_disrupt: ShouldDisrupt,
    now: Instant,
) -> str | None:
    current = _current(context, command.candidates, should_disrupt, now)
    if len(current) != len(command.candidates):
        return CHURN
    allowed = allowed_disruptions(context.cluster, command.reason, now)
    for one in current:
        if allowed[one.pool.name] == 0:
            return BUDGET
        allowed[one.pool.name] -= 1
    return None


def validate_empty(
    context: DisruptionContext,
    command: DisruptionCommand,
    should_disrupt: ShouldDisrupt,
    now: Instant,
) -> DisruptionCommand | None:
    """Return the command, limited to the nodes that are still empty and within budgets.

    Returns None if there is no such node.
    """
    # upstream: validation.go:EmptinessValidator
    allowed = allowed_disruptions(context.cluster, command.reason, now)
    kept: list[DisruptionCandidate] = []
    for one in _current(context, command.candidates, should_disrupt, now):
        if allowed[one.pool.name] > 0:
            allowed[one.pool.name] -= 1
            kept.append(one)
    return replace(command, candidates=tuple(kept)) if kept else None


def _current(
    context: DisruptionContext,
    proposed: Sequence[DisruptionCandidate],
    should_disrupt: ShouldDisrupt,
    now: Instant,
) -> list[DisruptionCandidate]:
    names = {one.name for one in proposed}
    found = context.candidates.of(DisruptionClass.GRACEFUL, should_disrupt, now)
    return [one for one in found if one.name in names]
