"""Serializes JSON values as JSON or YAML text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import yaml

from fairlead.apiserver.negotiation.media_type import YAML

BLOCK_YAML_BYTES_MAX: Final = 256 << 10
# characters that JSON strings may contain, but YAML excludes or reads as line breaks (YAML 1.1,
# 5.1)
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


class _Dumper(yaml.CSafeDumper):
    """Writes subclasses of dict as dicts, and never uses anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True, so that repeated parts of a document are written in full."""
        return True


_Dumper.add_multi_representer(dict, _Dumper.represent_dict)


def text_of(media_type: str, value: Any) -> bytes:
    """Return `value` as YAML if `media_type` is YAML, otherwise as JSON.

    A long YAML document is written as JSON on one line, which is valid YAML. Indented YAML would
    block all other requests for a second per megabyte.
    """
    text = encode(value)
    if media_type != YAML:
        return text
    if len(text) > BLOCK_YAML_BYTES_MAX:
        escaped = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode())
        return escaped.encode() + b"\n"
    dumped: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=80)
    return dumped.encode()
