"""The strategies of networking.k8s.io.

upstream: pkg/registry/networking/*/strategy.go,
pkg/apis/networking/validation/validation.go
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.facts import values_of
from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.registry.warning.network import network_policy_warnings
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, required
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    IMMUTABLE,
    check_domain_path,
    check_one_of,
    check_port,
    check_port_number,
    dns_label_problems,
    dns_subdomain_problems,
    label_selector,
    path_segment_problems,
    port_name_problems,
)
from fairlead.apiserver.validation.meta.ip import (
    check_cidr,
    check_strict_cidr,
    check_strict_ip,
    is_ip,
    parse_cidr,
)
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.meta.selector import check_label_selector
from fairlead.apiserver.validation.status import check_ingress_status

# --- addresses -----------------------------------------------------------------------------------


RANGES_MAX: Final = 2
_TWO_FAMILIES: Final = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
)


def check_ip_address(obj: Json) -> Causes:
    """Yield the errors of an IPAddress, whose name must be an address in canonical form."""
    yield from check_strict_ip("metadata.name", obj["metadata"].get("name", ""))
    parent = (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        yield required("spec.parentRef")
    else:
        yield from _check_parent("spec.parentRef", parent)


def _check_parent(field: str, parent: Json) -> Causes:
    group = parent.get("group") or ""
    for problem in dns_subdomain_problems(group) if group else ():
        yield invalid(f"{field}.group", group, problem)
    for key in ("resource", "name", "namespace"):
        value = parent.get(key) or ""
        if not value and key != "namespace":
            yield required(f"{field}.{key}")
        for problem in path_segment_problems(value) if value else ():
            yield invalid(f"{field}.{key}", value, problem)


def check_service_cidr(obj: Json) -> Causes:
    """Yield the errors of a ServiceCIDR, which must have one CIDR, or one of each IP family."""
    spec = obj.get("spec") or {}
    ranges = spec.get("cidrs") or []
    if not ranges:
        yield required("spec.cidrs", "at least one CIDR required")
    elif len(ranges) > RANGES_MAX:
        yield invalid("spec.cidrs", {"CIDRs": ranges}, "may only hold up to 2 values")
    elif len(ranges) > 1 and not _are_of_two_families(ranges):
        yield invalid("spec.cidrs", {"CIDRs": ranges}, _TWO_FAMILIES)
    else:
        for index, text in enumerate(ranges):
            yield from check_strict_cidr(f"spec.cidrs[{index}]", text)


def _are_of_two_families(ranges: Sequence[str]) -> bool:
    """Return whether two CIDRs are well-formed, and one is of IPv4 and one of IPv6."""
    # upstream: k8s.io/utils/net/net.go:IsDualStackCIDRStrings
    found = [one.first.plain.version for one in map(parse_cidr, ranges) if one is not None]
    return len(found) == len(ranges) == len({*found})


def check_service_cidr_update(old: Json, new: Json) -> Causes:
    """Yield errors if an update of a ServiceCIDR changes a CIDR or adds more than one CIDR."""
    # upstream: validation.go:ValidateServiceCIDRUpdate
    had, has = ((one.get("spec") or {}).get("cidrs") or [] for one in (old, new))
    if len(had) > len(has) or len(has) - len(had) > 1:
        yield invalid("spec.cidrs", has, IMMUTABLE)
        return
    for index, text in enumerate(had):
        if has[index] != text:
            yield invalid(f"spec.cidrs[{index}]", has[index], IMMUTABLE)


# --- ingresses and network policies --------------------------------------------------------------


_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
PATH_TYPES: Final = values_of("networking.v1.HTTPIngressPath", "pathType")
POLICY_TYPES: Final = ("Egress", "Ingress")
NOT_WITHIN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")
NOT_AT_ENDS_OF_PATHS: Final = ("/..", "/.")
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WILDCARD_FORM: Final = rf"\*\.{_LABEL}(\.{_LABEL})*"
_WILDCARD: Final = re.compile(_WILDCARD_FORM)
_WILDCARD_RULE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
    "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
    f"character (e.g. '*.example.com', regex used for validation is '{_WILDCARD_FORM}')"
)


def check_new_ingress(ingress: Json) -> Causes:
    """Yield the errors of a new Ingress.

    If both its class annotation and ingressClassName are set, they must be equal.
    """
    yield from check_ingress(ingress)
    named = (ingress["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    wanted = ingress["spec"].get("ingressClassName")
    if named is not None and wanted is not None and named != wanted:
        why = "must match `ingressClassName` when both are specified"
        yield invalid(f"annotations.{_CLASS_ANNOTATION}", named, why)


def check_ingress(ingress: Json) -> Causes:
    """Yield the errors of an Ingress."""
    spec = ingress["spec"]
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _check_backend("spec.defaultBackend", backend)
    for index, rule in enumerate(rules):
        yield from _check_host(f"spec.rules[{index}].host", rule.get("host") or "")
        if "http" in rule:  # upstream always reports the first rule
            yield from _check_paths("spec.rules[0].http.paths", rule["http"].get("paths") or [])
    for index, tls in enumerate(spec.get("tls") or []):
        yield from _check_tls(f"spec.tls[{index}]", tls)
    yield from check_fields("spec", "networking.v1.IngressSpec", spec, "ingressClassName")


def _check_host(field: str, host: str) -> Causes:
    if host and is_ip(host):
        yield invalid(field, host, "must be a DNS name, not an IP address")
    yield from _check_domain(field, host) if host else ()


def _check_domain(field: str, host: str) -> Causes:
    if "*" not in host:
        for problem in dns_subdomain_problems(host):
            yield invalid(field, host, problem)
    elif not _WILDCARD.fullmatch(host):
        yield invalid(field, host, _WILDCARD_RULE)


def _check_tls(field: str, tls: Json) -> Causes:
    for index, host in enumerate(tls.get("hosts") or []):
        yield from _check_domain(f"{field}.hosts[{index}]", host)
    yield from check_fields(field, "networking.v1.IngressTLS", tls, "secretName")


def _check_paths(field: str, paths: list[Json]) -> Causes:
    if not paths:
        yield required(field)
    for index, path in enumerate(paths):
        yield from _check_path(f"{field}[{index}]", path)


def _check_path(field: str, rule: Json) -> Causes:
    kind, path = rule.get("pathType"), rule.get("path", "")
    yield from check_fields(field, "networking.v1.HTTPIngressPath", rule, "pathType")
    if not kind:
        return
    is_literal = kind in ("Exact", "Prefix")
    if not path.startswith("/") and (is_literal or path) and kind in PATH_TYPES:
        yield invalid(f"{field}.path", path, "must be an absolute path")
    if is_literal:
        for part in NOT_WITHIN_PATHS:
            if part in path:
                yield invalid(f"{field}.path", path, f"must not contain '{part}'")
        for end in NOT_AT_ENDS_OF_PATHS:
            if path.endswith(end):
                yield invalid(f"{field}.path", path, f"cannot end with '{end}'")
    yield from _check_backend(f"{field}.backend", rule["backend"])


def _check_backend(field: str, backend: Json) -> Causes:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(field, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _check_reference(f"{field}.resource", resource)
    elif service is not None:
        yield from _check_service(field, service)
    else:
        yield invalid(field, "", "resource or service backend is required")


def _check_service(field: str, service: Json) -> Causes:
    name = service.get("name", "")
    if not name:
        yield required(f"{field}.service.name")
    for problem in dns_label_problems(name) if name else ():
        yield invalid(f"{field}.service.name", name, problem)
    port = service.get("port") or {}
    port_name, number = port.get("name", ""), port.get("number", 0)
    if port_name and number:
        yield invalid(field, "", "cannot set both port name & port number")
    elif port_name:
        for problem in port_name_problems(port_name):
            yield invalid(f"{field}.service.port.name", port_name, problem)
    elif number:
        yield from check_port_number(f"{field}.service.port.number", number)
    else:
        yield required(field, "port name or number is required")


def _check_reference(field: str, reference: Json) -> Causes:
    group = reference.get("apiGroup")
    for problem in dns_subdomain_problems(group) if group is not None else ():
        yield invalid(f"{field}.apiGroup", group, problem)
    for key in ("kind", "name"):
        value = reference.get(key, "")
        if not value:
            yield required(f"{field}.{key}")
        for problem in path_segment_problems(value):
            yield invalid(f"{field}.{key}", value, problem)


def check_ingress_class(ingress_class: Json) -> Causes:
    """Yield the errors of an IngressClass."""
    spec = ingress_class["spec"]
    yield from check_fields("spec", "networking.v1.IngressClassSpec", spec, "controller")
    yield from check_domain_path("spec.controller", spec.get("controller", ""))
    parameters = spec.get("parameters")
    if parameters is not None:
        yield from _check_parameters("spec.parameters", parameters)


def _check_parameters(field: str, parameters: Json) -> Causes:
    yield from _check_reference(field, parameters)
    scope, namespace = parameters.get("scope", ""), parameters.get("namespace")
    if scope == "Cluster" and namespace is not None:
        yield forbidden(f"{field}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif scope == "Namespace" and namespace is not None:
        for problem in dns_label_problems(namespace):
            yield invalid(f"{field}.namespace", namespace, problem)
    elif scope == "Namespace":
        yield required(f"{field}.namespace", "`parameters.scope` is set to 'Namespace'")
    else:
        reference = "networking.v1.IngressClassParametersReference"
        yield from check_fields(field, reference, parameters, "scope")


def check_network_policy(policy: Json) -> Causes:
    """Yield the errors of a NetworkPolicy."""
    spec = policy["spec"]
    yield from check_label_selector("spec.podSelector", label_selector(spec.get("podSelector")))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or []):
            field = f"spec.{direction}[{index}]"
            for at, port in enumerate(rule.get("ports") or []):
                yield from _check_policy_port(f"{field}.ports[{at}]", port)
            for at, peer in enumerate(rule.get(peers) or []):
                yield from _check_peer(f"{field}.{peers}[{at}]", peer)
    types = spec.get("policyTypes") or []
    if len(types) > len(POLICY_TYPES):
        yield invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(types):
        yield from check_one_of(f"spec.policyTypes[{index}]", kind, POLICY_TYPES)


def _check_policy_port(field: str, rule: Json) -> Causes:
    port, end = rule.get("port"), rule.get("endPort")
    yield from check_fields(field, "networking.v1.NetworkPolicyPort", rule, "protocol")
    if port is None and end is not None:
        why = "may not be specified when `port` is not specified"
        yield invalid(f"{field}.endPort", end, why)
    elif isinstance(port, str) and end is not None:
        yield invalid(f"{field}.endPort", end, "may not be specified when `port` is non-numeric")
    if port is not None:
        yield from check_port(f"{field}.port", port)
    if isinstance(port, int) and end is not None:
        if end < port:  # upstream reports the port as the invalid value
            yield invalid(f"{field}.endPort", port, "must be greater than or equal to `port`")
        yield from check_port_number(f"{field}.endPort", end)


def _check_peer(field: str, peer: Json) -> Causes:
    given = 0
    for key in ("podSelector", "namespaceSelector"):
        if peer.get(key) is not None:
            given += 1
            yield from check_label_selector(f"{field}.{key}", label_selector(peer[key]))
    block = peer.get("ipBlock")
    if block is not None:
        yield from _check_block(f"{field}.ipBlock", block)
        if given:
            yield forbidden(field, "may not specify both ipBlock and another peer")
    elif not given:
        yield required(field, "must specify a peer")


def _check_block(field: str, block: Json) -> Causes:
    text = block.get("cidr", "")
    if not text:
        yield required(f"{field}.cidr")
        return
    problems = tuple(check_cidr(f"{field}.cidr", text))
    yield from problems
    for index, hole in enumerate(block.get("except") or []):
        where = f"{field}.except[{index}]"
        wrong = tuple(check_cidr(where, hole))
        yield from wrong
        if not (problems or wrong or _is_part(hole, text)):
            yield invalid(where, hole, "must be a strict subset of `cidr`")


def _is_part(hole: str, block: str) -> bool:
    inner = ipaddress.ip_network(hole, strict=False)
    outer = ipaddress.ip_network(block, strict=False)
    return (
        inner.version == outer.version
        and inner.prefixlen > outer.prefixlen
        and inner.network_address in outer
    )


def _ingress_warnings(old: Json | None, new: Json) -> Iterator[str]:
    # upstream: ingress/strategy.go:WarningsOnCreate
    if old is None and _CLASS_ANNOTATION in (new["metadata"].get("annotations") or {}):
        use = "please use 'spec.ingressClassName' instead"
        yield f'annotation "{_CLASS_ANNOTATION}" is deprecated, {use}'


def _policy_warnings(_: Json | None, policy: Json) -> Iterator[str]:
    return network_policy_warnings(policy)


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "ingressclasses.networking.k8s.io": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(check_ingress_class),
            reports_update_first=True,
        )
    ),
    "ingresses.networking.k8s.io": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(check_new_ingress),
            changed=json_check(check_ingress),
            subresources={"status": check_ingress_status},
        ),
        warnings=_ingress_warnings,
        storage_prefix="ingress",
    ),
    # upstream: ipaddress/strategy.go:noopNameGenerator
    "ipaddresses.networking.k8s.io": ResourceStrategy(
        has_random_suffix=False, rules=KindRules(new=json_check(check_ip_address))
    ),
    "networkpolicies.networking.k8s.io": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(check_network_policy),
            reports_changed_twice=True,
        ),
        warnings=_policy_warnings,
    ),
    "servicecidrs.networking.k8s.io": ResourceStrategy(
        accepts_status_on_create=True,
        updates_status=True,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(check_service_cidr),
            update=check_service_cidr_update,
        ),
        resets_fields=False,
    ),
}
