"""Validates updates of pods, of their ephemeral containers and of their resources.

An update of a pod's spec may change images, set or shorten activeDeadlineSeconds, and add
tolerations. Scheduling gates can be removed but not added. While a pod has gates, its node selector
and affinity can be narrowed.

upstream: pkg/apis/core/validation/validation.go:ValidatePodUpdate,
ValidatePodEphemeralContainersUpdate, validateEphemeralContainers, ValidatePodResize
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.pods.qos import qos_class
from fairlead.api.text.field_problem import shown
from fairlead.apiserver.error import Cause
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.validation.core.pod.container import PodContext, check_container
from fairlead.apiserver.validation.core.volume.volume import mountable
from fairlead.apiserver.validation.meta.change_text import change_text, internal_of
from fairlead.apiserver.validation.meta.field import Causes, duplicate, forbidden, invalid, required
from fairlead.apiserver.validation.meta.format import dns_label_problems

NOT_CHANGEABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
NO_OTHER_CONTAINERS: Final = "pod updates may not add or remove containers"
NOT_ABOVE_PREVIOUS: Final = "must be less than or equal to previous value"
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
    """Yield errors if an update changes immutable fields of a pod's spec."""
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
        fixed = _without_scheduling_directives(before, fixed)
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
        yield invalid(field, wants, NOT_ABOVE_PREVIOUS)


def _check_tolerations(before: Json, after: Json) -> Causes:
    """Yield an error if an update removes or changes a toleration.

    A change of tolerationSeconds is allowed.
    """
    kept = {_lasting(one) for one in after.get("tolerations", ())}
    for toleration in before.get("tolerations", ()):
        if _lasting(toleration) not in kept:
            yield forbidden("spec.tolerations", ONLY_MORE)
            return


def _lasting(toleration: Json) -> str | bytes:
    return canonical_key(_without(toleration, ("tolerationSeconds",)))


def _check_gates(before: Json, after: Json) -> Causes:
    """Yield an error for each scheduling gate that is added."""
    had = {gate["name"] for gate in before.get("schedulingGates", ())}
    for index, gate in enumerate(after.get("schedulingGates", ())):
        if gate["name"] not in had:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", why)


def _check_node_selector(before: Json, after: Json) -> Causes:
    wants = after.get("nodeSelector", {})
    had = before.get("nodeSelector", {})
    if any(wants.get(key) != value for key, value in had.items()):
        yield invalid("spec.nodeSelector", wants, ONLY_MORE_LABELS)


def _check_node_affinity(before: Json, after: Json) -> Causes:
    """Yield the errors of a change of the required node affinity.

    If `before` has terms, no terms may be added or removed. Requirements may be appended to a term
    that is not empty. No other change of a term is allowed.
    """
    # upstream: validation.go:validateNodeAffinityMutation
    field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    had, wants = _required_terms(before), _required_terms(after)
    shown = [internal_of("core.v1.NodeSelectorTerm", term) for term in wants]
    if had and len(had) != len(wants):
        yield invalid(f"{field}.nodeSelectorTerms", shown or None, NO_OTHER_TERMS)
        return
    for index, (term, wanted) in enumerate(zip(had, wants, strict=False)):
        if not _is_narrower(term, wanted):
            where = f"{field}.nodeSelectorTerms[{index}]"
            yield invalid(where, shown[index], ONLY_MORE_EXPRESSIONS)


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
    """Return the new spec `after`, with its mutable fields taken from the old spec `before`."""
    fixed = _as_before(before, after, _CHANGEABLE)
    for key in _IMAGES:
        if key in after:
            pairs = zip(before[key], after[key], strict=True)
            fixed[key] = [_as_before(had, wants, ("image",)) for had, wants in pairs]
    was_negative = (before.get("terminationGracePeriodSeconds") or 0) < 0
    if was_negative and after.get("terminationGracePeriodSeconds") == 1:
        fixed = _as_before(before, fixed, ("terminationGracePeriodSeconds",))
    return fixed


def _without_scheduling_directives(before: Json, fixed: Json) -> Json:
    """Return `fixed`, the spec of a gated pod, with nodeSelector and nodeAffinity of `before`."""
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


NOT_FOR_DEBUGGING: Final = "cannot be set for an Ephemeral Container"
OTHER_QUALITY: Final = "Pod QOS Class may not change as a result of resizing"
ONLY_COMPUTE: Final = "only cpu and memory resources are mutable"
MIRROR: Final = "kubernetes.io/config.mirror"
_EPHEMERAL: Final = "spec.ephemeralContainers"
_UNFIT: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
    "livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip
