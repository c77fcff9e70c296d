"""LimitRanger: what a container, pod or claim of a namespace may ask for, or asks for by default.

upstream: plugin/pkg/admission/limitranger/admission.go; pkg/apis/core/v1/defaults.go:
SetDefaults_LimitRangeItem
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.quantity import canonical
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.admission.quota.amounts import Amounts, amounts, pod_amounts
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from fairlead.apiserver.storage.storage import Storage

ANNOTATION: Final = "kubernetes.io/limit-ranger"
CONTAINER: Final = "Container"
CLAIM: Final = "PersistentVolumeClaim"
_CONTAINER_LISTS: Final = (("containers", "container"), ("initContainers", "init container"))


@dataclass(frozen=True, slots=True)
class _Wish:
    """What somebody asks for and is limited to; `says_limits` is False where there are none."""

    requests: Amounts
    limits: Amounts
    says_limits: bool = True


class LimitRanger:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Give containers what they do not say, and refuse what is out of range: ApiError 403."""
        kind, obj = asked.kind, asked.obj
        if not _is_limited(asked):
            return obj
        namespace = obj["metadata"].get("namespace", "")
        ranges = list(storage.items(LIMIT_RANGE, namespace))
        items = [[_complete(item) for item in (one["spec"].get("limits") or ())] for one in ranges]
        if kind is POD and asked.is_new:
            for limits in items:
                obj = _with_defaults(obj, limits)
        for limits in items:
            problems = list(dict.fromkeys(_problems(kind, obj, limits)))
            if problems:
                why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                raise forbidden(kind, namespace, obj["metadata"]["name"], why)
        return obj


def _is_limited(asked: Asked) -> bool:
    # upstream: limitranger/admission.go:SupportsAttributes
    if asked.kind is POD:
        return asked.is_new or asked.is_resized
    is_written = asked.operation in (Operation.CREATE, Operation.UPDATE)
    return asked.kind is PERSISTENT_VOLUME_CLAIM and is_written and not asked.about.subresource


def _complete(item: Json) -> Json:
    """`item` with the defaults that follow from each other and from its bounds."""
    if item.get("type") != CONTAINER:
        return item
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    asked = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    return {**item, "default": default, "defaultRequest": asked}


# --- defaults ------------------------------------------------------------------------------


def _with_defaults(pod: Json, limits: list[Json]) -> Json:
    defaults: dict[str, Json] = {"requests": {}, "limits": {}}
    for item in limits:
        if item.get("type") == CONTAINER:
            defaults["requests"] |= item["defaultRequest"]
            defaults["limits"] |= item["default"]
    notes: list[str] = []
    spec = {
        key: [_filled(container, defaults, called, notes) for container in pod["spec"][key]]
        for key, called in _CONTAINER_LISTS
        if pod["spec"].get(key)
    }
    if not notes:
        return pod
    meta = pod["metadata"]
    note = {ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
    meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **note}}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], **spec}}


def _filled(container: Json, defaults: dict[str, Json], called: str, notes: list[str]) -> Json:
    resources = dict(container.get("resources") or {})
    for key, word in (("requests", "request"), ("limits", "limit")):
        own = resources.get(key) or {}
        added = {name: text for name, text in defaults[key].items() if name not in own}
        if added:
            resources[key] = {**own, **added}
            notes.append(f"{', '.join(sorted(added))} {word} for {called} {container['name']}")
    return {**container, "resources": resources}


# --- refusals ------------------------------------------------------------------------------


def _problems(kind: Kind, obj: Json, limits: list[Json]) -> Iterator[str]:
    for item in limits:
        kind_of_item = item.get("type", "")
        for asked in _subjects(kind, obj, kind_of_item):
            yield from _of_item(kind_of_item, item, asked)


def _subjects(kind: Kind, obj: Json, kind_of_item: str) -> Iterable[_Wish]:
    """Whom in `obj` an item of that type is about."""
    spec = obj["spec"]
    match kind_of_item:
        case "Container" if kind is POD:
            found = [spec.get(key) or () for key, _ in _CONTAINER_LISTS]
            return [_asked(container) for some in found for container in some]
        case "Pod" if kind is POD:
            return [_Wish(pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))]
        case "PersistentVolumeClaim" if kind is PERSISTENT_VOLUME_CLAIM:
            return [_Wish(_asked(spec).requests, {}, says_limits=False)]
        case _:
            return []


def _asked(holder: Json) -> _Wish:
    resources: dict[str, Any] = holder.get("resources") or {}
    return _Wish(amounts(resources.get("requests")), amounts(resources.get("limits")))


def _of_item(called: str, item: Json, asked: _Wish) -> Iterator[str]:
    for name in sorted(item.get("min") or {}):
        yield from _too_little(called, name, amounts(item["min"]), asked)
    for name in sorted(item.get("max") or {}):
        yield from _too_much(called, name, amounts(item["max"]), asked)
    for name in sorted(item.get("maxLimitRequestRatio") or {}):
        yield from _too_far_apart(called, name, amounts(item["maxLimitRequestRatio"]), asked)


def _too_little(called: str, name: str, bounds: Amounts, asked: _Wish) -> Iterator[str]:
    least, request, limit = bounds[name], asked.requests.get(name), asked.limits.get(name)
    text = f"minimum {name} usage per {called} is {canonical(least)}"
    if request is None:
        yield f"{text}.  No request is specified"
    elif request < least:
        yield f"{text}, but request is {canonical(request)}"
    elif limit is not None and limit < least:
        yield f"{text}, but limit is {canonical(limit)}"


def _too_much(called: str, name: str, bounds: Amounts, asked: _Wish) -> Iterator[str]:
    most, request, limit = bounds[name], asked.requests.get(name), asked.limits.get(name)
    text = f"maximum {name} usage per {called} is {canonical(most)}"
    if limit is None and asked.says_limits:
        yield f"{text}.  No limit is specified"
    elif request is None and not asked.says_limits:
        yield f"{text}.  No request is specified"
    elif limit is not None and limit > most:
        yield f"{text}, but limit is {canonical(limit)}"
    elif request is not None and request > most:
        yield f"{text}, but request is {canonical(request)}"


def _too_far_apart(called: str, name: str, bounds: Amounts, asked: _Wish) -> Iterator[str]:
    most, request, limit = bounds[name], asked.requests.get(name), asked.limits.get(name)
    text = f"{name} max limit to request ratio per {called} is {canonical(most)}"
    if request is None or not request.nano:
        yield f"{text}, but no request is specified or request is 0"
    elif limit is None or not limit.nano:
        yield f"{text}, but no limit is specified or limit is 0"
    elif limit.milli * 1000 > most.milli * request.milli:
        yield f"{text}, but provided ratio is {limit.milli / request.milli:.6f}"
