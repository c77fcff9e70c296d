"""Priority: what a PriorityClass may say, and what it means for a new pod.

A new pod gets the value and the preemption policy of the class it names, of the default class
when it names none, and 0 without such a class. It may not bring a priority of its own, unless it
is the one it would get. Pods that exist keep what they have, whatever becomes of the class. A
stored pod that names a class but has no priority was written by hand: it is resolved as a new
pod would be.

upstream: plugin/pkg/admission/priority/admission.go,
pkg/registry/scheduling/priorityclass/storage/storage.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import POD, PRIORITY_CLASS
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.scheduling import PREEMPT_LOWER_PRIORITY, SYSTEM_CLASSES

DEFAULT_PRIORITY: Final = 0
NOT_DELETABLE: Final = "this is a system priority class and cannot be deleted"


# What stays as it was when an update does not say it.
RESOLVED: Final = ("priority", "preemptionPolicy")


class Priority:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Resolve a new pod's priority; refuse a second default and the end of a system class."""
        kind, obj = asked.kind, asked.obj
        if asked.about.subresource:
            return obj
        if kind is POD:
            return _admitted_pod(asked.operation, obj, storage, asked.about.old or {})
        if kind is PRIORITY_CLASS:
            _check_class(asked.operation, obj, storage)
        return obj


def _admitted_pod(operation: Operation, pod: Json, storage: Storage, old: Json) -> Json:
    spec = pod.get("spec", {})
    match operation:
        case Operation.UPDATE if any(key not in spec for key in RESOLVED):
            before = old.get("spec", {})
            kept = {key: before[key] for key in RESOLVED if key in before}
            return {**pod, "spec": {**kept, **spec}}
        case Operation.CREATE:
            return {**pod, "spec": _resolved(pod, spec, storage)}
        case Operation.LOAD if spec.get("priorityClassName") and "priority" not in spec:
            return {**pod, "spec": _resolved(pod, spec, storage)}
        case _:
            return pod


def _resolved(pod: Json, spec: Json, storage: Storage) -> Json:
    """`spec` with the priority and the preemption policy that its class stands for."""
    found = _class_of(pod, spec, storage)
    priority = found.get("value", DEFAULT_PRIORITY)
    policy = found.get("preemptionPolicy", PREEMPT_LOWER_PRIORITY)
    if spec.get("priority", priority) != priority:
        raise _refused(
            pod,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod "
            f"spec; priority admission controller computed {priority} from the given "
            "PriorityClass name",
        )
    if spec.get("preemptionPolicy", policy) != policy:
        raise _refused(
            pod,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name",
        )
    resolved = {**spec, "priority": priority, "preemptionPolicy": policy}
    if found:
        resolved["priorityClassName"] = found["metadata"]["name"]
    return resolved


def _class_of(pod: Json, spec: Json, storage: Storage) -> Json:
    """The class `spec` names, or the default class, or nothing."""
    name = spec.get("priorityClassName")
    if not name:
        return _default_class(storage)
    found = storage.find(PRIORITY_CLASS, "", name) or SYSTEM_CLASSES.get(name)
    if found is None:
        raise _refused(pod, f"no PriorityClass with name {name} was found")
    return found


def _default_class(storage: Storage) -> Json:
    """The class for pods that name none; of several the one with the lowest value."""
    defaults = [obj for obj in storage.unsorted(PRIORITY_CLASS) if obj.get("globalDefault")]
    return min(defaults, key=_value_and_name, default={})


def _value_and_name(obj: Json) -> tuple[Any, ...]:
    return obj.get("value", 0), obj["metadata"]["name"]


def _check_class(operation: Operation, obj: Json, storage: Storage) -> None:
    name = obj["metadata"]["name"]
    if operation is Operation.DELETE:
        if name in SYSTEM_CLASSES:
            raise forbidden(PRIORITY_CLASS, "", name, NOT_DELETABLE)
        return
    other = _default_class(storage).get("metadata", {}).get("name", name)
    if obj.get("globalDefault") and other != name:
        already = f"PriorityClass {other} is already marked as default. Only one default can exist"
        raise forbidden(PRIORITY_CLASS, "", name, already)


def _refused(pod: Json, why: str) -> Exception:
    meta = pod["metadata"]
    return forbidden(POD, meta.get("namespace", ""), meta["name"], why)
