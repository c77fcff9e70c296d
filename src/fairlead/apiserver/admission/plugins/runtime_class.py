"""RuntimeClass: applies the overhead and scheduling constraints of a pod's RuntimeClass.

A pod that names no RuntimeClass must not set an overhead.

upstream: plugin/pkg/admission/runtimeclass/admission.go, pkg/util/tolerations/tolerations.go
"""

from __future__ import annotations

from typing import Any, ClassVar

from fairlead.api.json import Json
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import POD, RUNTIME_CLASS
from fairlead.apiserver.storage.storage import Storage


class RuntimeClass:
    """The mutating part of the admission plugin RuntimeClass: applies the class to new pods."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new pod gets the fields of its RuntimeClass.

        Raises ApiError 403 if the RuntimeClass does not exist, or if the overhead or node selector
        of the RuntimeClass conflicts with the pod's.
        """
        obj = attributes.obj
        if attributes.kind is not POD or not attributes.is_new:
            return obj
        runtime_class = _runtime_class(obj, storage)
        if runtime_class is None:
            return obj
        spec = dict(obj["spec"])
        overhead = runtime_class.get("overhead")
        if overhead is not None:
            _check_overhead(obj, runtime_class)
            spec["overhead"] = overhead.get("podFixed") or {}
        scheduling = runtime_class.get("scheduling")
        if scheduling is not None:
            spec |= _with_scheduling(obj, scheduling)
        return {**obj, "spec": spec}


class RuntimeClassOverhead:
    """The validating part of the admission plugin RuntimeClass: checks the overhead of new pods."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse a new pod whose overhead differs from that of its RuntimeClass.

        Raises ApiError 403.
        """
        if attributes.kind is POD and attributes.is_new:
            _check_overhead(attributes.obj, _runtime_class(attributes.obj, storage))
        return attributes.obj


def _runtime_class(pod: Json, storage: Storage) -> Json | None:
    name = pod.get("spec", {}).get("runtimeClassName")
    if not name:
        return None
    runtime_class = storage.find(RUNTIME_CLASS, "", name)
    if runtime_class is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    return runtime_class


def _check_overhead(pod: Json, runtime_class: Json | None) -> None:
    overhead = pod["spec"].get("overhead")
    if not overhead:
        return
    if runtime_class is None or runtime_class.get("overhead") is None:
        reason = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise _refused(pod, f"pod rejected: {reason}")
    if _amounts(overhead) != _amounts(runtime_class["overhead"].get("podFixed") or {}):
        reason = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise _refused(pod, f"pod rejected: {reason}")


def _amounts(resources: Json) -> dict[str, Any]:
    """Return the parsed quantities of a resource list, by resource name.

    A malformed quantity stays text, which validation refuses later.
    """
    made: dict[str, Any] = {}
    for name, text in resources.items():
        try:
            made[name] = parse_quantity(str(text))
        except QuantityError:
            made[name] = text
    return made


def _with_scheduling(pod: Json, scheduling: Json) -> Json:
    """Return the pod's nodeSelector and tolerations, merged with those of the RuntimeClass."""
    spec = pod["spec"]
    node_selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if node_selector.get(key, value) != value:
            raise _refused(
                pod,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {node_selector[key]}",
            )
        node_selector[key] = value
    tolerations = [*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]
    made = {"nodeSelector": node_selector, "tolerations": _merged_tolerations(tolerations)}
    return {key: value for key, value in made.items() if value}


def _merged_tolerations(tolerations: list[Json]) -> list[Json]:
    """Return `tolerations` without those that another toleration in the list covers."""
    merged: list[Json] = []
    for index, one in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != one)
        if not any(_covers(other, one) for other in (*merged, *later)):
            merged.append(one)
    return merged


def _covers(toleration: Json, one: Json) -> bool:
    """Return whether `toleration` tolerates everything that `one` tolerates."""
    operator = toleration.get("operator") or "Equal"
    if toleration == one:
        return True
    is_all_keys = not toleration.get("key") and operator == "Exists"
    if one.get("key") != toleration.get("key") and not is_all_keys:
        return False
    if toleration.get("effect") and one.get("effect") != toleration["effect"]:
        return False
    seconds = toleration.get("tolerationSeconds")
    if toleration.get("effect") == "NoExecute" and seconds is not None:
        other_seconds = one.get("tolerationSeconds")
        if other_seconds is None or other_seconds > seconds:
            return False
    if operator == "Equal":
        return one.get("operator") == "Equal" and one.get("value", "") == toleration.get(
            "value", ""
        )
    return bool(operator == "Exists")


def _refused(pod: Json, reason: str) -> ApiError:
    meta = pod["metadata"]
    return forbidden(POD, meta.get("namespace", ""), meta["name"], reason)
