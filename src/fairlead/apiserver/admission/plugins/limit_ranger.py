"""LimitRanger: applies a namespace's default resources, and enforces its minimums and maximums.

upstream: plugin/pkg/admission/limitranger/admission.go; pkg/apis/core/v1/defaults.go:
SetDefaults_LimitRangeItem
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.quantity import QuantityError, canonical
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.quota.amounts import Amounts, amounts, amounts_without_overhead
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from fairlead.apiserver.storage.storage import Storage

ANNOTATION: Final = "kubernetes.io/limit-ranger"
CONTAINER: Final = "Container"
CLAIM: Final = "PersistentVolumeClaim"
# A violated bound and the amount of the refused object, as `_violations` writes them.
_VIOLATION: Final = re.compile(
    r"((?:usage|ratio) per \w+ is [^,\]]+), but (?:request|limit|provided ratio) is [^,\]]+"
)
_CONTAINER_LISTS: Final = (("containers", "container"), ("initContainers", "init container"))


class _Resources(Struct, frozen=True):
    """Requests and limits. `has_limits` is False for PersistentVolumeClaims."""

    requests: Amounts
    limits: Amounts
    has_limits: bool = True


class LimitRanger:
    """The admission plugin `LimitRanger`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new pod gets the default resources of its namespace's LimitRanges.

        Raises ApiError 403 if the resources of a new pod, a resized pod or a PersistentVolumeClaim
        are out of range. An object with a malformed amount is returned unchanged; validation
        refuses it later.
        """
        if not _is_limited(attributes):
            return attributes.obj
        try:
            return _limited(attributes, storage)
        except QuantityError:
            return attributes.obj


def _limited(attributes: AdmissionAttributes, storage: Storage) -> Json:
    """Apply the LimitRanges of the object's namespace; see `LimitRanger.admit`."""
    kind, obj = attributes.kind, attributes.obj
    namespace = obj["metadata"].get("namespace", "")
    ranges = list(storage.items(LIMIT_RANGE, namespace))
    if kind is POD and attributes.is_new:
        obj = with_default_resources(obj, ranges)
    for one in ranges:
        problems = range_problems(kind, obj, one)
        if problems:
            reason = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise forbidden(kind, namespace, obj["metadata"]["name"], reason)
    return obj


def _is_limited(attributes: AdmissionAttributes) -> bool:
    # upstream: limitranger/admission.go:SupportsAttributes
    if attributes.kind is POD:
        return attributes.is_new or attributes.is_resize
    if attributes.kind is not PERSISTENT_VOLUME_CLAIM or attributes.subresource:
        return False
    return attributes.operation in (Operation.CREATE, Operation.UPDATE)


def _items(limit_range: Json) -> list[Json]:
    """Return the items of a LimitRange, each completed by `_with_item_defaults`."""
    return [
        _with_item_defaults(item) for item in (limit_range.get("spec") or {}).get("limits") or ()
    ]


def _with_item_defaults(item: Json) -> Json:
    """Return the LimitRange item `item`, completed with default amounts if its type is Container.

    An amount that `default` lacks is taken from `max`. An amount that `defaultRequest` lacks is
    taken from `default`, or else from `min`.

    upstream: pkg/apis/core/v1/defaults.go: SetDefaults_LimitRangeItem
    """
    if item.get("type") != CONTAINER:
        return item
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    return {**item, "default": default, "defaultRequest": request}


# --- defaults ------------------------------------------------------------------------------


def with_default_resources(pod: Json, ranges: Iterable[Json]) -> Json:
    """Return `pod` with the default requests and limits of the LimitRanges `ranges`."""
    for one in ranges:
        pod = _with_defaults(pod, _items(one))
    return pod


def _with_defaults(pod: Json, limits: list[Json]) -> Json:
    defaults: dict[str, Json] = {"requests": {}, "limits": {}}
    for item in limits:
        if item.get("type") == CONTAINER:
            defaults["requests"] |= item["defaultRequest"]
            defaults["limits"] |= item["default"]
    notes: list[str] = []
    spec = {
        key: [_filled(container, defaults, type_name, notes) for container in pod["spec"][key]]
        for key, type_name in _CONTAINER_LISTS
        if pod["spec"].get(key)
    }
    if not notes:
        return pod
    meta = pod["metadata"]
    note = {ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
    meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **note}}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], **spec}}


