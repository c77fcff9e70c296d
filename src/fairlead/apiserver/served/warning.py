"""Warnings: what a client should know about an object although it was taken.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.served.pod_warning import template_warnings
from fairlead.apiserver.validation.metadata import dns_label_problems

Json = dict[str, Any]
Warnings = Iterator[str]

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
    """What is to be said about `new`; nothing again that was said about `old`."""
    if old is not None and old.get("spec") == new.get("spec"):
        return
    if old is None:
        yield from _name_warnings(kind, new["metadata"]["name"])
    if kind.resource == "pods":
        yield from template_warnings("spec", new["spec"])
    elif kind.resource in _TEMPLATES:
        path = _TEMPLATES[kind.resource]
        template = _at(new, path)
        if template:
            yield from template_warnings(f"{path}.spec", template["spec"])
    elif kind.resource == "services":
        yield from _service_warnings(new["spec"])
    elif kind.resource == "secrets":
        yield from _secret_warnings(new)


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


def _service_warnings(spec: Json) -> Warnings:
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
    if spec.get("loadBalancerIP") and spec.get("type") != "LoadBalancer":
        yield 'spec.loadBalancerIP is ignored when service type is not "LoadBalancer"'


def _secret_warnings(secret: Json) -> Warnings:
    if secret.get("type") == "kubernetes.io/tls":
        certificate = (secret.get("data") or {}).get("tls.crt", "")
        if b"-----BEGIN" not in base64.b64decode(certificate):
            yield "tls: failed to find any PEM data in certificate input"
