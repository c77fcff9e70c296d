"""The strategies of networking.k8s.io.

upstream: pkg/registry/networking/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.registry.warning.network import network_policy_warnings
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.networking import ingress, ip_address
from fairlead.apiserver.validation.status import check_ingress_status

_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"


def _ingress_warnings(old: Json | None, new: Json) -> Iterator[str]:
    # upstream: ingress/strategy.go:WarningsOnCreate
    if old is None and _INGRESS_CLASS in (new["metadata"].get("annotations") or {}):
        use = "please use 'spec.ingressClassName' instead"
        yield f'annotation "{_INGRESS_CLASS}" is deprecated, {use}'


def _policy_warnings(_: Json | None, policy: Json) -> Iterator[str]:
    return network_policy_warnings(policy)


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "ingressclasses.networking.k8s.io": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(ingress.check_ingress_class),
            reports_update_first=True,
        )
    ),
    "ingresses.networking.k8s.io": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(ingress.check_new_ingress),
            changed=json_check(ingress.check_ingress),
            subresources={"status": check_ingress_status},
        ),
        warnings=_ingress_warnings,
        storage_prefix="ingress",
    ),
    # upstream: ipaddress/strategy.go:noopNameGenerator
    "ipaddresses.networking.k8s.io": ResourceStrategy(
        has_random_suffix=False, rules=KindRules(new=json_check(ip_address.check_ip_address))
    ),
    "networkpolicies.networking.k8s.io": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(ingress.check_network_policy),
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
            new=json_check(ip_address.check_service_cidr),
            update=ip_address.check_service_cidr_update,
        ),
        resets_fields=False,
    ),
}
