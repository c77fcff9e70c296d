"""Warnings: what a client should know about an object although it was taken.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.warning.network import (
    endpoints_warnings,
    network_policy_warnings,
    service_warnings,
    slice_warnings,
)
from fairlead.apiserver.registry.warning.pod import (
    OLD_LABELS,
    claim_warnings,
    old_volume,
    template_warnings,
    term_warnings,
)
from fairlead.apiserver.validation.meta.format import dns_label_problems

Warnings = Iterator[str]

COMPLETIONS_SOFT_MAX: Final = 100_000
PARALLELISM_SOFT_MAX: Final = 10_000
_TOO_MANY_INDEXES: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
    "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS_TOLD: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_TOKENS_IN_SECRETS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
    "prevent possible logging of tokens in volume attributes"
)
_KEPT_TO_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_KEPT_APART: Final = (
    "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
)
_RECYCLE: Final = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
    "provisioning."
)
_OLD_VOLUMES: Final = (
    "cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd",
)  # fmt: skip
_SURPRISING: Final = "which can result in surprising behavior; a DNS label is recommended"
_TEMPLATES: Final = {
    "deployments.apps": "spec.template",
    "replicasets.apps": "spec.template",
    "statefulsets.apps": "spec.template",
    "daemonsets.apps": "spec.template",
    "jobs.batch": "spec.template",
    "cronjobs.batch": "spec.jobTemplate.spec.template",
    "replicationcontrollers": "spec.template",
    "podtemplates": "template",
}
_NAMES_PODS: Final = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "replicationcontrollers",
)


def warnings_of(kind: Kind, old: Json | None, new: Json) -> Warnings:
    """What is to be said about `new`, which is new or was `old` before.

    Of workloads nothing is said again that was said before; changed pods nobody looks at.
    """
    if kind.resource in _CHANGES:
        yield from _CHANGES[kind.resource](old, new)
    if kind.resource in _OTHERS and (old is None or kind.resource not in _SAID_ONCE):
        yield from _OTHERS[kind.resource](new)
    if old is None or (kind.resource != "pods" and old.get("spec") != new.get("spec")):
        yield from _pod_warnings(kind, old, new)
    if kind.resource == "statefulsets.apps":
        yield from _stateful_set_warnings(old, new["spec"])


def _pod_warnings(kind: Kind, old: Json | None, new: Json) -> Warnings:
    """What is to be said about a pod, or about those that `new` makes."""
    if old is None:
        yield from _name_warnings(kind, new["metadata"]["name"])
    if kind.resource == "pods":
        yield from template_warnings("", new)
    elif kind.resource in _TEMPLATES:
        path = _TEMPLATES[kind.resource]
        template = _at(new, path)
        if template:
            yield from template_warnings(f"{path}.", template)
    if kind.resource == "jobs.batch":
        yield from _job_warnings(new["spec"])


def _at(obj: Json, path: str) -> Any:
    value: Any = obj
    for name in path.split("."):
        value = (value or {}).get(name)
    return value


def _name_warnings(kind: Kind, name: str) -> Warnings:
    problems = dns_label_problems(name)
    if not problems:
        return
    if kind.resource == "pods":
        used = "this is used in the Pod's hostname"
        yield f"metadata.name: {used}, {_SURPRISING}: {_listed(problems)}"
    elif kind.resource in _NAMES_PODS:
        used = "this is used in Pod names and hostnames"
        yield f"metadata.name: {used}, {_SURPRISING}: {_listed(problems)}"


def _listed(problems: tuple[str, ...]) -> str:
    return f"[{' '.join(problems)}]"


def _job_warnings(spec: Json) -> Warnings:
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec.get("completionMode") != "Indexed":
        return
    if completions > COMPLETIONS_SOFT_MAX and parallelism > PARALLELISM_SOFT_MAX:
        yield f"spec: {_TOO_MANY_INDEXES}"


def _stateful_set_warnings(old: Json | None, spec: Json) -> Warnings:
    # upstream: pkg/registry/apps/statefulset/strategy.go:WarningsOnCreate, WarningsOnUpdate, which
    # call the same field by two names
    end = "" if old is None else ".Spec"
    for place, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        field = f"spec.volumeClaimTemplates[{place}]{end}"
        yield from claim_warnings(field, claim.get("spec") or {})
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        why = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {why}"


def _volume_warnings(volume: Json) -> Warnings:
    # upstream: pkg/api/persistentvolume/util.go:warningsForPersistentVolumeSpecAndMeta
    spec, notes = volume["spec"], volume["metadata"].get("annotations") or {}
    if _OLD_CLASS in notes:
        yield f"metadata.annotations[{_OLD_CLASS}]: {_OLD_CLASS_TOLD}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}"
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for place, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from term_warnings(f"spec.nodeAffinity.required.nodeSelectorTerms[{place}]", term)
    for key in _OLD_VOLUMES:
        if spec.get(key) is not None:
            yield old_volume("spec", key)


def _claim_warnings(claim: Json) -> Warnings:
    if _OLD_CLASS in (claim["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{_OLD_CLASS}]: {_OLD_CLASS_TOLD}"
    yield from claim_warnings("spec", claim["spec"])


def _ingress_warnings(ingress: Json) -> Warnings:
    # upstream: pkg/registry/networking/ingress/strategy.go:WarningsOnCreate
    if _INGRESS_CLASS in (ingress["metadata"].get("annotations") or {}):
        use = "please use 'spec.ingressClassName' instead"
        yield f'annotation "{_INGRESS_CLASS}" is deprecated, {use}'


def _runtime_class_warnings(found: Json) -> Warnings:
    # upstream: pkg/api/node/util.go:GetWarningsForRuntimeClass
    for key in (found.get("scheduling") or {}).get("nodeSelector") or ():
        if key in OLD_LABELS:
            yield f"scheduling.nodeSelector: {key} is {OLD_LABELS[key]}"


def _storage_class_warnings(found: Json) -> Warnings:
    # upstream: pkg/api/storage/util.go:GetWarningsForStorageClass
    for place, term in enumerate(found.get("allowedTopologies") or ()):
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key = expression.get("key", "")
            if key in OLD_LABELS:
                where = f"allowedTopologies[{place}].matchLabelExpressions[{number}].key"
                yield f"{where}: {key} is {OLD_LABELS[key]}"


def _secret_warnings(secret: Json) -> Warnings:
    if secret.get("type") == "kubernetes.io/tls":
        certificate = (secret.get("data") or {}).get("tls.crt", "")
        if b"-----BEGIN" not in base64.b64decode(certificate):
            yield "tls: failed to find any PEM data in certificate input"


def _node_warnings(node: Json) -> Warnings:
    # upstream: pkg/registry/core/node/strategy.go:fieldIsDeprecatedWarnings
    spec = node.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _account_warnings(old: Json | None, new: Json) -> Warnings:
    """Said when an account begins to keep its pods to its secrets."""
    # upstream: pkg/registry/core/serviceaccount/strategy.go:WarningsOnCreate
    before, after = (
        (one["metadata"].get("annotations") or {}) if one else {} for one in (old, new)
    )
    if _KEPT_TO_SECRETS in after and _KEPT_TO_SECRETS not in before:
        yield f"metadata.annotations[{_KEPT_TO_SECRETS}]: {_KEPT_APART}"


def _driver_warnings(old: Json | None, new: Json) -> Warnings:
    """Said when a driver asks for other tokens than before."""
    # upstream: pkg/registry/storage/csidriver/strategy.go:WarningsOnCreate, WarningsOnUpdate
    asked = new["spec"].get("tokenRequests") or []
    if not asked or new["spec"].get("serviceAccountTokenInSecrets") is not None:
        return
    if old is None or (old["spec"].get("tokenRequests") or []) != asked:
        yield _TOKENS_IN_SECRETS


_CHANGES: Final[Mapping[str, Callable[[Json | None, Json], Warnings]]] = {
    "serviceaccounts": _account_warnings,
    "csidrivers.storage.k8s.io": _driver_warnings,
}
_SAID_ONCE: Final = ("ingresses.networking.k8s.io",)
_OTHERS: Final[Mapping[str, Callable[[Json], Warnings]]] = {
    "services": service_warnings,
    "nodes": _node_warnings,
    "endpoints": endpoints_warnings,
    "endpointslices.discovery.k8s.io": slice_warnings,
    "secrets": _secret_warnings,
    "persistentvolumes": _volume_warnings,
    "persistentvolumeclaims": _claim_warnings,
    "ingresses.networking.k8s.io": _ingress_warnings,
    "networkpolicies.networking.k8s.io": network_policy_warnings,
    "runtimeclasses.node.k8s.io": _runtime_class_warnings,
    "storageclasses.storage.k8s.io": _storage_class_warnings,
}
