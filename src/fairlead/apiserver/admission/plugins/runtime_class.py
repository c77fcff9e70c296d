"""RuntimeClass: what a pod's runtime needs for itself, and where it is installed.

A new pod that names a class gets the class's overhead, its node selector and its tolerations. Who
names none may not bring an overhead.

upstream: plugin/pkg/admission/runtimeclass/admission.go, pkg/util/tolerations/tolerations.go
"""

from __future__ import annotations

from typing import Any, ClassVar

from fairlead.api.json import Json
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.apiserver.admission.attributes import Asked
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import POD, RUNTIME_CLASS
from fairlead.apiserver.storage.storage import Storage


class RuntimeClass:
    """The admission plugin that changes pods."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Give a new pod what its class has. Raises ApiError 403."""
        obj = asked.obj
        if asked.kind is not POD or not asked.is_new:
            return obj
        found = _class_of(obj, storage)
        if found is None:
            return obj
        spec = dict(obj["spec"])
        overhead = found.get("overhead")
        if overhead is not None:
            _check_overhead(obj, found)
            spec["overhead"] = overhead.get("podFixed") or {}
        scheduling = found.get("scheduling")
        if scheduling is not None:
            spec |= _scheduled(obj, scheduling)
        return {**obj, "spec": spec}


class RuntimeClassOverhead:
    """The admission plugin that looks at what became of them."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """A pod may not have another overhead than its class. Raises ApiError 403."""
        if asked.kind is POD and asked.is_new:
            _check_overhead(asked.obj, _class_of(asked.obj, storage))
        return asked.obj


def _class_of(pod: Json, storage: Storage) -> Json | None:
    name = pod.get("spec", {}).get("runtimeClassName")
    if not name:
        return None
    found = storage.find(RUNTIME_CLASS, "", name)
    if found is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _check_overhead(pod: Json, found: Json | None) -> None:
    overhead = pod["spec"].get("overhead")
    if not overhead:
        return
    if found is None or found.get("overhead") is None:
        why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise _refused(pod, f"pod rejected: {why}")
    if _amounts(overhead) != _amounts(found["overhead"].get("podFixed") or {}):
        why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise _refused(pod, f"pod rejected: {why}")


def _amounts(resources: Json) -> dict[str, Any]:
    """Amounts by resource; what cannot be read stays as it is, for others to refuse."""
    made: dict[str, Any] = {}
    for name, text in resources.items():
        try:
            made[name] = parse_quantity(str(text))
        except QuantityError:
            made[name] = text
    return made


def _scheduled(pod: Json, scheduling: Json) -> Json:
    """Where a pod may run whose class says where it can."""
    spec = pod["spec"]
    wanted = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if wanted.get(key, value) != value:
            raise _refused(
                pod,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {wanted[key]}",
            )
        wanted[key] = value
    tolerations = [*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]
    made = {"nodeSelector": wanted, "tolerations": _merged(tolerations)}
    return {key: value for key, value in made.items() if value}


def _merged(tolerations: list[Json]) -> list[Json]:
    """Tolerations without those that others make superfluous."""
    merged: list[Json] = []
    for at, one in enumerate(tolerations):
        later = (other for other in tolerations[at + 1 :] if other != one)
        if not any(_covers(other, one) for other in (*merged, *later)):
            merged.append(one)
    return merged


def _covers(wide: Json, one: Json) -> bool:
    """Whether `wide` tolerates all that `one` does."""
    operator = wide.get("operator") or "Equal"
    if wide == one:
        return True
    is_all_keys = not wide.get("key") and operator == "Exists"
    if one.get("key") != wide.get("key") and not is_all_keys:
        return False
    if wide.get("effect") and one.get("effect") != wide["effect"]:
        return False
    seconds = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None:
        own = one.get("tolerationSeconds")
        if own is None or own > seconds:
            return False
    if operator == "Equal":
        return one.get("operator") == "Equal" and one.get("value", "") == wide.get("value", "")
    return bool(operator == "Exists")


def _refused(pod: Json, why: str) -> ApiError:
    meta = pod["metadata"]
    return forbidden(POD, meta.get("namespace", ""), meta["name"], why)
