"""Serializes JSON values as JSON or YAML text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import yaml

from fairlead.apiserver.negotiation.media_type import YAML

BLOCK_YAML_BYTES_MAX: Final = 256 << 10
# Characters to escape in JSON text that is sent as YAML. JSON strings may contain them, but YAML
# 1.1 (section 5.1) forbids them or reads them as line breaks.
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


class _Dumper(yaml.CSafeDumper):
    """Writes subclasses of dict as dicts, and uses neither anchors nor aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True, so that repeated parts of a document are written in full."""
        return True


_Dumper.add_multi_representer(dict, _Dumper.represent_dict)


def text_of(media_type: str, value: Any) -> bytes:
    """Return `value` as YAML if `media_type` is YAML, otherwise as JSON; both are UTF-8.

    If the JSON text is longer than BLOCK_YAML_BYTES_MAX, the YAML document is the JSON text, which
    is valid YAML. YAML's block style would take a second per megabyte. During this time, the server
    could not handle other requests.
    """
    text = encode(value)
    if media_type != YAML:
        return text
    if len(text) > BLOCK_YAML_BYTES_MAX:
        escaped = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode())
        return escaped.encode() + b"\n"
    dumped: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=80)
    return dumped.encode()
