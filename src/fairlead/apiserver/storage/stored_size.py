"""The size of an object as etcd would store it, and the limits of etcd and its client.

Upstream stores built-in kinds as protobuf and custom resources as JSON. The size of the protobuf
message is estimated from the object and its schema; the message itself is not built.

upstream: etcd's server/etcdserver/v3_server.go:processInternalRaftRequestOnce,
etcd's client/v3/options.go:defaultMaxCallSendMsgSize
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.model import Schema, Type, schema_of

OBJECT_BYTES_MAX: Final = 3 << 19  # Limited by etcd's --max-request-bytes.
MESSAGE_BYTES_MAX: Final = 2 << 20  # Limited by the gRPC client, which refuses first.
_TAG_BYTES: Final = 2
_NUMBER_BYTES: Final = 4
_ENTRY_BYTES: Final = 6  # The bytes of an entry in a map of strings, in addition to the strings.

_encode: Final = msgspec.json.Encoder().encode


def require_storable(kind: Kind, obj: Json, text: bytes) -> None:
    """Refuse an object that is too large for etcd.

    `text` is the JSON text of `obj`. Raises ApiError 500.
    """
    if len(text) <= OBJECT_BYTES_MAX:  # The protobuf message is shorter than the text.
        return
    size = stored_size(kind, obj, text)
    if size > MESSAGE_BYTES_MAX:
        why = f"trying to send message larger than max ({size} vs. {MESSAGE_BYTES_MAX})"
        raise ApiError("", 500, f"rpc error: code = ResourceExhausted desc = {why}")
    if size > OBJECT_BYTES_MAX:
        raise ApiError("", 500, "etcdserver: request is too large")


def stored_size(kind: Kind, obj: Json, text: bytes) -> int:
    """Return the number of bytes that etcd would store for `obj`, whose JSON text is `text`."""
    schema = None if kind.is_custom else schema_of(kind.stored_as, kind.kind)
    return len(text) if schema is None else _size(schema, obj)


def _size(schema: Schema, value: Any) -> int:
    """Return the size of `value` in protobuf, or as JSON if `value` does not match `schema`."""
    match schema.type, value:
        case Type.OBJECT, dict():
            fields = schema.fields
            return sum(
                _framed(_size(fields[name].schema, part))
                if name in fields
                else len(name) + len(_encode(part))
                for name, part in value.items()
            )
        case Type.MAP, dict() if schema.items is not None:
            items = schema.items
            if items.type is Type.STRING and all(type(part) is str for part in value.values()):
                texts = "".join((*value, *value.values())).encode(errors="replace")
                return len(texts) + _ENTRY_BYTES * len(value)
            return sum(
                _framed(_framed(len(name.encode())) + _framed(_size(items, part)))
                for name, part in value.items()
            )
        case Type.LIST, list() if schema.items is not None:
            items = schema.items
            return sum(_framed(_size(items, part)) for part in value)
        case Type.BYTES, str():
            return len(value) * 3 // 4
        case _, str():
            return len(value.encode(errors="replace"))
        case _, None | bool() | int() | float():
            return _NUMBER_BYTES
        case _:
            return len(_encode(value))


def _framed(size: int) -> int:
    """Return `size` plus the sizes of a protobuf tag and of the encoded length."""
    return size + _TAG_BYTES + (size > 0x7F) + (size > 0x3FFF) + (size > 0x1FFFFF)
