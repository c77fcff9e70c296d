"""Edits of existing objects: `--set`, `--set-resources` and `--priority-class`.

    --set deploy/store/web:spec.strategy.type=Recreate         one field
    --set-resources deploy/store/web=cpu=2,memory=4Gi          requests of all containers
    --set-resources deploy/store/web:app=limits.cpu=4          a limit of the container `app`
    --set-resources deploy/store/web=cpu=-20%                  20% less CPU than now
    --set-resources pod/store/web-0=cpu=2                      a resize of one pod, in place
    --priority-class high=5000                                 the value of a PriorityClass

`--set-resources` works like `kubectl set resources`: it changes the pod template, and a rollout
follows. An amount without `requests.` or `limits.` is a request. For extended resources and huge
pages it is also the limit, because request and limit must be equal. A percentage with a sign
changes the amount that each container has now (`relative_amount`). The resources of a Pod are
changed in place, as with `kubectl patch --subresource resize`. The pod keeps its node.

The value of a PriorityClass cannot be updated, so the class is deleted and created again. Pods keep
the priority with which they were created.

upstream: staging/src/k8s.io/kubectl/pkg/cmd/set/set_resources.go,
plugin/pkg/admission/priority/admission.go:admitPod
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.quantity import (
    NO_QUANTITY,
    Quantity,
    QuantityError,
    canonical,
    parse_quantity,
)
from fairlead.api.resource_name import is_native_resource
from fairlead.apiserver.endpoints.request.typed_object import schema_of_kind
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.apiserver.validation.core.resource import check_container_resource
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.whatif.change.edit.edited_field import Place
from fairlead.whatif.change.edit.field_path import SetFieldError, set_field
from fairlead.whatif.change.edit.relative_amount import (
    SIGN,
    RelativeAmount,
    relative_amount,
    stated_amount,
)
from fairlead.whatif.input.byte_amount import missing_unit
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.worlds.container_resources import CONTAINER_LISTS

SET: Final = "--set"
SET_RESOURCES: Final = "--set-resources"
PRIORITY: Final = "--priority-class"
_WITH_RESOURCES: Final = (
    DEPLOYMENT,
    STATEFUL_SET,
    DAEMON_SET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    POD,
)
_PARTS: Final = ("requests", "limits")
_HUGE_PAGES: Final = "hugepages-"
_DIGITS_MAX: Final = 4_300  # int() reads no longer texts
# Fields of a PriorityClass that cannot be updated, with the options that change them.
# upstream: pkg/apis/scheduling/validation/validation.go: ValidatePriorityClassUpdate
_IMMUTABLE: Final = {
    "value": "--priority-class {name}={value}",
    "preemptionPolicy": "--delete priorityclass/{name} --apply FILE",
}


class ObjectEdit(Struct, frozen=True):
    """The edit that one value of an option describes."""

    target: Manifest
    content: Json  # the new content of `target`
    # {path of a field that the edit sets: the name of the field in messages}
    places: dict[Place, str]
    notes: tuple[str, ...] = ()  # texts for the answer
    is_resize: bool = False  # whether the edit changes the resources of a pod in place


# --- --set --------------------------------------------------------------------------------------


def with_field(text: str, inventory: Inventory, namespace: str) -> ObjectEdit:
    """Return the edit that `text` (`KIND/NS/NAME:path=value`) describes. Raises InputError."""
    name, colon, assignment = text.partition(":")
    path, sign, value = _split_assignment(assignment)
    if not colon or not sign or not path:
        problem = "is not KIND/NAMESPACE/NAME:path=value, such as deploy/shop/web:spec.replicas=3"
        raise InputError(SET, f"{text!r} {problem}")
    target = inventory.find(SET, name, namespace)
    if target.kind is PRIORITY_CLASS and path in _IMMUTABLE:
        instead = _IMMUTABLE[path].format(name=target.ref.name, value=value)
        problem = f"cannot be updated, only deleted and created again: {instead}"
        raise InputError(SET, problem, object_name=target.title, field=path)
    edited = copy.deepcopy(target.value)
    schema = None if target.kind.is_custom else schema_of_kind(target.kind)
    try:
        place = set_field(edited, path, value, schema)
    except SetFieldError as cause:
        raise InputError(SET, cause.problem, object_name=target.title, field=cause.field) from None
    is_resize = target.kind is POD and _is_of_resources(place)
    return ObjectEdit(target, edited, {place: path}, is_resize=is_resize)


def _is_of_resources(place: Place) -> bool:
    """Return whether the field at `place` of a pod belongs to the resources of a container."""
    is_of_resources = place[:1] == ("spec",) and place[3:4] == ("resources",)
    return is_of_resources and place[1] in CONTAINER_LISTS


def _split_assignment(text: str) -> tuple[str, str, str]:
    """Return (path, "=", value) of `text`; "=" inside brackets belongs to the path.

    If `text` has no such "=", the result is (`text`, "", "").
    """
    depth = 0
    for index, character in enumerate(text):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "=" and not depth:
            return text[:index], "=", text[index + 1 :]
    return text, "", ""


# --- --set-resources ----------------------------------------------------------------------------


def with_resources(text: str, inventory: Inventory, namespace: str) -> ObjectEdit:
    """Return the edit that sets the requests and limits in `text`.

    `text` is a value of --set-resources. If `text` sets a request above an existing limit, and does
    not set this limit, the limit is raised to the request. A note names the new limit. Raises
    InputError.
    """
    name, sign, amounts = text.partition("=")
    name, colon, container = name.partition(":")
    if not sign or not amounts or (colon and not container):
        problem = "is not KIND/NAME=cpu=2,memory=4Gi or KIND/NAME:CONTAINER=cpu=2"
        raise InputError(SET_RESOURCES, f"{text!r} {problem}")
    target = inventory.find(SET_RESOURCES, name, namespace, _WITH_RESOURCES)
    if target.kind not in _WITH_RESOURCES:
        known = ", ".join(kind.kind for kind in _WITH_RESOURCES)
        problem = f"cannot change a {target.kind.kind}, only the kinds {known}"
        raise InputError(SET_RESOURCES, problem)
    wanted = dict(_amounts(target.title, amounts))
    target.require_right_types()
    edited = copy.deepcopy(target.value)
    raised: list[str] = []
    relative: list[str] = []
    places: dict[Place, str] = {}
    for place, one in _containers(target, edited, container):
        resources = one.setdefault("resources", {})
        before = copy.deepcopy(resources)
        for (part, resource), amount in wanted.items():
            new = amount
            if isinstance(amount, RelativeAmount):
                present = stated_amount(before, part, resource)
                relative.append(_described(one.get("name", ""), part, amount, present))
                if present is None:
                    continue
                new = amount.of(present)
            resources.setdefault(part, {})[resource] = new
            places[*place, "resources", part, resource] = f"{part}.{resource}"
        raised += _raise_limits(resources, wanted, one.get("name", ""))
    if not places:
        raise InputError(SET_RESOURCES, "; ".join(relative), object_name=target.title)
    notes = [f"{target.title}: {'; '.join(relative)}."] if relative else []
    if raised:
        why = "because a request must not exceed its limit"
        notes.append(f"{target.title}: {'; '.join(raised)}, {why}.")
    return ObjectEdit(target, edited, places, tuple(notes), is_resize=target.kind is POD)


def _described(container: str, part: str, amount: RelativeAmount, known: Quantity | None) -> str:
    """Return a description of what `amount` does to `known`, an amount of `container`.

    `part` is `requests` or `limits`. `known` is None if the container does not state the amount.
    """
    resource = amount.resource
    if known is None:
        one = part.removesuffix("s")
        return f"container {container} has no {resource} {one} that {amount.text} could change"
    new, old = amount.of(known), canonical(known)
    if new == old:
        return f"container {container} keeps {part} {resource} {old}"
    return f"container {container} {part} {resource} {new} instead of {old}"


def _raise_limits(
    resources: Json, wanted: Collection[tuple[str, str]], container: str
) -> Iterator[str]:
    """Raise limits that are below a new request; yield a text about each raised limit.

    `wanted` are the (part, resource) pairs that the user set in the `resources` of `container`. A
    limit that the user set is not raised.
    """
    limits = resources.get("limits", {})
    for part, resource in wanted:
        request, limit = resources.get("requests", {}).get(resource), limits.get(resource)
        if part == "limits" or None in (request, limit) or ("limits", resource) in wanted:
            continue
        if parse_quantity(limit).nano < parse_quantity(request).nano:
            limits[resource] = request
            yield f"container {container} gets a {resource} limit of {request} instead of {limit}"


def _amounts(workload: str, text: str) -> Iterator[tuple[tuple[str, str], str | RelativeAmount]]:
    """Yield ((part, resource), amount) for each item of `text`.

    An example of `text` is `cpu=2,limits.memory=4Gi`. A part is `requests` or `limits`. Raises
    InputError; its message names `workload`.
    """
    seen = set[tuple[str, str]]()
    for each in text.split(","):
        name, sign, amount = each.strip().rpartition("=")
        part, dot, resource = name.partition(".")
        if not dot or part not in _PARTS:
            part, resource = "", name
        if not sign or not resource:
            problem = f"{each!r} is not RESOURCE=AMOUNT, such as cpu=500m"
            raise InputError(SET_RESOURCES, problem, object_name=workload)
        if any(check_container_resource("", resource)):
            problem = "is not a resource of containers, such as cpu, memory or nvidia.com/gpu"
            raise InputError(SET_RESOURCES, problem, object_name=workload, field=resource)
        new = _new_amount(workload, resource, amount)
        has_limit = not is_native_resource(resource) or resource.startswith(_HUGE_PAGES)
        for one in (part,) if part else _PARTS if has_limit else _PARTS[:1]:
            if (one, resource) in seen:
                raise InputError(SET_RESOURCES, "is given twice", object_name=workload, field=name)
            seen.add((one, resource))
            yield (one, resource), new


def _new_amount(workload: str, resource: str, text: str) -> str | RelativeAmount:
    """Return the RelativeAmount in `text`, or `text` itself if it contains an absolute amount.

    Raises InputError that names `workload`.
    """
    try:
        if text.endswith(SIGN):
            return relative_amount(resource, text)
        parse_quantity(text)
    except QuantityError as cause:
        problem = str(cause)
        if cause.rule == NO_QUANTITY and SIGN not in text:
            problem = f"{text!r} is not a quantity, such as 2, 500m or 4Gi"
        raise InputError(SET_RESOURCES, problem, object_name=workload, field=resource) from None
    for problem in missing_unit(resource, text):
        raise InputError(SET_RESOURCES, problem, object_name=workload, field=resource)
    return text


def _containers(target: Manifest, edited: Json, name: str) -> list[tuple[Place, Json]]:
    """Return (place, container) for the containers of `edited`, a pod or an object with a template.

    If `name` is "", init containers are left out. Otherwise, only the container or init container
    `name` is returned. Raises InputError if `target` has no container of this name.
    """
    path = ("spec",) if target.kind is POD else ("spec", "template", "spec")
    spec = edited
    for key in path:
        spec = spec.get(key, {})
    inner: list[tuple[Place, Json]] = [
        ((*path, field, number), one)
        for field in CONTAINER_LISTS
        for number, one in enumerate(spec.get(field, []))
    ]
    if not name:
        return inner[: len(spec.get("containers", []))]
    found = [(place, one) for place, one in inner if one.get("name") == name]
    if not found:
        known = known_names(name, (str(one.get("name")) for _, one in inner))
        problem = f"there is no container {name}; {known}"
        raise InputError(SET_RESOURCES, problem, object_name=target.title)
    return found


# --- --priority-class ---------------------------------------------------------------------------


def with_priority(text: str, inventory: Inventory) -> tuple[Manifest, Manifest]:
    """Return (old, new): the PriorityClass that `text` names, before and after its value changes.

    `text` is `NAME=VALUE`, with the new value. Raises InputError.
    """
    name, sign, number = text.rpartition("=")
    if not sign or not name or not _is_integer(number):
        raise InputError(PRIORITY, f"{text!r} is not NAME=VALUE, such as high=100000")
    if name in SYSTEM_CLASSES:
        raise InputError(PRIORITY, f"{name} is built in, so its value cannot be changed")
    found = inventory.get(PRIORITY_CLASS, "", name)
    if found is None:
        known = [one.ref.name for one in inventory.of_kind(PRIORITY_CLASS)]
        hint = known_names(name, known) if known else "the dump has none"
        raise InputError(PRIORITY, f"there is no PriorityClass {name}; {hint}")
    kept = ("uid", "resourceVersion", "creationTimestamp", "generation")
    meta = {key: part for key, part in found.value["metadata"].items() if key not in kept}
    content = {**found.value, "metadata": meta, "value": int(number)}
    return found, replace(found, content=content)


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
