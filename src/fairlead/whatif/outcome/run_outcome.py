"""RunOutcome: the outcome of one run, as values that do not depend on the computing time.

A pod that replaces an evicted pod is listed under the evicted pod's name, so the two pods count as
one moved pod.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from fairlead.api.objects import LabelSelector, Taint
from fairlead.api.text.count import counted
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import DurationNs, Instant, seconds, to_seconds
from fairlead.engine.workloads.job.finished_condition import TOO_LATE
from fairlead.whatif.change.kubectl_drain import NO_DRAIN, KubectlDrain
from fairlead.whatif.configuration.autoscaling.autoscaler import KARPENTER
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.waiting_time import WAITED_MIN, PodWait, waiting_times
from fairlead.whatif.outcome.jobs import NO_JOBS, JobsOutcome
from fairlead.whatif.outcome.outage import DrainProgress, OutageOutcome
from fairlead.whatif.outcome.rest import AT_REST, Rest
from fairlead.whatif.outcome.workload import POD, Revision, WorkloadReadiness, WorkloadRef

if TYPE_CHECKING:
    from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome
    from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome
else:
    # Python's help() evaluates these annotations, so the names must exist. Importing the real
    # classes takes time, and most runs have no autoscaler.
    AutoscalingOutcome = PodAutoscalerOutcome = Any

SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
REJECTIONS: Final = "rejections"
STARVING: Final = "starving"
WASTED: Final = "wasted"
RESIZE_DEFERRED: Final = "its resize is deferred"
RESIZE_UNDECIDED: Final = "its resize is not carried out: the kubelet of its node does not answer"
KEPT_RESOURCES: Final = (RESIZE_DEFERRED, RESIZE_UNDECIDED)
"""The beginnings of errors about pods that keep their former resources."""
COMPLETED: Final = (SUCCEEDED, FAILED)
"""The phases of a pod that has completed."""
_RECENT: Final = seconds(5 * 60)


class PodEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod that exists when the run ends."""

    namespace: str
    name: str
    node: str = ""  # "" if the pod has no node
    phase: str = ""
    priority: int = 0
    labels: Mapping[str, str] = {}
    requests: Mapping[str, int] = {}  # CPU in millicores, other resources in bytes or whole numbers
    # Maps resources such as `gpu.example.com devices` to the number of devices that the pod's
    # claims hold on the node.
    devices: Mapping[str, int] = {}
    reason: str = ""  # why the pod is pending
    since: Instant = 0  # the time at which the pod became pending
    started_at: Instant | None = None  # the start of the pod, None if it has not started
    # The first start of the pod or of a pod that it replaces, None if no start was observed.
    first_started_at: Instant | None = None
    # The time at which the pod completed, None if it has not completed, or completed before the
    # run.
    ended_at: Instant | None = None
    is_initial: bool = False  # whether the pod has existed since the start of the run
    is_terminating: bool = False  # whether deletion was requested but is not complete
    owner: WorkloadRef | None = None
    revision: str = ""  # the template revision of `owner`, "" if unknown
    belongs_to_node: bool = False  # whether the pod is static or of a DaemonSet
    # If `belongs_to_node` and the pod has no node yet, the name of the node that it waits for.
    pinned_to: str = ""
    # Whether the pod has a node, but waits for a volume that is attached to another node. Such a
    # pod counts as pending.
    awaits_volume_detachment: bool = False

    @property
    def key(self) -> str:
        """The pod's key, `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def workload(self) -> WorkloadRef:
        """The pod's workload; the pod itself if it has no owner."""
        return self.owner or WorkloadRef(POD, self.namespace, self.name)

    @property
    def own_node(self) -> str:
        """The node to which the pod belongs; "" if the pod could also run on another node."""
        return self.node or self.pinned_to if self.belongs_to_node else ""

    @property
    def is_completed(self) -> bool:
        """Whether the pod succeeded or failed."""
        return self.phase in COMPLETED

    @property
    def has_negative_priority(self) -> bool:
        """Whether the pod has a negative priority, and so exists to give way to other pods.

        Examples are placeholders, which keep room free until other pods preempt them.
        """
        return self.priority < 0

    @property
    def has_failed(self) -> bool:
        """Whether the pod completed with a failure."""
        return self.phase == FAILED

    @property
    def is_placed(self) -> bool:
        """Whether the pod has a node, does not wait for a volume and has not completed."""
        is_on_node = self.node != "" and self.phase not in COMPLETED
        return is_on_node and not self.awaits_volume_detachment

    @property
    def is_pending(self) -> bool:
        """Whether the pod has no node or waits for a volume, and has not completed."""
        return (self.node == "" or self.awaits_volume_detachment) and not self.is_completed

    @property
    def occupies_node(self) -> bool:
        """Whether the pod has a node and has not completed."""
        return self.node != "" and self.phase not in COMPLETED


