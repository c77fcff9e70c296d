"""ServiceAccount: every pod runs as somebody, and has that somebody's token in its containers.

A pod that names no account gets `default`; the account must exist. Unless pod or account say
otherwise, a volume with a token, the cluster's authority and the namespace is added and mounted
where tokens are expected. A pod without imagePullSecrets gets those of its account. A mirror pod is
nobody's; other pods may be kept to the secrets of their account.

upstream: plugin/pkg/admission/serviceaccount/admission.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked
from fairlead.apiserver.admission.plugins.secret_reference import (
    account_objection,
    mirror_objection,
)
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import POD, SERVICE_ACCOUNT
from fairlead.apiserver.storage.storage import Storage

DEFAULT_ACCOUNT: Final = "default"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX: Final = "kube-api-access-"
MIRROR: Final = "kubernetes.io/config.mirror"
EXPIRATION_S: Final = 60 * 60 + 7  # the 7 s mark tokens that may live longer than they say
FILE_MODE: Final = 0o644
_AUTHORITY: Final = ("kube-root-ca.crt", "ca.crt")


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The admission plugin.

    `suffix` gives five characters for a new volume's name. `authorities`: further ConfigMaps with
    a key each that a distribution mounts beside the cluster's authority.
    """

    suffix: Callable[[], str]
    authorities: Sequence[tuple[str, str]] = ()

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Give a new pod its account and that account's token. Raises ApiError 403."""
        obj = asked.obj
        if asked.kind is not POD or not asked.is_new:
            return obj
        if _is_mirror(obj):
            _require(obj, mirror_objection(obj["spec"]))
            return obj
        spec = _named(obj["spec"])
        account = self._account(obj, spec["serviceAccountName"], storage)
        if spec.get("automountServiceAccountToken", _automounts(account)):
            spec = self._with_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]
        _require(obj, account_objection(spec, account))
        return {**obj, "spec": spec}

    def _account(self, pod: Json, name: str, storage: Storage) -> Json:
        namespace = pod["metadata"].get("namespace", "")
        found = storage.find(SERVICE_ACCOUNT, namespace, name)
        if found is None:
            why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}"'
            raise _refused(pod, f"{why} not found")
        return found

    def _with_token(self, spec: Json) -> Json:
        """`spec` with a token where one is missing; a volume that has one already is used."""
        volumes = spec.get("volumes") or []
        names = (volume.get("name", "") for volume in volumes)
        volume = next((name for name in names if name.startswith(VOLUME_PREFIX)), "")
        is_new, volume = not volume, volume or VOLUME_PREFIX + self.suffix()
        mounted = {
            key: [_mounted(container, volume) for container in spec[key]]
            for key in ("containers", "initContainers")
            if spec.get(key)
        }
        if is_new and any(mounted[key] != spec[key] for key in mounted):
            mounted["volumes"] = [*volumes, self._volume(volume)]
        return {**spec, **mounted}

    def _volume(self, name: str) -> Json:
        authorities = [_authority(*_AUTHORITY), *(_authority(*more) for more in self.authorities)]
        token = {"serviceAccountToken": {"expirationSeconds": EXPIRATION_S, "path": "token"}}
        field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
        namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
        sources = [token, authorities[0], namespace, *authorities[1:]]
        return {"name": name, "projected": {"sources": sources, "defaultMode": FILE_MODE}}


def _is_mirror(pod: Json) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _require(pod: Json, objection: str) -> None:
    """Refuse a pod for that reason, if there is one. Raises ApiError 403."""
    if objection:
        raise _refused(pod, objection)


def _refused(pod: Json, why: str) -> ApiError:
    meta = pod["metadata"]
    return forbidden(POD, meta.get("namespace", ""), meta["name"], why)


def _named(spec: Json) -> Json:
    """`spec` with an account, under the name of today and the one of old."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT
    return {**spec, "serviceAccountName": name, "serviceAccount": name}


def _automounts(account: Json) -> bool:
    found: bool = account.get("automountServiceAccountToken", True)
    return found


def _mounted(container: Json, volume: str) -> Json:
    mounts = container.get("volumeMounts") or []
    if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
        return container
    mount = {"name": volume, "readOnly": True, "mountPath": MOUNT_PATH}
    return {**container, "volumeMounts": [*mounts, mount]}


def _authority(config_map: str, key: str) -> Json:
    return {"configMap": {"name": config_map, "items": [{"key": key, "path": key}]}}
