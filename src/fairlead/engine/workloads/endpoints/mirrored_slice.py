"""Mirrored EndpointSlices: one slice per Endpoints object, set of ports and address family.

The address families are IPv4 and IPv6. At most a thousand addresses of each subset are mirrored.

upstream: pkg/controller/endpointslicemirroring/reconciler.go, reconciler_helpers.go, utils.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import Endpoints, EndpointSlice
from fairlead.engine.core.command import DeleteObject, PatchObject
from fairlead.engine.workloads.endpoints.endpoint_slice import (
    MANAGED_BY,
    SERVICE_NAME,
    TRIGGERED_AT,
    SliceWrite,
    owned_slice,
    ref_of,
)

MirroredPorts = tuple[tuple[str, int, str, str], ...]  # name, port, protocol, appProtocol

MIRROR_CONTROLLER: Final = "endpointslicemirroring-controller.k8s.io"
ADDRESSES_MAX: Final = 1_000
WHY: Final = "its Endpoints say otherwise"
_NOT_MIRRORED: Final = (TRIGGERED_AT, "kubectl.kubernetes.io/last-applied-configuration")


class DesiredSlice(Struct):
    """The content that the slice of one set of ports and one address family should have."""

    ports: list[Json]
    family: str
    entries: list[Json] = field(default_factory=list)


def mirrored(endpoints: Endpoints, known: Iterable[EndpointSlice], serial: int) -> list[SliceWrite]:
    """Return the writes that make the EndpointSlices mirror `endpoints`.

    `known` are the existing slices. The names of new slices use serial numbers from `serial` on.
    """
    left: dict[tuple[str, MirroredPorts], list[EndpointSlice]] = {}
    for one in known:
        left.setdefault((one.address_type, _ports(one.ports)), []).append(one)
    changes: list[SliceWrite] = []
    made: list[DesiredSlice] = []
    for key, wanted in _wanted(endpoints).items():
        held = left.get(key)
        if not held:
            made.append(wanted)
            continue
        first = held.pop(0)
        patch = _difference(endpoints, first, wanted.entries)
        changes += [PatchObject(ref_of(first), patch)] if patch else []
    superfluous = [one for slices in left.values() for one in slices]
    for wanted in made:
        changes.append(_in_place(endpoints, wanted, superfluous, serial + len(changes)))
    return changes + [DeleteObject(ref_of(one), why=WHY) for one in superfluous]


def _in_place(
    endpoints: Endpoints, wanted: DesiredSlice, superfluous: list[EndpointSlice], serial: int
) -> SliceWrite:
    """Return the write after which a slice has the content `wanted`.

    If `superfluous` contains a slice with the address family of `wanted`, the write patches this
    slice. The slice is removed from `superfluous`. If `superfluous` contains no such slice, the
    write creates a slice.
    """
    # upstream: reconciler_helpers.go:recycleSlices
    for one in superfluous:
        if one.address_type == wanted.family:
            superfluous.remove(one)
            patch = _difference(endpoints, one, wanted.entries)
            return PatchObject(ref_of(one), {**patch, "ports": wanted.ports})
    annotations = _annotations(endpoints)
    named = {"labels": _labels(endpoints), **({"annotations": annotations} if annotations else {})}
    content = {
        "addressType": wanted.family,
        "endpoints": wanted.entries,
        "ports": wanted.ports,
    }
    return owned_slice("Endpoints", endpoints.metadata, serial, named, content)


def _difference(endpoints: Endpoints, known: EndpointSlice, entries: list[Json]) -> Json:
    patch: Json = {}
    labels, annotations = _labels(endpoints), _annotations(endpoints)
    before = known.metadata
    if sorted(known.endpoints, key=repr) != sorted(entries, key=repr):
        patch["endpoints"] = entries
    if before.labels != labels:
        patch.setdefault("metadata", {})["labels"] = {**dict.fromkeys(before.labels), **labels}
    if before.annotations != annotations:
        gone = dict.fromkeys(before.annotations)
        patch.setdefault("metadata", {})["annotations"] = {**gone, **annotations}
    return patch


def _wanted(endpoints: Endpoints) -> dict[tuple[str, MirroredPorts], DesiredSlice]:
    """Return the desired slices by (address family, ports)."""
    found: dict[tuple[str, MirroredPorts], DesiredSlice] = {}
    for subset in endpoints.subsets:
        given = subset.get("ports") or ()
        ports = _ports(given)
        for address, is_ready in _addresses(subset):
            family = _family(address)
            if not family:
                continue
            wanted = found.setdefault((family, ports), DesiredSlice(_ports_json(given), family))
            entry = _entry(address, is_ready=is_ready)
            if entry not in wanted.entries:
                wanted.entries.append(entry)
    for wanted in found.values():
        del wanted.entries[ADDRESSES_MAX:]
    return found


def _family(address: Json) -> str:
    """Return the address type of `address`; "" if it is no IP address, and thus not mirrored."""
    # upstream: pkg/controller/endpointslicemirroring/utils.go:getAddressType
    try:
        return f"IPv{ip_address(address.get('ip', '')).version}"
    except ValueError:
        return ""


def skipped(endpoints: Endpoints) -> int:
    """Return the number of addresses that are not mirrored because a subset exceeds the limit."""
    counts = (len(list(_addresses(one, maximum=None))) for one in endpoints.subsets)
    return sum(max(0, count - ADDRESSES_MAX) for count in counts)


def _addresses(subset: Json, maximum: int | None = ADDRESSES_MAX) -> list[tuple[Json, bool]]:
    ready = [(one, True) for one in subset.get("addresses") or ()]
    return [*ready, *((one, False) for one in subset.get("notReadyAddresses") or ())][:maximum]


def _entry(address: Json, *, is_ready: bool) -> Json:
    ip = str(ip_address(address["ip"]))
    entry: Json = {"addresses": [ip], "conditions": {"ready": is_ready}}
    return entry | {
        key: address[key] for key in ("hostname", "targetRef", "nodeName") if address.get(key)
    }


def _ports(ports: Sequence[Json]) -> MirroredPorts:
    """Return `ports` in a fixed order; lists with the same ports give equal results."""
    rows = (
        (one.get("name", ""), one["port"], one.get("protocol", "TCP"), one.get("appProtocol", ""))
        for one in ports
    )
    return tuple(sorted(rows))


def _ports_json(ports: Sequence[Json]) -> list[Json]:
    return [
        {"name": one.get("name", ""), "port": one["port"], "protocol": one.get("protocol", "TCP")}
        | ({"appProtocol": one["appProtocol"]} if one.get("appProtocol") else {})
        for one in ports
    ]


def _labels(endpoints: Endpoints) -> dict[str, str]:
    meta = endpoints.metadata
    return {**meta.labels, SERVICE_NAME: meta.name, MANAGED_BY: MIRROR_CONTROLLER}


def _annotations(endpoints: Endpoints) -> dict[str, str]:
    annotations = endpoints.metadata.annotations
    return {key: text for key, text in annotations.items() if key not in _NOT_MIRRORED}
