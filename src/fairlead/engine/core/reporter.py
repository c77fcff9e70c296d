"""Reporter: receives a record of every decision.

Decision code reports facts as values. Logging, metrics, explanations, reports and tests are
implemented as reporters. A reporter must not change a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec import Struct

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant


class PodPlaced(Struct, frozen=True):
    """A scheduling cycle chose `node` for `pod`."""

    pod: ObjectRef
    node: str
    at: Instant
    # How the node was chosen: "nominated" if `node` is the pod's nominated node, "single" if only
    # one node fits, "batch" if a batch session chose the node, and "score" otherwise.
    via: str
    feasible: int  # the number of nodes that fit; 1 if the other nodes were not evaluated
    equals: int  # the number of nodes with the best score
    started: Instant  # the start of the cycle
    attempt: int  # counts from 1
    profile: str


class PodBound(Struct, frozen=True):
    """A pod was bound to `node`, by the attempt that began at `started`.

    `attempt` counts the pod's attempts from 1. `first_tried` is the start of the first attempt;
    None if it is not known.
    """

    pod: ObjectRef
    node: str
    at: Instant
    started: Instant
    attempt: int
    profile: str
    first_tried: Instant | None


class PodUnschedulable(Struct, frozen=True):
    """A scheduling or binding cycle failed; `message` is the text of the FailedScheduling event."""

    pod: ObjectRef
    at: Instant
    message: str
    plugins: tuple[str, ...]
    # The pod's new nominated node: "" if the nomination was removed, None if it is unchanged.
    nominated_node: str | None
    is_error: bool  # an internal failure: it is not known whether the pod fits
    is_binding: bool  # whether a binding cycle failed
    started: Instant
    attempt: int
    profile: str
    # The reasons of PostFilter plugins, because in some Kubernetes versions `message` does not
    # contain them. None if the pod's profile has no such plugins.
    post_filter: str | None = ""
    post_filter_failed: bool = False  # whether `post_filter` is the error of a plugin
    via: str = ""  # "batch" if a batch session failed to place the pod


class PodPreempting(Struct, frozen=True):
    """A scheduler decided to evict `victims`, to make room for `pod` on `node`.

    In a preemption for a PodGroup, `node` and `rule` are "".
    """

    pod: ObjectRef
    node: str
    # A victim that is still terminating can appear again in a later record.
    victims: tuple[ObjectRef, ...]
    # The number of victims whose removal violates a disruption budget. None if the batch scheduler
    # preempts, or if `pod` belongs to a PodGroup that preempts as a whole, because violations are
    # then not counted.
    pdb_violations: int | None
    # The rule that decided between the nodes (`pick_one_node`), or "only candidate" if there was
    # only one node. In a batch session, the reason for the eviction, such as "reclaim".
    rule: str
    candidates: int  # the number of nodes that were compared
    equals: int  # the number of nodes among which the tie-break chose
    at: Instant
    workload: str  # the owner of `pod` (`api.pods.facts.workload`)
    victim_workloads: tuple[str, ...]  # the owners of `victims`
    victim_priorities: tuple[int, ...]  # the priorities of `victims`
    via: str = ""  # "batch" if a batch session evicts the victims


# The reasons of autoscalers' evictions. They are here so that outcomes can compare them without
# importing an autoscaler.
SCALE_DOWN: Final = "node scale down"
KARPENTER_DRAIN: Final = "karpenter drain"
# Karpenter deletes the pod instead, because its NodeClaim's terminationGracePeriod ends too soon.
KARPENTER_DEADLINE: Final = "karpenter termination grace period"


class PodEvicted(Struct, frozen=True):
    """A controller evicted `pod` from `node`, for the reason `why`."""

    pod: ObjectRef
    node: str
    why: str
    at: Instant


class KubeletFlapped(Struct, frozen=True):
    """The machine of a flapping simulated kubelet stopped, or runs again (`is_running`).

    No object of the cluster shows this. The Node stays Ready until the node lifecycle controller
    notices the missing heartbeats.
    """

    node: str
    is_running: bool
    at: Instant


class NodeMarkedUnknown(Struct, frozen=True):
    """The node lifecycle controller marked a node Unknown, because its heartbeat is too old.

    `heartbeat_at` is the time of the monitor pass in which the controller noticed the last
    heartbeat. `ready` is the last status of the node's Ready condition, "" if the node never posted
    one.
    """

    node: str
    zone: str
    ready: str
    heartbeat_at: Instant
    at: Instant


class ZoneAssessed(Struct, frozen=True):
    """The state, the number of nodes or the eviction rate of a zone has changed.

    `size` is the number of nodes that count toward the zone's state. `unready` is the number of
    unready nodes among them. `eviction_rate` is the number of nodes per second whose pods may be
    evicted.
    """

    zone: str
    state: str
    size: int
    unready: int
    eviction_rate: float
    at: Instant


class NodeTainted(Struct, frozen=True):
    """A node got the NoExecute taint `key`.

    `is_rate_limited` tells whether the change used a token of the zone's rate limiter. The change
    uses no token if the taint replaces another taint of the node controller.
    """

    node: str
    zone: str
    key: str
    is_rate_limited: bool
    at: Instant


class NodeEmptied(Struct, frozen=True):
    """The node controller deleted the pods of a not-ready node; taint-based evictions are off."""

    node: str
    zone: str
    at: Instant


class EvictionTimed(Struct, frozen=True):
    """A controller will evict `pod` from `node` at `due`, because of `taints`.

    `tolerated_s` is the number of seconds for which the pod tolerates the taints.
    """

    pod: ObjectRef
    node: str
    taints: tuple[str, ...]
    tolerated_s: int
    due: Instant
    at: Instant


class EvictionCancelled(Struct, frozen=True):
    """A planned eviction was cancelled."""

    pod: ObjectRef
    at: Instant


class PodCollected(Struct, frozen=True):
    """Pod garbage collection removed a pod; `why` is the reason in upstream's terms."""

    pod: ObjectRef
    node: str
    why: str
    at: Instant


