"""What may change in a pod that exists: little, because it may be running.

Images, a deadline that is new or nearer, and more tolerations. Scheduling gates may only be taken
off; while there are some, the pod may still be told more narrowly where to go.

upstream: pkg/apis/core/validation/validation.go:ValidatePodUpdate
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.validation.field import Causes, forbidden, invalid

Json = dict[str, Any]

NOT_CHANGEABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
NO_OTHER_CONTAINERS: Final = "pod updates may not add or remove containers"
ONLY_NEARER: Final = "must be less than or equal to previous value"
ONLY_MORE: Final = "existing toleration can not be modified except its tolerationSeconds"
ONLY_MORE_LABELS: Final = (
    "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
)
_IMAGES: Final = ("containers", "initContainers")
_CHANGEABLE: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_CHANGEABLE_WHILE_GATED: Final = (*_CHANGEABLE, "nodeSelector", "affinity")


def check_pod_update(old: Json, new: Json) -> Causes:
    """The specs of `new`, a whole pod as JSON, against those of `old`."""
    before, after = old.get("spec", {}), new.get("spec", {})
    if before == after:
        return
    for key in _IMAGES:
        if len(before.get(key, ())) != len(after.get(key, ())):
            yield forbidden(f"spec.{key}", NO_OTHER_CONTAINERS)
            return
    yield from _check_deadline(before, after)
    yield from _check_tolerations(before, after)
    yield from _check_gates(before, after)
    gated = bool(before.get("schedulingGates"))
    if gated:
        yield from _check_node_selector(before, after)
    if _fixed(before, gated=gated) != _fixed(after, gated=gated):
        yield forbidden("spec", NOT_CHANGEABLE)


def _check_deadline(before: Json, after: Json) -> Causes:
    field = "spec.activeDeadlineSeconds"
    had, wants = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if had is not None and wants is None:
        yield invalid(field, None, "must not update from a positive integer to nil value")
    elif had is not None and wants > had:
        yield invalid(field, wants, ONLY_NEARER)


def _check_tolerations(before: Json, after: Json) -> Causes:
    """Every toleration there was is still there, its seconds aside."""
    kept = [_without(one, ("tolerationSeconds",)) for one in after.get("tolerations", ())]
    for toleration in before.get("tolerations", ()):
        if _without(toleration, ("tolerationSeconds",)) not in kept:
            yield forbidden("spec.tolerations", ONLY_MORE)
            return


def _check_gates(before: Json, after: Json) -> Causes:
    """No gate comes once the pod exists."""
    had = [gate["name"] for gate in before.get("schedulingGates", ())]
    for place, gate in enumerate(after.get("schedulingGates", ())):
        if gate["name"] not in had:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(f"spec.schedulingGates[{place}].name", why)


def _check_node_selector(before: Json, after: Json) -> Causes:
    wants = after.get("nodeSelector", {})
    had = before.get("nodeSelector", {})
    if any(wants.get(key) != value for key, value in had.items()):
        yield invalid("spec.nodeSelector", wants, ONLY_MORE_LABELS)


def _fixed(spec: Json, *, gated: bool) -> Json:
    """`spec` without what may change."""
    fixed = _without(spec, _CHANGEABLE_WHILE_GATED if gated else _CHANGEABLE)
    for key in _IMAGES:
        if key in spec:
            fixed[key] = [_without(container, ("image",)) for container in spec[key]]
    return fixed


def _without(value: Json, keys: tuple[str, ...]) -> Json:
    return {key: item for key, item in value.items() if key not in keys}
