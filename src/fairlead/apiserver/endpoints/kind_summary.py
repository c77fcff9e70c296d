"""The table of served kinds in COMPATIBILITY.md: verbs, subresources and patch formats.

`tools/api_table.py` writes it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.apiserver.kind import VERBS, Kind
from fairlead.apiserver.registry.served_kinds import ServedKinds

_PATCHES: Final = "JSON, merge, strategic, apply"
_CUSTOM_PATCHES: Final = "JSON, merge, apply"

# Kind, state, remarks.
Row = tuple[str, str, str]


def rows(registry: ServedKinds) -> Iterator[Row]:
    """One row for each kind, in the order of discovery."""
    for kind in registry.all_kinds():
        facts = [_verbs(kind), *_subresources(kind), *_patches(kind)]
        yield f"{kind.api_version} {kind.kind}", "supported", "; ".join(facts)


def _verbs(kind: Kind) -> str:
    if set(kind.verbs) == set(VERBS):
        return "all verbs"
    absent = [verb for verb in VERBS if verb not in kind.verbs]
    if len(absent) == 1:
        return f"all verbs but {absent[0]}"
    return ", ".join(kind.verbs)


def _subresources(kind: Kind) -> list[str]:
    return [", ".join(f"/{part.name}" for part in kind.subresources)] if kind.subresources else []


def _patches(kind: Kind) -> list[str]:
    if "patch" not in kind.verbs:
        return []
    return [f"patches: {_CUSTOM_PATCHES if kind.is_custom else _PATCHES}"]
