"""PersistentVolumes: records the time at which a volume's phase last changed.

upstream: pkg/registry/core/persistentvolume/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import PreparationContext, ResourceStrategy
from fairlead.apiserver.registry.warning.pod import old_volume, term_warnings
from fairlead.apiserver.validation.core.volume.persistent_volume import (
    check_volume,
    check_volume_update,
)
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
STORAGE_CLASS_WARNING: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_RECYCLE: Final = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
    "provisioning."
)
_OLD_VOLUMES: Final = (
    "cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd",
)  # fmt: skip


def _prepare_for_create(volume: Json, _: PreparationContext) -> Json:
    since = volume["metadata"]["creationTimestamp"]
    return {**volume, "status": {"phase": "Pending", "lastPhaseTransitionTime": since}}


def _prepare_status(old: Json, new: Json, timestamp: str) -> Json:
    """Return `new`; set status.lastPhaseTransitionTime unless the client sent a new time.

    The time becomes `timestamp` if the phase changes. If the phase stays the same, the time of
    `old` is kept.
    """
    # upstream: PrepareForUpdate of persistentvolumeStatusStrategy
    before, after = old.get("status") or {}, new.get("status") or {}
    key = "lastPhaseTransitionTime"
    had, has = before.get(key), after.get(key)
    if before.get("phase") == after.get("phase"):
        since = had if has is None else has
    else:
        since = timestamp if has in (None, had) else has
    return new if since == has else {**new, "status": {**after, key: since}}


def _warnings(_: Json | None, volume: Json) -> Iterator[str]:
    # upstream: pkg/api/persistentvolume/util.go:warningsForPersistentVolumeSpecAndMeta
    spec, notes = volume["spec"], volume["metadata"].get("annotations") or {}
    if STORAGE_CLASS_ANNOTATION in notes:
        yield f"metadata.annotations[{STORAGE_CLASS_ANNOTATION}]: {STORAGE_CLASS_WARNING}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}"
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from term_warnings(f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]", term)
    for key in _OLD_VOLUMES:
        if spec.get(key) is not None:
            yield old_volume("spec", key)


STRATEGY: Final = ResourceStrategy(
    prepare_for_create=_prepare_for_create,
    prepare_subresource={"status": _prepare_status},
    rules=KindRules(
        name=dns_subdomain_problems,
        metadata_comparisons=1,
        new=json_check(check_volume),
        update=check_volume_update,
    ),
    returns_deleted_object=True,
    warnings=_warnings,
)
