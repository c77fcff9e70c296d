"""Defaults of Services, NetworkPolicies and RBAC subjects.

upstream: pkg/apis/core/v1/defaults.go:SetDefaults_Service, pkg/apis/networking/v1/defaults.go,
pkg/apis/rbac/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced

RBAC: Final = "rbac.authorization.k8s.io"
_STICKY_S: Final = 10_800
_OUTWARD: Final = ("NodePort", "LoadBalancer")


def _service_spec(spec: Json) -> Json:
    spec = _with_affinity(spec)
    type_ = spec["type"]
    if type_ in _OUTWARD or (type_ == "ClusterIP" and spec.get("externalIPs")):
        spec = filled(spec, {"externalTrafficPolicy": "Cluster"})
    if type_ in (*_OUTWARD, "ClusterIP"):
        spec = filled(spec, {"internalTrafficPolicy": "Cluster"})
    if type_ == "LoadBalancer":
        spec = filled(spec, {"allocateLoadBalancerNodePorts": True})
    return spec


def _with_affinity(spec: Json) -> Json:
    if spec["sessionAffinity"] == "None":
        return {key: value for key, value in spec.items() if key != "sessionAffinityConfig"}
    if spec["sessionAffinity"] != "ClientIP":
        return spec
    config = spec.get("sessionAffinityConfig") or {}
    client = filled(config.get("clientIP") or {}, {"timeoutSeconds": _STICKY_S})
    return replaced(spec, "sessionAffinityConfig", {**config, "clientIP": client})


def _service_port(port: Json) -> Json:
    if port.get("targetPort") in (None, "", 0):
        return {**port, "targetPort": port["port"]}
    return port


def _network_policy_spec(spec: Json) -> Json:
    if spec.get("policyTypes"):
        return spec
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**spec, "policyTypes": types}


def _subject(subject: Json) -> Json:
    if subject.get("kind") in ("User", "Group"):
        return filled(subject, {"apiGroup": RBAC})
    return subject


SERVICE_RULES: Final[Mapping[str, Rule]] = {
    "v1.ServiceSpec": _service_spec,
    "v1.ServicePort": _service_port,
    "v1.NetworkPolicySpec": _network_policy_spec,
    "rbac.v1.Subject": _subject,
}
