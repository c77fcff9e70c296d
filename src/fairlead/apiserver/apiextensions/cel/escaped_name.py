"""Escapes field names so that they become CEL identifiers.

upstream: apiserver/pkg/cel/escaping.go
"""

from __future__ import annotations

import re
from typing import Final

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    }
)  # fmt: skip
_ESCAPES: Final = {".": "__dot__", "-": "__dash__", "/": "__slash__"}


def spelled(name: str) -> str:
    """Return `name` escaped as a CEL identifier; for example, `a-b` becomes `a__dash__b`."""
    if name in RESERVED:
        return f"__{name}__"
    if _IDENTIFIER.fullmatch(name) and "__" not in name:
        return name
    text = name.replace("__", "__underscores__")
    return "".join(_ESCAPES.get(character, character) for character in text)
