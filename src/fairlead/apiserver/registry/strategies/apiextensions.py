"""The strategy of CustomResourceDefinitions.

upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.definition.rule_cost import ExpressionLengthBudget
from fairlead.apiserver.apiextensions.definition.status import mark_definition, with_stored_versions
from fairlead.apiserver.apiextensions.definition.validation import causes, changed_causes
from fairlead.apiserver.error import Cause, invalid
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.registry.strategy import PreparationContext, ResourceStrategy
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.meta.field import bounded
from fairlead.apiserver.validation.meta.kind_rules import KindRules

# --- preparation ---------------------------------------------------------------------------------


def new_definition(definition: Json, _: Storage) -> Json:
    """Return the new `definition` with status.storedVersions set.

    Raises ApiError 422 if the definition is invalid.
    """
    completed = with_stored_versions(definition)
    _require_valid(completed, causes(completed, ExpressionLengthBudget()))
    return completed


def changed_definition(old: Json, new: Json, _: Storage) -> Json:
    """Return the updated definition `new`, with its storage version in status.storedVersions.

    Raises ApiError 422 if the definition is invalid.
    """
    completed = with_stored_versions(new)
    length_budget = None if _schemas(old) == _schemas(completed) else ExpressionLengthBudget()
    found = (*causes(completed, length_budget), *changed_causes(old, completed))
    _require_valid(completed, found)
    return completed


def _schemas(definition: Json) -> list[Any]:
    """Return the schemas of all versions of a definition."""
    return [version.get("schema") for version in definition["spec"].get("versions") or ()]


def _require_valid(definition: Json, causes_found: Iterable[Cause]) -> None:
    bounded_causes = tuple(bounded(causes_found))
    if bounded_causes:
        name = definition["metadata"].get("name", "")
        raise invalid(CUSTOM_RESOURCE_DEFINITION, "", name, bounded_causes)


def _prepare_for_create(definition: Json, preparation: PreparationContext) -> Json:
    return new_definition(definition, preparation.storage)


def _prepare_for_update(old: Json, new: Json, preparation: PreparationContext) -> Json:
    return changed_definition(old, new, preparation.storage)


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
