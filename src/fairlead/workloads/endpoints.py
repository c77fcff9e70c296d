"""Endpoints: keeps EndpointSlices and Endpoints of Services true.

A change of a pod touches the Services that select it; what they need is written once everything of
an instant has settled, and only where it says something new. Endpoints stay in the slice they are
in, a slice holds a hundred at most.

Differs from upstream: no topology hints, no annotations of when what was triggered, IPv4 only.

upstream: pkg/controller/endpointslice, staging/src/k8s.io/endpointslice/reconciler.go;
pkg/controller/endpoint/endpoints_controller.go
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.api.objects import ApiObject, Endpoints, EndpointSlice, Node, Pod, Service
from fairlead.api.pod import controller_of
from fairlead.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.core.instant import Instant
from fairlead.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.workloads.generated_name import generated_name
from fairlead.workloads.service_endpoint import (
    HEADLESS,
    Endpoint,
    Ports,
    endpoint_of,
    is_selecting,
    ports_json,
    subsets_of,
)

Json = dict[str, Any]
Key = tuple[str, str]  # namespace, name

SLICE_SIZE_MAX: Final = 100
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"
ENDPOINTS_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_CONTROLLER: Final = "endpoint-controller"
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
ZONE: Final = "topology.kubernetes.io/zone"
WHY: Final = "no endpoint is left in it"
WHY_GONE: Final = "its Service is gone"


@dataclass(slots=True)
class _Backing:
    """A Service, the pods it selects by name, and what is written of them."""

    service: Service
    pods: dict[str, Pod] = field(default_factory=dict)
    slices: dict[str, EndpointSlice] = field(default_factory=dict)
    written: Endpoints | None = None
    pending: dict[ObjectRef, None] = field(default_factory=dict)
    serial: int = 0


class ServiceEndpoints:
    """The controller of EndpointSlices and Endpoints."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._backings: dict[Key, _Backing] = {}
        self._pods: dict[str, dict[str, Pod]] = {}  # by namespace, then by name
        self._services: dict[str, dict[str, None]] = {}  # names by namespace
        self._early: dict[Key, list[EndpointSlice | Endpoints]] = {}  # of Services not seen yet
        self._zones: dict[str, str] = {}  # by node
        self._changed: dict[Key, None] = {}

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Take in what changed; what follows is decided once all has settled."""
        match stimulus:
            case ObjectChanged(one):
                self._see(one)
            case ObjectDeleted(one):
                return self._forget(one)
            case ObjectsLoaded(objects):
                self._load(objects)
            case CommandSucceeded(CreateObject() | PatchObject() | DeleteObject() as command):
                self._see_answer(command.target)
            case CommandFailed(CreateObject() | PatchObject() | DeleteObject() as command, reason):
                self._see_answer(command.target, is_again=reason is FailureReason.ALREADY_EXISTS)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """At once where something has changed."""
        return 0 if self._changed else None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Write what has changed."""
        changed, self._changed = self._changed, {}
        commands: list[Command] = []
        for key in changed:
            backing = self._backings.get(key)
            if backing is not None and not backing.pending and is_selecting(backing.service):
                commands += self._sync(backing)
        return commands

    # --- learning ------------------------------------------------------------------------------

    def _load(self, objects: Iterable[ApiObject]) -> None:
        held = list(objects)
        for kind in (Node, Service, Pod, EndpointSlice, Endpoints):
            for one in held:
                if isinstance(one, kind):
                    self._see(one)

    def _see(self, one: ApiObject) -> None:
        match one:
            case Pod():
                self._see_pod(one)
            case Service():
                self._see_service(one)
            case Node():
                self._zones[one.metadata.name] = one.metadata.labels.get(ZONE, "")
            case EndpointSlice() | Endpoints():
                self._see_written(one)
            case _:
                pass

    def _see_pod(self, pod: Pod) -> None:
        meta = pod.metadata
        known = self._pods.setdefault(meta.namespace, {})
        before, known[meta.name] = known.get(meta.name), pod
        for name in self._services.get(meta.namespace, ()):
            key = (meta.namespace, name)
            backing = self._backings[key]
            if _selects(backing.service, pod):
                backing.pods[meta.name] = pod
                self._changed[key] = None
            elif before is not None and backing.pods.pop(meta.name, None) is not None:
                self._changed[key] = None

    def _see_service(self, service: Service) -> None:
        meta = service.metadata
        key = (meta.namespace, meta.name)
        backing = self._backings.get(key)
        self._changed[key] = None
        if backing is None or backing.service.metadata.uid != meta.uid:
            backing = self._backings[key] = _Backing(service)
            self._services.setdefault(meta.namespace, {})[meta.name] = None
            for one in self._early.pop(key, ()):
                self._see_written(one)
        is_same = backing.service.spec.selector == service.spec.selector and backing.pods
        backing.service = service
        if not is_same:
            backing.pods = {
                name: pod
                for name, pod in self._pods.get(meta.namespace, {}).items()
                if _selects(service, pod)
            }

    def _see_written(self, one: EndpointSlice | Endpoints) -> None:
        key = _service_key(one)
        backing = self._backings.get(key) if key is not None else None
        if key is None:
            return
        if backing is None:
            self._early.setdefault(key, []).append(one)
        elif isinstance(one, Endpoints):
            backing.written = one
        else:
            backing.slices[one.metadata.name] = one

    def _forget(self, one: ApiObject) -> list[Command]:
        meta = one.metadata
        match one:
            case Pod():
                self._pods.get(meta.namespace, {}).pop(meta.name, None)
                for name in self._services.get(meta.namespace, ()):
                    if self._backings[meta.namespace, name].pods.pop(meta.name, None) is not None:
                        self._changed[meta.namespace, name] = None
            case Service():
                return self._forget_service((meta.namespace, meta.name))
            case EndpointSlice() | Endpoints():
                self._forget_written(one)
            case Node():
                self._zones.pop(meta.name, None)
            case _:
                pass
        return []

    def _forget_service(self, key: Key) -> list[Command]:
        """Its slices have it for an owner; its Endpoints just have its name."""
        backing = self._backings.pop(key, None)
        self._services.get(key[0], {}).pop(key[1], None)
        if backing is None or backing.written is None:
            return []
        return [DeleteObject(_ref(backing.written), why=WHY_GONE)]

    def _forget_written(self, one: EndpointSlice | Endpoints) -> None:
        key = _service_key(one)
        backing = self._backings.get(key) if key is not None else None
        if key is None or backing is None:
            return
        if isinstance(one, Endpoints):
            backing.written = None
        else:
            backing.slices.pop(one.metadata.name, None)
        self._changed[key] = None

    def _see_answer(self, target: ObjectRef, *, is_again: bool = False) -> None:
        if target.kind not in ("EndpointSlice", "Endpoints"):
            return
        for name in self._services.get(target.namespace, ()):
            backing = self._backings[target.namespace, name]
            if target in backing.pending:
                del backing.pending[target]
                if is_again or not backing.pending:
                    self._changed[target.namespace, name] = None

    # --- deciding ------------------------------------------------------------------------------

    def _sync(self, backing: _Backing) -> list[Command]:
        found = (
            endpoint_of(backing.service, pod, self._zones.get(pod.spec.node_name, ""))
            for _, pod in sorted(backing.pods.items())
        )
        endpoints = [one for one in found if one is not None]
        commands = [*_slices(backing, endpoints), *_endpoints(backing, endpoints)]
        for command in commands:
            backing.pending[command.target] = None
        return list(commands)


