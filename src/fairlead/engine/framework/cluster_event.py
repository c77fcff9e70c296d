"""ClusterEvent: a change that may make an unschedulable pod schedulable.

After a plugin has rejected a pod, an event that is relevant to the plugin makes the scheduler try
the pod again. The plugin's attribute `events` contains the kinds of the relevant events. The
plugin's method `is_woken_by(pod, event)` decides whether one event of these kinds is relevant. If a
plugin has no `events`, all kinds are relevant. If the plugin has no `is_woken_by`, every event of
the relevant kinds is relevant.

upstream: framework/types.go: ActionType; pkg/scheduler/scheduler.go: buildQueueingHintMap
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from fairlead.api.objects import (
    ApiObject,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
    VolumeAttachment,
)
from fairlead.engine.state.pod_info import PodInfo


class EventKind(Enum):
    """The kind of a ClusterEvent.

    Kinds that begin with ASSIGNED_POD concern pods on nodes. POD_LABEL, POD_SCALE_DOWN,
    POD_TOLERATION, POD_GATES_GONE and POD_CLAIM_MADE concern the waiting pod itself.
    UNSCHEDULED_POD_ADD and POD_GROUP_ADD occur only if the feature gate GenericWorkload is on.
    FLUSH is not a change of the cluster: it makes the scheduler try the pods that have waited too
    long.
    """

    # Enum's own hash is the hash of the name, which takes ten times as long.
    __hash__ = object.__hash__

    ASSIGNED_POD_ADD = auto()
    ASSIGNED_POD_LABEL = auto()
    ASSIGNED_POD_SCALE_DOWN = auto()
    ASSIGNED_POD_DELETE = auto()
    NODE_ADD = auto()
    NODE_DELETE = auto()
    NODE_ALLOCATABLE = auto()
    NODE_LABEL = auto()
    NODE_TAINT = auto()
    NODE_CONDITION = auto()
    NODE_ANNOTATION = auto()
    NODE_DECLARED_FEATURES = auto()
    POD_LABEL = auto()
    POD_SCALE_DOWN = auto()
    POD_TOLERATION = auto()
    POD_GATES_GONE = auto()
    POD_CLAIM_MADE = auto()
    UNSCHEDULED_POD_ADD = auto()
    POD_GROUP_ADD = auto()
    VOLUME_ADD = auto()
    VOLUME_UPDATE = auto()
    VOLUME_DELETE = auto()
    VOLUME_CLAIM_ADD = auto()
    VOLUME_CLAIM_UPDATE = auto()
    VOLUME_CLAIM_DELETE = auto()
    STORAGE_CLASS_ADD = auto()
    STORAGE_CLASS_UPDATE = auto()
    STORAGE_CLASS_DELETE = auto()
    CSI_NODE_ADD = auto()
    CSI_NODE_UPDATE = auto()
    CSI_NODE_DELETE = auto()
    CSI_DRIVER_ADD = auto()
    CSI_DRIVER_UPDATE = auto()
    CSI_DRIVER_DELETE = auto()
    STORAGE_CAPACITY_ADD = auto()
    STORAGE_CAPACITY_UPDATE = auto()
    STORAGE_CAPACITY_DELETE = auto()
    VOLUME_ATTACHMENT_ADD = auto()
    VOLUME_ATTACHMENT_UPDATE = auto()
    VOLUME_ATTACHMENT_DELETE = auto()
    RESOURCE_CLAIM_ADD = auto()
    RESOURCE_CLAIM_UPDATE = auto()
    RESOURCE_CLAIM_DELETE = auto()
    RESOURCE_SLICE_ADD = auto()
    RESOURCE_SLICE_UPDATE = auto()
    RESOURCE_SLICE_DELETE = auto()
    DEVICE_CLASS_ADD = auto()
    DEVICE_CLASS_UPDATE = auto()
    DEVICE_CLASS_DELETE = auto()
    FLUSH = auto()


class ClusterEvent(Struct, frozen=True):
    """One change; `old` and `new` are the object before and after the change.

    If the object is a pod, `old` and `new` are PodInfos. If the object has any other kind, `old`
    and `new` are Kubernetes objects. `old` is None if the object was added. `new` is None if the
    object was deleted.

    If `priority_max` is set, the event concerns only pods with at most that priority
    (eventhandlers.go: getLEPriorityPreCheck).
    """

    kind: EventKind
    old: PodInfo | ApiObject | None = None
    new: PodInfo | ApiObject | None = None
    priority_max: int | None = None


@runtime_checkable
class EventListener(Protocol):
    """Protocol for a plugin that declares the kinds of events that are relevant to it."""

    @property
    def events(self) -> frozenset[EventKind]:
        """The kinds of events that may make a pod schedulable after this plugin rejected it."""
        ...


@runtime_checkable
class QueueingHint(Protocol):
    """Protocol for a plugin that examines each event (upstream: QueueingHintFn)."""

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` may make `pod` schedulable; the plugin has rejected `pod`."""
        ...


