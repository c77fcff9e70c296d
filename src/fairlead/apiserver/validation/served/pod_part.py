"""What may change of a pod that runs: through its parts, debugging containers and resources.

upstream: pkg/apis/core/validation/validation.go:ValidatePodEphemeralContainersUpdate,
validateEphemeralContainers, ValidatePodResize
"""

from __future__ import annotations

from typing import Final

from fairlead.api.field_problem import shown
from fairlead.api.json import Json
from fairlead.api.pod_qos import qos_class
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.change_text import change_text, internal_of
from fairlead.apiserver.validation.field import Causes, duplicate, forbidden, invalid, required
from fairlead.apiserver.validation.metadata import dns_label_problems
from fairlead.apiserver.validation.served.container import PodContext, check_container
from fairlead.apiserver.validation.served.volume import mountable

NOT_FOR_DEBUGGING: Final = "cannot be set for an Ephemeral Container"
OTHER_QUALITY: Final = "Pod QOS Class may not change as a result of resizing"
ONLY_COMPUTE: Final = "only cpu and memory resources are mutable"
NOT_BEFORE: Final = "resources for non-sidecar init containers are immutable"
MIRROR: Final = "kubernetes.io/config.mirror"
_FIELD: Final = "spec.ephemeralContainers"
_UNFIT: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
    "livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip
_COMPUTE: Final = ("cpu", "memory")
_AMOUNTS: Final = ("requests", "limits")


def check_debugging(old: Json, new: Json) -> Causes:
    """Containers to debug `new`, a pod, with; those of `old` stay as they are."""
    yield from _check_debuggers(new["spec"])
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods do not support ephemeral containers")
        return
    after = {one.get("name"): one for one in new["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container["name"]
        about = f"existing ephemeral containers {shown(name)} may not be"
        if name not in after:
            yield forbidden(_FIELD, f"{about} removed\n")
            continue
        sides = [internal_of("core.v1.EphemeralContainer", one) for one in (container, after[name])]
        if sides[0] != sides[1]:
            yield forbidden(_FIELD, f"{about} changed\n{change_text(*sides)}")


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
    )
    for place, container in enumerate(spec.get("ephemeralContainers") or ()):
        field = f"{_FIELD}[{place}]"
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
    yield from check_container(field, container, context)
    if image != image.strip():
        yield invalid(f"{field}.image", image, "must not have leading or trailing whitespace")


def _check_fit(field: str, container: Json) -> Causes:
    for key in _UNFIT:
        if container.get(key):
            yield forbidden(f"{field}.{key}", NOT_FOR_DEBUGGING)
    for place, mount in enumerate(container.get("volumeMounts") or ()):
        for key in ("subPath", "subPathExpr"):
            if mount.get(key):
                yield forbidden(f"{field}.volumeMounts[{place}].{key}", NOT_FOR_DEBUGGING)


def check_resize(old: Json, new: Json) -> Causes:
    """The resources of the containers of `new`, a pod, against those of `old`."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods cannot be resized")
        return
    before, after = old["spec"], new["spec"]
    for key in ("containers", "initContainers"):
        pairs = zip(before.get(key) or (), after.get(key) or (), strict=False)
        for place, (had, wants) in enumerate(pairs):
            yield from _check_kept(f"spec.{key}[{place}].resources", had, wants)
    quality = qos_class(after)
    if qos_class(before) != quality:
        yield invalid("spec", quality, OTHER_QUALITY)
    for place, container in enumerate(before.get("initContainers") or ()):
        wants = after["initContainers"][place]
        is_sidecar = container.get("restartPolicy") == "Always"
        if not is_sidecar and container.get("resources") != wants.get("resources"):
            yield forbidden(f"spec.initContainers[{place}].resources", NOT_BEFORE)
    if _incompressible(before) != _incompressible(after):
        yield forbidden("spec", ONLY_COMPUTE)


def _check_kept(field: str, had: Json, wants: Json) -> Causes:
    """What was asked for may become more or less, but not nothing."""
    for key in _AMOUNTS:
        before = (had.get("resources") or {}).get(key) or {}
        after = (wants.get("resources") or {}).get(key) or {}
        if before.keys() - after.keys():
            yield forbidden(f"{field}.{key}", f"resource {key} cannot be removed")


def _incompressible(spec: Json) -> list[Json]:
    """The resources of all containers but for what may change."""
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
