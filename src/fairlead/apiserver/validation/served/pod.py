"""Pods and templates of pods, as far as no scheduler cares.

upstream: pkg/apis/core/validation/validation.go:ValidatePodSpec
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.served.address_form import check_ip
from fairlead.apiserver.validation.served.container import (
    PodContext,
    check_containers,
    check_init_containers,
)
from fairlead.apiserver.validation.served.form import (
    check_dns_label,
    check_qualified_name,
    check_subdomain,
)
from fairlead.apiserver.validation.served.metadata import check_annotation_keys
from fairlead.apiserver.validation.served.pod_annotation import check_annotations
from fairlead.apiserver.validation.served.security import check_pod_security, check_system
from fairlead.apiserver.validation.served.volume import check_volumes, mountable

DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
SYSTEMS: Final = ("linux", "windows")
NAMESERVERS_MAX: Final = 3
SEARCHES_MAX: Final = 32
SEARCH_TEXT_MAX: Final = 2048
_LISTS: Final = ("containers", "initContainers")
# In upstream's spelling.
_HOST_SPACES: Final = (
    ("hostNetwork", "hostNetwork"),
    ("hostPID", "HostPID"),
    ("hostIPC", "HostIPC"),
)
_CLAIM: Final = ("resourceClaimName", "resourceClaimTemplateName")
_ONE_CLAIM: Final = (
    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
)
_NO_CLAIM: Final = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_FORM: Final = rf"{_LABEL}(\.{_LABEL})*"
_SEARCH: Final = re.compile(_SEARCH_FORM)
_SEARCH_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
    "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
    f"used for validation is '{_SEARCH_FORM}')"
)


def check_new_pod(pod: Json) -> Causes:
    """A new pod."""
    spec = pod["spec"]
    yield from check_annotations("metadata.annotations", pod)
    yield from check_spec("spec", spec, pod["metadata"].get("name", ""))
    for key in _LISTS:
        for place, container in enumerate(spec.get(key) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                why = "must not have leading or trailing whitespace"
                yield invalid(f"spec.{key}[{place}].image", image, why)
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def check_template(field: str, template: Json) -> Causes:
    """A template of pods; `field` is where it stands."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    yield from check_annotation_keys(f"{field}.annotations", annotations)
    yield from check_annotations(f"{field}.annotations", template)
    yield from check_spec(f"{field}.spec", template["spec"])
    if template["spec"].get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{field}.spec.ephemeralContainers", why)


def check_spec(field: str, spec: Json, pod_name: str = "") -> Causes:
    """The spec of any pod; `field` is where it stands."""
    volumes = spec.get("volumes") or []
    claims = spec.get("resourceClaims") or []
    host_users = spec.get("hostUsers") is not False
    context = PodContext(
        volumes=mountable(volumes),
        claims=frozenset(claim["name"] for claim in claims if claim.get("name")),
        restart_policy=spec.get("restartPolicy", ""),
        grace_period_s=spec.get("terminationGracePeriodSeconds"),
        host_users=host_users,
    )
    yield from check_volumes(f"{field}.volumes", volumes, pod_name)
    yield from _check_claims(f"{field}.resourceClaims", claims)
    yield from check_containers(f"{field}.containers", spec.get("containers") or [], context)
    early = spec.get("initContainers") or []
    yield from check_init_containers(f"{field}.initContainers", early, context)
    yield from _check_dns_policy(field, spec)
    yield from check_pod_security(f"{field}.securityContext", spec)
    yield from _check_dns(f"{field}.dnsConfig", spec)
    for place, gate in enumerate(spec.get("readinessGates") or ()):
        where = f"{field}.readinessGates[{place}].conditionType"
        yield from check_qualified_name(where, gate.get("conditionType", ""))
    if not host_users:
        yield from _check_own_users(field, spec)
    yield from _check_names(field, spec)
    yield from _check_aliases(f"{field}.hostAliases", spec.get("hostAliases") or [])
    for key in ("priorityClassName", "runtimeClassName"):
        if spec.get(key):
            yield from check_subdomain(f"{field}.{key}", spec[key])
    yield from _check_system(field, spec)