class Displaced(Struct, frozen=True, kw_only=True):
    """A pod that had to leave `node`, because it was preempted or evicted."""

    pod: PodEnd
    node: str
    at: Instant


class Preempted(Displaced, frozen=True, kw_only=True):
    """A pod that was preempted; `rule` is the rule that chose `node` among `candidates` nodes.

    `by` is the key (`namespace/name`) of the preemptor, and `by_priority` is its priority.
    `by_workload` is the workload of the preemptor, None if unknown.
    """

    by: str
    by_priority: int
    rule: str
    candidates: int
    by_workload: WorkloadRef | None = None


class Evicted(Displaced, frozen=True, kw_only=True):
    """An evicted pod.

    `why` is the reason for the eviction. `tolerated_s` is the toleration time (in seconds) after
    which the pod was evicted, None if the eviction did not depend on a toleration time.
    """

    why: str
    tolerated_s: int | None = None

    @property
    def reason(self) -> str:
        """The reason for the eviction and the toleration time in one text."""
        if self.tolerated_s is None:
            return self.why
        return f"{self.why} ({for_readers(seconds(self.tolerated_s))})"


NODE_DELETED: Final = "node deleted"


class PdbBreach(Struct, frozen=True, kw_only=True):
    """A displacement of a pod whose PodDisruptionBudget allowed no disruption.

    `by` states the cause: the preemptor, NODE_DELETED, or the reason of an eviction that did not
    check the budget.
    """

    pdb: str
    pod: str
    by: str
    at: Instant


class BudgetHistory(Struct, frozen=True, kw_only=True):
    """A budget during a run.

    The fields `needed` and `lowest_healthy` are from one instant. If the required number changes,
    this is the instant at which the budget lacks the most healthy pods. If the budget never lacks
    healthy pods, it is the instant with the fewest healthy pods beyond the required number. If the
    budget has no pod at first and the number of healthy pods never falls, it is the end of the run.
    """

    pdb: str
    rule: str
    allowed: int  # the number of disruptions allowed at the start
    allowed_at_end: int | None  # the number allowed at the end, None if the budget was deleted
    needed: int  # the required number of healthy pods
    lowest_healthy: int  # the lowest number of healthy pods during the run
    # Keys of its pods that were preempted, evicted or deleted with their nodes.
    displaced: tuple[str, ...]
    refused: tuple[str, ...]  # keys of its pods whose evictions were refused at least once
    # The largest number of healthy pods that the budget lacked at one instant. An instant counts
    # only if the budget had more healthy pods at an earlier instant. So new pods of a scale-up are
    # not a shortage.
    shortage: int = 0
    selector: LabelSelector | None = None  # selects the pods of the budget, None if it was deleted
    # Whether the budget at the end needs all its pods. Such a budget allows no disruption even if
    # all its pods are healthy.
    never_allows: bool = False


class NodeEnd(Struct, frozen=True, kw_only=True):
    """A node at the end of a run, with the pods on it.

    The fields `allocatable` and `requested` are amounts by resource: CPU in millicores, others in
    bytes or whole numbers.
    """

    name: str
    zone: str
    labels: Mapping[str, str] = field(default_factory=dict)
    # The lasting taints of the node except taints with the effect PreferNoSchedule. Only pods that
    # tolerate the taints can run on the node.
    taints: tuple[Taint, ...] = ()
    unschedulable: bool
    is_ready: bool = True  # pods on a node that is not ready do not run
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pods: tuple[PodEnd, ...]

    @property
    def is_tainted(self) -> bool:
        """Whether the node has `taints`."""
        return bool(self.taints)

    @property
    def overcommitted(self) -> list[str]:
        """The resources of which the pods on the node request more than is allocatable."""
        return [
            name
            for name, amount in self.requested.items()
            if amount > self.allocatable.get(name, 0)
        ]

    @property
    def empty_room(self) -> Mapping[str, int]:
        """The allocatable amounts minus the requests of the static and DaemonSet pods."""
        room = Counter(self.allocatable)
        for pod in self.pods:
            if pod.belongs_to_node:
                room.subtract({**pod.requests, "pods": 1})
        return room

    @property
    def is_schedulable(self) -> bool:
        """Whether the node is ready and not cordoned."""
        return self.is_ready and not self.unschedulable


