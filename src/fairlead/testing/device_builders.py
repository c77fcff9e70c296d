"""Builders for dynamic resource allocation; see `fairlead.testing.builders`.

By default, the ResourceSlice of a node is named `gpu.example.com-NODE`. The slice contains the
whole pool of the driver "gpu.example.com" on the node. The pool has the name of the node. A claim
requests one device of the class "gpu".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.objects import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from fairlead.testing.built_object import built

DRIVER: Final = "gpu.example.com"
GPU: Final = "gpu"
_STAMP: Final = "2026-01-01T00:00:00Z"


def make_device_taint_rule(
    name: str = "broken",
    effect: str = "NoExecute",
    *,
    key: str = "broken",
    time_added: str = _STAMP,
    generation: int = 1,
    status: Mapping[str, Any] | None = None,
    **selector: str,
) -> DeviceTaintRule:
    """Return a DeviceTaintRule that adds a taint with `key` and `effect` to devices.

    `selector` has the driver, pool and device to taint. If `selector` is empty, the rule taints all
    devices. `time_added` is the taint's timeAdded; if it is "", the field is left out.
    """
    taint = {"key": key, "effect": effect}
    taint |= {"timeAdded": time_added} if time_added else {}
    metadata = {"name": name, "uid": f"uid-{name}", "generation": generation}
    spec = {"deviceSelector": selector, "taint": taint}
    obj = {"metadata": metadata, "spec": spec, "status": dict(status or {})}
    return built(DeviceTaintRule, "resource.k8s.io/v1beta2", obj)


def make_pod_resource_claims(*claims: str, templates: Iterable[str] = ()) -> Json:
    """Return a pod spec, for `make_pod`, that uses ResourceClaims and claim templates by name."""
    named = [{"name": f"c{i}", "resourceClaimName": name} for i, name in enumerate(claims)]
    made = [
        {"name": f"t{i}", "resourceClaimTemplateName": name} for i, name in enumerate(templates)
    ]
    return {"resourceClaims": [*named, *made]}


def make_device(name: str, memory: str = "40Gi", **attributes: str | int | bool) -> Json:
    """Return a device with the capacity `memory`.

    `attributes` has attributes by name: texts, integers and booleans.
    """
    return {
        "name": name,
        "attributes": {key: {_kind(value): value} for key, value in attributes.items()},
        "capacity": {"memory": {"value": memory}},
    }


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "string"


def make_slice(  # noqa: PLR0913 - a builder takes what a case varies
    node: str,
    devices: Sequence[Json | str] = ("gpu-0",),
    *,
    name: str = "",
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    spec: Mapping[str, Any] | None = None,
) -> ResourceSlice:
    """Return a ResourceSlice of `node`; if `node` is "", `spec` must select the nodes.

    A text in `devices` is the name of a device. `pool` defaults to `node`, or to "shared" if `node`
    is "". `name` defaults to the driver and the pool, joined by `-`. `generation` is the pool's
    generation, and `count` is the number of slices in the pool. `spec` adds or replaces fields of
    the slice's spec.
    """
    own: Json = {"driver": driver, "devices": [_device(one) for one in devices]}
    own["pool"] = {
        "name": pool or node or "shared",
        "generation": generation,
        "resourceSliceCount": count,
    }
    if node:
        own["nodeName"] = node
    metadata = {"name": name or f"{driver}-{pool or node or 'shared'}"}
    obj = {"metadata": metadata, "spec": own | dict(spec or {})}
    return built(ResourceSlice, "resource.k8s.io/v1", obj)


def _device(one: Json | str) -> Json:
    return make_device(one) if isinstance(one, str) else one


def make_device_class(
    name: str = GPU, *expressions: str, config: Iterable[Json] = ()
) -> DeviceClass:
    """Return a DeviceClass of the devices that match all CEL `expressions`."""
    spec = {"selectors": [_selector(one) for one in expressions], "config": list(config)}
    return built(DeviceClass, "resource.k8s.io/v1", {"metadata": {"name": name}, "spec": spec})


def _selector(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def make_device_request(
    name: str = "r",
    *expressions: str,
    count: int = 1,
    of_class: str = GPU,
    **more: Any,
) -> Json:
    """Return the request `name` for `count` devices of the DeviceClass `of_class`.

    The devices must match all CEL `expressions`. `more` has further fields for the
    request's field `exactly`.
    """
    wanted = {"deviceClassName": of_class, "allocationMode": "ExactCount", "count": count}
    wanted |= {"selectors": [_selector(one) for one in expressions]} | more
    return {"name": name, "exactly": wanted}


def make_first_available(name: str, *alternatives: Json) -> Json:
    """Return the request `name` for the first available one of `alternatives`.

    Use `make_device_request` to build each alternative.
    """
    flat = [{"name": one["name"], **one["exactly"]} for one in alternatives]
    return {"name": name, "firstAvailable": flat}


def make_resource_claim(  # noqa: PLR0913 - a builder takes what a case varies
    name: str,
    *requests: Json,
    namespace: str = "default",
    constraints: Iterable[Json] = (),
    config: Iterable[Json] = (),
    status: Mapping[str, Any] | None = None,
    made_for: str = "",
    terminating: bool = False,
) -> ResourceClaim:
    """Return a claim with `requests`, by default one request for a device of the class "gpu".

    `made_for` is the uid of the pod for which the claim was generated, or "". If `terminating` is
    set, the claim has a deletionTimestamp.
    """
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    if made_for:
        metadata["ownerReferences"] = [{"kind": "Pod", "uid": made_for, "controller": True}]
    if terminating:
        metadata["deletionTimestamp"] = _STAMP
    devices = {
        "requests": list(requests) or [make_device_request()],
        "constraints": list(constraints),
        "config": list(config),
    }
    obj = {"metadata": metadata, "spec": {"devices": devices}, "status": dict(status or {})}
    return built(ResourceClaim, "resource.k8s.io/v1", obj)


def make_claim_status(node: str, *devices: str, reserved_for: Iterable[str] = ()) -> Json:
    """Return the status of an allocated claim; its `devices` are in the pool of `node`.

    All devices are allocated for the request `r`. `reserved_for` contains the uids of the pods that
    use the claim.
    """
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": one} for one in devices]
    named = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [named]}]},
        },
        "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved_for],
    }
