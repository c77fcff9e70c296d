"""The strategy of Nodes: their selectable fields, and warnings about removed fields.

upstream: pkg/registry/core/node/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import MirroredField, ResourceStrategy, text_field
from fairlead.apiserver.validation.core.node import check_node, check_node_update
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules
from fairlead.apiserver.validation.status import check_node_status


def _node_warnings(_: Json | None, node: Json) -> Iterator[str]:
    # upstream: pkg/registry/core/node/strategy.go:fieldIsDeprecatedWarnings
    spec = node.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


STRATEGY: Final = ResourceStrategy(
    accepts_status_on_create=True,
    rules=KindRules(
        name=dns_subdomain_problems,
        new=check_node,
        update=check_node_update,
        subresources={"status": check_node_status},
    ),
    # upstream: pkg/apis/core/v1/conversion.go:Convert_v1_NodeSpec_To_core_NodeSpec
    mirrored=MirroredField("spec", "podCIDR", "podCIDRs"),
    warnings=_node_warnings,
    selectable_fields={"spec.unschedulable": text_field("spec", "unschedulable", absent="false")},
    selects_namespace=False,
    storage_prefix="minions",
)
