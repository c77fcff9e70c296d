"""Priority: resolves the priority of new pods, and validates PriorityClasses.

A pod that names no PriorityClass gets the priority and preemption policy of the default class. If
there is no default class, the pod gets priority 0.

A pod in a snapshot may name a class but have no priority. Such a pod was written by hand, so its
priority is resolved like that of a new pod. With the gate WorkloadAwarePreemption, the priority of
a PodGroup of scheduling.k8s.io is resolved by the same rules.

upstream: plugin/pkg/admission/priority/admission.go,
pkg/registry/scheduling/priorityclass/storage/storage.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import POD, POD_GROUP, PRIORITY_CLASS, Kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.scheduling import PREEMPT_LOWER_PRIORITY, SYSTEM_CLASSES

DEFAULT_PRIORITY: Final = 0
NOT_DELETABLE: Final = "this is a system priority class and cannot be deleted"
# Fields that an update keeps if it does not set them.
RESOLVED: Final = ("priority", "preemptionPolicy")


class Priority:
    """The admission plugin `Priority`."""

    def __init__(self, *, preemption_policies: bool = True, group_priorities: bool = False) -> None:
        """If `preemption_policies` is set, new pods get a preemptionPolicy.

        `preemption_policies` is the gate NonPreemptingPriority. If `group_priorities` is set (the
        gate WorkloadAwarePreemption), PodGroups of scheduling.k8s.io get the priority of their
        class.
        """
        self._preemption_policies = preemption_policies
        self._group_priorities = group_priorities

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new pod or PodGroup gets its priority.

        Raises ApiError 403 if the PriorityClass does not exist, or if the priority or preemption
        policy of the object differs from that of the class. Also raises ApiError 403 for a second
        default PriorityClass, and for the deletion of a system class.
        """
        kind, obj = attributes.kind, attributes.obj
        if attributes.subresource:
            return obj
        if kind is POD:
            if attributes.operation is Operation.CREATE and not self._preemption_policies:
                pod = _without_preemption_policy(obj)
                return _without_preemption_policy({**pod, "spec": _resolved(pod, storage)})
            return _with_priority(attributes.operation, obj, storage, attributes.old or {})
        if kind is POD_GROUP and self._group_priorities:
            return _with_group_priority(attributes.operation, obj, storage)
        if kind is PRIORITY_CLASS:
            _validate_class(attributes.operation, obj, storage)
        return obj


def _with_priority(operation: Operation, pod: Json, storage: Storage, old: Json) -> Json:
    spec = pod.get("spec", {})
    match operation:
        case Operation.UPDATE if any(key not in spec for key in RESOLVED):
            before = old.get("spec", {})
            kept = {key: before[key] for key in RESOLVED if key in before}
            return {**pod, "spec": {**kept, **spec}}
        case Operation.CREATE:
            return {**pod, "spec": _resolved(pod, storage)}
        case Operation.LOAD if spec.get("priorityClassName") and "priority" not in spec:
            return {**pod, "spec": _resolved(pod, storage)}
        case _:
            return pod


def _with_group_priority(operation: Operation, group: Json, storage: Storage) -> Json:
    """Return `group`; a new PodGroup gets the priority of its class."""
    spec = group.get("spec") or {}
    by_hand = spec.get("priorityClassName") and "priority" not in spec
    if operation is not Operation.CREATE and not (operation is Operation.LOAD and by_hand):
        return group
    priority_class = _priority_class(POD_GROUP, group, spec, storage)
    priority = _computed_priority(POD_GROUP, group, spec, priority_class)
    resolved = {**spec, "priority": priority}
    if priority_class:
        resolved["priorityClassName"] = priority_class["metadata"]["name"]
    return {**group, "spec": resolved}


def _without_preemption_policy(pod: Json) -> Json:
    """Return `pod` without spec.preemptionPolicy.

    upstream: v1.19 pkg/api/pod/util.go: dropDisabledFields
    """
    spec = {key: value for key, value in pod.get("spec", {}).items() if key != "preemptionPolicy"}
    return {**pod, "spec": spec}


def _resolved(pod: Json, storage: Storage) -> Json:
    """Return the spec of `pod` with the priority and preemption policy of its class."""
    spec = pod.get("spec", {})
    priority_class = _priority_class(POD, pod, spec, storage)
    priority = _computed_priority(POD, pod, spec, priority_class)
    policy = priority_class.get("preemptionPolicy", PREEMPT_LOWER_PRIORITY)
    if spec.get("preemptionPolicy", policy) != policy:
        raise _refused(
            POD,
            pod,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name",
        )
    resolved = {**spec, "priority": priority, "preemptionPolicy": policy}
    if priority_class:
        resolved["priorityClassName"] = priority_class["metadata"]["name"]
    return resolved


def _priority_class(kind: Kind, obj: Json, spec: Json, storage: Storage) -> Json:
    """Return the PriorityClass that `spec` names, or else the default class, or else {}.

    Raises ApiError 403 if the named class does not exist.
    """
    name = spec.get("priorityClassName")
    if not name:
        return _default_class(storage)
    priority_class = storage.find(PRIORITY_CLASS, "", name) or SYSTEM_CLASSES.get(name)
    if priority_class is None:
        raise _refused(kind, obj, f"no PriorityClass with name {name} was found")
    return priority_class


def _computed_priority(kind: Kind, obj: Json, spec: Json, priority_class: Json) -> int:
    """Return the value of the class. Raises ApiError 403 if the object sets another priority."""
    priority: int = priority_class.get("value", DEFAULT_PRIORITY)
    if spec.get("priority", priority) != priority:
        words = "pod" if kind is POD else "pod group"
        raise _refused(
            kind,
            obj,
            f"the integer value of priority ({spec['priority']}) must not be provided in {words} "
            f"spec; priority admission controller computed {priority} from the given "
            "PriorityClass name",
        )
    return priority


def _default_class(storage: Storage) -> Json:
    """Return the default class with the lowest value; {} if there is no default class."""
    defaults = [obj for obj in storage.unsorted(PRIORITY_CLASS) if obj.get("globalDefault")]
    return min(defaults, key=_value_and_name, default={})


def _value_and_name(obj: Json) -> tuple[Any, ...]:
    return obj.get("value", 0), obj["metadata"]["name"]


def _validate_class(operation: Operation, obj: Json, storage: Storage) -> None:
    name = obj["metadata"]["name"]
    if operation is Operation.DELETE:
        if name in SYSTEM_CLASSES:
            raise forbidden(PRIORITY_CLASS, "", name, NOT_DELETABLE)
        return
    other = _default_class(storage).get("metadata", {}).get("name", name)
    if obj.get("globalDefault") and other != name:
        reason = f"PriorityClass {other} is already marked as default. Only one default can exist"
        raise forbidden(PRIORITY_CLASS, "", name, reason)


def _refused(kind: Kind, obj: Json, reason: str) -> Exception:
    meta = obj["metadata"]
    return forbidden(kind, meta.get("namespace", ""), meta["name"], reason)
