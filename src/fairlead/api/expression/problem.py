"""Why an expression has no answer, in the words of CEL's implementation in Go.

upstream: cel-go's common/types/*.go
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cel_expr_python import cel

_NOISE: Final = re.compile(r"^[A-Z_]+: ")
_TOLD: Final = (
    (re.compile(r"^Key not found in map : \"(.*)\"$"), r"no such key: \1"),
    (re.compile(r"^Key not found in map : (.*)$"), r"no such key: \1"),
    (re.compile(r"^No matching overloads found.*$", re.DOTALL), "no such overload"),
    (re.compile(r"^Applying SELECT to non-message type$"), "no such overload"),
    (re.compile(r"^Index error: index=(-?\d+) size=\d+$"), r"index out of bounds: \1"),
    (re.compile(r"^divide by zero$"), "division by zero"),
    (re.compile(r"^modulus by zero$"), "modulus by zero"),
)


def problem_of(result: cel.Value) -> str:
    """The text of a result that is an error."""
    said = _NOISE.sub("", str(result.plain_value()))
    for form, told in _TOLD:
        said = form.sub(told, said)
    return said
