"""PodTrack: the record of one pod in a run. A pod and its replacement have separate records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import (
    belongs_to_node,
    condition,
    differs_in_status_only,
    is_terminal,
    is_terminating,
    pod_priority,
)
from fairlead.api.pods.original import original_name
from fairlead.engine.core.instant import Instant
from fairlead.engine.scheduling.preemption.policy import DISRUPTION_TARGET
from fairlead.engine.workloads.daemon_set.rule import target_node
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.workload import revision_of, workload_of
from fairlead.whatif.run.recorders.pod_count_recorder import PENDING, RUNNING

OVER: Final = ""


class OwnerFacts:
    """Facts that the pods of one owner share.

    The facts are the workload (`owner`), its revision, and whether the pods belong to their nodes
    (pods of DaemonSets and static pods).
    """

    __slots__ = ("_metadata", "belongs_to_node", "owner", "revision")

    def __init__(self, pod: Pod) -> None:
        """Find the facts for `pod`."""
        self._metadata = pod.metadata
        self.owner = workload_of(pod)
        self.revision = revision_of(pod)
        self.belongs_to_node = belongs_to_node(pod)

    def has_owner_of(self, pod: Pod) -> bool:
        """Return whether these facts are certain to apply to `pod`.

        If the result is False, the caller must make new OwnerFacts for `pod`, although the new
        facts may equal these facts.
        """
        mine, their = self._metadata, pod.metadata
        return (
            mine.owner_references is their.owner_references
            and bool(their.owner_references)
            and their.owner_references[0].controller is True
            and their.owner_references[0].kind != "Node"  # a mirror pod is its own workload
            and mine.labels is their.labels
            and mine.annotations is their.annotations
            and mine.namespace == their.namespace
        )


class PodTrack(Struct):
    """The record of one pod."""

    pod: Pod
    state: str = OVER
    reason: str = ""  # the recorded reason why the pod is or was pending
    pending_since: Instant = 0
    started_at: Instant | None = None
    first_started_at: Instant | None = None
    ended_at: Instant | None = None
    refusal: str = ""
    is_initial: bool = False
    awaits_volume_detachment: bool = False
    is_stopped: bool = False  # whether the pod failed because it was deleted before its end
    ended_before: bool = False  # whether the pod had completed before the run
    explanation: str = ""  # used if no `reason` was recorded (`Recorder.explain_waiting`)
    end: PodEnd | None = None  # caches the result of `new_end`

    def new_end(self, requests: Mapping[str, int], facts: OwnerFacts) -> PodEnd:
        """Return the PodEnd of the pod, for the outcome of a run.

        `requests` are the requests of the pod. `facts` must have been made for this
        pod, or `facts.has_owner_of` must return True for this pod.
        """
        pod = self.pod
        return PodEnd(
            namespace=pod.metadata.namespace,
            name=original_name(pod),
            node=pod.spec.node_name,
            phase=pod.status.phase,
            priority=pod_priority(pod),
            labels=pod.metadata.labels,
            requests=requests,
            reason=self.reason or self.explanation,
            since=self.pending_since,
            started_at=self.started_at,
            first_started_at=self.first_started_at,
            ended_at=self.ended_at,
            is_initial=self.is_initial,
            is_terminating=is_terminating(pod),
            owner=facts.owner,
            revision=facts.revision,
            belongs_to_node=facts.belongs_to_node,
            pinned_to="" if pod.spec.node_name else target_node(pod),
            awaits_volume_detachment=self.awaits_volume_detachment,
        )


def state_of(pod: Pod) -> str:
    """Return `OVER` if `pod` has ended or is terminating; else `RUNNING` or `PENDING`.

    A pod is `RUNNING` if it is bound to a node.
    """
    if is_terminal(pod) or is_terminating(pod):
        return OVER
    return RUNNING if pod.spec.node_name else PENDING


def is_disrupted(pod: Pod) -> bool:
    """Return whether `pod` failed because of a disruption, such as node pressure."""
    return pod.status.phase == "Failed" and condition(pod, DISRUPTION_TARGET) is not None


def is_in_same_state(before: Pod, after: Pod) -> bool:
    """Return whether two versions of a pod differ only in status fields other than the phase."""
    return before.status.phase == after.status.phase and differs_in_status_only(before, after)
