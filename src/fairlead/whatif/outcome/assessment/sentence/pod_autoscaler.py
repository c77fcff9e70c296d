"""HorizontalPodAutoscalers that override the change, or lack replicas."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.text.count import counted
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome, ReplicaShortage
from fairlead.whatif.outcome.comparison.effect import Effect


def rescaled_sentence(effect: Effect) -> str | None:
    """Return a sentence about autoscalers that do not keep the replicas that the change sets.

    Returns None if there are none.
    """
    before = {one.autoscaler: one.replicas_before for one in effect.without.pod_autoscalers}
    found = [
        one
        for one in effect.changed.pod_autoscalers
        if one.replicas_before != before.get(one.autoscaler, one.replicas_before)
        and one.replicas not in (None, one.replicas_before)
    ]
    if not found:
        return None
    first, others = found[0], len(found) - 1
    more = _and_more(others, "autoscaler", "does the same", "do the same")
    return (
        f"HorizontalPodAutoscaler {first.autoscaler} scales {first.workload} from "
        f"{first.replicas_before:,} to {first.replicas:,} replicas (limits {first.minimum:,} and "
        f"{first.maximum:,}){more}."
    )


def limited_sentence(effect: Effect) -> str | None:
    """Return a sentence about autoscalers that need more than maxReplicas because of the change.

    Returns None if there are none.
    """
    found = effect.replica_shortages
    return shortage_sentence(found) if found else None


def scaled_sentence(effect: Effect) -> str | None:
    """Return a sentence about workloads whose range of replicas differs between the runs.

    Returns None if there are none.
    """
    found = effect.replica_ranges
    if not found:
        return None
    first, others = found[0], len(found) - 1
    more = _and_more(others, "workload", "has another range", "have another range")
    return (
        f"{first.workload} has {first.changed} replicas over time instead of {first.without} "
        f"(HorizontalPodAutoscaler {first.autoscaler}){more}."
    )


def shortage_sentence(found: Sequence[tuple[PodAutoscalerOutcome, ReplicaShortage]]) -> str:
    """Return a sentence about autoscalers that need more than maxReplicas."""
    (first, shortage), others = found[0], len(found) - 1
    how_long = f"for {for_readers(shortage.lasted)}" if shortage.is_over else "until the end"
    more = _and_more(others, "autoscaler", "lacks replicas", "lack replicas")
    return (
        f"HorizontalPodAutoscaler {first.autoscaler} needs up to {shortage.proposed:,} replicas "
        f"{how_long}, but its maxReplicas is {first.maximum:,}{more}."
    )


def _and_more(others: int, noun: str, one: str, several: str) -> str:
    """Return the end of a sentence, such as `; 2 more autoscalers do the same`.

    `others` is the number after the semicolon, and `noun` is the singular of the noun. `one` is the
    predicate for one object, and `several` is the predicate for more than one. Return "" if
    `others` is 0.
    """
    if not others:
        return ""
    return f"; {counted(others, f'more {noun}')} {one if others == 1 else several}"
