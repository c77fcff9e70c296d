"""Displaced pods that run again, or get a node but do not start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.sentence.words import (
    NEGATIVE,
    counted_pods,
    keys_of,
    listed_names,
    pods_of,
    time_words,
)
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.waited_pod import AwaitedReturn
from fairlead.whatif.outcome.run_outcome import REJECTIONS, PodEnd, RunOutcome

_PENDING: Final = "Pending"  # a phase


def displaced_sentence(effect: Effect) -> str | None:
    """Return sentences about displaced pods that run again or do not start.

    Returns None if there are no such pods.
    """
    back = _recovered(effect)
    awaited = {one.pod.key: one for one in effect.awaited_returns}
    late = [awaited[pod.key] for pod in back if pod.key in awaited]
    negative = _negative_keys(effect)
    back = [pod for pod in back if pod.key not in awaited and pod.key not in negative]
    sentences = (
        _displaced_again(effect, back, negative=False),
        _late(effect, late),
        _displaced_not_started(effect),
    )
    return " ".join(filter(None, sentences)) or None


def negative_priority_displaced_sentence(effect: Effect) -> str | None:
    """Return a sentence about displaced pods with a negative priority that run again.

    Returns None if there are none.
    """
    awaited = {one.pod.key for one in effect.awaited_returns}
    negative = _negative_keys(effect)
    pods = [pod for pod in _recovered(effect) if pod.key in negative]
    return _displaced_again(effect, [pod for pod in pods if pod.key not in awaited], negative=True)


def _recovered(effect: Effect) -> list[PodEnd]:
    """Return the displaced pods that run at the end, with their final state."""
    lost = {one.pod for one in effect.lost}
    ends = [effect.changed.pods.get(pod.key) for pod in effect.difference.displaced]
    return [
        pod
        for pod in ends
        if pod is not None
        and pod.started_at is not None
        and not pod.is_terminating
        and pod.key not in lost
    ]


def _negative_keys(effect: Effect) -> set[str]:
    """Return the keys of the pods that had a negative priority when they were displaced.

    The replacement of such a pod can have another priority if the change sets another default. A
    pod of a deleted node is not evicted, so its priority is taken from the run without the change.
    """
    found, without = effect.difference, effect.without.pods
    # Reversed, so that the first displacement of a pod decides; preemptions come before evictions.
    left = {one.pod.key: one.pod for one in (*found.evicted[::-1], *found.preempted[::-1])}
    pods = (left.get(pod.key) or without.get(pod.key, pod) for pod in found.displaced)
    return {pod.key for pod in pods if pod.has_negative_priority}


def _late(effect: Effect, late: Sequence[AwaitedReturn]) -> str | None:
    """Return a sentence about StatefulSet pods that ran again only when their nodes returned.

    Returns None if `late` is empty.
    """
    if not late:
        return None
    after = time_words(max(effect.changed.after_start(one.pod.started_at or 0) for one in late))
    owners = listed_names([str(ref) for ref in dict.fromkeys(one.pod.workload for one in late)])
    are, run = ("is", "runs") if len(late) == 1 else ("are", "run")
    nodes = {one.node for one in late}
    whose = "its" if len(late) == 1 else "their"
    back = f"{whose} failed {'node returns' if len(nodes) == 1 else 'nodes return'}"
    who = f"{counted_pods(len(late))} of {owners}"
    return f"{who} {are} displaced and {run} again only when {back}, after {after}."


def _displaced_again(effect: Effect, back: Sequence[PodEnd], *, negative: bool) -> str | None:
    """Return a sentence about displaced pods that run again (`back`); None if there are none.

    `negative` is True if all of these pods had a negative priority, and False if none of them had
    one.
    """
    if not back:
        return None
    changed = effect.changed
    after = max(changed.after_start(pod.started_at or 0) for pod in back)
    negative_keys = _negative_keys(effect)
    alike = [one for one in effect.difference.displaced if (one.key in negative_keys) is negative]
    all_of_them = len(back) == len(alike)
    run = "runs again" if len(back) == 1 else "all run again" if all_of_them else "run again"
    victims = (one.pod for one in effect.difference.preempted)
    preempted = len({pod.key for pod in victims if (pod.key in negative_keys) is negative})
    how = f", {preempted:,} by preemption," if preempted and all_of_them else ""
    displaced = "is displaced" if len(back) == 1 else "are displaced"
    when = f" {'after' if len(back) == 1 else 'within'} {time_words(after)}"
    # Rolling drains and node autoscalers displace pods over a long time, so that the time since the
    # change is not a time for which pods are down.
    if changed.drains or changed.autoscaling is not None:
        which = "" if len(back) == 1 else "the last one "
        when = f", {which}{time_words(after)} after the change"
    who = f"{pods_of(back)}{NEGATIVE if negative else ''}{_new_ones(effect, back)}"
    return f"{who} {displaced}{how} and {run}{when}{_waits(effect, back)}."


def _displaced_not_started(effect: Effect) -> str | None:
    """Return a sentence about displaced pods that get a node but do not start.

    Returns None if there are none.

    The sentence does not include pods of failed nodes, because `down_sentence` and
    `unfinished_sentence` count these pods.
    """
    lost = {one.pod for one in effect.lost}
    ends = (effect.changed.pods.get(pod.key) for pod in effect.difference.displaced)
    failing = [
        pod
        for pod in ends
        if pod is not None and pod.key not in lost and fails_to_start(pod, effect.changed)
    ]
    if not failing:
        return None
    do = "is displaced and does" if len(failing) == 1 else "are displaced and do"
    return f"{pods_of(failing)}{_new_ones(effect, failing)} {do} not start, as in the dump."


def _new_ones(effect: Effect, displaced: Sequence[PodEnd]) -> str:
    """Return a clause that says how many of the `displaced` pods are new; "" if none is new.

    New pods have a node only with the change, and did not exist before it. A pod that waits for a
    node in the dump is not new, even if it has a node only with the change.
    """
    without = effect.without.pods
    created = {
        key
        for key in keys_of(effect.difference.placed)
        if key not in without or not without[key].is_initial
    }
    new = sum(pod.key in created for pod in displaced)
    if not new:
        return ""
    if new == len(displaced):
        return ", which is new," if new == 1 else ", which are new,"
    return f", {new:,} of them new,"


def _waits(effect: Effect, back: Sequence[PodEnd]) -> str:
    """Return a clause about the pods in `back` that waited long for a node; "" if none did."""
    keys = set(keys_of(back))
    waited = [one for one in effect.waited if one.pod.key in keys]  # the longest wait is first
    if not waited:
        return ""
    longest = for_readers(waited[0].waited)
    if len(back) == 1:
        return f"; it waits {longest} for a node"
    if len(waited) == 1:
        return f"; 1 of them waits {longest} for a node"
    who = "all" if len(waited) == len(back) else f"{len(waited):,} of them"
    return f"; {who} wait up to {longest} for a node"


def fails_to_start(pod: PodEnd, run: RunOutcome) -> bool:
    """Return whether `pod` has a node but never starts (`FailingRevisions`)."""
    if not pod.is_placed or pod.phase != _PENDING or pod.started_at is not None:
        return False
    return run.settled or (pod.workload, pod.revision) in run.failing_revisions


def is_rejected(pod: PodEnd, run: RunOutcome) -> bool:
    """Return whether `pod` has not started and kubelets repeatedly reject its workload's pods."""
    rejected = {one.workload for one in run.recurrences if one.kind == REJECTIONS}
    return pod.started_at is None and pod.workload in rejected
