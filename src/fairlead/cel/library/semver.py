"""CEL functions for semantic versions.

upstream: apiserver/pkg/cel/library/semverlib.go, github.com/blang/semver
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, ClassVar, Final

from msgspec import Struct

from fairlead.cel.function import Function, free, is_readable, member, scan

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_LABELS: Final = r"[0-9A-Za-z.-]+"
_FORM: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_LABELS}))?(?:\+{_LABELS})?")


class Semver(Struct, frozen=True, order=True):
    """A semantic version, stored as its sort key, which does not include build metadata."""

    key: tuple[Any, ...]
    type_name: ClassVar[str] = "kubernetes.Semver"


def version_value(text: str) -> Semver:
    """Parse a semantic version. Raises ValueError."""
    return Semver(_version_key(text))


def _version_key(text: str) -> tuple[Any, ...]:
    """Return the sort key of the version `text`: a pre-release sorts before its release.

    The order is that of semver.org, section 11. Raises ValueError if `text` is not a semantic
    version.
    """
    matched = _FORM.fullmatch(text)
    if matched is None:
        raise ValueError(_no_version(text))
    major, minor, patch, pre = matched.groups()
    numbers = (int(major), int(minor), int(patch))
    if pre is None:
        return (*numbers, 1)
    labels = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in pre.split("."))
    return (*numbers, 0, labels)


def _no_version(text: str) -> str:
    """Return the error text for a text that is not a semantic version."""
    parts = text.split(".", 2)
    if len(parts) < 3:
        return "No Major.Minor.Patch elements found"
    for name, part in zip(("major", "minor", "patch"), parts, strict=True):
        digits = re.split(r"[-+]", part, maxsplit=1)[0] if name == "patch" else part
        if not digits.isdecimal():
            return f"Invalid character(s) found in {name} number {json.dumps(digits)}"
        if len(digits) > 1 and digits.startswith("0"):
            shown = f"{name.capitalize()} number must not contain leading zeroes"
            return f"{shown} {json.dumps(digits)}"
    return f"{text!r} is not a semantic version"


def loose_version(text: str) -> str:
    """Return `text` in the form of a semantic version, such as `1.2.0` for `v01.2`.

    Raises ValueError if a text with fewer than three parts has a suffix, such as `1.2-beta`. Other
    invalid texts are not detected here.

    upstream: apiserver/pkg/cel/library/semverlib.go:normalizeAndParse
    """
    parts = [_number(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join((*parts, "0", "0")[:3] if len(parts) < 3 else parts)


def _number(part: str) -> str:
    """Return `part`, one of the parts of a version, with its leading zeros removed."""
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1].isdecimal() else f"0{rest}"


def _version(text: str, is_loose: bool) -> Semver:  # noqa: FBT001 - the language has no keywords
    return version_value(loose_version(text) if is_loose else text)


def _is_version(text: str, is_loose: bool) -> bool:  # noqa: FBT001 - as `_version`
    try:
        _version(text, is_loose)
    except ValueError:
        return False
    return True


def _compare(one: Semver, other: Semver) -> int:
    return (one > other) - (one < other)


def _part(at: int) -> Callable[[Semver], int]:
    return lambda value: int(value.key[at])


_BOTH: Final = (Semver, Semver)
FUNCTIONS: Final[tuple[Function, ...]] = (
    free("semver", (str,), version_value, scan),
    free("semver", (str, bool), _version, scan),
    free("isSemver", (str,), is_readable(version_value), scan),
    free("isSemver", (str, bool), _is_version, scan),
    member("compareTo", _BOTH, _compare),
    member("isGreaterThan", _BOTH, lambda one, other: one > other),
    member("isLessThan", _BOTH, lambda one, other: one < other),
    member("major", (Semver,), _part(0)),
    member("minor", (Semver,), _part(1)),
    member("patch", (Semver,), _part(2)),
)
