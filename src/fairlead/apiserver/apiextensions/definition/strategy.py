"""What a server does with definitions when they are new and when they change.

upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.definition.rule_cost import Reading
from fairlead.apiserver.apiextensions.definition.status import with_stored_versions
from fairlead.apiserver.apiextensions.definition.validation import causes, changed_causes
from fairlead.apiserver.error import Cause, invalid
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.meta.field import bounded


def new_definition(definition: Json, _: Storage) -> Json:
    """`definition`, complete, as it is stored for the first time. Raises ApiError 422."""
    made = with_stored_versions(definition)
    _refuse(made, causes(made, Reading()))
    return made


def changed_definition(old: Json, new: Json, _: Storage) -> Json:
    """`new` as it is stored over `old`. Raises ApiError 422."""
    made = with_stored_versions(new)
    reading = None if _schemas(old) == _schemas(made) else Reading()
    _refuse(made, (*causes(made, reading), *changed_causes(old, made)))
    return made


def _schemas(definition: Json) -> list[Any]:
    """Schemas that stay as they are keep their rules, whatever is thought of these today."""
    return [version.get("schema") for version in definition["spec"].get("versions") or ()]


def _refuse(definition: Json, found: Iterable[Cause]) -> None:
    all_found = tuple(bounded(found))
    if all_found:
        name = definition["metadata"].get("name", "")
        raise invalid(CUSTOM_RESOURCE_DEFINITION, "", name, all_found)
