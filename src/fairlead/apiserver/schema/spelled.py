"""Objects as they were spelled: JSON whose very text upstream keeps.

A field of the type RawExtension holds the bytes that came in, blanks included, and is compared as
such: what is the same by its value, but spelled otherwise, is a change. An answer shows it without
its blanks, and so does what a patch is applied to.

upstream: apimachinery/pkg/runtime/extension.go:RawExtension
"""

from __future__ import annotations

from typing import Any

import msgspec


class Spelled(dict[str, Any]):
    """An object that knows how it was spelled."""

    __slots__ = ("text",)

    def __init__(self, content: dict[str, Any], text: bytes) -> None:
        """`text` is JSON of `content`."""
        super().__init__(content)
        self.text = text


class _Revision(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"")


def with_spelled_data(obj: dict[str, Any], body: bytes) -> dict[str, Any]:
    """`obj`, which was read from `body` (JSON), with a member `data` that knows its spelling."""
    data = obj.get("data")
    if not isinstance(data, dict):
        return obj
    try:
        text = bytes(msgspec.json.decode(body, type=_Revision).data)
    except msgspec.MsgspecError:
        return obj
    return {**obj, "data": Spelled(data, text)} if text else obj


def is_respelled(before: Any, after: Any) -> bool:
    """Whether `after` is spelled otherwise than `before`; nobody knows of what was read back.

    What is taken over from `before` has lost its blanks on the way.
    """
    if not isinstance(before, Spelled):
        return False
    is_sent = isinstance(after, Spelled) and after is not before
    return before.text != (after.text if is_sent else msgspec.json.encode(after))
