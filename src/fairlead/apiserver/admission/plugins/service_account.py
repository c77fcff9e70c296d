"""ServiceAccount: sets the pod's service account and mounts its token.

A pod that names no account gets the account `default`. The plugin adds a projected volume with the
token, the CA certificate and the namespace, and mounts it into all containers. The plugin does not
add the volume if automountServiceAccountToken is false. The pod's value of this field takes
precedence over the account's. A pod without imagePullSecrets gets the imagePullSecrets of its
account.

A controller creates the account `default` shortly after its namespace has been created. Therefore a
client's request for a pod with this account waits up to a second of real time until the account
exists.

upstream: plugin/pkg/admission/serviceaccount/admission.go; pkg/api/v1/pod/util.go:
VisitPodSecretNames
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import POD, SERVICE_ACCOUNT
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import PAUSE, WebhookCalls

DEFAULT_ACCOUNT: Final = "default"
ATTEMPTS_MAX: Final = 200  # to find the account `default`; a pause takes at least 5 ms
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX: Final = "kube-api-access-"
MIRROR: Final = "kubernetes.io/config.mirror"
EXPIRATION_S: Final = 60 * 60 + 7  # a lifetime of 3607 s marks a token whose expiration is extended
FILE_MODE: Final = 0o644
ENFORCED: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE_VALUES: Final = ("1", "t", "T", "true", "TRUE", "True")
_CONTAINERS: Final = (("initContainers", "init container"), ("containers", "container"))
_SECRET_VOLUMES: Final = (
    "cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos", "csi",
)  # fmt: skip
_ROOT_CA: Final = ("kube-root-ca.crt", "ca.crt")


class ServiceAccount(Struct, frozen=True):
    """The admission plugin `ServiceAccount`.

    `suffix` returns five characters for the name of a new volume. Each pair (ConfigMap name, key)
    in `authorities` names a certificate that is mounted beside the cluster's CA certificate.
    """

    suffix: Callable[[], str]
    authorities: Sequence[tuple[str, str]] = ()

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json | WebhookCalls[Json]:
        """Return the object; a new pod gets its account and token volume.

        Returns a generator if the request waits for the account `default`. Raises ApiError 403 if
        the account does not exist or does not allow a secret of the pod. Also raises ApiError 403
        if a mirror pod uses an account, a secret or an account's token.
        """
        obj = attributes.obj
        if attributes.kind is not POD or not attributes.is_new:
            return obj
        if MIRROR in (obj["metadata"].get("annotations") or {}):
            _require(obj, _mirror_pod_problem(obj["spec"]))
            return obj
        spec = obj["spec"]
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT
        account = _account(obj, name, storage)
        # A controller does not wait: it repeats a request that was refused.
        if account is None and name == DEFAULT_ACCOUNT and attributes.write.user is not None:
            return self._admit_later(obj, storage)
        return self._with_account(obj, name, account)

    def _admit_later(self, pod: Json, storage: Storage) -> WebhookCalls[Json]:
        """Wait for the account `default` to be created; return `pod` with this account."""
        # upstream: getServiceAccount, with up to ten attempts at intervals of 100 to 200 ms
        account = None
        for _ in range(ATTEMPTS_MAX):
            yield PAUSE
            account = _account(pod, DEFAULT_ACCOUNT, storage)
            if account is not None:
                break
        return self._with_account(pod, DEFAULT_ACCOUNT, account)

    def _with_account(self, pod: Json, name: str, account: Json | None) -> Json:
        if account is None:
            namespace = pod["metadata"].get("namespace", "")
            problem = (
                f'error looking up service account {namespace}/{name}: serviceaccount "{name}"'
            )
            raise _refused(pod, f"{problem} not found")
        spec = {**pod["spec"], "serviceAccountName": name, "serviceAccount": name}
        automounts = account.get("automountServiceAccountToken", True)
        if spec.get("automountServiceAccountToken", automounts):
            spec = self._with_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]
        _require(pod, _secret_reference_problem(spec, account))
        return {**pod, "spec": spec}

    def _with_token(self, spec: Json) -> Json:
        """Return `spec` with the token volume mounted; an existing token volume is reused."""
        volumes = spec.get("volumes") or []
        names = (volume.get("name", "") for volume in volumes)
        volume = next((name for name in names if name.startswith(VOLUME_PREFIX)), "")
        is_new, volume = not volume, volume or VOLUME_PREFIX + self.suffix()
        mounted = {
            key: [_with_mount(container, volume) for container in spec[key]]
            for key in ("containers", "initContainers")
            if spec.get(key)
        }
        if is_new and any(mounted[key] != spec[key] for key in mounted):
            mounted["volumes"] = [*volumes, self._volume(volume)]
        return {**spec, **mounted}

    def _volume(self, name: str) -> Json:
        authorities = [_ca_source(*_ROOT_CA), *(_ca_source(*more) for more in self.authorities)]
        token = {"serviceAccountToken": {"expirationSeconds": EXPIRATION_S, "path": "token"}}
        field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
        namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
        sources = [token, authorities[0], namespace, *authorities[1:]]
        return {"name": name, "projected": {"sources": sources, "defaultMode": FILE_MODE}}


def _account(pod: Json, name: str, storage: Storage) -> Json | None:
    return storage.find(SERVICE_ACCOUNT, pod["metadata"].get("namespace", ""), name)


def _require(pod: Json, problem: str) -> None:
    """Refuse `pod` if `problem` is not "". Raises ApiError 403."""
    if problem:
        raise _refused(pod, problem)


def _refused(pod: Json, problem: str) -> ApiError:
    meta = pod["metadata"]
    return forbidden(POD, meta.get("namespace", ""), meta["name"], problem)


def _with_mount(container: Json, volume: str) -> Json:
    mounts = container.get("volumeMounts") or []
    if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
        return container
    mount = {"name": volume, "readOnly": True, "mountPath": MOUNT_PATH}
    return {**container, "volumeMounts": [*mounts, mount]}


def _ca_source(config_map: str, key: str) -> Json:
    return {"configMap": {"name": config_map, "items": [{"key": key, "path": key}]}}


# --- secrets --------------------------------------------------------------------------------


def _mirror_pod_problem(spec: Json) -> str:
    """Return the reason why a mirror pod cannot have this spec; "" if it can."""
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if any(_referenced_secrets(spec)):
        return "a mirror pod may not reference secrets"
    if any("serviceAccountToken" in source for source in _projected_sources(spec)):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def _secret_reference_problem(spec: Json, account: Json) -> str:
    """Return the reason why `account` does not allow a secret of the pod; "" if it allows all."""
    if (account["metadata"].get("annotations") or {}).get(ENFORCED) not in _TRUE_VALUES:
        return ""
    name = account["metadata"]["name"]
    allowed = {one.get("name", "") for one in account.get("secrets") or ()}
    for reference, secret in _mounted_secrets(spec):
        if secret not in allowed:
            explanation = f"because service account {name} does not reference that secret"
            return f'{reference} secret.secretName="{secret}" is not allowed {explanation}'
    allowed = {one.get("name", "") for one in account.get("imagePullSecrets") or ()}
    for index, one in enumerate(spec.get("imagePullSecrets") or ()):
        if one.get("name", "") not in allowed:
            explanation = f"because service account {name} does not reference that imagePullSecret"
            field = f'imagePullSecrets[{index}].name="{one.get("name", "")}"'
            return f"{field} is not allowed {explanation}"
    return ""


def _mounted_secrets(spec: Json) -> Iterator[tuple[str, str]]:
    """Yield (description, Secret name) for each reference to a Secret in volumes and containers."""
    for volume in spec.get("volumes") or ():
        if volume.get("secret") is not None:
            yield "volume with", volume["secret"].get("secretName", "")
    for key, container_type in _CONTAINERS:
        for container in spec.get(key) or ():
            for variable, secret in _environment_secrets(container):
                source_text = f"envVar {variable}" if variable else "envFrom"
                yield (
                    f"{container_type} {container.get('name', '')} with {source_text} referencing",
                    secret,
                )


def _environment_secrets(container: Json) -> Iterator[tuple[str, str]]:
    """Yield (variable, Secret) for each secret reference in `container`.

    For a reference in envFrom, the variable is "".
    """
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield variable.get("name", ""), reference.get("name", "")
    for source in container.get("envFrom") or ():
        if source.get("secretRef") is not None:
            yield "", source["secretRef"].get("name", "")


def _referenced_secrets(spec: Json) -> Iterator[str]:
    """Yield the name of the Secret for each secret reference of a pod.

    If the reference has no name, yield "?". If the reference is in a volume of a type such as
    cephfs, yield the volume type instead of the name.
    """
    for one in spec.get("imagePullSecrets") or ():
        yield one.get("name") or "?"
    for _, secret in _mounted_secrets(spec):
        yield secret or "?"
    for source in _projected_sources(spec):
        if "secret" in source:
            yield source["secret"].get("name") or "?"
    for volume in spec.get("volumes") or ():
        if (volume.get("azureFile") or {}).get("secretName"):
            yield volume["azureFile"]["secretName"]
        for kind in _SECRET_VOLUMES:
            source = volume.get(kind) or {}
            if source.get("secretRef") or source.get("nodePublishSecretRef"):
                yield kind


def _projected_sources(spec: Json) -> Iterator[Json]:
    for volume in spec.get("volumes") or ():
        yield from (volume.get("projected") or {}).get("sources") or ()
