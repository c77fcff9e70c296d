"""RawExtension fields, whose JSON text upstream keeps byte by byte.

Such a field counts as changed even if only the formatting of its text differs. Responses contain
the value as compact JSON, and patches are applied to this compact form.

upstream: apimachinery/pkg/runtime/extension.go:RawExtension
"""

from __future__ import annotations

from typing import Any

import msgspec


class RawObject(dict[str, Any]):
    """A JSON object with its original text."""

    __slots__ = ("text",)

    def __init__(self, content: dict[str, Any], text: bytes) -> None:
        """`text` is the original JSON text of `content`."""
        super().__init__(content)
        self.text = text


class _Revision(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"")


def with_raw_data(obj: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Return `obj` with its field `data` replaced by a RawObject, which keeps the JSON text.

    The text comes from `body`, the JSON from which `obj` was parsed. If `data` is not an object,
    `obj` is returned unchanged.
    """
    data = obj.get("data")
    if not isinstance(data, dict):
        return obj
    try:
        text = bytes(msgspec.json.decode(body, type=_Revision).data)
    except msgspec.MsgspecError:
        return obj
    return {**obj, "data": RawObject(data, text)} if text else obj


def differs_as_text(before: Any, after: Any) -> bool:
    """Return whether the texts of `before` and `after` differ; False if `before` is no RawObject.

    The text of `before` is its original text. If `after` is a RawObject other than `before`, the
    client has sent it, and the text of `after` is its original text too. In all other cases, the
    text of `after` is compact JSON, the form in which clients read the field.
    """
    if not isinstance(before, RawObject):
        return False
    is_sent = isinstance(after, RawObject) and after is not before
    return before.text != (after.text if is_sent else msgspec.json.encode(after))
