"""Reporter: the port through which every decision leaves a record.

Decision code reports facts as values; logging, metrics, explanation, reports and tests are
reporters. A reporter only listens: nothing it does may change a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant


class PodPlaced(Struct, frozen=True):
    """A scheduling cycle chose `node` for `pod`.

    `via` is "nominated", "single" or "score". `feasible` is the number of nodes that fit (1 if the
    others were not evaluated), `equals` the number of nodes among which the tie-break chose.
    `started` is when the cycle began; `attempt` is the number of the attempt.
    """

    pod: ObjectRef
    node: str
    at: Instant
    via: str
    feasible: int
    equals: int
    started: Instant
    attempt: int
    profile: str


class PodUnschedulable(Struct, frozen=True):
    """A scheduling or binding cycle failed; `message` is the FailedScheduling text.

    `nominated_node` is the pod's nomination from now on: a node, "" if it is removed, None if it is
    unchanged. `is_error` marks an internal failure as opposed to a verdict on the pod, `is_binding`
    a failed binding cycle. `post_filter` are the reasons of PostFilter plugins, which are not part
    of the message in every version.
    """

    pod: ObjectRef
    at: Instant
    message: str
    plugins: tuple[str, ...]
    nominated_node: str | None
    is_error: bool
    is_binding: bool
    started: Instant
    attempt: int
    profile: str
    post_filter: str = ""


class PodPreempting(Struct, frozen=True):
    """A preemptor chose `node`, where it will evict `victims`.

    `workload` and `victim_workloads` are their owners (`api.pods.facts.workload`).

    `rule` is the name of the ordered rule of pick_one_node that left one candidate ("only
    candidate" when there was just one), `equals` how many were left when no rule decided.
    """

    pod: ObjectRef
    node: str
    victims: tuple[ObjectRef, ...]
    pdb_violations: int
    rule: str
    candidates: int
    equals: int
    at: Instant
    workload: str
    victim_workloads: tuple[str, ...]


class PodEvicted(Struct, frozen=True):
    """A controller evicted a pod from `node` for the reason `why`."""

    pod: ObjectRef
    node: str
    why: str
    at: Instant


class NodeMarkedUnknown(Struct, frozen=True):
    """A node is marked Unknown: the heartbeat seen in the pass at `heartbeat_at` is too old.

    `ready` is the earlier status of its Ready condition, "" if it was never posted.
    """

    node: str
    zone: str
    ready: str
    heartbeat_at: Instant
    at: Instant


class ZoneAssessed(Struct, frozen=True):
    """A zone's state or the number of its nodes has changed.

    `unready` of the `size` nodes that count are not ready; `eviction_rate` is how many nodes a
    second may be emptied.
    """

    zone: str
    state: str
    size: int
    unready: int
    eviction_rate: float
    at: Instant


class NodeTainted(Struct, frozen=True):
    """A node got the NoExecute taint `key`.

    `is_turn` is set if that took a token of its zone; otherwise the taint replaced another one of
    this kind.
    """

    node: str
    zone: str
    key: str
    is_turn: bool
    at: Instant


class NodeEmptied(Struct, frozen=True):
    """The pods of `node` were deleted because it does not respond; this took a zone's token."""

    node: str
    zone: str
    at: Instant


class EvictionTimed(Struct, frozen=True):
    """A pod is to be evicted from `node` at `due`, `tolerated_s` after `taints` were seen."""

    pod: ObjectRef
    node: str
    taints: tuple[str, ...]
    tolerated_s: int
    due: Instant
    at: Instant


class EvictionCancelled(Struct, frozen=True):
    """A timed eviction will not happen."""

    pod: ObjectRef
    at: Instant


class PodCollected(Struct, frozen=True):
    """Pod garbage collection removed a pod; `why` is the reason in upstream's terms."""

    pod: ObjectRef
    node: str
    why: str
    at: Instant


class QueueStood(Struct, frozen=True):
    """The resources of a queue of whole jobs when a session closes; reported if they changed.

    Amounts by resource: cpu in milli, memory in bytes, all else in units. `request` is what its
    jobs held and waited for, `share` the largest allocated ÷ deserved.
    """

    queue: str
    weight: int
    deserved: Mapping[str, float]
    allocated: Mapping[str, int]
    request: Mapping[str, int]
    share: float
    at: Instant


class PluginFailed(Struct, frozen=True):
    """A user's plugin failed where there is no verdict to give, at the extension point `point`.

    Elsewhere a failure becomes the verdict itself. `message` describes the failure.
    """

    plugin: str
    point: str
    message: str


class DisplacementCycle(Struct, frozen=True):
    """Workloads displace each other in a cycle: each of `workloads` the next, the last the first.

    `rules` are the rules that decided the displacements; `times` is how often the cycle was closed.
    """

    workloads: tuple[str, ...]
    rules: tuple[str, ...]
    times: int
    pod: ObjectRef
    at: Instant


class WorkloadStarving(Struct, frozen=True):
    """A workload has been displaced `times` times; `pod` is the pod that was displaced last."""

    workload: str
    times: int
    pod: ObjectRef
    at: Instant


class NominationsWasted(Struct, frozen=True):
    """A pod was nominated `times` times in a row and never placed on the nominated node."""

    pod: ObjectRef
    times: int
    at: Instant


Record = (
    PodPlaced
    | PodUnschedulable
    | PodPreempting
    | PodEvicted
    | NodeMarkedUnknown
    | ZoneAssessed
    | NodeTainted
    | NodeEmptied
    | EvictionTimed
    | EvictionCancelled
    | PodCollected
    | QueueStood
    | PluginFailed
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
    """A reporter that ignores all records."""

    def report(self, record: Record) -> None:
        """Ignore `record`."""
