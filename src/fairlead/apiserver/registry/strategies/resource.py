"""The strategies of resource.k8s.io.

upstream: pkg/registry/resource/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import RESOURCE_SLICE
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy, text_field
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.resource import resource_claim, resource_slice
from fairlead.apiserver.validation.resource.resource_claim import check_claim_status


def _rules(check: Callable[[Json], Causes]) -> KindRules:
    return KindRules(name=dns_subdomain_problems, metadata_validations=0, new=json_check(check))


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "deviceclasses.resource.k8s.io": ResourceStrategy(
        rules=_rules(resource_claim.check_class), returns_deleted_object=True
    ),
    "resourceclaims.resource.k8s.io": ResourceStrategy(
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=replace(
            _rules(resource_claim.check_claim), subresources={"status": check_claim_status}
        ),
        returns_deleted_object=True,
        null_when_empty=(("spec", "devices", "requests"),),
        reset_fields={"status": (("metadata",),)},
    ),
    "resourceclaimtemplates.resource.k8s.io": ResourceStrategy(
        rules=_rules(resource_claim.check_claim_template),
        returns_deleted_object=True,
        null_when_empty=(("spec", "spec", "devices", "requests"),),
    ),
    RESOURCE_SLICE.resource: ResourceStrategy(
        rules=_rules(resource_slice.check_slice),
        returns_deleted_object=True,
        selectable_fields={
            "spec.nodeName": text_field("spec", "nodeName"),
            "spec.driver": text_field("spec", "driver"),
        },
        unselectable_field=(
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}"
        ),
        selects_namespace=False,
    ),
}