def _check_system(field: str, spec: Json) -> Causes:
    system = (spec.get("os") or {}).get("name")
    if system == "":
        yield required(f"{field}.os.name", "cannot be empty")
    elif system is not None and system not in SYSTEMS:
        yield not_supported(f"{field}.os", system, SYSTEMS)
    yield from check_system(field, spec)


def _check_own_users(field: str, spec: Json) -> Causes:
    """A pod with users of its own shares nothing else with its host."""
    for key, shown in _HOST_SPACES:
        if spec.get(key):
            yield forbidden(f"{field}.{shown}", "when `hostUsers` is false")


def _check_dns_policy(field: str, spec: Json) -> Causes:
    policy = spec.get("dnsPolicy", "")
    if not policy:
        yield required(f"{field}.dnsPolicy")
    elif policy not in DNS_POLICIES:
        yield not_supported(f"{field}.dnsPolicy", policy, DNS_POLICIES)


def _check_dns(field: str, spec: Json) -> Causes:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(field, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{field}.nameservers", why)
            return
    config = config or {}
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > NAMESERVERS_MAX:
        why = f"must not have more than {NAMESERVERS_MAX} nameservers"
        yield invalid(f"{field}.nameservers", servers, why)
    for place, server in enumerate(servers):
        yield from check_ip(f"{field}.nameservers[{place}]", server)
    yield from _check_searches(f"{field}.searches", searches)
    for place, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{field}.options[{place}]", "must not be empty")


def _check_searches(field: str, searches: list[str]) -> Causes:
    if len(searches) > SEARCHES_MAX:
        yield invalid(field, searches, f"must not have more than {SEARCHES_MAX} search paths")
    if len(" ".join(searches)) > SEARCH_TEXT_MAX:
        why = (
            f"must not have more than {SEARCH_TEXT_MAX} characters (including spaces) in the "
            "search list"
        )
        yield invalid(field, searches, why)
    for place, search in enumerate(searches):
        domain = search.removesuffix(".")
        if search != "." and not _SEARCH.fullmatch(domain):
            yield invalid(f"{field}[{place}]", domain, _SEARCH_RULE)


def _check_names(field: str, spec: Json) -> Causes:
    if spec.get("serviceAccountName"):
        yield from check_subdomain(f"{field}.serviceAccountName", spec["serviceAccountName"])
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            yield from check_dns_label(f"{field}.{key}", spec[key])
    if spec.get("hostnameOverride"):
        yield from check_subdomain(f"{field}.hostnameOverride", spec["hostnameOverride"])


def _check_aliases(field: str, aliases: list[Json]) -> Causes:
    for place, alias in enumerate(aliases):
        yield from check_ip(f"{field}[{place}].ip", alias.get("ip", ""))
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from check_subdomain(f"{field}[{place}].hostnames[{number}]", name)


def _check_claims(field: str, claims: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for place, claim in enumerate(claims):
        where = f"{field}[{place}]"
        name = claim.get("name", "")
        if not name:
            yield required(f"{where}.name")
        elif name in names:
            yield duplicate(f"{where}.name", name)
        else:
            yield from check_dns_label(f"{where}.name", name)
        names[name] = None
        shown = {"Name": name, **{key[0].upper() + key[1:]: claim.get(key) for key in _CLAIM}}
        stated = [key for key in _CLAIM if claim.get(key) is not None]
        if len(stated) > 1:
            yield invalid(where, shown, _ONE_CLAIM)
        elif not stated:
            yield invalid(where, shown, _NO_CLAIM)
        for key in stated:
            yield from check_subdomain(f"{where}.{key}", claim[key])