_COMPUTE: Final = ("cpu", "memory")
_AMOUNTS: Final = ("requests", "limits")


def check_debugging(old: Json, new: Json) -> Causes:
    """Yield the errors of an update that adds, changes or removes ephemeral containers."""
    yield from _check_debuggers(new["spec"])
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods do not support ephemeral containers")
        return
    after = {one.get("name"): one for one in new["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container["name"]
        about = f"existing ephemeral containers {shown(name)} may not be"
        if name not in after:
            yield forbidden(_EPHEMERAL, f"{about} removed\n")
            continue
        sides = [internal_of("core.v1.EphemeralContainer", one) for one in (container, after[name])]
        if sides[0] != sides[1]:
            yield forbidden(_EPHEMERAL, f"{about} changed\n{change_text(*sides)}")


def _check_debuggers(spec: Json) -> Causes:
    others = [
        container.get("name", "")
        for key in ("containers", "initContainers")
        for container in spec.get(key) or ()
    ]
    names = list(others)
    context = PodContext(
        volumes=mountable(spec.get("volumes") or []),
        claims=frozenset(claim.get("name", "") for claim in spec.get("resourceClaims") or ()),
        restart_policy=spec.get("restartPolicy", ""),
        grace_period_s=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers") is not False,
        host_network=bool(spec.get("hostNetwork")),
    )
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        field = f"{_EPHEMERAL}[{index}]"
        yield from _check_debugger(field, container, context)
        name = container.get("name", "")
        if name in names:
            yield duplicate(f"{field}.name", name)
        names.append(name)
        target = container.get("targetContainerName", "")
        if target and target not in others:
            text = f"Not found: {shown(target)}"
            yield Cause("FieldValueNotFound", text, f"{field}.targetContainerName")
        yield from _check_fit(field, container)


def _check_debugger(field: str, container: Json, context: PodContext) -> Causes:
    name = container.get("name", "")
    if not name:
        yield required(f"{field}.name")
    for problem in dns_label_problems(name) if name else ():
        yield invalid(f"{field}.name", name, problem)
    image = container.get("image", "")
    if not image:
        yield required(f"{field}.image")
    yield from check_container(field, container, None, context)
    if image != image.strip():
        yield invalid(f"{field}.image", image, "must not have leading or trailing whitespace")


def _check_fit(field: str, container: Json) -> Causes:
    for key in _UNFIT:
        if container.get(key):
            yield forbidden(f"{field}.{key}", NOT_FOR_DEBUGGING)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for key in ("subPath", "subPathExpr"):
            if mount.get(key):
                yield forbidden(f"{field}.volumeMounts[{index}].{key}", NOT_FOR_DEBUGGING)


def check_resize(old: Json, new: Json) -> Causes:
    """Yield the errors of a resize, which changes the container resources of a pod."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods cannot be resized")
        return
    before, after = old["spec"], new["spec"]
    for key in ("containers", "initContainers"):
        pairs = zip(before.get(key) or (), after.get(key) or (), strict=False)
        for index, (had, wants) in enumerate(pairs):
            yield from _check_kept(f"spec.{key}[{index}].resources", had, wants)
    quality = qos_class(after)
    if qos_class(before) != quality:
        yield invalid("spec", quality, OTHER_QUALITY)
    if _incompressible(before) != _incompressible(after):
        yield forbidden("spec", ONLY_COMPUTE)


def _check_kept(field: str, had: Json, wants: Json) -> Causes:
    """Yield an error if a request or limit is removed. Its amount may change."""
    for key in _AMOUNTS:
        before = (had.get("resources") or {}).get(key) or {}
        after = (wants.get("resources") or {}).get(key) or {}
        if before.keys() - after.keys():
            yield forbidden(f"{field}.{key}", f"resource {key} cannot be removed")


def _incompressible(spec: Json) -> list[Json]:
    """Return the resources of each container, without requests and limits of cpu and memory."""
    return [
        {
            "claims": resources.get("claims"),
            **{
                key: {
                    name: amount
                    for name, amount in (resources.get(key) or {}).items()
                    if name not in _COMPUTE
                }
                for key in _AMOUNTS
            },
        }
        for kind in ("containers", "initContainers")
        for resources in ((one.get("resources") or {}) for one in spec.get(kind) or ())
    ]
