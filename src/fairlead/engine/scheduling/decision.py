"""Placement and Failure: the decision of a scheduling cycle about one pod."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msgspec import Struct

from fairlead.engine.core.status import Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import histogram
from fairlead.engine.framework.interface import PostFilterResult, PreparationCommand
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo


class Placement(Struct, frozen=True):
    """The decision of a scheduling cycle to place the pod on `node`."""

    node: NodeInfo
    state: CycleState
    # "nominated" if `node` is the pod's nominated node, "single" if no other node is feasible, and
    # "score" if `node` has the best score.
    via: str
    # The number of feasible nodes after sampling and extender filters; 1 if `via` is "nominated".
    feasible: int
    equals: int  # if `via` is "score", the number of nodes that have the best score, otherwise 1
    # Whether only Bind needs to run: the Reserve, Permit and PreBind plugins would do nothing for
    # the pod.
    only_bind_runs: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """The decision of a scheduling cycle that found no node for the pod."""

    message: str  # the failure message
    plugins: tuple[str, ...] = ()  # the plugins that rejected the pod
    # Victims and a nomination; set only if a PostFilter plugin succeeded.
    post_filter_result: PostFilterResult | None = None
    # The node to nominate; "" withdraws the pod's nomination, and None keeps it.
    nominated_node: str | None = ""
    is_error: bool = False  # True for an internal error, False if the pod is unschedulable
    rejections: str = ""  # the part of `message` that counts the rejected nodes
    commands: tuple[PreparationCommand, ...] = ()  # the commands of the PostFilter plugins
    # The reasons that the PostFilter plugins gave; None if the profile has none.
    post_filter: str | None = ""
    post_filter_failed: bool = False  # whether `post_filter` is the error of a plugin
    # Set only if `post_filter_result` is set.
    state: CycleState | None = field(default=None, compare=False)


Decision = Placement | Failure


def failure_of_deleted_pod(pod: PodInfo, failure: Failure, *, names_preemption: bool) -> Failure:
    """Return `failure` as it is reported for a pod that was deleted during its cycle.

    If `failure` has no `rejections`, it is returned unchanged. If `failure` has `rejections`, the
    returned Failure evicts no pods and keeps the pod's nomination. If `names_preemption` is set,
    the message of the Failure says that preemption could not read the pod any more.

    upstream: framework/preemption/preemption.go: Preempt
    """
    if not failure.rejections:
        return failure
    reason = f'preemption: pod "{pod.pod.metadata.name}" not found' if names_preemption else ""
    message = join_messages(failure.rejections, reason)
    return replace(failure, message=message, post_filter_result=None, nominated_node=None)


def join_messages(rejections: str, post_filter: str) -> str:
    """Return the failure message: `rejections`, followed by `post_filter` if it is not empty."""
    return f"{rejections} {post_filter}" if post_filter else rejections


def refusal(status: Status) -> Failure:
    """Return the failure of a pod whose placement a plugin refused with `status`.

    If the plugin rejected the pod, the message begins with "0/1 nodes are available", as in
    upstream. If the plugin failed with an error, the message is the message of `status`.
    """
    if not status.is_rejected:
        return Failure(status.message, is_error=True)
    return Failure(f"0/1 nodes are available:{histogram(iter([(status, 1)]))}", (status.plugin,))
