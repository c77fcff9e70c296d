"""What is written of a Service's endpoints: slices of a hundred at most, and the older form.

An endpoint stays in the slice that it is in, so that a change of one pod rewrites one slice.

upstream: staging/src/k8s.io/endpointslice/reconciler.go:reconcileByPortMapping
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import Endpoints, EndpointSlice, ObjectMeta, Pod, Service
from fairlead.engine.core.command import CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.workloads.endpoints.service_endpoint import (
    HEADLESS,
    Endpoint,
    Ports,
    ports_json,
    subsets_of,
)
from fairlead.engine.workloads.endpoints.trigger_time import TRIGGERED_AT, Trigger
from fairlead.engine.workloads.pod_control.generated_name import generated_name

SLICE_SIZE_MAX: Final = 100
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"
ENDPOINTS_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_CONTROLLER: Final = "endpoint-controller"
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
WHY: Final = "no endpoint is left in it"
_BY_SLICES: Final = {MANAGED_BY: SLICE_CONTROLLER}

Change = CreateObject | PatchObject | DeleteObject


@dataclass(slots=True)
class Backing:
    """A Service, the pods it selects by name, and what is written of them.

    It `is_stale` where something has changed while a write was under way.
    """

    service: Service
    pods: dict[str, Pod] = field(default_factory=dict)
    slices: dict[str, EndpointSlice] = field(default_factory=dict)
    written: Endpoints | None = None
    pending: dict[ObjectRef, None] = field(default_factory=dict)
    is_stale: bool = False
    serial: int = 0
    trigger: Trigger = field(default_factory=Trigger)


def slices(backing: Backing, endpoints: list[Endpoint]) -> Iterable[Change]:
    """What makes the slices of `backing` hold `endpoints`."""
    groups: dict[Ports, dict[str, Endpoint]] = {}
    labels = _labels(backing, {SERVICE_NAME: backing.service.metadata.name, **_BY_SLICES})
    for one in endpoints:
        groups.setdefault(one.ports, {})[one.uid] = one
    superfluous = dict(backing.slices)
    made: list[CreateObject] = []
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
            known = backing.slices[name]
            if list(known.endpoints) != content or known.metadata.labels != labels:
                meta = _metadata(backing, known, labels)
                yield PatchObject(ref_of(known), {"metadata": meta, "endpoints": content})
        made.extend(
            _new_slice(backing, labels, new[start : start + SLICE_SIZE_MAX], written)
            for start in range(0, len(new), SLICE_SIZE_MAX)
        )
        if not wanted and not held:
            made.append(_new_slice(backing, labels, [], written))
    yield from _recycled(made, superfluous)


def _recycled(made: list[CreateObject], superfluous: dict[str, EndpointSlice]) -> Iterable[Change]:
    """Slices to be made take the place of those that would go."""
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
    """The newest entries of those that `known` holds already; they are taken out of `rest`."""
    uids = [entry.get("targetRef", {}).get("uid", "") for entry in known.endpoints]
    return [rest.pop(uid).in_slice() for uid in uids if uid in rest]


def _new_slice(
    backing: Backing, labels: dict[str, str], entries: list[Json], ports: list[Json]
) -> CreateObject:
    backing.serial += 1
    content = {"addressType": "IPv4", "endpoints": entries, "ports": ports}
    named = {"labels": labels, **backing.trigger.annotations}
    return owned_slice("Service", backing.service.metadata, backing.serial, named, content)


def owned_slice(
    kind: str, owner: ObjectMeta, serial: int, named: Json, content: Json
) -> CreateObject:
    """The `serial`th slice of an owner of this kind, with labels and annotations as `named`."""
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


def older_form(backing: Backing, endpoints: list[Endpoint]) -> Iterable[Change]:
    """What makes the Endpoints of `backing` say the same."""
    subsets, meta, known = subsets_of(endpoints), backing.service.metadata, backing.written
    labels = _labels(backing, {ENDPOINTS_MANAGED_BY: ENDPOINTS_CONTROLLER})
    if known is not None:
        if list(known.subsets) != subsets or known.metadata.labels != labels:
            changed = _metadata(backing, known, labels)
            yield PatchObject(ref_of(known), {"metadata": changed, "subsets": subsets or None})
        return
    place = {"name": meta.name, "namespace": meta.namespace}
    made: Json = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**place, "labels": labels, **backing.trigger.annotations},
    }
    yield CreateObject(made | ({"subsets": subsets} if subsets else {}))


def _labels(backing: Backing, own: dict[str, str]) -> dict[str, str]:
    """Those of the Service, and what says whose work this is."""
    labels = {**backing.service.metadata.labels, **own}
    labels.pop(HEADLESS_LABEL, None)
    if backing.service.spec.cluster_ip == HEADLESS:
        labels[HEADLESS_LABEL] = ""
    return labels


def _metadata(backing: Backing, known: EndpointSlice | Endpoints, labels: dict[str, str]) -> Json:
    """What changes of the metadata of `known` when it is written."""
    before = known.metadata
    patch: Json = {}
    if before.labels != labels:
        patch["labels"] = {**dict.fromkeys(before.labels), **labels}
    if before.annotations.get(TRIGGERED_AT) != (backing.trigger.at or None):
        patch["annotations"] = {TRIGGERED_AT: backing.trigger.at or None}
    return patch


def ref_of(one: EndpointSlice | Endpoints) -> ObjectRef:
    """The identity of `one`."""
    meta = one.metadata
    return ObjectRef(type(one).__name__, meta.namespace, meta.name, meta.uid)