def _filled(container: Json, defaults: dict[str, Json], type_name: str, notes: list[str]) -> Json:
    resources = dict(container.get("resources") or {})
    for key, singular in (("requests", "request"), ("limits", "limit")):
        present = resources.get(key) or {}
        added = {name: text for name, text in defaults[key].items() if name not in present}
        if added:
            resources[key] = {**present, **added}
            notes.append(
                f"{', '.join(sorted(added))} {singular} for {type_name} {container.get('name', '')}"
            )
    return {**container, "resources": resources}


# --- refusals ------------------------------------------------------------------------------


def range_problems(kind: Kind, obj: Json, limit_range: Json) -> list[str]:
    """Return how `obj`, an object of `kind` with its defaults, violates `limit_range`."""
    return list(dict.fromkeys(_problems(kind, obj, _items(limit_range))))


def without_own_amounts(message: str) -> str:
    """Return the refusal `message` without the amounts of the refused object.

    After this, the messages about two objects are equal if the objects violate the same bounds and
    violate each bound the same number of times. Messages of other admission plugins are returned
    unchanged.
    """
    return _VIOLATION.sub(r"\1", message)


def _problems(kind: Kind, obj: Json, limits: list[Json]) -> Iterator[str]:
    for item in limits:
        item_type = item.get("type", "")
        for resources in _resources_to_check(kind, obj, item_type):
            yield from _violations(item_type, item, resources)


def _resources_to_check(kind: Kind, obj: Json, item_type: str) -> Iterable[_Resources]:
    """Return the resources in `obj` to which a LimitRange item of type `item_type` applies."""
    spec = obj["spec"]
    match item_type:
        case "Container" if kind is POD:
            found = [spec.get(key) or () for key, _ in _CONTAINER_LISTS]
            return [_resources_of(container) for some in found for container in some]
        case "Pod" if kind is POD:
            # upstream: limitranger/admission.go:podRequests, podLimits
            requests, limits = (amounts_without_overhead(spec, of) for of in ("requests", "limits"))
            return [_Resources(requests, limits)]
        case "PersistentVolumeClaim" if kind is PERSISTENT_VOLUME_CLAIM:
            return [_Resources(_resources_of(spec).requests, {}, has_limits=False)]
        case _:
            return []


def _resources_of(holder: Json) -> _Resources:
    resources: dict[str, Any] = holder.get("resources") or {}
    return _Resources(amounts(resources.get("requests")), amounts(resources.get("limits")))


def _violations(type_name: str, item: Json, resources: _Resources) -> Iterator[str]:
    for name in sorted(item.get("min") or {}):
        yield from _below_minimum(type_name, name, amounts(item["min"]), resources)
    for name in sorted(item.get("max") or {}):
        yield from _above_maximum(type_name, name, amounts(item["max"]), resources)
    if not resources.has_limits:
        return
    for name in sorted(item.get("maxLimitRequestRatio") or {}):
        yield from _above_ratio(type_name, name, amounts(item["maxLimitRequestRatio"]), resources)


def _below_minimum(
    type_name: str, name: str, bounds: Amounts, resources: _Resources
) -> Iterator[str]:
    minimum, request, limit = bounds[name], resources.requests.get(name), resources.limits.get(name)
    text = f"minimum {name} usage per {type_name} is {canonical(minimum)}"
    if request is None:
        yield f"{text}.  No request is specified"
    elif request < minimum:
        yield f"{text}, but request is {canonical(request)}"
    elif limit is not None and limit < minimum:
        yield f"{text}, but limit is {canonical(limit)}"


def _above_maximum(
    type_name: str, name: str, bounds: Amounts, resources: _Resources
) -> Iterator[str]:
    maximum, request, limit = bounds[name], resources.requests.get(name), resources.limits.get(name)
    text = f"maximum {name} usage per {type_name} is {canonical(maximum)}"
    if limit is None and resources.has_limits:
        yield f"{text}.  No limit is specified"
    elif request is None and not resources.has_limits:
        yield f"{text}.  No request is specified"
    elif limit is not None and limit > maximum:
        yield f"{text}, but limit is {canonical(limit)}"
    elif request is not None and request > maximum:
        yield f"{text}, but request is {canonical(request)}"


def _above_ratio(
    type_name: str, name: str, bounds: Amounts, resources: _Resources
) -> Iterator[str]:
    maximum, request, limit = bounds[name], resources.requests.get(name), resources.limits.get(name)
    text = f"{name} max limit to request ratio per {type_name} is {canonical(maximum)}"
    if request is None or not request.nano:
        yield f"{text}, but no request is specified or request is 0"
    elif limit is None or not limit.nano:
        yield f"{text}, but no limit is specified or limit is 0"
    elif limit.milli * 1000 > maximum.milli * request.milli:
        yield f"{text}, but provided ratio is {limit.milli / request.milli:.6f}"
