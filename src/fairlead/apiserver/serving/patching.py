"""Patching: what an object becomes by the patch in a body, by its media type.

upstream: apiserver/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.apiserver.error import bad_request
from fairlead.apiserver.merge_patch import merge_patch
from fairlead.apiserver.serving.body import media_type_of
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.options import WriteOptions
from fairlead.apiserver.serving.refusal import unknown_patch
from fairlead.apiserver.storage import Json

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

Patched = tuple[Json, str]


def patched(call: Call, _: WriteOptions, old: Json) -> Patched:
    """What `old` becomes, and the operation as managedFields call it. Raises ApiError."""
    content_type = call.request.headers.get("content-type", "")
    match media_type_of(content_type) if content_type else "":
        case "application/merge-patch+json" | "application/strategic-merge-patch+json":
            return merge_patch(old, _parsed(call)), "Update"
        case _:
            raise unknown_patch()


def _parsed(call: Call) -> Any:
    try:
        return msgspec.json.decode(call.request.body)
    except msgspec.DecodeError as cause:
        raise bad_request(f"error decoding patch: {cause}") from None
