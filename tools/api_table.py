"""Writes the table of served kinds into COMPATIBILITY.md.

    python tools/api_table.py COMPATIBILITY.md

The rows of the section "Served kinds" are replaced by rows made from the kinds of the server. The
rest of the page does not change.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlead.apiserver.kind import VERBS, Kind
from fairlead.apiserver.registry.served_kinds import WITH_METRICS, ServedKinds

TABLE = re.compile(r"(## Served kinds\n.*?\n\|---\|---\|---\|\n)(?:\|[^\n]*\|\n)*", re.DOTALL)
_PATCHES: Final = "JSON, merge, strategic, apply"
_CUSTOM_PATCHES: Final = "JSON, merge, apply"

# Kind, state, remarks.
Row = tuple[str, str, str]


def main(page: Path) -> None:
    """Replace the rows of the table in the file `page`."""
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows(ServedKinds(WITH_METRICS)))
    page.write_text(TABLE.sub(lambda found: found[1] + table, page.read_text(), count=1))


def rows(registry: ServedKinds) -> Iterator[Row]:
    """Yield a row for each kind in `registry`, in the order of discovery."""
    for kind in registry.all_kinds():
        facts = [*_gate(kind), _verbs(kind), *_subresources(kind), *_patches(kind)]
        yield f"{kind.api_version} {kind.kind}", "supported", "; ".join(facts)


def _gate(kind: Kind) -> list[str]:
    gate = kind.feature_gate
    return [f"with `--feature-gates {gate}=true`"] if gate else []


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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
