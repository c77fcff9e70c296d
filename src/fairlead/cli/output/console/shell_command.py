"""Breaks a shell command into lines that can be copied into a shell."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_CONTINUED: Final = " \\"


def command_lines(command: str, width: int) -> list[str]:
    """Return `command` as lines of at most `width` characters, broken between its words.

    Every line except the last ends with a backslash. A word that is longer than `width` is not
    broken.
    """
    if len(command) <= width:
        return [command]
    lines = [""]
    for word in _WORD.findall(command):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and len(longer + _CONTINUED) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [*(line + _CONTINUED for line in lines[:-1]), lines[-1]]