Change = CreateObject | PatchObject | DeleteObject


def _slices(backing: _Backing, endpoints: list[Endpoint]) -> Iterable[Change]:
    """What makes the slices of `backing` hold `endpoints`."""
    groups: dict[Ports, dict[str, Endpoint]] = {}
    for one in endpoints:
        groups.setdefault(one.ports, {})[one.uid] = one
    superfluous = dict(backing.slices)
    # A Service without any endpoint has one slice that says so.
    for ports, wanted in groups.items() or [((), {})]:
        written, rest = ports_json(ports), dict(wanted)
        held = {
            name: _held_entries(known, rest)
            for name, known in backing.slices.items()
            if list(known.ports) == written
        }
        new = [one.in_slice() for one in rest.values()]
        for name, entries in held.items():
            room = max(0, SLICE_SIZE_MAX - len(entries))
            content, new = entries + new[:room], new[room:]
            if not content and wanted:
                continue
            del superfluous[name]
            if list(backing.slices[name].endpoints) != content:
                yield PatchObject(_ref(backing.slices[name]), {"endpoints": content})
        for start in range(0, len(new), SLICE_SIZE_MAX):
            yield _new_slice(backing, new[start : start + SLICE_SIZE_MAX], written)
        if not wanted and not held:
            yield _new_slice(backing, [], written)
    for gone in superfluous.values():
        yield DeleteObject(_ref(gone), why=WHY)


