"""Signature: which functions there are, and what kinds they take and give.

    .name: identity(kinds…) result; identity(kinds…) result

A name that begins with a dot is a member's: its first kind is what it is called on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from fairlead.cel.extension import EXTENSION
from fairlead.cel.kind import Kind, kind_of, kinds_of
from fairlead.cel.standard import STANDARD

_SHORT: Final = (("%", "kubernetes.authorization."), ("$", "kubernetes."), ("?(", "optional_type("))
_OVERLOAD: Final = re.compile(r"([^\s(]+)\((.*)\) (.+)")
_LINE: Final = re.compile(r"^(\S+):((?:\s.*)(?:\n .*)*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload of a function."""

    id: str
    taken: tuple[Kind, ...]
    result: Kind
    is_member: bool


@cache
def signatures() -> dict[str, tuple[Signature, ...]]:
    """All of them by the names of the functions."""
    found: dict[str, tuple[Signature, ...]] = {}
    for name, text in _LINE.findall(STANDARD + EXTENSION):
        own, is_member = name.removeprefix("."), name.startswith(".")
        pieces = " ".join(text.split()).split("; ")
        made = tuple(_signature(piece, is_member=is_member) for piece in pieces)
        found[own] = found.get(own, ()) + made
    return found


def _signature(text: str, *, is_member: bool) -> Signature:
    matched = _OVERLOAD.fullmatch(text)
    if matched is None:
        raise ValueError(f"no signature: {text}")
    own, taken, result = matched.groups()
    return Signature(own, kinds_of(_long(taken)), kind_of(_long(result)), is_member)


def _long(text: str) -> str:
    for short, meant in _SHORT:
        text = text.replace(short, meant)
    return text
