"""Why an expression cannot be asked, or has no answer, in the words of CEL's implementation in Go.

upstream: cel-go's common/types/*.go
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cel_expr_python import cel

# upstream: cel-go's cel/program.go, interpreter/runtimecost.go
CALL_LIMIT: Final = "operation cancelled: actual cost limit exceeded"
# What is said of a name that is asked of what has no names in it; upstream says which.
NO_NAMES: Final = "Applying SELECT to non-message type"
_PATTERN: Final = re.compile(r"^invalid regular expression: (.*)$", re.DOTALL)
_PATTERNS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
_NOISE: Final = re.compile(r"^[A-Z_]+: ")
_STATUS: Final = re.compile(r"^INVALID_ARGUMENT: |\s*\[INVALID_ARGUMENT\]$")
_UNKNOWN_PATH: Final = re.compile(r"undeclared reference to '([A-Za-z_]\w*\.[\w.]+)'")
_TOLD: Final = (
    (re.compile(r"^Key not found in map : \"(.*)\"$"), r"no such key: \1"),
    (re.compile(r"^Key not found in map : (.*)$"), r"no such key: \1"),
    (
        re.compile(r"^No matching overloads found : (?:\(.*\)\.)?size\(.*$", re.DOTALL),
        "no such overload: size",
    ),
    (re.compile(r"^No matching overloads found.*$", re.DOTALL), "no such overload"),
    (
        re.compile(r"^Index error: expected integer type, got (\w+)$"),
        r"unsupported index type '\1' in list",
    ),
    (
        re.compile(r"^(decimal clause can only be used on) numbers"),
        r"error during formatting: \1 integers",
    ),
    (re.compile(r"^Index error: index=(-?\d+) size=\d+$"), r"index out of bounds: \1"),
    (re.compile(r"^divide by zero$"), "division by zero"),
    (re.compile(r"^modulus by zero$"), "modulus by zero"),
    (
        re.compile(r"^cannot convert string to (\w+)$"),
        r"type conversion error from 'string' to '\1'",
    ),
    (re.compile(r"^Type conversion error"), "type conversion error"),
    (
        re.compile(r"^String to (Duration) conversion failed$"),
        r"type conversion error from 'string' to 'google.protobuf.\1'",
    ),
    (re.compile(r"^malformed UTF-8 bytes$"), "invalid UTF-8 in bytes, cannot convert to string"),
    (re.compile(r"^\w+ out of uint64 range$"), "unsigned integer overflow"),
    (re.compile(r"^\w+ out of int64 range$"), "integer overflow"),
    (re.compile(r"^INTERNAL: Iteration budget exceeded.*$"), CALL_LIMIT),
    # Values of kinds that functions of ours do not have.
    (re.compile(r"^(Non-CEL|Unexpected) value type .*$", re.DOTALL), "no such overload"),
    (re.compile(r"^.*not supported between instances of .*$", re.DOTALL), "no such overload"),
    (re.compile(r"^unsupported operand type.*$", re.DOTALL), "no such overload"),
    (re.compile(r"^vector::reserve$"), "lists.range: size must be non-negative"),
    (re.compile(r"^No overload found in reference resolve step.*$"), "no such overload"),
    (re.compile(r"^'.*': (quantities must match)", re.DOTALL), r"\1"),
)


def compile_problem(expression: str, cause: RuntimeError) -> str:
    """Why `expression` cannot be compiled, with the place.

    Of a path that begins with an unknown name the whole is told to be unknown; upstream tells the
    name.
    """
    said = _STATUS.sub("", _STATUS.sub("", str(cause)))
    found = _UNKNOWN_PATH.search(said)
    at = expression.find(found[1]) if found else -1
    if found is None or at < 0:
        return said
    before, name = expression[:at], found[1].partition(".")[0]
    line, column = before.count("\n"), at - (before.rfind("\n") + 1)
    text = expression.split("\n")[line]
    why = f"undeclared reference to '{name}' (in container '')"
    return f"ERROR: <input>:{line + 1}:{column + 1}: {why}\n | {text}\n | {'.' * column}^"


def problem_of(result: cel.Value) -> str:
    """The text of a result that is an error."""
    return _told(_NOISE.sub("", str(result.plain_value())))


def failure_of(cause: Exception) -> str:
    """Why the library gave no result at all."""
    said = _told(str(cause))
    return _told(_STATUS.sub("", _STATUS.sub("", said)))


def _told(said: str) -> str:
    pattern = _PATTERN.match(said)
    if pattern is not None:
        return pattern_problem(pattern[1])
    for form, told in _TOLD:
        said = form.sub(told, said)
    return said


def pattern_problem(said: str) -> str:
    """Why a text is no pattern, said by the library that compiles it, in the words of Go's.

    upstream: Go's regexp/syntax/parse.go:ErrorCode
    """
    what, _, where = said.partition(": ")
    return f"error parsing regexp: {_PATTERNS.get(what, what)}: `{where}`"