class PlacementChange(Struct, frozen=True):
    """A change of the pods on `node`: a pod arrived (`is_arrival`), completed, or was deleted."""

    at: Instant
    node: str
    pod: PodEnd
    is_arrival: bool


class NodeStatusChange(Struct, frozen=True):
    """The state of `node` from the instant `at` until its next change.

    `exists` means that the node is in the cluster. `is_serving` means that its kubelet runs and its
    condition Ready is True.
    """

    at: Instant
    node: str
    exists: bool
    is_serving: bool
    unschedulable: bool


class ClusterHistory(Struct, frozen=True, kw_only=True):
    """The changes of nodes, and of the pods on them, during a run; ordered by time.

    To find the state at an instant, start with the nodes at the end of the run. Revert all changes
    after that instant, the latest change first.
    """

    placements: tuple[PlacementChange, ...]
    # For each node that changed, its status at the start of the run, then the changes.
    statuses: tuple[NodeStatusChange, ...]
    # The nodes that existed during the run but not at its end; their pods are not listed.
    deleted: tuple[NodeEnd, ...]
    # The nodes that are not Ready at the end or whose kubelet does not run.
    out_of_service: tuple[str, ...]


class ResourceAllocation(Struct, frozen=True, kw_only=True):
    """Total amounts of one resource on all nodes, at the start (`…_before`) and at the end.

    Virtual nodes do not count.
    """

    resource: str
    allocatable_before: int
    allocatable: int
    requested_before: int
    requested: int


_FIRST: Final = ("cpu", "memory", "ephemeral-storage")
_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_DEVICES: Final = " devices"  # no name of a resource has a space


def resource_rank(resource: str) -> tuple[int, str]:
    """Return a sort key: CPU, memory and storage come first, then the other resources by name."""
    return (_FIRST.index(resource) if resource in _FIRST else len(_FIRST), resource)


def device_resource(driver: str) -> str:
    """Return the name under which the devices of `driver` are counted: `gpu.example.com devices`.

    A device counts as requested if a claim holds it and its ResourceSlice exists.
    """
    return f"{driver}{_DEVICES}"


def is_device_resource(resource: str) -> bool:
    """Return whether `resource` counts the devices of a driver: `gpu.example.com devices`."""
    return resource.endswith(_DEVICES)


def unit_of(resource: str) -> str:
    """Return the unit of amounts of `resource`: "milli" (of a core), "bytes", or "" for a count."""
    if resource == "cpu":
        return "milli"
    return "bytes" if resource.startswith(_BYTES) else ""


class UndrainedCause(StrEnum):
    """The reason why a drained node still has a pod at the end."""

    REFUSED = "refused"  # the API server refuses the eviction
    UNSTOPPED = "unstopped"  # the pod is being deleted, but the kubelet of its node does not answer
    KEPT = "kept"  # in the dump, a finalizer keeps the ended pod, or the pod does not stop
    PROTECTED = "protected"  # Karpenter does not evict the pod (engine.workloads.drain)
    STOPPING = "stopping"  # the pod is still within its grace period


UNSTOPPED: Final = "the kubelet of the node does not answer"
PROTECTED_BY: Final = "Karpenter evicts no pod with the annotation karpenter.sh/do-not-disrupt"


class Undrained(Struct, frozen=True, kw_only=True):
    """A pod that a drain had not removed when the run ended, and the cause.

    `why` explains the cause as text, for example with the API server's refusal, the constant
    UNSTOPPED or PROTECTED_BY, or the finalizer that keeps the pod. A pod with the cause STOPPING
    stops at `stops_at`, the end of its grace period, so a longer run removes it. For other causes,
    `stops_at` is None.
    """

    pod: PodEnd
    cause: UndrainedCause
    why: str
    stops_at: Instant | None = None


