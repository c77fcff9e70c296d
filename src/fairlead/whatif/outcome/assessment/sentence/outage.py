"""Pods that are down with their nodes, and pods that wait for a node."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.text.count import counted
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.sentence.words import (
    counted_pods,
    of_other_nodes,
    pods_of,
    time_words,
)
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.waited_pod import WaitedPod, only_waited


def interrupted_sentence(effect: Effect) -> str | None:
    """Return sentences about pods that are down with their nodes, and pods that wait for a node.

    The pods that are down with their nodes run again on these nodes later. Displaced, moved and new
    pods do not count as pods that wait. If there are no pods of either kind, the result is a
    sentence about the pods that need no replacement, such as a pod of a DaemonSet on a removed
    node. Return None if there is no sentence. Sentences about pods on failed nodes are included
    only if the change puts pods on failed nodes, or keeps pods there longer.
    """
    outage, found = effect.changed.outage, effect.difference
    waited = only_waited(effect.waited, found)
    if outage is None or not found.pods_on_failed_nodes:
        return _waiting(waited) if waited else None
    sentences = []
    pods = outage.back_with_node
    is_any_node_back = any(one.back_at is not None for one in outage.nodes)
    last_back_at = outage.last_return_at
    if is_any_node_back and not (outage.evicted or found.displaced):
        # Pods that were deleted before the run, and replaced when the kubelet returned. Other
        # sentences count the replacements that waited for a node, and those of pods that ended with
        # their node, such as the pods of a Job whose restartPolicy is Never.
        failed = {one.node for one in outage.nodes}
        others = sum(not one.pod.is_initial for one in waited)
        others += sum(one.is_recreated and one.origin in failed for one in found.moved)
        others += sum(one.before.node in failed for one in found.updated)
        if outage.replaced > others:
            pods += outage.replaced - others
            last_back_at = outage.last_back_at
    if pods:
        nodes = "node" if len(outage.nodes) == 1 else "nodes"
        down = "is down with its node" if pods == 1 else f"are down with their {nodes}"
        # Relative to the change, like all times of the verdict: an outage may begin later (--at).
        last = None if last_back_at is None else effect.changed.after_start(last_back_at)
        after = "" if last is None else f" after {time_words(last)}"
        come = "comes" if pods == 1 else "come"
        times = max(one.returns for one in outage.nodes)
        has_displaced = outage.evicted or found.displaced  # an earlier sentence counts these pods
        who = counted(pods, "more pod") if has_displaced else counted_pods(pods)
        if times > 1 and outage.last_with_node < pods:
            most = "" if len(outage.nodes) == 1 else "up to "
            how = _returns(outage.late_with_node, pods, after)
            sentences.append(f"{who} {down} {most}{times} times, and {come} back{how}.")
        else:
            why = _only_last_return(pods, len(outage.nodes)) if times > 1 else ""
            sentences.append(f"{who} {down} and {come} back{after}{why}.")
    if waited:
        sentences.append(_waiting(waited))
    # For example, the pods of failed Jobs; `removed_sentence` counts the pods of removed nodes.
    gone = {pod.key for pod in (*found.gone, *of_other_nodes(found.removed, effect.changed))}
    unneeded = sum(not one.cause.is_loss and one.pod not in gone for one in outage.lost)
    if unneeded and not sentences:
        sentences.append(_needs_no_replacement(unneeded))
    return " ".join(sentences) or None


def _only_last_return(pods: int, nodes: int) -> str:
    """Return why `pods` of flapping nodes come back only after the last failure."""
    fail = "the node fails" if nodes == 1 else "the nodes fail"
    run = "the pod runs" if pods == 1 else "the pods run"
    return f": {fail} again each time before {run}"


def _returns(late: int, pods: int, after: str) -> str:
    """Return text that says when the pods of flapping nodes come back.

    `pods` is the number of these pods, of which `late` do not come back every time. `after` is text
    that says when they last came back, or "".
    """
    if not late:
        return f" each time, the last time{after}" if after else " each time"
    return after + _not_each_time(late, pods)


def _not_each_time(late: int, pods: int) -> str:
    if pods == 1:
        return "; it does not always come back, because its node fails again before the pod runs"
    who = "they" if late == pods else f"{late:,} of them"
    do, pods_run = ("does", "the pod runs") if late == 1 else ("do", "these pods run")
    return f"; {who} {do} not always come back, because nodes fail again before {pods_run}"


def _waiting(waited: Sequence[WaitedPod]) -> str:
    """Return a sentence about pending pods that waited; `waited` begins with the longest wait."""
    verb = "waits" if len(waited) == 1 else "wait up to"
    pending = pods_of([one.pod for one in waited], "pending pod")
    without_node = sum(not one.pod.node for one in waited)
    deleted = "is deleted before it gets" if without_node == 1 else "are deleted before they get"
    who = " and" if without_node == len(waited) else f"; {without_node:,} of them"
    end = f"{who} {deleted} one" if without_node else ""
    return f"{pending} {verb} {for_readers(waited[0].waited)} for a node{end}."


def _needs_no_replacement(pods: int) -> str:
    if pods == 1:
        return "1 pod is down with its node and needs no replacement."
    return f"{counted_pods(pods)} are down with their nodes and need no replacements."