def is_registered_for(plugin: object, kind: EventKind) -> bool:
    """Return whether events of `kind` are relevant to `plugin`; FLUSH is relevant to every plugin.

    If the plugin has no attribute `events`, all events are relevant. If `plugin.events` contains
    NODE_ADD, NODE_TAINT is relevant as well. The reason is that another plugin often rejects a new
    node because of a taint. `plugin` then evaluates the node only after the taint has changed
    (buildQueueingHintMap).
    """
    events = _events_of(plugin)
    if events is None or kind in events or kind is EventKind.FLUSH:
        return True
    return kind is EventKind.NODE_TAINT and EventKind.NODE_ADD in events


def _events_of(plugin: object) -> frozenset[EventKind] | None:
    """Return `plugin.events`, or None if the plugin does not declare them.

    The function uses getattr, because isinstance with a Protocol is fifty times slower.
    """
    return getattr(plugin, "events", None)


def wakes(plugin: object, pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether `event` may make `pod`, which `plugin` rejected, schedulable.

    `plugin.is_woken_by` decides. The result is True if the plugin has no such method, or if the
    method fails. If the kind of `event` is FLUSH or is not in `plugin.events`, `is_registered_for`
    decides instead.
    """
    events = _events_of(plugin)
    if event.kind is EventKind.FLUSH or (events is not None and event.kind not in events):
        return is_registered_for(plugin, event.kind)
    hint = getattr(plugin, "is_woken_by", None)
    if hint is None:
        return True
    try:
        return bool(hint(pod, event))
    except Exception:  # noqa: BLE001 - better one attempt too many than a pod forgotten
        return True


def wakes_alike(plugin: object) -> bool:
    """Return whether `wakes` has the same result for all pods with equal equivalence keys.

    A plugin sets the attribute `wakes_alike` if its QueueingHint reads only the parts of a pod that
    `equivalence_key` contains. Annotations and claims, for example, are not among these parts.
    """
    return getattr(plugin, "is_woken_by", None) is None or getattr(plugin, "wakes_alike", False)


def node_events(old: Node | None, new: Node | None) -> Iterator[ClusterEvent]:
    """Yield the events for a change of a node; a heartbeat without other changes yields none."""
    if old is None or new is None:
        if new is not None:
            yield ClusterEvent(EventKind.NODE_ADD, None, new)
        elif old is not None:
            yield ClusterEvent(EventKind.NODE_DELETE, old, None)
        return
    if old.status.allocatable != new.status.allocatable:
        yield ClusterEvent(EventKind.NODE_ALLOCATABLE, old, new)
    if old.metadata.labels != new.metadata.labels:
        yield ClusterEvent(EventKind.NODE_LABEL, old, new)
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    if uncordoned or old.spec.taints != new.spec.taints:
        yield ClusterEvent(EventKind.NODE_TAINT, old, new)
    if old.status.conditions != new.status.conditions and _states(old) != _states(new):
        yield ClusterEvent(EventKind.NODE_CONDITION, old, new)
    if old.metadata.annotations != new.metadata.annotations:
        yield ClusterEvent(EventKind.NODE_ANNOTATION, old, new)
    if old.status.declared_features != new.status.declared_features:
        yield ClusterEvent(EventKind.NODE_DECLARED_FEATURES, old, new)


def _states(node: Node) -> dict[str, str]:
    """Return the status of each condition, keyed by type.

    upstream: extractNodeConditionsChange
    """
    return {condition.type: condition.status for condition in node.status.conditions}


# The kinds of the events for an object that was added, updated and deleted.
_STORAGE_EVENTS: Final[dict[type[object], tuple[EventKind, EventKind, EventKind]]] = {
    PersistentVolume: (EventKind.VOLUME_ADD, EventKind.VOLUME_UPDATE, EventKind.VOLUME_DELETE),
    PersistentVolumeClaim: (
        EventKind.VOLUME_CLAIM_ADD,
        EventKind.VOLUME_CLAIM_UPDATE,
        EventKind.VOLUME_CLAIM_DELETE,
    ),
    StorageClass: (
        EventKind.STORAGE_CLASS_ADD,
        EventKind.STORAGE_CLASS_UPDATE,
        EventKind.STORAGE_CLASS_DELETE,
    ),
    CSINode: (EventKind.CSI_NODE_ADD, EventKind.CSI_NODE_UPDATE, EventKind.CSI_NODE_DELETE),
    CSIDriver: (EventKind.CSI_DRIVER_ADD, EventKind.CSI_DRIVER_UPDATE, EventKind.CSI_DRIVER_DELETE),
    CSIStorageCapacity: (
        EventKind.STORAGE_CAPACITY_ADD,
        EventKind.STORAGE_CAPACITY_UPDATE,
        EventKind.STORAGE_CAPACITY_DELETE,
    ),
    VolumeAttachment: (
        EventKind.VOLUME_ATTACHMENT_ADD,
        EventKind.VOLUME_ATTACHMENT_UPDATE,
        EventKind.VOLUME_ATTACHMENT_DELETE,
    ),
    ResourceClaim: (
        EventKind.RESOURCE_CLAIM_ADD,
        EventKind.RESOURCE_CLAIM_UPDATE,
        EventKind.RESOURCE_CLAIM_DELETE,
    ),
    ResourceSlice: (
        EventKind.RESOURCE_SLICE_ADD,
        EventKind.RESOURCE_SLICE_UPDATE,
        EventKind.RESOURCE_SLICE_DELETE,
    ),
    DeviceClass: (
        EventKind.DEVICE_CLASS_ADD,
        EventKind.DEVICE_CLASS_UPDATE,
        EventKind.DEVICE_CLASS_DELETE,
    ),
}


def storage_event(old: ApiObject | None, new: ApiObject | None) -> ClusterEvent:
    """Return the event for a change of a storage or device object.

    Raises KeyError for an object of any other kind.
    """
    added, updated, deleted = _STORAGE_EVENTS[type(old if new is None else new)]
    kind = added if old is None else updated if new is not None else deleted
    return ClusterEvent(kind, old, new)


def _scaled_down(old: PodInfo, new: PodInfo) -> bool:
    before = dict(old.shape.load)
    after = dict(new.shape.load)
    return any(after.get(column, 0) < amount for column, amount in before.items())


def assigned_pod_events(old: PodInfo, new: PodInfo) -> Iterator[ClusterEvent]:
    """Yield the events for a change of a pod that is on a node.

    A deletion request for the pod yields no event.
    """
    if old.labels != new.labels:
        yield ClusterEvent(EventKind.ASSIGNED_POD_LABEL, old, new)
    if old.shape is not new.shape and _scaled_down(old, new):
        yield ClusterEvent(EventKind.ASSIGNED_POD_SCALE_DOWN, old, new)


def waiting_pod_events(old: PodInfo, new: PodInfo) -> Iterator[ClusterEvent]:
    """Yield the events for a change of a pod in the scheduling queue.

    The events concern only this pod.
    """
    if old.labels != new.labels:
        yield ClusterEvent(EventKind.POD_LABEL, old, new)
    if old.shape is not new.shape:
        if _scaled_down(old, new):
            yield ClusterEvent(EventKind.POD_SCALE_DOWN, old, new)
        if len(old.pod.spec.tolerations) != len(new.pod.spec.tolerations):
            yield ClusterEvent(EventKind.POD_TOLERATION, old, new)
    if old.pod.spec.scheduling_gates and not new.pod.spec.scheduling_gates:
        yield ClusterEvent(EventKind.POD_GATES_GONE, old, new)
    if _generated_claim_statuses(old) != _generated_claim_statuses(new):
        yield ClusterEvent(EventKind.POD_CLAIM_MADE, old, new)


def _generated_claim_statuses(pod: PodInfo) -> object:
    """Return the statuses of the generated ResourceClaims in the pod's status.

    upstream: framework/events.go: extractPodGeneratedResourceClaimChange
    """
    status = pod.pod.status
    return status.resource_claim_statuses, status.extended_resource_claim_status
