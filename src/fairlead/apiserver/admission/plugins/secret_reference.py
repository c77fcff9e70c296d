"""Secrets that pods refer to: which of them a pod may have, and that a mirror pod has none.

An account that is marked so lets its pods have its own secrets only.

upstream: plugin/pkg/admission/serviceaccount/admission.go:Validate, limitSecretReferences;
pkg/api/v1/pod/util.go:VisitPodSecretNames
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json

ENFORCED: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_CONTAINERS: Final = (("initContainers", "init container"), ("containers", "container"))
_VOLUMES: Final = (
    "cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos", "csi",
)  # fmt: skip


def mirror_objection(spec: Json) -> str:
    """Why a pod with this spec may not stand for one that a kubelet runs by itself, or ""."""
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if any(_all_secrets(spec)):
        return "a mirror pod may not reference secrets"
    if any("serviceAccountToken" in source for source in _projected(spec)):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def account_objection(spec: Json, account: Json) -> str:
    """Why a pod of `account` may not have the secrets that its spec refers to, or ""."""
    if (account["metadata"].get("annotations") or {}).get(ENFORCED) not in _TRUE:
        return ""
    name = account["metadata"]["name"]
    own = {one.get("name", "") for one in account.get("secrets") or ()}
    for what, secret in _mounted_secrets(spec):
        if secret not in own:
            because = f"because service account {name} does not reference that secret"
            return f'{what} secret.secretName="{secret}" is not allowed {because}'
    own = {one.get("name", "") for one in account.get("imagePullSecrets") or ()}
    for place, one in enumerate(spec.get("imagePullSecrets") or ()):
        if one.get("name", "") not in own:
            because = f"because service account {name} does not reference that imagePullSecret"
            return (
                f'imagePullSecrets[{place}].name="{one.get("name", "")}" is not allowed {because}'
            )
    return ""


def _mounted_secrets(spec: Json) -> Iterator[tuple[str, str]]:
    """The secrets that volumes and containers refer to, and what to call the reference."""
    for volume in spec.get("volumes") or ():
        if volume.get("secret") is not None:
            yield "volume with", volume["secret"].get("secretName", "")
    for key, called in _CONTAINERS:
        for container in spec.get(key) or ():
            for variable, secret in _variables(container):
                by = f"envVar {variable}" if variable else "envFrom"
                yield f"{called} {container.get('name', '')} with {by} referencing", secret


def _variables(container: Json) -> Iterator[tuple[str, str]]:
    """Variables that come from secrets, with these; those that come all together have no name."""
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield variable.get("name", ""), reference.get("name", "")
    for source in container.get("envFrom") or ():
        if source.get("secretRef") is not None:
            yield "", source["secretRef"].get("name", "")


def _all_secrets(spec: Json) -> Iterator[str]:
    """Every secret that a pod refers to, in whatever way."""
    for one in spec.get("imagePullSecrets") or ():
        yield one.get("name") or "?"
    for _, secret in _mounted_secrets(spec):
        yield secret or "?"
    for source in _projected(spec):
        if "secret" in source:
            yield source["secret"].get("name") or "?"
    for volume in spec.get("volumes") or ():
        if (volume.get("azureFile") or {}).get("secretName"):
            yield volume["azureFile"]["secretName"]
        for kind in _VOLUMES:
            source = volume.get(kind) or {}
            if source.get("secretRef") or source.get("nodePublishSecretRef"):
                yield kind


def _projected(spec: Json) -> Iterator[Json]:
    for volume in spec.get("volumes") or ():
        yield from (volume.get("projected") or {}).get("sources") or ()
