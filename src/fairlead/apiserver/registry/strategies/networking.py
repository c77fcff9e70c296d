"""The strategies of networking.k8s.io.

upstream: pkg/registry/networking/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.registry.warning.network import network_policy_warnings

_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"


def _ingress_warnings(old: Json | None, ingress: Json) -> Iterator[str]:
    # upstream: ingress/strategy.go:WarningsOnCreate
    if old is None and _INGRESS_CLASS in (ingress["metadata"].get("annotations") or {}):
        use = "please use 'spec.ingressClassName' instead"
        yield f'annotation "{_INGRESS_CLASS}" is deprecated, {use}'


def _policy_warnings(_: Json | None, policy: Json) -> Iterator[str]:
    return network_policy_warnings(policy)


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "ingresses.networking.k8s.io": ResourceStrategy(
        warnings=_ingress_warnings, storage_prefix="ingress"
    ),
    # upstream: ipaddress/strategy.go:noopNameGenerator
    "ipaddresses.networking.k8s.io": ResourceStrategy(has_random_suffix=False),
    "networkpolicies.networking.k8s.io": ResourceStrategy(warnings=_policy_warnings),
    "servicecidrs.networking.k8s.io": ResourceStrategy(
        accepts_status_on_create=True,
        updates_status=True,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        resets_fields=False,
    ),
}
