"""Values that are one JSON value, but may be a message in protobuf: timestamps, quantities.

upstream: apimachinery/pkg/apis/meta/v1/time_proto.go, pkg/api/resource, pkg/util/intstr
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_micro_time, format_timestamp
from fairlead.apiserver.protobuf.wire import BYTES, VARINT, Layout, fields, signed
from fairlead.apiserver.schema.gojson.json_text import parse_json
from fairlead.apiserver.schema.model import Type

_INVALID_BYTES: Final = re.compile("[\udc80-\udcff]")
_TIMESTAMP: Final[Mapping[int, Layout]] = {1: ((VARINT,), "Seconds"), 2: ((VARINT,), "Nanos")}
_ONE_TEXT: Final[Mapping[int, Layout]] = {1: ((BYTES,), "String")}
_ONE_RAW: Final[Mapping[int, Layout]] = {1: ((BYTES,), "Raw")}
_INT_OR_STRING: Final[Mapping[int, Layout]] = {
    1: ((VARINT,), "Type"),
    2: ((VARINT,), "IntVal"),
    3: ((BYTES,), "StrVal"),
}


def text(value: bytes) -> str:
    """UTF-8 text; invalid bytes are replaced by U+FFFD."""
    # upstream: encoding/json of texts that were read from protobuf
    return _INVALID_BYTES.sub("\ufffd", value.decode(errors="surrogateescape"))


def _int64(value: int) -> int:
    return signed(value, 64)


def _int32(value: int) -> int:
    return signed(value, 32)


def _timestamp(message: bytes) -> tuple[int, int]:
    """Seconds since 1970, and nanoseconds."""
    parts = dict(fields(message, "Timestamp", _TIMESTAMP))
    return _int64(parts.get(1, 0)), _int32(parts.get(2, 0))


def _time(message: bytes) -> str | None:
    """A timestamp in whole seconds; None if it is not set."""
    # upstream: apimachinery/pkg/apis/meta/v1/time_proto.go:Unmarshal
    return format_timestamp(_timestamp(message)[0] * NANOSECONDS_PER_SECOND) if message else None


def _micro_time(message: bytes) -> str | None:
    if not message:
        return None
    seconds, nanoseconds = _timestamp(message)
    return format_micro_time(seconds * NANOSECONDS_PER_SECOND + nanoseconds)


def _quantity(message: bytes) -> str:
    return text(dict(fields(message, "Quantity", _ONE_TEXT)).get(1, b"0"))


def _int_or_string(message: bytes) -> int | str:
    parts = dict(fields(message, "IntOrString", _INT_OR_STRING))
    return text(parts.get(3, b"")) if parts.get(1) else _int32(parts.get(2, 0))


def _any(message: bytes) -> Any:
    """The JSON in a RawExtension."""
    raw = dict(fields(message, "RawExtension", _ONE_RAW)).get(1, b"")
    return parse_json(raw) if raw else None


OF_VARINT: Final[Mapping[Type, Callable[[int], Any]]] = {
    Type.INT32: _int32,
    Type.INT64: _int64,
    Type.BOOLEAN: bool,
}
OF_BYTES: Final[Mapping[Type, Callable[[bytes], Any]]] = {
    Type.STRING: text,
    Type.BYTES: lambda value: base64.b64encode(value).decode(),
    Type.NUMBER: lambda value: struct.unpack("<d", value)[0],
    Type.QUANTITY: _quantity,
    Type.INT_OR_STRING: _int_or_string,
    Type.TIME: _time,
    Type.MICRO_TIME: _micro_time,
    Type.ANY: _any,
}
