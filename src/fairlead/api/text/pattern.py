"""Regular expressions from users, matched by RE2.

For every pattern, RE2 takes time linear in the length of the text. Python's `re` takes a minute for
`(a+)+$` and a text of thirty letters.

upstream: Go's regexp, which has RE2's syntax
"""

from __future__ import annotations

from typing import Any, Final

import re2

_QUIET: Final = re2.Options()
_QUIET.log_errors = False


def compiled_pattern(expression: str) -> Any:
    """Compile `expression`; raises ValueError if it is invalid.

    The result has the methods `search` and `finditer`, as in `re`. Its property `programsize` is
    the number of states. RE2 may try each state at each letter, so a pattern with thousands of
    states is slow.
    """
    try:
        return re2.compile(expression, _QUIET)
    except re2.error as cause:
        raise ValueError(_text(cause)) from None


def _text(cause: Exception) -> str:
    message = cause.args[0] if cause.args else ""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
