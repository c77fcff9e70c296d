"""The strategy of CustomResourceDefinitions.

upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.definition.status import with_deletion_requested
from fairlead.apiserver.apiextensions.definition.strategy import (
    changed_definition,
    new_definition,
)
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.registry.strategy import PreparationContext, ResourceStrategy
from fairlead.apiserver.validation.meta.kind_rules import KindRules


def _prepare_for_create(definition: Json, preparation: PreparationContext) -> Json:
    return new_definition(definition, preparation.storage)


def _prepare_for_update(old: Json, new: Json, preparation: PreparationContext) -> Json:
    return changed_definition(old, new, preparation.storage)


def mark_definition(definition: Json, now: int, _: int | None) -> Json:
    """`definition` marked for deletion; a controller deletes its objects first."""
    return with_deletion_requested(definition, now)


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    CUSTOM_RESOURCE_DEFINITION.resource: ResourceStrategy(
        prepare_for_create=_prepare_for_create,
        allow_unconditional_update=False,
        prepare_for_update=_prepare_for_update,
        rules=KindRules(accepts_any_finalizer=True, metadata_validations=0),
        begin_deletion=mark_definition,
        repeat_deletion=mark_definition,
        returns_deleted_object=True,
        reset_fields={"status": (("metadata",),)},
        storage_prefix="apiextensions.k8s.io/customresourcedefinitions",
    )
}
