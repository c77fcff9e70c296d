"""Pods that stay pending, and what takes or denies them a node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.api.text.count import counted
from fairlead.apiserver.kind import STATEFUL_SET
from fairlead.whatif.outcome.assessment.sentence.words import NEGATIVE, listed_names, pods_of
from fairlead.whatif.outcome.assessment.sentence.workload import (
    gangs_incomplete_at_end,
    stopped_rollouts,
)
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.scheduling_message import reasons_in_words


def pending_sentence(effect: Effect) -> str | None:
    """Return sentences about pending pods, and what they wait for; None if there are none."""
    pods = [pod for pod in effect.difference.pending if not pod.has_negative_priority]
    if not pods:
        return None
    workloads = (one for one in effect.workloads if not one.has_negative_priority)
    rest = f"{_taken_room(effect)}{gangs_incomplete_at_end(effect)}{_later_pods(effect)}"
    return f"{pods_of(pods)} {_pending_words(effect, pods)}{rest}{_pending_rollouts(workloads)}"


def negative_priority_pending_sentence(effect: Effect) -> str | None:
    """Return a sentence about pending pods with a negative priority; None if there are none."""
    pods = [pod for pod in effect.difference.pending if pod.has_negative_priority]
    if not pods:
        return None
    workloads = (one for one in effect.workloads if one.has_negative_priority)
    words = f"{_pending_words(effect, pods)}{_pending_rollouts(workloads)}"
    return f"{pods_of(pods)}{NEGATIVE} {words}"


def _pending_words(effect: Effect, pods: Sequence[PodEnd]) -> str:
    """Return the predicate about the pending `pods`, with the reasons why they are pending."""
    stay = "stays pending" if len(pods) == 1 else "stay pending"
    if effect.changed.awaits_nodes(pods):
        stay = f"{'is' if len(pods) == 1 else 'are'} {pending_while_scaling(effect.changed)}"
    why = reasons_in_words(pod.reason for pod in pods)
    return f"{stay}{why}.{autoscaler_reasons(effect.changed, pods)}"


def _pending_rollouts(workloads: Iterable[WorkloadEffect]) -> str:
    return stopped_rollouts(one for one in workloads if one.pending)


def _taken_room(effect: Effect) -> str:
    """Return a sentence about pods that took the room of pending pods on nodes that returned.

    The pending pods ran on these nodes until the nodes failed. The sentence begins with a space; it
    is "" if there are no such pods.
    """
    found, outage = effect.difference, effect.changed.outage
    if outage is None:
        return ""
    pending = {pod.key for pod in found.pending if not pod.has_negative_priority}
    left = {one.node for one in found.evicted if one.pod.key in pending}
    back = left.intersection(one.node for one in outage.nodes if one.back_at is not None)
    taken = [pod for pod in found.placed if pod.node in back and not pod.belongs_to_node]
    if not taken:
        return ""
    nodes = {pod.node for pod in taken}
    when = f"{next(iter(nodes))} returned" if len(nodes) == 1 else "failed nodes returned"
    verb = "was" if len(taken) == 1 else "were"
    return f" When {when}, {pods_of(taken)} {verb} placed there first."


def autoscaler_reasons(run: RunOutcome, pods: Iterable[PodEnd]) -> str:
    """Return sentences about limits and rules that stop the autoscaler from helping `pods`.

    `pods` are pending. The text begins with a space. Returns "" if there are no such limits or
    rules. Topology constraints are such rules.
    """
    found = run.autoscaling
    if found is None or not (found.limits or found.ignored or found.waiting):
        return ""
    # Imported only if it is needed.
    from fairlead.whatif.outcome.autoscaling.reached_limit import without_node_words  # noqa: PLC0415

    words = without_node_words(found, [pod.key for pod in pods])
    return f" {words}" if words else ""


def pending_while_scaling(run: RunOutcome) -> str:
    """Return a clause for pending pods for which an autoscaler may still add nodes."""
    acting = run.acting_autoscaler
    return f"pending when the simulation ends, while {acting} adds and removes nodes"


def _later_pods(effect: Effect) -> str:
    """Return a sentence about pods that StatefulSets create only after pending pods are ready.

    Return "" if there are none.
    """
    kind = STATEFUL_SET.kind
    rows = [one for one in effect.workloads if one.workload.kind == kind and one.missing]
    rows = [one for one in rows if one.pending]
    if not rows:
        return ""
    count = sum(one.missing for one in rows)
    names = listed_names([str(one.workload) for one in rows])
    whose, verb = ("its", "creates") if len(rows) == 1 else ("their", "create")
    is_one = sum(one.pending for one in rows) == 1
    their = f"{whose} pending pod is" if is_one else f"{whose} pending pods are"
    return f" {names} {verb} {counted(count, 'more pod')} only after {their} ready (OrderedReady)."
