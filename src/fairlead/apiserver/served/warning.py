"""Warnings: what a client should know about an object although it was taken.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.served.address_warning import cidr_warnings, ip_warnings
from fairlead.apiserver.served.pod_warning import (
    OLD_LABELS,
    claim_warnings,
    old_volume,
    template_warnings,
    term_warnings,
)
from fairlead.apiserver.validation.metadata import dns_label_problems

Json = dict[str, Any]
Warnings = Iterator[str]

COMPLETIONS_SOFT_MAX: Final = 100_000
PARALLELISM_SOFT_MAX: Final = 10_000
_TOO_MANY_INDEXES: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
    "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS_TOLD: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
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
_NAMES_PODS: Final = ("deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch")


def warnings_of(kind: Kind, old: Json | None, new: Json) -> Warnings:
    """What is to be said about `new`, which is new or was `old` before.

    Of workloads nothing is said again that was said before; changed pods nobody looks at.
    """
    if kind.resource in _OTHERS and (old is None or kind.resource not in _SAID_ONCE):
        yield from _OTHERS[kind.resource](new)
    if old is not None and (kind.resource == "pods" or old.get("spec") == new.get("spec")):
        return
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
    if kind.resource == "statefulsets.apps":
        yield from _stateful_set_warnings(new["spec"])


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


def _stateful_set_warnings(spec: Json) -> Warnings:
    # upstream: pkg/registry/apps/statefulset/strategy.go:WarningsOnCreate
    for place, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from claim_warnings(f"spec.volumeClaimTemplates[{place}]", claim.get("spec") or {})
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        why = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {why}"


def _service_warnings(service: Json) -> Warnings:
    spec, notes = service["spec"], service["metadata"].get("annotations") or {}
    if _HINTS in notes:
        yield f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead"
    sort = spec.get("type")
    yield from _address_warnings(spec)
    if sort == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if sort != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
    if spec.get("loadBalancerIP") and sort != "LoadBalancer":
        yield 'spec.loadBalancerIP is ignored when service type is not "LoadBalancer"'


def _address_warnings(spec: Json) -> Warnings:
    address = spec.get("clusterIP")
    if address not in (None, "", "None"):
        for place, text in enumerate(spec.get("clusterIPs") or ()):
            yield from ip_warnings(f"spec.clusterIPs[{place}]", text)
    if spec.get("type") == "ClusterIP" and address == "None":
        yield from _headless_warnings(spec)
    for place, text in enumerate(spec.get("externalIPs") or ()):
        yield from ip_warnings(f"spec.externalIPs[{place}]", text)
    if spec.get("loadBalancerIP"):
        yield from ip_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for place, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from cidr_warnings(f"spec.loadBalancerSourceRanges[{place}]", text)


def _headless_warnings(spec: Json) -> Warnings:
    ignored = "is ignored for headless services"
    for key in ("loadBalancerIP", "externalIPs"):
        if spec.get(key):
            yield f"spec.{key} {ignored}"
    if spec.get("sessionAffinity", "None") != "None":
        yield f"spec.SessionAffinity {ignored}"


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


def _network_policy_warnings(policy: Json) -> Warnings:
    spec = policy.get("spec") or {}
    for way, side in (("ingress", "from"), ("egress", "to")):
        for place, rule in enumerate(spec.get(way) or ()):
            for number, peer in enumerate(rule.get(side) or ()):
                block, field = peer.get("ipBlock"), f"spec.{way}[{place}].{side}[{number}].ipBlock"
                if block is None:
                    continue
                yield from cidr_warnings(f"{field}.cidr", block.get("cidr") or "")
                for at, text in enumerate(block.get("except") or ()):
                    yield from cidr_warnings(f"{field}.except[{at}]", text)


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


_SAID_ONCE: Final = ("ingresses.networking.k8s.io",)
_OTHERS: Final[Mapping[str, Callable[[Json], Warnings]]] = {
    "services": _service_warnings,
    "secrets": _secret_warnings,
    "persistentvolumes": _volume_warnings,
    "persistentvolumeclaims": _claim_warnings,
    "ingresses.networking.k8s.io": _ingress_warnings,
    "networkpolicies.networking.k8s.io": _network_policy_warnings,
    "runtimeclasses.node.k8s.io": _runtime_class_warnings,
    "storageclasses.storage.k8s.io": _storage_class_warnings,
}
