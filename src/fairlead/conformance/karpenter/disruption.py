"""Replays a recorded decision of the disruption controller."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.json import Json
from fairlead.conformance.karpenter.scene import Scene
from fairlead.conformance.karpenter.shown_claim import shown_text
from fairlead.conformance.karpenter.shown_command import shown_command, shown_outcome
from fairlead.engine.autoscaling.karpenter.disruption.budget import allowed_disruptions
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    DisruptionCandidate,
    DisruptionClass,
    total_price,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.method import DisruptionMethod
from fairlead.engine.autoscaling.karpenter.disruption.methods.consolidation import by_cost
from fairlead.engine.autoscaling.karpenter.disruption.simulation import KeepReason, NoNodePoolsError

_PREFIXES_MAX = 12


def decide_disruption(case: Json) -> Json:
    """Return Fairlead's decisions about a case of the disruption controller.

    In the result, `blocked` contains, for each node and disruption class, the reason why the node
    is not a candidate. `methods` contains the result of each disruption method, without
    validation. `reconcile` is the result of one loop over all methods.
    """
    methods = {}
    blocked: Json = {}
    scene = Scene(case)
    for disruption_class in DisruptionClass:
        for name, text in scene.loop.context.candidates.all(disruption_class, scene.now)[1].items():
            blocked.setdefault(name, {})[str(disruption_class)] = text
    for method in scene.loop.methods:
        methods[method.name] = _shown_method(scene, method)
    loop = Scene(case)
    return {"blocked": blocked, "methods": methods, "reconcile": loop.shown_loop()}


def _shown_method(scene: Scene, method: DisruptionMethod) -> Json:
    """Return the candidates of `method` and its decision about them, which is not validated."""
    context, now = scene.loop.context, scene.now
    context.notes.clear()
    everything = context.candidates.all(method.disruption_class, now)[0]
    verdicts = [(one, method.should_disrupt(one)) for one in everything]
    candidates = [one for one, verdict in verdicts if verdict is True]
    allowed = allowed_disruptions(scene.cluster, method.reason, now)
    found: Json = {
        "budgets": dict(allowed),
        "candidates": [
            {
                "name": one.name,
                "cost": one.cost,
                "pods": len(one.pods),
                "price": total_price((one,)),
            }
            for one in candidates
        ],
    }
    ignored = {one.name: verdict for one, verdict in verdicts if isinstance(verdict, str)}
    if ignored:
        found["notConsidered"] = ignored
    if candidates:
        try:
            found |= _shown_decision(scene, method, candidates, allowed)
        except NoNodePoolsError:
            found["commands"] = []
    return found


def _shown_decision(
    scene: Scene,
    method: DisruptionMethod,
    candidates: Sequence[DisruptionCandidate],
    allowed: dict[str, int],
) -> Json:
    loop, now = scene.loop, scene.now
    if method is loop.multi:
        batch = loop.multi.batch(candidates, dict(allowed))[0]
        command = loop.multi.search(batch, now)
        return {
            "order": [one.name for one in by_cost(candidates)],
            "batch": [one.name for one in batch],
            "prefixes": [
                {"n": n, **shown_outcome(loop.multi.prefix(batch[:n], now))}
                for n in range(2, min(len(batch), _PREFIXES_MAX) + 1)
            ],
            "commands": [shown_command(command)] if command is not None else [],
        }
    if method is loop.single:
        ordered = loop.single.order(candidates)
        each = {
            one.name: shown_outcome(_with_text(scene, loop.single.decide(one, now)))
            for one in ordered
            if one.pods
        }
        single = loop.single.first(candidates, dict(allowed), now)[0]
        return {
            "order": [one.name for one in ordered],
            "each": each,
            "commands": [shown_command(single)] if single is not None else [],
        }
    if method is loop.emptiness:
        empty = loop.emptiness.compute(candidates, dict(allowed))[0]
        return {"commands": [shown_command(empty)] if empty is not None else []}
    drift = loop.drift if method is loop.drift else loop.static_drift
    found: Json = {
        "commands": [shown_command(one) for one in drift.compute(candidates, dict(allowed), now)]
    }
    if loop.context.notes:
        found["blockedEvents"] = {
            f"NodeClaim/{name}": shown_text(_text_of(scene, reason))
            for name, reason in loop.context.notes.items()
        }
    return found


def _with_text(scene: Scene, outcome: DisruptionCommand | KeepReason) -> DisruptionCommand | str:
    """Return `outcome` if it is a command; if it is a reason, return upstream's text for it."""
    if isinstance(outcome, DisruptionCommand):
        return outcome
    return _text_of(scene, outcome)


def _text_of(scene: Scene, reason: KeepReason) -> str:
    """Return upstream's text for `reason`; "" if the node could be disrupted now."""
    return scene.loop.context.simulator.text_of(reason, scene.now) or ""
