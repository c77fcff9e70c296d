"""Pods that are completed or removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairlead.whatif.outcome.assessment.sentence.words import (
    end_words,
    of_other_nodes,
    pods_of,
    pods_of_nodes,
)
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.run_outcome import PodEnd


def completed_sentence(effect: Effect) -> str | None:
    """Return a sentence about pods that complete; None if there are none."""
    pods = [pod for pod in effect.difference.completed if not pod.has_failed]
    return f"{pods_of(pods)} {end_words(pods, 'complete', effect.changed)}." if pods else None


def removed_sentence(effect: Effect) -> str | None:
    """Return sentences about deleted pods and pods that are never created.

    Returns None if there are no such pods.
    """
    sentences = []
    never = list(effect.difference.fewer)
    known = {pod.key for pod in never}
    # A rollout that is not finished has deleted pods that it has not replaced yet.
    continuing = {one.workload for one in effect.workloads if one.outdated}
    deleted = [
        pod
        for pod in effect.difference.removed
        if pod.key not in known and pod.workload not in continuing
    ]
    own = of_other_nodes(deleted, effect.changed)
    deleted = [pod for pod in deleted if pod not in own]
    stuck = [pod for pod in deleted if pod.is_terminating]  # such as pods on a failed node
    deleted = [pod for pod in deleted if not pod.is_terminating]
    if deleted:
        verb = "is" if len(deleted) == 1 else "are"
        sentences.append(f"{pods_of(deleted)} {verb} removed{_by_failed_jobs(effect, deleted)}.")
    if stuck:
        verb, they = ("is", "it") if len(stuck) == 1 else ("are", "they")
        words = pods_of(stuck, "terminating pod")
        sentences.append(f"{words} {verb} removed; without the change, {they} would stay.")
    if own:
        verb = "is removed with its" if len(own) == 1 else "are removed with their"
        nodes = "node" if len({pod.own_node for pod in own}) == 1 else "nodes"
        sentences.append(f"{pods_of_nodes(own)} {verb} {nodes}.")
    absent = of_other_nodes(never, effect.changed)
    never = [pod for pod in never if pod not in absent]
    sentences += _only_without(effect, absent, pods_of_nodes)
    sentences += _only_without(effect, never, lambda pods, which: pods_of(pods, f"{which}pod"))
    return " ".join(sentences) or None


def _only_without(
    effect: Effect, pods: Sequence[PodEnd], words: Callable[[Sequence[PodEnd], str], str]
) -> Iterator[str]:
    """Yield sentences about `pods`, which exist only without the change.

    `words` has two arguments: pods, and text that it inserts after their number. Its result is, for
    example, "5 fewer pods".
    """
    # A workload with new pods may have as many pods as without the change, but on other nodes.
    renewed = {pod.workload for pod in effect.difference.placed}
    if fewer := [pod for pod in pods if pod.workload not in renewed]:
        verb = "is" if len(fewer) == 1 else "are"
        yield f"At the end, there {verb} {words(fewer, 'fewer ')} than without the change."
    if others := [pod for pod in pods if pod.workload in renewed]:
        verb = "exists" if len(others) == 1 else "exist"
        yield f"{words(others, '')} {verb} only without the change."


def _by_failed_jobs(effect: Effect, deleted: Sequence[PodEnd]) -> str:
    """Return a clause that states how many of the `deleted` pods belonged to Jobs that fail."""
    failed = {one.workload for one in effect.lasting_errors if one.is_failed_job}
    jobs = [pod.workload for pod in deleted if pod.workload in failed]
    if not jobs:
        return ""
    which = "" if len(jobs) == len(deleted) else f" {len(jobs):,} of them"
    whose = "its" if len(jobs) == 1 else "their"
    return f",{which} because {whose} {'Job fails' if len(set(jobs)) == 1 else 'Jobs fail'}"
