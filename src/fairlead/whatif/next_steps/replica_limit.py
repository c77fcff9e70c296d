"""Next steps for HorizontalPodAutoscalers that keep the replicas within their limits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined
from fairlead.whatif.next_steps.quota import refusal_words
from fairlead.whatif.next_steps.step_context import NAMES_MAX, StepContext, is_named
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome, ReplicaShortage
from fairlead.whatif.outcome.comparison.effect import Effect


def move_replica_limits(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if that changes the limits of autoscalers, so that they admit more replicas.

    The what-if changes two kinds of autoscalers:

    - autoscalers that scale back a workload that the user's what-if scales
    - autoscalers whose metrics propose more than maxReplicas because of the user's what-if; if the
      user's what-if changes nothing, those whose metrics propose more than maxReplicas in both runs

    The limits of up to NAMES_MAX autoscalers are tried together. The step says how many pods then
    do not run. Nothing is yielded for an autoscaler that the user's what-if edits. Nothing is
    yielded at all if the user's what-if applies files.
    """
    answer, edits = context.answer, dict[str, str]()
    if answer.change.apply:
        return
    wanted = {one.autoscaler: one.replicas_before for one in _rescaled(answer.effect)}
    wanted |= {one.autoscaler: short.proposed for one, short in _shortages(answer.effect)}
    by_name = {one.autoscaler: one for one in answer.changed.pod_autoscalers}
    for name, count in [*wanted.items()][:NAMES_MAX]:
        if count and not is_named(name, answer.change.set):
            limit = _limit_in_the_way(by_name[name], count)
            edits[name] = f"hpa/{name}:spec.{limit}={count}"
    tried = context.with_edits(*edits.values()) if edits else None
    if tried is None:
        return
    kept = {one.autoscaler for one in _rescaled(tried)}
    kept |= {one.autoscaler for one, _ in tried.replica_shortages}
    if answer.effect.is_none:
        kept |= {one.autoscaler for one, _ in tried.shortages_of_both}
    helped = [name for name in edits if name not in kept]
    if not helped:
        return
    _, _, edit = edits[helped[0]].partition(":spec.")
    what = f"{edit.replace('=', ' ')} for HorizontalPodAutoscaler {helped[0]}"
    if len(helped) > 1:
        what = f"limits of HorizontalPodAutoscalers {joined(helped)} that admit the replicas"
    more = len(tried.difference.pending) + len(tried.difference.not_created)
    more += sum(one.missing for one in tried.workloads)
    verb = "does" if more == 1 else "do"
    rest = f"; {counted(more, 'pod')} then {verb} not run{refusal_words(tried)}" if more else ""
    yield NextStep(
        f"ask again with {what}{rest}",
        shlex.join(word for name in helped for word in ("--set", edits[name])),
    )


def _shortages(effect: Effect) -> list[tuple[PodAutoscalerOutcome, ReplicaShortage]]:
    """Return the autoscalers that need a higher maxReplicas."""
    return effect.shortages_of_both if effect.is_none else effect.replica_shortages


def _limit_in_the_way(autoscaler: PodAutoscalerOutcome, count: int) -> str:
    """Return which limit of the HorizontalPodAutoscaler must be `count` to keep `count` replicas.

    The result is minReplicas if minReplicas is more than `count`, or if the autoscaler scales to
    fewer than `count` replicas although maxReplicas allows `count`. Otherwise, the result is
    maxReplicas.
    """
    replicas = autoscaler.replicas
    is_reduced = replicas is not None and replicas < count <= autoscaler.maximum
    return "minReplicas" if count < autoscaler.minimum or is_reduced else "maxReplicas"


def _rescaled(effect: Effect) -> list[PodAutoscalerOutcome]:
    """Return the autoscalers that do not keep the replicas that the change sets."""
    before = {one.autoscaler: one.replicas_before for one in effect.without.pod_autoscalers}
    return [
        one
        for one in effect.changed.pod_autoscalers
        if one.replicas_before != before.get(one.autoscaler, one.replicas_before)
        and one.replicas not in (None, one.replicas_before)
    ]
