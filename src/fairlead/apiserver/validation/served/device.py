"""Devices: what nodes offer of them, and who claims them.

upstream: pkg/apis/resource/validation/validation.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.validation.field import Causes, duplicate, invalid, required

Json = dict[str, Any]

_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE: Final = f"exactly one of {', '.join(f'`{key}`' for key in _PLACES)} is required"


def check_slice(obj: Json) -> Causes:
    """A ResourceSlice."""
    spec = obj["spec"]
    if not spec.get("driver"):
        yield required("spec.driver")
    if not (spec.get("pool") or {}).get("name"):
        yield required("spec.pool.name")
    stated = [key for key in _PLACES if spec.get(key) not in (None, False, "")]
    if not stated:
        yield required("spec", _ONE_PLACE)
    elif len(stated) > 1:
        shown = ", ".join(f"`{key}`" for key in stated)
        why = f"{_ONE_PLACE}, but multiple fields are set"
        yield invalid("spec", f"{{{shown}}}", why)
    names: dict[str, None] = {}
    for place, device in enumerate(spec.get("devices") or ()):
        name = device.get("name", "")
        if not name:
            yield required(f"spec.devices[{place}].name")
        elif name in names:
            yield duplicate(f"spec.devices[{place}]", name)
        names[name] = None


def check_claim(obj: Json) -> Causes:
    """A ResourceClaim."""
    yield from _check_requests("spec.devices.requests", obj["spec"])


def check_claim_template(obj: Json) -> Causes:
    """A ResourceClaimTemplate."""
    yield from _check_requests("spec.spec.devices.requests", obj["spec"]["spec"])


def _check_requests(field: str, spec: Json) -> Causes:
    names: dict[str, None] = {}
    for place, request in enumerate(spec["devices"].get("requests") or ()):
        where = f"{field}[{place}]"
        name = request.get("name", "")
        if not name:
            yield required(f"{where}.name")
        elif name in names:
            yield duplicate(where, name)
        names[name] = None
        exactly, first = request.get("exactly"), request.get("firstAvailable")
        if exactly is None and not first:
            yield required(where, "exactly one of `exactly` or `firstAvailable` is required")
        elif exactly is not None and not exactly.get("deviceClassName"):
            yield required(f"{where}.exactly.deviceClassName")
