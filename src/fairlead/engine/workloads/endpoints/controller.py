"""ServiceEndpoints: keeps the EndpointSlices and Endpoints of Services current.

The slices and Endpoints of a Service are written after all changes of the same instant are handled.
Slices and Endpoints are written only if their content changes. A slice has at most a hundred
endpoints.

Differs from upstream: IPv4 only. Slices with other addresses, which a cluster dump may contain,
stay as they are.

upstream: pkg/controller/endpointslice, staging/src/k8s.io/endpointslice/reconciler.go;
pkg/controller/endpoint/endpoints_controller.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from fairlead.api.objects import ApiObject, Endpoints, EndpointSlice, Node, Pod, Service
from fairlead.api.pods.facts import controller_of
from fairlead.api.well_known_label import ZONE
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.endpoints.endpoint_slice import (
    MANAGED_BY,
    SERVICE_NAME,
    SLICE_CONTROLLER,
    ServiceState,
    endpoints_writes,
    ref_of,
    rewritten,
    slices,
)
from fairlead.engine.workloads.endpoints.service_endpoint import (
    endpoint_of,
    has_topology_hints,
    is_selecting,
)
from fairlead.engine.workloads.endpoints.topology_hints import (
    DISABLED,
    ENABLED,
    HintedSlices,
    HintsError,
    TopologyHints,
)
from fairlead.engine.workloads.work_queue import Key, WorkQueue, Write

WHY_GONE: Final = "its Service is gone"
WHY_ORPHANED: Final = "its Service does not own it"
SLICE: Final = "EndpointSlice"
_WRITES: Final = (CreateObject, PatchObject, DeleteObject)


class ServiceEndpoints:
    """The controller of EndpointSlices and Endpoints."""

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)
    interest: ClassVar[Interest] = Interest(
        changed=(Pod, Service, Node, EndpointSlice, Endpoints), succeeded=_WRITES, failed=_WRITES
    )

    def __init__(self, config: WorkloadsConfig | None = None) -> None:
        self._topology = TopologyHints()
        config = config or WorkloadsConfig()
        self._first_serial = config.first_serial
        self._queue = WorkQueue(config)
        self._states: dict[Key, ServiceState] = {}
        self._pods: dict[str, dict[str, Pod]] = {}  # by namespace, then by name
        self._services: dict[str, dict[str, None]] = {}  # names by namespace
        # objects of Services that have not been observed yet
        self._early: dict[Key, list[EndpointSlice | Endpoints]] = {}
        # slices without an owner, by the Service in their label, then by name
        self._orphans: dict[Key, dict[str, EndpointSlice]] = {}
        self._zones: dict[str, str] = {}  # by node

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Record the change; return the deletion of the Endpoints if a Service was deleted.

        All other writes are returned by `handle_deadline` after all changes of the same instant.
        """
        match stimulus:
            case ObjectChanged(one):
                self._observe(one)
            case ObjectDeleted(one):
                return self._forget(one)
            case ObjectsLoaded(objects):
                self._load(objects)
            case CommandSucceeded(CreateObject() | PatchObject() | DeleteObject() as command):
                self._queue.record_outcome(command.target, None)
            case CommandFailed(CreateObject() | PatchObject() | DeleteObject() as command):
                self._queue.record_outcome(command.target, now)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Record the changed `pod`, as `handle` does; return no commands."""
        self._observe_pod(pod)
        return ()

    def next_deadline(self) -> Instant | None:
        """Return 0 if changes wait for a sync, else the time of the next retry (None: no retry)."""
        return self._queue.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the writes for the Services that have changed or are due for a retry."""
        commands: list[Command] = []
        for key in self._queue.pop_due(now):
            state = self._states.get(key)
            if state is not None and is_selecting(state.service):
                written = self._sync(state)
                events = self._add_hints(key, state, written)
                self._queue.sent(key, written, now)
                commands += written + events
        return commands

    def _load(self, objects: Iterable[ApiObject]) -> None:
        held = list(objects)
        for kind in (Node, Service, Pod, EndpointSlice, Endpoints):
            for one in held:
                if isinstance(one, kind):
                    self._observe(one)

    def _observe(self, one: ApiObject) -> None:
        match one:
            case Pod():
                self._observe_pod(one)
            case Service():
                self._observe_service(one)
            case Node():
                self._observe_node(one)
            case EndpointSlice() | Endpoints():
                self._observe_written(one)
            case _:
                pass

    def _observe_node(self, node: Node) -> None:
        """Store the zone of `node`; for a new node, queue the Services with pods on it.

        The slices may lack these pods, because slices leave out pods on unknown nodes.
        """
        for key in self._topology.observe_node(node):
            self._queue.add(key)
        name = node.metadata.name
        is_new = name not in self._zones
        self._zones[name] = node.metadata.labels.get(ZONE, "")
        if is_new:
            for key, state in self._states.items():
                if any(pod.spec.node_name == name for pod in state.pods.values()):
                    self._queue.add(key)

    def _observe_pod(self, pod: Pod) -> None:
        meta = pod.metadata
        known = self._pods.setdefault(meta.namespace, {})
        before, known[meta.name] = known.get(meta.name), pod
        for name in self._services.get(meta.namespace, ()):
            key = (meta.namespace, name)
            state = self._states[key]
            if _selects(state.service, pod):
                state.pods[meta.name] = pod
                self._queue.add(key)
            elif before is not None and state.pods.pop(meta.name, None) is not None:
                self._queue.add(key)

    def _observe_service(self, service: Service) -> None:
        meta = service.metadata
        key = (meta.namespace, meta.name)
        state = self._states.get(key)
        if state is None or state.service.metadata.uid != meta.uid:
            self._queue.forget(key)
            state = self._states[key] = ServiceState(service, serial=self._first_serial)
            self._services.setdefault(meta.namespace, {})[meta.name] = None
            for one in self._early.pop(key, ()):
                self._observe_written(one)
        self._queue.add(key)
        is_same = state.service.spec.selector == service.spec.selector and state.pods
        state.service = service
        if not is_same:
            state.pods = {
                name: pod
                for name, pod in self._pods.get(meta.namespace, {}).items()
                if _selects(service, pod)
            }

    def _observe_written(self, one: EndpointSlice | Endpoints) -> None:
        if isinstance(one, EndpointSlice) and one.address_type != "IPv4":
            return
        key = _service_key(one)
        state = self._states.get(key) if key is not None else None
        if isinstance(one, EndpointSlice):
            self._remove_from_former_services(one, key)
            self._observe_orphan(one, is_orphan=key is None)
        if key is None:
            return
        if state is None:
            self._early.setdefault(key, []).append(one)
        elif isinstance(one, Endpoints):
            state.written = one
        else:
            state.slices[one.metadata.name] = one

    def _observe_orphan(self, one: EndpointSlice, *, is_orphan: bool) -> None:
        """Record whether the slice `one` is an orphan.

        The next sync of the Service deletes its orphans.

        If a Service is deleted with `--cascade=orphan`, its slices stay as orphans. A new Service
        with the same name gets new slices instead.
        """
        meta = one.metadata
        key = (meta.namespace, meta.labels.get(SERVICE_NAME, ""))
        if not is_orphan or meta.labels.get(MANAGED_BY) != SLICE_CONTROLLER:
            self._orphans.get(key, {}).pop(meta.name, None)
            return
        self._orphans.setdefault(key, {})[meta.name] = one
        if key in self._states:
            self._queue.add(key)

    def _remove_from_former_services(self, one: EndpointSlice, key: Key | None) -> None:
        """Remove the slice `one` from the records of all Services except the Service `key`.

        `key` names the Service to which the slice belongs now. `key` is None if this controller
        does not manage the slice.
        """
        namespace = one.metadata.namespace
        for name in self._services.get(namespace, ()):
            former = (namespace, name)
            known = self._states[former].slices
            if former != key and known.pop(one.metadata.name, None) is not None:
                self._queue.add(former)

    def _forget(self, one: ApiObject) -> list[Command]:
        meta = one.metadata
        match one:
            case Pod():
                self._pods.get(meta.namespace, {}).pop(meta.name, None)
                for name in self._services.get(meta.namespace, ()):
                    if self._states[meta.namespace, name].pods.pop(meta.name, None) is not None:
                        self._queue.add((meta.namespace, name))
            case Service():
                return self._forget_service((meta.namespace, meta.name))
            case EndpointSlice() | Endpoints():
                self._forget_written(one)
            case Node():
                self._zones.pop(meta.name, None)
                for key in self._topology.forget_node(meta.name):
                    self._queue.add(key)
            case _:
                pass
        return []

    def _forget_service(self, key: Key) -> list[Command]:
        """Delete the Endpoints of a deleted Service.

        The garbage collector deletes the Service's slices.
        """
        state = self._states.pop(key, None)
        self._topology.forget(key)
        self._queue.forget(key)
        self._services.get(key[0], {}).pop(key[1], None)
        if state is None or state.written is None:
            return []
        return [DeleteObject(ref_of(state.written), why=WHY_GONE)]

    def _forget_written(self, one: EndpointSlice | Endpoints) -> None:
        if isinstance(one, EndpointSlice):
            self._observe_orphan(one, is_orphan=False)
        key = _service_key(one)
        state = self._states.get(key) if key is not None else None
        if key is None or state is None:
            return
        if isinstance(one, Endpoints):
            state.written = None
        else:
            state.slices.pop(one.metadata.name, None)
        self._queue.add(key)

    def _sync(self, state: ServiceState) -> list[Write]:
        """Return the writes of the Endpoints and the slices of a Service.

        If the Service does not publish unready addresses, the slices leave out pods on unknown
        nodes.

        upstream: staging/src/k8s.io/endpointslice/reconciler.go: reconcileByAddressType
        """
        found = (
            endpoint_of(state.service, pod, self._zones.get(pod.spec.node_name, ""))
            for _, pod in sorted(state.pods.items())
        )
        endpoints = [one for one in found if one is not None]
        state.trigger.update(state.service, state.pods.values())
        is_published = state.service.spec.publish_not_ready_addresses
        placed = [one for one in endpoints if is_published or one.node in self._zones]
        meta = state.service.metadata
        orphans = self._orphans.get((meta.namespace, meta.name), {}).values()
        deletions = [DeleteObject(ref_of(one), why=WHY_ORPHANED) for one in orphans]
        return [*slices(state, placed), *endpoints_writes(state, endpoints), *deletions]

    def _add_hints(self, key: Key, state: ServiceState, writes: list[Write]) -> list[Command]:
        """Add topology hints to the Service's slices; return an event if the hint state changes.

        The hint state is enabled, disabled, or the reason why no hints can be computed. `writes`
        contains the writes of slices so far. Each of these writes gets the hints of its slice. If
        the hints of another slice change, a write of that slice is appended to `writes`.
        """
        if not has_topology_hints(state.service):
            state.hints = ""
            return [_hints_event(state.service, DISABLED)] if self._topology.forget(key) else []
        changes = [
            (one, one.manifest if isinstance(one, CreateObject) else one.patch)
            for one in writes
            if isinstance(one, CreateObject | PatchObject) and one.target.kind == SLICE
        ]
        # Endpoints of new slices come first.
        changes.sort(key=lambda change: isinstance(change[0], PatchObject))
        touched = {one.target.name for one in writes if one.target.kind == SLICE}
        unchanged = {
            name: list(one.endpoints) for name, one in state.slices.items() if name not in touched
        }
        found = HintedSlices([content["endpoints"] for _, content in changes], unchanged)
        try:
            self._topology.add(key, found)
            text = ENABLED
        except HintsError as problem:
            text = str(problem)
        writes += [
            rewritten(state, state.slices[name], entries)
            for name, entries in found.rewritten.items()
        ]
        before, state.hints = state.hints, text
        return [_hints_event(state.service, text)] if text != before else []


def _hints_event(service: Service, text: str) -> RecordEvent:
    meta, is_enabled = service.metadata, text == ENABLED
    reason = "TopologyAwareHintsEnabled" if is_enabled else "TopologyAwareHintsDisabled"
    return RecordEvent(
        regarding=ObjectRef("Service", meta.namespace, meta.name, meta.uid),
        type="Normal" if is_enabled else "Warning",
        reason=reason,
        action=reason,
        note=f"{text}, addressType: IPv4",
        reporting_controller="endpoint-slice-controller",
    )


def _selects(service: Service, pod: Pod) -> bool:
    labels = pod.metadata.labels
    return is_selecting(service) and all(
        labels.get(key) == text for key, text in service.spec.selector.items()
    )


def _service_key(one: EndpointSlice | Endpoints) -> Key | None:
    """Return the key of the Service to which the slice or Endpoints `one` belongs.

    Returns None if this controller does not manage `one`.
    """
    meta = one.metadata
    if isinstance(one, Endpoints):
        return meta.namespace, meta.name
    owner = controller_of(meta)
    if meta.labels.get(MANAGED_BY) != SLICE_CONTROLLER or owner is None:
        return None
    return meta.namespace, owner.name
