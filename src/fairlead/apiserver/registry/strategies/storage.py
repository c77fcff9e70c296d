"""The strategies of storage.k8s.io.

upstream: pkg/registry/storage/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import (
    CSI_NODE,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
)
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.registry.warning.pod import OLD_LABELS
from fairlead.apiserver.validation.core.volume import persistent_volume
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.storage import csi

_TOKENS_IN_SECRETS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
    "prevent possible logging of tokens in volume attributes"
)


def _storage_class_warnings(_: Json | None, found: Json) -> Iterator[str]:
    # upstream: pkg/api/storage/util.go:GetWarningsForStorageClass
    for index, term in enumerate(found.get("allowedTopologies") or ()):
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key = expression.get("key", "")
            if key in OLD_LABELS:
                field = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                yield f"{field}: {key} is {OLD_LABELS[key]}"


def _driver_warnings(old: Json | None, new: Json) -> Iterator[str]:
    """Warns when a driver starts to request additional tokens."""
    # upstream: pkg/registry/storage/csidriver/strategy.go:WarningsOnCreate, WarningsOnUpdate
    token_requests = new["spec"].get("tokenRequests") or []
    if not token_requests or new["spec"].get("serviceAccountTokenInSecrets") is not None:
        return
    if old is None or (old["spec"].get("tokenRequests") or []) != token_requests:
        yield _TOKENS_IN_SECRETS


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "csidrivers.storage.k8s.io": ResourceStrategy(
        allow_unconditional_update=False,
        has_generation_once_changed=True,
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(csi.check_driver),
            reports_changed_twice=True,
        ),
        returns_deleted_object=True,
        warnings=_driver_warnings,
    ),
    CSI_NODE.resource: ResourceStrategy(
        allow_unconditional_update=False,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=2,
            metadata_comparisons=1,
            new=json_check(csi.check_node),
            update=csi.check_node_update,
            reports_changed_twice=True,
        ),
        returns_deleted_object=True,
        null_when_empty=(("spec", "drivers"),),
    ),
    "csistoragecapacities.storage.k8s.io": ResourceStrategy(
        allow_unconditional_update=False,
        rules=KindRules(name=dns_subdomain_problems, new=json_check(csi.check_capacity)),
    ),
    STORAGE_CLASS.resource: ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems, new=json_check(persistent_volume.check_storage_class)
        ),
        returns_deleted_object=True,
        warnings=_storage_class_warnings,
    ),
    VOLUME_ATTACHMENT.resource: ResourceStrategy(
        allow_unconditional_update=False,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=2,
            metadata_comparisons=1,
            new=json_check(csi.check_new_attachment),
            changed=json_check(csi.check_attachment),
            reports_changed_twice=True,
        ),
        returns_deleted_object=True,
        reset_fields={"status": (("metadata",),)},
    ),
    VOLUME_ATTRIBUTES_CLASS.resource: ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(csi.check_attributes_class),
            reports_update_first=True,
        ),
        returns_deleted_object=True,
    ),
}