def _held_entries(known: EndpointSlice, rest: dict[str, Endpoint]) -> list[Json]:
    """The newest entries of those that `known` holds already; they are taken out of `rest`."""
    uids = [entry.get("targetRef", {}).get("uid", "") for entry in known.endpoints]
    return [rest.pop(uid).in_slice() for uid in uids if uid in rest]


def _new_slice(backing: _Backing, entries: list[Json], ports: list[Json]) -> CreateObject:
    meta = backing.service.metadata
    backing.serial += 1
    name = generated_name(meta.name, meta.uid, backing.serial)
    labels = {**meta.labels, SERVICE_NAME: meta.name, MANAGED_BY: SLICE_CONTROLLER}
    if backing.service.spec.cluster_ip == HEADLESS:
        labels[HEADLESS_LABEL] = ""
    owner = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return CreateObject(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": name,
                "namespace": meta.namespace,
                "labels": labels,
                "ownerReferences": [owner],
            },
            "addressType": "IPv4",
            "endpoints": entries,
            "ports": ports,
        }
    )


def _endpoints(backing: _Backing, endpoints: list[Endpoint]) -> Iterable[Change]:
    """What makes the Endpoints of `backing` say the same."""
    subsets, meta = subsets_of(endpoints), backing.service.metadata
    if backing.written is not None:
        if list(backing.written.subsets) != subsets:
            yield PatchObject(_ref(backing.written), {"subsets": subsets or None})
        return
    labels = {**meta.labels, ENDPOINTS_MANAGED_BY: ENDPOINTS_CONTROLLER}
    if backing.service.spec.cluster_ip == HEADLESS:
        labels[HEADLESS_LABEL] = ""
    made: Json = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": meta.name, "namespace": meta.namespace, "labels": labels},
    }
    yield CreateObject(made | ({"subsets": subsets} if subsets else {}))


def _selects(service: Service, pod: Pod) -> bool:
    labels = pod.metadata.labels
    return is_selecting(service) and all(
        labels.get(key) == text for key, text in service.spec.selector.items()
    )


def _service_key(one: EndpointSlice | Endpoints) -> Key | None:
    """The Service that `one` is kept for by this controller, None when it is by somebody else."""
    meta = one.metadata
    if isinstance(one, Endpoints):
        return meta.namespace, meta.name
    owner = controller_of(meta)
    if meta.labels.get(MANAGED_BY) != SLICE_CONTROLLER or owner is None:
        return None
    return meta.namespace, owner.name


def _ref(one: EndpointSlice | Endpoints) -> ObjectRef:
    meta = one.metadata
    return ObjectRef(type(one).__name__, meta.namespace, meta.name, meta.uid)
