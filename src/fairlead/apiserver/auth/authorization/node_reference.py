"""Which objects the pods of a node refer to: what their kubelet may read.

upstream: plugin/pkg/auth/authorizer/node/graph.go
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.json import Json
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM
from fairlead.apiserver.storage.storage import Storage


def claimed_volumes(storage: Storage, pods: list[Json]) -> set[str]:
    """The names of the volumes that the claims of these pods are bound to."""
    found = set()
    for pod in pods:
        namespace = pod["metadata"]["namespace"]
        for name in sorted(referred(pod, "persistentvolumeclaims")):
            claim = storage.find(PERSISTENT_VOLUME_CLAIM, namespace, name) or {}
            found.add(str((claim.get("spec") or {}).get("volumeName") or ""))
    return found - {""}


def referred(pod: Json, resource: str) -> set[str]:
    """The names of Secrets, ConfigMaps or claims that a pod needs."""
    found: set[str] = set()
    spec = pod.get("spec") or {}
    if resource == "resourceclaims":
        made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        named = (*(spec.get("resourceClaims") or ()), *made)
        return {one.get("resourceClaimName") or "" for one in named} - {""}
    if resource == "secrets":
        found.update(one.get("name", "") for one in spec.get("imagePullSecrets") or ())
    for volume in spec.get("volumes") or ():
        found.update(_of_volume(volume, resource))
    for holder in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(holder) or ():
            found.update(_of_environment(container, resource))
    return found - {""}


def _of_volume(volume: Json, resource: str) -> Iterator[str]:
    projected = (volume.get("projected") or {}).get("sources") or ()
    for source in (volume, *projected):
        match resource:
            case "secrets":
                secret = source.get("secret") or {}
                yield secret.get("secretName", secret.get("name", ""))
            case "configmaps":
                yield (source.get("configMap") or {}).get("name", "")
            case _:
                yield (source.get("persistentVolumeClaim") or {}).get("claimName", "")


def _of_environment(container: Json, resource: str) -> Iterator[str]:
    whole, key = ("secretRef", "secretKeyRef")
    if resource == "configmaps":
        whole, key = ("configMapRef", "configMapKeyRef")
    for source in container.get("envFrom") or ():
        yield (source.get(whole) or {}).get("name", "")
    for variable in container.get("env") or ():
        yield ((variable.get("valueFrom") or {}).get(key) or {}).get("name", "")
