"""What is served, as a table for people: every kind, with its verbs, parts and patches.

COMPATIBILITY.md has it; `tools/api_table.py` writes it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.apiserver.endpoints.subresources.table import SUBRESOURCE_HANDLERS
from fairlead.apiserver.kind import VERBS, Kind
from fairlead.apiserver.registry.served_kinds import ServedKinds

_PATCHES: Final = "JSON, merge, strategic, apply"
_CUSTOM_PATCHES: Final = "JSON, merge, apply"

# Kind, state, and what there is to say.
Row = tuple[str, str, str]


def rows(registry: ServedKinds) -> Iterator[Row]:
    """One row for each kind, in the order of discovery."""
    for kind in registry.all_kinds():
        served = [part.name for part in kind.subresources if part.name in SUBRESOURCE_HANDLERS]
        missing = [part.name for part in kind.subresources if part.name not in SUBRESOURCE_HANDLERS]
        said = [_verbs(kind), *_parts(served), *_patches(kind)]
        if missing:
            said.append(f"absent: {', '.join(missing)}")
        state = "differs" if missing else "supported"
        yield f"{kind.api_version} {kind.kind}", state, "; ".join(said)


def _verbs(kind: Kind) -> str:
    if set(kind.verbs) == set(VERBS):
        return "all verbs"
    absent = [verb for verb in VERBS if verb not in kind.verbs]
    if len(absent) == 1:
        return f"all verbs but {absent[0]}"
    return ", ".join(kind.verbs)


def _parts(served: list[str]) -> list[str]:
    return [", ".join(f"/{name}" for name in served)] if served else []


def _patches(kind: Kind) -> list[str]:
    if "patch" not in kind.verbs:
        return []
    return [f"patches: {_CUSTOM_PATCHES if kind.is_custom else _PATCHES}"]