class Skipped(Struct, frozen=True, kw_only=True):
    """A command without effect; it belongs to a step of the experiment.

    The object that the command concerns did not exist, or the command requested an eviction that
    was refused.
    """

    what: str
    at: Instant
    why: str


class ObjectError(Struct, frozen=True):
    """A failure of `subject`; `message` states the reason.

    The subject is an object whose controller could not create pods, an object that admission
    rejected, or a Job that failed. The subject can also be a pod whose resize is not carried out,
    or a plugin. The fields `missing`, `workload`, `nodes` and `revision` are set only if the
    subject creates pods.
    """

    subject: str
    message: str
    missing: int = 0  # the number of pods that the subject lacks at the end
    workload: WorkloadRef | None = None  # the workload of the missing pods
    nodes: tuple[str, ...] = ()  # for a DaemonSet, the nodes on which it lacks a pod
    # The template revision of the missing pods, "" if the workload has no revisions or is a
    # DaemonSet.
    revision: str = ""
    is_failed_job: bool = False  # whether the subject is a failed Job, which creates no more pods
    # Whether the subject is a Job that can no longer succeed, because of failed indexes.
    is_failing_job: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the failure is over: the subject creates pods, and lacks none at the end.

        The failure of a Job that has failed or can no longer succeed is never over.
        """
        is_job_failure = self.is_failed_job or self.is_failing_job
        return self.workload is not None and not self.missing and not is_job_failure

    @property
    def exceeds_deadline(self) -> bool:
        """Whether the subject is a Job that failed at the end of its activeDeadlineSeconds.

        In a simulation, a pod of unknown run time runs until this deadline. So the failure does not
        show that the real Job would fail.
        """
        return self.is_failed_job and self.message.endswith(f"({TOO_LATE.reason})")


class DeletedClaim(Struct, frozen=True):
    """A PersistentVolumeClaim that was deleted; `claim` is its namespace and name.

    `volume` is the claim's volume, "" if the claim had none. `reclaim_policy` is the reclaim policy
    of the volume, "" if it is unknown. The claim was deleted at the instant `at`. If `is_in_use` is
    set, the claim was only marked for deletion at this instant, and still exists, because a pod
    uses it. Nothing can undo the mark, so the claim is deleted when the last such pod is gone.
    """

    claim: str
    volume: str
    reclaim_policy: str
    at: Instant
    is_in_use: bool = False

    @property
    def keeps_data(self) -> bool:
        """Whether no data is lost: the claim had no volume, or the volume is retained."""
        return not self.volume or self.reclaim_policy == "Retain"


class RefusedWorkload(Struct, frozen=True):
    """A workload whose next pod the API server would refuse at the end of a run.

    `message` is the reason, without the name of the pod. If `replacements_refused` is False, a
    quota has room for the replacement of an existing pod, but not for one more pod.
    """

    workload: WorkloadRef
    message: str
    replacements_refused: bool


class Recurrence(Struct, frozen=True):
    """A repeated displacement.

    The `kind` is one of five words. "cycle": pods preempt each other repeatedly. "evictions": an
    eviction loop. "rejections" (REJECTIONS): kubelets reject pods of `workload`, and repeatedly
    reject the replacements of these pods. "starving" (STARVING): pods of `workload` were displaced
    `times` times. "wasted" (WASTED): preemptions for a pod of `workload` that does not use the
    freed room.

    If a loop goes on, the run reports it again, with a higher number in `message`.
    """

    kind: str
    message: str
    at: Instant
    workload: WorkloadRef | None = None
    times: int = 0
    # The sorted names of the workloads of a cycle; () for the other kinds.
    cycle: tuple[str, ...] = ()

    @property
    def loop(self) -> tuple[str, WorkloadRef | tuple[str, ...] | str]:
        """A key that all reports of the same loop have in common."""
        return self.kind, self.workload or self.cycle or self.message


class PodCountSample(Struct, frozen=True):
    """Numbers of pods of one priority from the instant `at` until the next sample.

    `running` pods have a node that works, and `down` pods have a node that does not work.
    `preempted` and `evicted` are totals from the start of the outcome up to `at`.
    """

    at: Instant
    priority: int
    pending: int
    running: int
    down: int
    preempted: int
    evicted: int


class DeletedPod(Struct, frozen=True):
    """A pod that no node could take for a time, and that was deleted at `at`.

    `pod.node` is "" if the pod still waited for a node.
    """

    pod: PodEnd
    at: Instant


class RunOutcome(Struct, frozen=True, kw_only=True, dict=True):
    """The outcome of a run: pods sorted by key, everything else by time, then name.

    All times and counts start at `started_at`.
    """

    started_at: Instant  # the instant at which the steps of the experiment begin
    ended_at: Instant  # if the run settled, the instant of the last change
    settled: bool
    pods: Mapping[str, PodEnd]
    preempted: tuple[Preempted, ...]
    evicted: tuple[Evicted, ...]
    pdb_breaches: tuple[PdbBreach, ...]
    undrained: tuple[Undrained, ...]
    skipped: tuple[Skipped, ...]
    errors: tuple[ObjectError, ...]
    recurrences: tuple[Recurrence, ...]
    nodes: tuple[NodeEnd, ...]
    allocations: tuple[ResourceAllocation, ...]
    priority_names: Mapping[int, str]  # {value of a PriorityClass: its name}
    samples: tuple[PodCountSample, ...]
    choices_among_equals: int  # the number of choices among equally good nodes
    jobs: JobsOutcome = NO_JOBS
    outage: OutageOutcome | None = None  # None if no node failed
    drains: tuple[DrainProgress, ...] = ()  # the rolling drains
    # Sentences about rules that did not apply and defaults that were filled in.
    notes: tuple[str, ...] = ()
    # The `notes` about images that may be unable to run on the nodes of their pods.
    image_notes: tuple[str, ...] = ()
    # The `notes` about failed calls of extenders, and about checks that admission skipped.
    rule_notes: tuple[str, ...] = ()
    # The workloads whose pods changed.
    workloads: Mapping[WorkloadRef, WorkloadReadiness] = field(default_factory=dict)
    workloads_total: int = 0  # the number of all workloads
    # The budgets that exist at the end. Also the budgets of displaced pods, and of pods whose
    # evictions were refused.
    budgets: tuple[BudgetHistory, ...] = ()
    # The keys of all pods that changed since the cluster was loaded; None if unknown.
    touched: frozenset[str] | None = None
    # The pods that were on a node when the node was deleted, keyed by `PodEnd.key`; None if
    # unknown.
    on_deleted_nodes: Mapping[str, PodEnd] | None = None
    rest: Rest = AT_REST
    autoscaling: AutoscalingOutcome | None = None  # None if no node autoscaler acted
    waits: tuple[PodWait, ...] = ()  # the pods' waits for a node, oldest first
    pod_autoscalers: tuple[PodAutoscalerOutcome, ...] = ()
    cluster_history: ClusterHistory | None = None  # None if it was too large to keep
    deleted_claims: tuple[DeletedClaim, ...] = ()  # without claims whose controller is a pod
    # The schedulerNames of pods that were bound after the change, or still wait at the end.
    scheduler_names: frozenset[str] = frozenset()
    # {workload with pending pods: sentences about labels that the pods require and no node has}
    absent_labels: Mapping[WorkloadRef, str] = field(default_factory=dict)
    # The workloads whose next pods would be refused, among the workloads that are tried.
    refused_workloads: tuple[RefusedWorkload, ...] = ()
    completed_and_deleted: tuple[PodEnd, ...] = ()  # pods that completed and were then deleted
    # Pods that no node could take for a time, and that were deleted before they completed.
    deleted_after_wait: tuple[DeletedPod, ...] = ()
    # The next instant at which a pod or a Job would have ended by itself, None if there is none.
    next_end: Instant | None = None
    # The StatefulSets and DaemonSets with an update strategy that keeps pods at an old revision.
    # The value of each is the lowest ordinal that the workload updates, None if the workload
    # updates no pods.
    kept_revisions: Mapping[WorkloadRef, int | None] = field(default_factory=dict)
    # The newest revision of each StatefulSet and DaemonSet that has pods of another revision, or
    # pods without a revision label.
    update_revisions: Mapping[WorkloadRef, str] = field(default_factory=dict)
    # The result of kubectl's checks when the drains of steps begin.
    kubectl_drain: KubectlDrain = NO_DRAIN
    deleted_namespaces: frozenset[str] = frozenset()  # the namespaces that the steps delete
    # The revisions whose pods fail to start in the dump. New pods of these revisions do not start
    # either.
    failing_revisions: frozenset[Revision] = frozenset()
    # The keys of running pods that keep their former resources although the steps resize them.
    unfinished_resizes: frozenset[str] = frozenset()
    # The times at which the node autoscaler may remove nodes, one for each node. () if the run
    # settled, or if the run also waited for other changes.
    awaited_removals: tuple[Instant, ...] = ()

    def __repr__(self) -> str:
        """Return the numbers of pods and nodes and the simulated time.

        A text with all fields would be very long.
        """
        size = f"{counted(len(self.pods), 'pod')}, {counted(len(self.nodes), 'node')}"
        return f"<RunOutcome: {size}, {self.virtual_seconds:g} s>"

    @property
    def virtual_seconds(self) -> float:
        """The duration of the run in virtual time, in seconds."""
        return to_seconds(self.ended_at - self.started_at)

    @property
    def has_long_waits(self) -> bool:
        """Whether a pod got its node only after WAITED_MIN or more, and no autoscaler acted.

        If True, the waits need a table of their own. If an autoscaler acted, the section on the
        autoscaler contains the waits.
        """
        return self.autoscaling is None and waiting_times(self.waits).longest >= WAITED_MIN

    @property
    def stopping(self) -> tuple[Undrained, ...]:
        """The `undrained` pods that are still terminating; a longer run would remove these pods."""
        return tuple(one for one in self.undrained if one.cause is UndrainedCause.STOPPING)

    @property
    def blocking(self) -> tuple[Undrained, ...]:
        """The `undrained` pods that even a longer run does not remove."""
        return tuple(one for one in self.undrained if one.cause is not UndrainedCause.STOPPING)

    @property
    def node_names(self) -> frozenset[str]:
        """The names of the nodes that exist at the end, plus "" for pods without a node."""
        return frozenset(["", *(node.name for node in self.nodes)])

    @property
    def failed_nodes(self) -> frozenset[str]:
        """The names of the nodes of `outage` that are out of service at the end."""
        nodes = () if self.outage is None else self.outage.nodes
        return frozenset(one.node for one in nodes if one.back_at is None)

    def unsettled(self, setting: str) -> str:
        """Return a sentence that the cluster still changes when the run ends; "" if it has settled.

        `setting` is the option or the field with which users can let the run end later.
        """
        if self.settled:
            return ""
        if self.awaited_removals:
            return (
                f"When the run ended ({setting}), only the autoscaler waited: "
                f"{self.removal_words}. A longer run shows which nodes it then removes."
            )
        text = f"The cluster had not settled when the run ended ({setting}); changes continue."
        acting = self.acting_autoscaler
        return f"{text} {acting} was still adding or removing nodes." if acting else text

    @property
    def removal_words(self) -> str:
        """Words that say when the autoscaler may remove nodes.

        `awaited_removals` must not be empty.
        """
        times = self.awaited_removals
        of_nodes = counted(len(times), "node")
        first, last = (format_timestamp(one) for one in (min(times), max(times)))
        when = f"at {first}" if first == last else f"between {first} and {last}"
        if self.autoscaling is not None and self.autoscaling.autoscaler == KARPENTER:
            return f"consolidateAfter of {of_nodes} passes {when}"
        return f"{of_nodes} will have been unneeded for long enough {when}"

    @property
    def unfinished_deletions(self) -> str:
        """A sentence about pods that are on nodes but are being deleted; "" if there are none.

        A replacement has the key of the pod that it replaces, so `pods` has only one of these two
        pods. The nodes and `allocations` have both pods.
        """
        count = sum(pod.is_terminating for node in self.nodes for pod in node.pods)
        placed = sum(pod.is_terminating for pod in self.placed)
        if not count:
            return ""
        where = "its node" if count == 1 else "their nodes"
        text = f"The requests of {counted(count, 'terminating pod')} count on {where}"
        if not placed:
            return f"{text}."
        also = "also counts" if placed == 1 else "also count"
        return f"{text}; {placed:,} of {count:,} {also} as placed."

    @property
    def acting_autoscaler(self) -> str:
        """The autoscaler that added or removed nodes shortly before the end; "" if none did."""
        found = self.autoscaling
        if found is None or all(one.at < self.ended_at - _RECENT for one in found.transitions):
            return ""
        return found.autoscaler

    def awaits_nodes(self, pods: Iterable[PodEnd]) -> bool:
        """Return whether the pending `pods` may still get nodes from an autoscaler.

        The autoscaler must still have been acting at the end of the run. All `pods` must have
        become pending shortly before the end.
        """
        recent = self.ended_at - _RECENT
        acts = not self.settled and self.acting_autoscaler
        return bool(acts) and all(one.since > recent for one in pods)

    def after_start(self, instant: Instant) -> DurationNs:
        """Return the time from the instant of the change to `instant`."""
        return instant - self.started_at

    @property
    def loops(self) -> list[Recurrence]:
        """The recurrences that count for verdicts and conditions (`loops_of`)."""
        return loops_of(self)

    @property
    def displaced(self) -> list[PodEnd]:
        """The pods that were preempted or evicted, or whose node was deleted.

        A pod that was displaced several times occurs several times. If a node was deleted, its
        DaemonSet pods, static pods, completed pods and terminating pods do not count as displaced.
        """
        left = [one.pod for one in (*self.preempted, *self.evicted)]
        of_deleted_nodes = (self.on_deleted_nodes or {}).values()
        return left + [
            pod
            for pod in of_deleted_nodes
            if not (pod.belongs_to_node or pod.is_completed or pod.is_terminating)
        ]

    @cached_property
    def pods_by_workload(self) -> Mapping[WorkloadRef, Sequence[PodEnd]]:
        """All `pods`, grouped by workload; the pods of a workload are sorted by key."""
        found: dict[WorkloadRef, list[PodEnd]] = defaultdict(list)
        for pod in self.pods.values():
            found[pod.owner or pod.workload].append(pod)
        return dict(found)

    @cached_property
    def workloads_of_pods(self) -> frozenset[WorkloadRef]:
        """The workloads of all `pods`."""
        return frozenset(self.pods_by_workload)

    @cached_property
    def static_pods(self) -> frozenset[WorkloadRef]:
        """The static pods among `workloads_of_pods`."""
        refs = (pod.owner or pod.workload for pod in self.pods.values() if pod.belongs_to_node)
        return frozenset(ref for ref in refs if ref.kind == POD)

    @cached_property
    def placed(self) -> Sequence[PodEnd]:
        """The pods that run on a node or start there, sorted by key (`is_placed`)."""
        return [pod for pod in self.pods.values() if pod.is_placed]

    @cached_property
    def pending(self) -> Sequence[PodEnd]:
        """The pending pods, sorted by name."""
        return [pod for pod in self.pods.values() if pod.is_pending]

    @property
    def completed(self) -> list[PodEnd]:
        """The pods that succeeded or failed during the run, sorted by key.

        The list includes pods that were deleted after they had completed.
        """
        ended = (*self.pods.values(), *self.completed_and_deleted)
        found = (pod for pod in ended if pod.ended_at is not None and pod.is_completed)
        return sorted(found, key=lambda pod: pod.key)


def loops_of(run: RunOutcome, *others: RunOutcome) -> list[Recurrence]:
    """Return the recurrences of `run`, but none of the kind STARVING for `negative_workloads`.

    The pods of `negative_workloads` exist to give way, even many times. To be one of these
    workloads, a workload must have only pods with a negative priority in `run` and in `others`.
    """
    if all(one.kind != STARVING for one in run.recurrences):
        return list(run.recurrences)
    negative = negative_workloads(run, *others)
    return [one for one in run.recurrences if one.kind != STARVING or one.workload not in negative]


def negative_workloads(*runs: RunOutcome) -> set[WorkloadRef]:
    """Return the workloads whose pods all have a negative priority, at the end of all `runs`."""
    negative, others = set[WorkloadRef](), set[WorkloadRef]()
    for run in runs:
        for workload, pods in run.pods_by_workload.items():
            is_negative = all(pod.has_negative_priority for pod in pods)
            (negative if is_negative else others).add(workload)
    return negative - others
