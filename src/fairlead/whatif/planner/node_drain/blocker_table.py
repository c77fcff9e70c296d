"""Two tables about blocked nodes: what blocks them, and the changes that would unblock them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.api.json import Json
from fairlead.whatif.planner.node_drain.drain_planner import UNPLACED, Blocker
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    counted,
    listed,
)

_OWNER: Final = "\0"


def blocker_tables(blockers: Sequence[Blocker]) -> tuple[ResultTable, ...]:
    """Return two tables: the blockers by owner and reason, and the changes that would help."""
    groups: dict[tuple[str, str, str], list[Blocker]] = {}
    for one in blockers:
        groups.setdefault((one.owner, one.cause.value, one.why), []).append(one)
    ordered = sorted(groups.items(), key=lambda item: (-_nodes(item[1]), item[0]))
    rows = [
        {
            "owner": owner,
            "cause": cause,
            "why": why,
            "nodes": _nodes(found),
            "pods": sorted({one.pod for one in found}),
            "on": sorted({one.node for one in found}),
            **_edit_of(found),
        }
        for (owner, cause, why), found in ordered
    ]
    columns = (
        ResultColumn("nodes", "nodes", NUMBER),
        ResultColumn("owner", "blocked by", NAME),
        ResultColumn("why", "why"),
    )
    edits = [
        {
            "edit": edit,
            "helps": names,
            "for": names[0] if len(names) == 1 else counted(len(names), "node"),
        }
        for edit, names in _merged(rows)
    ]
    edit_columns = (ResultColumn("for", "helps", NAME), ResultColumn("edit", "change"))
    return (
        ResultTable("blockers", "what blocks", columns, rows),
        ResultTable("edits", "what would unblock", edit_columns, edits, 4),
    )


def _edit_of(blockers: Sequence[Blocker]) -> Json:
    """Return the first edit of `blockers` and the names of the nodes that it helps to empty.

    An edit for a pod without a place helps one node only, because another pod may take the room.
    """
    first = next((one for one in blockers if one.edit), None)
    if first is None:
        return {"edit": "", "helps": []}
    if first.cause in UNPLACED:
        return {"edit": first.edit, "helps": [first.node]}
    return {"edit": first.edit, "helps": sorted({one.node for one in blockers})}


def _merged(rows: Iterable[Json]) -> list[tuple[str, list[str]]]:
    """Return the distinct edits of `rows`, each with the nodes that it helps to empty.

    Edits that differ only in the object to change become one edit. Example: `annotate the pods of
    deploy/a/b with x=1`, and the same for 9 other Deployments, becomes `annotate the pods of
    deploy/a/b, deploy/a/c and 8 more with x=1`.
    """
    owners: dict[str, list[str]] = {}
    helps: dict[str, set[str]] = {}
    for row in rows:
        edit, owner = str(row["edit"]), str(row["owner"])
        if edit:
            is_one = edit.startswith("kubectl ") or not owner
            form = edit if is_one else edit.replace(owner, _OWNER, 1)
            names = owners.setdefault(form, [])
            if owner not in names:
                names.append(owner)
            if form not in helps or row["cause"] not in UNPLACED:
                helps.setdefault(form, set()).update(row["helps"])
    return [
        (form.replace(_OWNER, listed(names, 2)), sorted(helps[form]))
        for form, names in owners.items()
    ]


def _nodes(blockers: Sequence[Blocker]) -> int:
    return len({one.node for one in blockers})