class QueueMissing(Struct, frozen=True):
    """Jobs have begun to wait for a missing queue; `jobs` is their number at the time `at`."""

    queue: str
    jobs: int
    at: Instant


class QueueAllocation(Struct, frozen=True):
    """A queue's allocation at the end of a batch session; reported only if it has changed.

    The mappings are keyed by resource. cpu is in millicores, and memory is in bytes. Other
    resources are in units.
    """

    queue: str
    weight: int
    deserved: Mapping[str, float]
    allocated: Mapping[str, int]
    # The allocated amounts of the queue's jobs plus the requests of their pending tasks.
    request: Mapping[str, int]
    share: float  # allocated ÷ deserved for the resource with the largest such ratio
    at: Instant


class PluginFailed(Struct, frozen=True):
    """A user's plugin failed in a call that returns no status, at the extension point `point`.

    In calls that return a status, a failure becomes an ERROR status instead.
    """

    plugin: str
    point: str
    message: str


class ExtenderIgnored(Struct, frozen=True):
    """A call to an extender at `url` failed, and scheduling went on without its answer."""

    url: str
    message: str


class DisplacementCycle(Struct, frozen=True):
    """Workloads displace (preempt or evict) each other in a cycle.

    Each of `workloads` displaces the next workload, and the last displaces the first. `rules` are
    the rules that decided the displacements; `times` is the number of completed cycles.
    """

    workloads: tuple[str, ...]
    rules: tuple[str, ...]
    times: int
    pod: ObjectRef
    at: Instant


class WorkloadStarving(Struct, frozen=True):
    """A workload has been displaced `times` times; `pod` is the pod that was displaced last.

    `priority` is the priority of `pod`. If it is negative, the pod exists to give way to others.
    """

    workload: str
    times: int
    pod: ObjectRef
    priority: int
    at: Instant


class NominationsWasted(Struct, frozen=True):
    """A pod was nominated `times` times in a row without being placed on the nominated node."""

    pod: ObjectRef
    times: int
    at: Instant


Record = (
    PodPlaced
    | PodBound
    | PodUnschedulable
    | PodPreempting
    | PodEvicted
    | KubeletFlapped
    | NodeMarkedUnknown
    | ZoneAssessed
    | NodeTainted
    | NodeEmptied
    | EvictionTimed
    | EvictionCancelled
    | PodCollected
    | QueueAllocation
    | QueueMissing
    | PluginFailed
    | ExtenderIgnored
    | DisplacementCycle
    | WorkloadStarving
    | NominationsWasted
)


class Reporter(Protocol):
    """Receives the record of every decision."""

    def report(self, record: Record) -> None:
        """Receive `record`."""
        ...


class SilentReporter:
    """A reporter that drops all records."""

    def report(self, record: Record) -> None:
        """Ignore `record`."""
