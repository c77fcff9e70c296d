"""What a refused patch is told with: what it was, or what it made of the object.

upstream: apiserver/pkg/endpoints/handlers/patch.go:applyPatchToObject, jsonPatcher
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlead.api.field_problem import invalid
from fairlead.apiserver.error import ApiError, Cause
from fairlead.apiserver.patch.go_text import go_text
from fairlead.apiserver.schema.declared import as_declared
from fairlead.apiserver.schema.model import Schema, Type
from fairlead.apiserver.serving.encoding import encode
from fairlead.apiserver.storage import Json


@dataclass(frozen=True, slots=True)
class Shown:
    """What a patch made of what: shown as upstream's patcher writes it.

    Objects that it went through have their members sorted; others are as they were written, by
    the server or in the patch.
    """

    schema: Schema | None
    old: Json
    made: Json

    def text(self) -> str:
        """As a refusal shows it."""
        return encode(_touched(self.schema, self.old, self.made)).decode()


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent, as far as nobody has followed it, shown as Go prints a map."""

    sent: Json

    def text(self) -> str:
        """As a refusal shows it."""
        return go_text(self.sent)


Told = Shown | Sent


def invalid_patch(told_of: Told, why: str) -> ApiError:
    """422, of no object at all."""
    cause = Cause("FieldValueInvalid", invalid(told_of.text(), why), "patch")
    message = f' "" is invalid: {cause}'
    return ApiError("Invalid", 422, message, causes=(cause,), has_details=True)


def _touched(schema: Schema | None, old: Any, made: Any) -> Any:
    # upstream: github.com/evanphx/json-patch: what is not looked into stays as it was written
    if old == made:
        return as_declared(schema, made)
    if not isinstance(made, dict) or not isinstance(old, dict):
        return made
    return {key: _touched(_inside(schema, key), old.get(key), made[key]) for key in sorted(made)}


def _inside(schema: Schema | None, key: str) -> Schema | None:
    if schema is None or schema.type is not Type.OBJECT:
        return schema.items if schema is not None else None
    known = schema.fields.get(key)
    return known.schema if known is not None else None
