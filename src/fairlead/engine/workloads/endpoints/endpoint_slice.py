"""Writes the EndpointSlices and the Endpoints object of a Service.

An endpoint stays in its slice, so that a change of one pod rewrites only one slice.

Example with 101 endpoints: slices x (100) and y (1). If a pod in x ends, x is written with 99
endpoints, and y keeps its endpoint. The next new pod is put into x, the first slice with room.

upstream: staging/src/k8s.io/endpointslice/reconciler.go:reconcileByPortMapping,
util/trigger_time_tracker.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import Endpoints, EndpointSlice, ObjectMeta, Pod, Service
from fairlead.api.pods.facts import condition
from fairlead.engine.core.command import CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.workloads.endpoints.endpoints_capacity import (
    OVER_CAPACITY,
    TRUNCATED,
    truncated,
)
from fairlead.engine.workloads.endpoints.service_endpoint import (
    HEADLESS,
    Endpoint,
    Ports,
    has_topology_hints,
    ports_json,
    subsets_of,
)
from fairlead.engine.workloads.endpoints.topology_hints import without_hints
from fairlead.engine.workloads.identity import generated_name

SLICE_SIZE_MAX: Final = 100
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"
ENDPOINTS_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_CONTROLLER: Final = "endpoint-controller"
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
WHY: Final = "no endpoint is left in it"
_BY_SLICES: Final = {MANAGED_BY: SLICE_CONTROLLER}
TRIGGERED_AT: Final = "endpoints.kubernetes.io/last-change-trigger-time"

SliceWrite = CreateObject | PatchObject | DeleteObject


class TriggerTime(Struct):
    """The trigger time of one Service; `at` is a timestamp, "" if there is no trigger time.

    The trigger time of a new Service is its creation time. Later, the trigger time is the time of
    the first change of a pod's readiness since the last sync of the Service. If no pod's readiness
    has changed since that sync, there is no trigger time. The trigger time is written to the
    endpoints as the annotation endpoints.kubernetes.io/last-change-trigger-time.
    """

    at: str = ""
    is_known: bool = False
    _pods: dict[str, str] = field(default_factory=dict)
    _service: str = ""

    def update(self, service: Service, pods: Iterable[Pod]) -> None:
        """Set `at` to the trigger time for a sync of `service`, whose selector selects `pods`."""
        since = {pod.metadata.name: at for pod in pods if (at := _changed_at(pod))}
        triggers = [at for name, at in since.items() if at > self._pods.get(name, "")]
        created = service.metadata.creation_timestamp
        if created > self._service:
            triggers.append(created)
        self.at = min(triggers, default="") if self.is_known else created
        self.is_known, self._pods, self._service = True, since, created

    @property
    def annotations(self) -> dict[str, Any]:
        """A dict with the metadata field `annotations`, or {} if there is no trigger time."""
        return {"annotations": {TRIGGERED_AT: self.at}} if self.at else {}


class ServiceState(Struct):
    """A Service, the pods that it selects (by name), and its slices and Endpoints as observed.

    `serial` is the serial number in the name of the newest slice. `hints` is the text of the last
    event about topology hints.
    """

    service: Service
    pods: dict[str, Pod] = field(default_factory=dict)
    slices: dict[str, EndpointSlice] = field(default_factory=dict)
    written: Endpoints | None = None
    serial: int = 0
    trigger: TriggerTime = field(default_factory=TriggerTime)
    hints: str = ""


def slices(state: ServiceState, endpoints: list[Endpoint]) -> Iterable[SliceWrite]:
    """Yield the writes after which the slices of `state` contain exactly `endpoints`.

    Endpoints with IPv6 addresses are left out.
    """
    groups: dict[Ports, dict[str, Endpoint]] = {}
    labels = _labels(state, {SERVICE_NAME: state.service.metadata.name, **_BY_SLICES})
    for one in endpoints:
        if one.is_ipv4:
            groups.setdefault(one.ports, {})[one.uid] = one
    superfluous = dict(state.slices)
    made: list[CreateObject] = []
    # A Service without endpoints has one empty slice.
    for ports, wanted in groups.items() or [((), {})]:
        written, rest = ports_json(ports), dict(wanted)
        held = {
            name: _held_entries(known, rest)
            for name, known in state.slices.items()
            if list(known.ports) == written
        }
        new = [one.in_slice() for one in rest.values()]
        for name, entries in held.items():
            room = max(0, SLICE_SIZE_MAX - len(entries))
            content, new = entries + new[:room], new[room:]
            if not content and wanted:
                continue
            del superfluous[name]
            known = state.slices[name]
            before = list(known.endpoints)
            if has_topology_hints(state.service):  # hints are added to the writes later
                before = without_hints(before)
            if before != content or known.metadata.labels != labels:
                yield rewritten(state, known, content)
        made.extend(
            _new_slice(state, labels, new[start : start + SLICE_SIZE_MAX], written)
            for start in range(0, len(new), SLICE_SIZE_MAX)
        )
        if not wanted and not held:
            made.append(_new_slice(state, labels, [], written))
    yield from _recycled(made, superfluous)


def rewritten(state: ServiceState, known: EndpointSlice, entries: list[Json]) -> PatchObject:
    """Return the write that replaces the endpoints of the slice `known` with `entries`."""
    labels = _labels(state, {SERVICE_NAME: state.service.metadata.name, **_BY_SLICES})
    meta = _metadata(state, known, labels)
    return PatchObject(ref_of(known), {"metadata": meta, "endpoints": entries})


def _recycled(
    made: list[CreateObject], superfluous: dict[str, EndpointSlice]
) -> Iterable[SliceWrite]:
    """Yield the writes that create the slices in `made` and delete the slices in `superfluous`.

    While slices of both kinds remain, a patch gives a superfluous slice the content of a new slice.
    Such a patch saves one creation and one deletion.
    """
    # upstream: reconciler.go:finalize
    left = list(superfluous.values())
    while made and left:
        content = made.pop().manifest
        fields = {key: content[key] for key in ("endpoints", "ports")}
        named = {key: content["metadata"].get(key) for key in ("labels", "annotations")}
        yield PatchObject(ref_of(left.pop(0)), {"metadata": named, **fields})
    yield from made
    for gone in left:
        yield DeleteObject(ref_of(gone), why=WHY)


def _held_entries(known: EndpointSlice, rest: dict[str, Endpoint]) -> list[Json]:
    """Return up-to-date entries for the endpoints that are in `rest` and in the slice `known`.

    These endpoints are removed from `rest`, whose keys are the uids of the pods.
    """
    uids = [entry.get("targetRef", {}).get("uid", "") for entry in known.endpoints]
    return [rest.pop(uid).in_slice() for uid in uids if uid in rest]


def _new_slice(
    state: ServiceState, labels: dict[str, str], entries: list[Json], ports: list[Json]
) -> CreateObject:
    state.serial += 1
    content = {"addressType": "IPv4", "endpoints": entries, "ports": ports}
    named = {"labels": labels, **state.trigger.annotations}
    return owned_slice("Service", state.service.metadata, state.serial, named, content)


def owned_slice(
    kind: str, owner: ObjectMeta, serial: int, named: Json, content: Json
) -> CreateObject:
    """Return the command that creates an EndpointSlice with `owner` as its controller.

    `kind` is the kind of `owner`. `serial` makes the generated name unique. `named` contains the
    metadata fields `labels` and `annotations`. `content` contains the fields other than the
    metadata.
    """
    reference = {
        "apiVersion": "v1",
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta = {
        "name": generated_name(owner.name, owner.uid, serial),
        "generateName": f"{owner.name}-",
        "namespace": owner.namespace,
        **named,
        "ownerReferences": [reference],
    }
    known = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"}
    return CreateObject({**known, "metadata": meta, **content})


def endpoints_writes(state: ServiceState, endpoints: list[Endpoint]) -> Iterable[SliceWrite]:
    """Yield the write after which the Endpoints object of `state` contains exactly `endpoints`."""
    whole, meta, known = subsets_of(endpoints), state.service.metadata, state.written
    fewer = truncated(whole)
    subsets, capacity = (whole, None) if fewer is None else (fewer, TRUNCATED)
    labels = _labels(state, {ENDPOINTS_MANAGED_BY: ENDPOINTS_CONTROLLER})
    if known is not None:
        before = known.metadata
        is_marked = before.annotations.get(OVER_CAPACITY) == capacity
        if list(known.subsets) != subsets or before.labels != labels or not is_marked:
            changed = _metadata(state, known, labels)
            if not is_marked:
                changed.setdefault("annotations", {})[OVER_CAPACITY] = capacity
            yield PatchObject(ref_of(known), {"metadata": changed, "subsets": subsets or None})
        return
    place = {"name": meta.name, "namespace": meta.namespace}
    named = state.trigger.annotations
    if capacity is not None:
        named = {"annotations": {**named.get("annotations", {}), OVER_CAPACITY: capacity}}
    made: Json = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**place, "labels": labels, **named},
    }
    yield CreateObject(made | ({"subsets": subsets} if subsets else {}))


def _labels(state: ServiceState, own: dict[str, str]) -> dict[str, str]:
    """Return one dict with the Service's labels and `own`, the labels that the controller adds.

    The dict contains HEADLESS_LABEL only if the Service is headless.
    """
    labels = {**state.service.metadata.labels, **own}
    labels.pop(HEADLESS_LABEL, None)
    if state.service.spec.cluster_ip == HEADLESS:
        labels[HEADLESS_LABEL] = ""
    return labels


def _metadata(
    state: ServiceState, known: EndpointSlice | Endpoints, labels: dict[str, str]
) -> Json:
    """Return a patch of the metadata of `known` that sets `labels` and the trigger time."""
    before = known.metadata
    patch: Json = {}
    if before.labels != labels:
        patch["labels"] = {**dict.fromkeys(before.labels), **labels}
    if before.annotations.get(TRIGGERED_AT) != (state.trigger.at or None):
        patch["annotations"] = {TRIGGERED_AT: state.trigger.at or None}
    return patch


def ref_of(obj: EndpointSlice | Endpoints) -> ObjectRef:
    """Return the object reference of `obj`."""
    meta = obj.metadata
    return ObjectRef(type(obj).__name__, meta.namespace, meta.name, meta.uid)


def _changed_at(pod: Pod) -> str:
    ready = condition(pod, "Ready")
    return "" if ready is None else ready.last_transition_time
