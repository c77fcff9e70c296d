"""Validates the pod annotations that upstream interprets.

upstream: pkg/apis/core/validation/validation.go:ValidatePodSpecificAnnotations,
ValidateSeccompPodAnnotations, ValidateAppArmorPodAnnotations
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, invalid
from fairlead.apiserver.validation.meta.format import check_local_path

MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_OF: Final = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR_OF: Final = "container.apparmor.security.beta.kubernetes.io/"
_COST_MAX: Final = 2**31
_SECCOMP: Final = ("runtime/default", "docker/default", "unconfined")
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def check_annotations(field: str, pod: Json) -> Causes:
    """Yield the errors of the annotations of `pod`, a pod or pod template.

    `field` is the path of the annotations.
    """
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    spec = pod["spec"]
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(f"{field}[{MIRROR}]", annotations[MIRROR], why)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_cost(cost):
        yield invalid(f"{field}[{DELETION_COST}]", cost, "must be a 32bit integer")
    for key, profile in annotations.items():
        if key == SECCOMP or key.startswith(SECCOMP_OF):
            yield from _check_seccomp(f"{field}.{key}", profile)
    for key, profile in annotations.items():
        if key.startswith(APP_ARMOR_OF):
            yield from _check_app_armor(f"{field}[{key}]", key, profile, spec)


def _is_cost(text: str) -> bool:
    # upstream: pkg/apis/core/helper/helpers.go:GetDeletionCostFromPodAnnotations
    if not text.isascii() or text[:1] == "+" or (text[:1] == "0" and text != "0"):
        return False
    try:
        return "_" not in text and text == text.strip() and -_COST_MAX <= int(text) < _COST_MAX
    except ValueError:
        return False


def _check_seccomp(field: str, profile: str) -> Causes:
    if profile in _SECCOMP:
        return
    if profile.startswith("localhost/"):
        yield from check_local_path(field, profile.removeprefix("localhost/"))
    else:
        yield invalid(field, profile, "must be a valid seccomp profile")


def _check_app_armor(field: str, key: str, profile: str, spec: Json) -> Causes:
    name = key.removeprefix(APP_ARMOR_OF)
    names = [one.get("name") for part in _LISTS for one in spec.get(part) or ()]
    if name not in names:
        yield invalid(field, name, "container not found")
    if profile not in ("", "runtime/default", "unconfined") and (
        not profile.startswith("localhost/")
    ):
        yield invalid(field, profile, f'invalid AppArmor profile name: "{profile}"')
