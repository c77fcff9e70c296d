"""The strategies of resource.k8s.io.

upstream: pkg/registry/resource/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.kind import RESOURCE_SLICE
from fairlead.apiserver.registry.selectable_field import text_field
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy

STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "deviceclasses.resource.k8s.io": ResourceStrategy(returns_deleted_object=True),
    "resourceclaims.resource.k8s.io": ResourceStrategy(
        metadata_with_status=ONLY_MANAGED_FIELDS,
        returns_deleted_object=True,
        null_when_empty=(("spec", "devices", "requests"),),
        reset_fields={"status": (("metadata",),)},
    ),
    "resourceclaimtemplates.resource.k8s.io": ResourceStrategy(
        returns_deleted_object=True,
        null_when_empty=(("spec", "spec", "devices", "requests"),),
    ),
    RESOURCE_SLICE.resource: ResourceStrategy(
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
