"""Pods and templates of pods, as far as no scheduler cares.

upstream: pkg/apis/core/validation/validation.go:ValidatePodSpec
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.label import label_key_problems
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_label_problems, dns_subdomain_problems
from fairlead.apiserver.validation.served.container import check_container, check_security
from fairlead.apiserver.validation.served.form import check_at_least, check_ip
from fairlead.apiserver.validation.served.volume import check_sources, check_volumes

Json = dict[str, Any]

DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
SYSTEMS: Final = ("linux", "windows")
_LISTS: Final = ("containers", "initContainers")
_CLAIM: Final = ("resourceClaimName", "resourceClaimTemplateName")
_ONE_CLAIM: Final = (
    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
)
_NO_CLAIM: Final = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"


def check_new_pod(pod: Json) -> Causes:
    """A new pod."""
    if pod["spec"].get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    yield from check_spec("spec", pod["spec"])


def check_spec(field: str, spec: Json) -> Causes:
    """The spec of any pod; `field` is where it stands."""
    volumes = {
        volume.get("name", ""): volume
        for volume in spec.get("volumes") or ()
        if not any(True for _ in check_sources("", volume))  # others cannot be mounted
    }
    yield from check_volumes(f"{field}.volumes", spec.get("volumes") or [])
    for key in _LISTS:
        for place, container in enumerate(spec.get(key) or ()):
            yield from check_container(f"{field}.{key}[{place}]", container, volumes)
    yield from _check_dns(field, spec)
    yield from check_security(f"{field}.securityContext", spec.get("securityContext") or {})
    yield from _check_names(field, spec)
    for place, alias in enumerate(spec.get("hostAliases") or ()):
        yield from check_ip(f"{field}.hostAliases[{place}].ip", alias.get("ip", ""))
    for place, gate in enumerate(spec.get("readinessGates") or ()):
        condition = gate.get("conditionType", "")
        for problem in label_key_problems(condition):
            yield invalid(f"{field}.readinessGates[{place}].conditionType", condition, problem)
    system = (spec.get("os") or {}).get("name")
    if system is not None and system not in SYSTEMS:
        where = f"{field}.os" if system else f"{field}.os.name"
        yield not_supported(where, system, SYSTEMS) if system else required(where)
    yield from _check_claims(f"{field}.resourceClaims", spec.get("resourceClaims") or [])
    yield from check_at_least(
        f"{field}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"), 0
    )


def _check_dns(field: str, spec: Json) -> Causes:
    policy = spec.get("dnsPolicy", "")
    if policy not in DNS_POLICIES:
        yield not_supported(f"{field}.dnsPolicy", policy, DNS_POLICIES)
    config = spec.get("dnsConfig")
    if policy == "None" and config is None:
        why = "must provide `dnsConfig` when `dnsPolicy` is None"
        yield required(f"{field}.dnsConfig", why)
    elif policy == "None" and not (config or {}).get("nameservers"):
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{field}.dnsConfig.nameservers", why)
    for place, server in enumerate((config or {}).get("nameservers") or ()):
        yield from check_ip(f"{field}.dnsConfig.nameservers[{place}]", server)


def _check_names(field: str, spec: Json) -> Causes:
    for key in ("hostname", "subdomain"):
        for problem in dns_label_problems(spec[key]) if spec.get(key) else ():
            yield invalid(f"{field}.{key}", spec[key], problem)
    for key in ("serviceAccountName", "priorityClassName", "runtimeClassName"):
        for problem in dns_subdomain_problems(spec[key]) if spec.get(key) else ():
            yield invalid(f"{field}.{key}", spec[key], problem)


def _check_claims(field: str, claims: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for place, claim in enumerate(claims):
        where = f"{field}[{place}]"
        name = claim.get("name", "")
        if not name:
            yield required(f"{where}.name")
        elif name in names:
            yield duplicate(f"{where}.name", name)
        names[name] = None
        shown = {"Name": name, **{key[0].upper() + key[1:]: claim.get(key) for key in _CLAIM}}
        stated = [key for key in _CLAIM if claim.get(key) is not None]
        if len(stated) > 1:
            yield invalid(where, shown, _ONE_CLAIM)
        elif not stated:
            yield invalid(where, shown, _NO_CLAIM)
