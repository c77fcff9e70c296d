"""Converts disruption commands to the form of the recordings."""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.conformance.karpenter.case import shown_pod
from fairlead.conformance.karpenter.shown_claim import shown_claim, shown_text
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand


def shown_command(command: DisruptionCommand) -> Json:
    """Return `command` in the form of the recordings."""
    found: Json = {
        "candidates": sorted(one.name for one in command.candidates),
        "decision": command.decision,
        "savings": command.savings,
    }
    if command.replacements:
        found["replacements"] = [shown_claim(one) for one in command.replacements]
    return found | _pods_to(command)


def shown_outcome(outcome: DisruptionCommand | str | None) -> Json:
    """Return what a disruption method decided, in the form of the recordings.

    `outcome` is the command that the method decided on. If the method decided on no command,
    `outcome` is the reason, or None if there is no reason.
    """
    if outcome is None:
        return {"decision": "no-op"}
    if isinstance(outcome, str):
        return {"decision": "no-op", "reason": shown_text(outcome)}
    found: Json = {"decision": outcome.decision, "savings": outcome.savings}
    if outcome.replacements:
        found["replacements"] = [
            {"nodePool": one.pool.name, "instanceTypes": [t.name for t in one.instance_types]}
            for one in outcome.replacements
        ]
    return found | _pods_to(outcome)


def _pods_to(command: DisruptionCommand) -> Json:
    placed = {node.state.name: [shown_pod(p.key) for p in node.pods] for node in command.placed}
    return {"podsTo": placed} if placed else {}
