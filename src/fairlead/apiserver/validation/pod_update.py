"""What may change in a pod that exists: little, because it may be running.

Images, a deadline that is new or nearer, and more tolerations. Scheduling gates may only be taken
off; while there are some, the pod may still be told more narrowly where to go.

upstream: pkg/apis/core/validation/validation.go:ValidatePodUpdate
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.validation.change_text import change_text, internal_of
from fairlead.apiserver.validation.field import Causes, forbidden, invalid

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
NO_OTHER_TERMS: Final = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
ONLY_MORE_EXPRESSIONS: Final = "only additions are allowed (no mutations or deletions)"
_IMAGES: Final = ("containers", "initContainers")
_CHANGEABLE: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_DEADLINE_S_MAX: Final = 2**31 - 1


def check_pod_update(old: Json, new: Json) -> Causes:
    """The specs of `new`, a whole pod as JSON, against those of `old`."""
    before, after = old.get("spec", {}), new.get("spec", {})
    if before == after:
        return
    for key in _IMAGES:
        if len(before.get(key) or ()) != len(after.get(key) or ()):
            yield forbidden(f"spec.{key}", NO_OTHER_CONTAINERS)
            return
    wrong = list(_check_deadline(before, after))
    yield from wrong
    if wrong and after.get("activeDeadlineSeconds") is not None:
        return
    yield from _check_tolerations(before, after)
    yield from _check_gates(before, after)
    fixed = _with_changeable(before, after)
    if before.get("schedulingGates"):
        yield from _check_node_selector(before, after)
        yield from _check_node_affinity(before, after)
        fixed = _without_directions(before, fixed)
    shown = [internal_of("core.v1.PodSpec", spec) for spec in (before, fixed)]
    if shown[0] != shown[1]:
        yield forbidden("spec", f"{NOT_CHANGEABLE}\n{change_text(*shown)}")


def _check_deadline(before: Json, after: Json) -> Causes:
    field = "spec.activeDeadlineSeconds"
    had, wants = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if wants is not None and not 0 <= wants <= _DEADLINE_S_MAX:
        why = f"must be between 0 and {_DEADLINE_S_MAX}, inclusive"
        yield invalid(field, wants, why)
    elif had is not None and wants is None:
        yield invalid(field, None, "must not update from a positive integer to nil value")
    elif had is not None and wants > had:
        yield invalid(field, wants, ONLY_NEARER)


def _check_tolerations(before: Json, after: Json) -> Causes:
    """Every toleration there was is still there, its seconds aside."""
    kept = {_lasting(one) for one in after.get("tolerations", ())}
    for toleration in before.get("tolerations", ()):
        if _lasting(toleration) not in kept:
            yield forbidden("spec.tolerations", ONLY_MORE)
            return


def _lasting(toleration: Json) -> str | bytes:
    return canonical_key(_without(toleration, ("tolerationSeconds",)))


def _check_gates(before: Json, after: Json) -> Causes:
    """No gate comes once the pod exists."""
    had = {gate["name"] for gate in before.get("schedulingGates", ())}
    for place, gate in enumerate(after.get("schedulingGates", ())):
        if gate["name"] not in had:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(f"spec.schedulingGates[{place}].name", why)


def _check_node_selector(before: Json, after: Json) -> Causes:
    wants = after.get("nodeSelector", {})
    had = before.get("nodeSelector", {})
    if any(wants.get(key) != value for key, value in had.items()):
        yield invalid("spec.nodeSelector", wants, ONLY_MORE_LABELS)


def _check_node_affinity(before: Json, after: Json) -> Causes:
    """Terms that are there may only get narrower."""
    # upstream: validation.go:validateNodeAffinityMutation
    field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    had, wants = _required_terms(before), _required_terms(after)
    shown = [internal_of("core.v1.NodeSelectorTerm", term) for term in wants]
    if had and len(had) != len(wants):
        yield invalid(f"{field}.nodeSelectorTerms", shown or None, NO_OTHER_TERMS)
        return
    for place, (term, wanted) in enumerate(zip(had, wants, strict=False)):
        if not _is_narrower(term, wanted):
            where = f"{field}.nodeSelectorTerms[{place}]"
            yield invalid(where, shown[place], ONLY_MORE_EXPRESSIONS)


def _required_terms(spec: Json) -> list[Json]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[Json] = required.get("nodeSelectorTerms") or []
    return terms


def _is_narrower(term: Json, wanted: Json) -> bool:
    keys = ("matchExpressions", "matchFields")
    if not any(term.get(key) for key in keys):
        return not any(wanted.get(key) for key in keys)
    had = [term.get(key) or [] for key in keys]
    return all(
        (wanted.get(key) or [])[: len(old)] == old for key, old in zip(keys, had, strict=True)
    )


def _with_changeable(before: Json, after: Json) -> Json:
    """`after` with what may change as it was."""
    fixed = _as_before(before, after, _CHANGEABLE)
    for key in _IMAGES:
        if key in after:
            pairs = zip(before[key], after[key], strict=True)
            fixed[key] = [_as_before(had, wants, ("image",)) for had, wants in pairs]
    was_negative = (before.get("terminationGracePeriodSeconds") or 0) < 0
    if was_negative and after.get("terminationGracePeriodSeconds") == 1:
        fixed = _as_before(before, fixed, ("terminationGracePeriodSeconds",))
    return fixed


def _without_directions(before: Json, fixed: Json) -> Json:
    """`fixed` with what a pod that waits at a gate may still be told as it was."""
    fixed = _as_before(before, fixed, ("nodeSelector",))
    had, wants = before.get("affinity") or {}, fixed.get("affinity") or {}
    if had.get("nodeAffinity") == wants.get("nodeAffinity"):
        return fixed
    affinity = _as_before(had, wants, ("nodeAffinity",))
    if not affinity and not before.get("affinity"):
        return _without(fixed, ("affinity",))
    return {**fixed, "affinity": affinity}


def _as_before(before: Json, after: Json, keys: tuple[str, ...]) -> Json:
    kept = {key: before[key] for key in keys if key in before}
    return _without(after, keys) | kept


def _without(value: Json, keys: tuple[str, ...]) -> Json:
    return {key: item for key, item in value.items() if key not in keys}
