"""What a refused patch is told with: what it was, or what it made of the object.

upstream: apiserver/pkg/endpoints/handlers/patch.go:applyPatchToObject, jsonPatcher
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead.api.json import Json
from fairlead.api.text.field_problem import invalid
from fairlead.apiserver.error import ApiError, Cause
from fairlead.apiserver.gotext.value import format_v
from fairlead.apiserver.patch.jsonpatch.patched_document import document_text
from fairlead.apiserver.schema.model import Schema


@dataclass(frozen=True, slots=True)
class PatchedObject:
    """What a patch made, of that type, and the `document` that it is, made when it is shown."""

    schema: Schema | None
    made: Any
    document: Callable[[], Any]

    def text(self) -> str:
        """As a refusal shows it."""
        return document_text(self.schema, self.document())


@dataclass(frozen=True, slots=True)
class PatchBody:
    """What was sent, as far as nobody has followed it, shown as Go prints a map."""

    sent: Json

    def text(self) -> str:
        """As a refusal shows it."""
        return format_v(self.sent)


PatchSubject = PatchedObject | PatchBody


def invalid_patch(told_of: PatchSubject, why: str) -> ApiError:
    """422, of no object at all."""
    cause = Cause("FieldValueInvalid", invalid(told_of.text(), why), "patch")
    message = f' "" is invalid: {cause}'
    return ApiError("Invalid", 422, message, causes=(cause,), has_details=True)
