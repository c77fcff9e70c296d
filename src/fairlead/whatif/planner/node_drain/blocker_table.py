"""Tables about blocked nodes: what blocks them, and the changes that would unblock them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.whatif.planner.node_drain.drain_planner import UNPLACED, BlockCause, Blocker
from fairlead.whatif.result.tabular_answer import NAME, ResultColumn, ResultTable

_ITSELF: Final = "the node itself"
_OWNER: Final = "\0"
_NODE: Final = "\1"
# With these causes, an edit lets a pod take free resources of another node. Pods of other drained
# nodes then lack these resources.
_TAKES_ROOM: Final = (*UNPLACED, BlockCause.ORDER)
# With these causes, the pod does not fit after other pods of its node have been placed.
_TOGETHER: Final = (BlockCause.NO_ROOM, BlockCause.ORDER)
_AFTER_OTHERS: Final = " (after other pods of the node)"
_NAMED_MAX: Final = 3  # maximum number of nodes that a cell names
_OWNERS_MAX: Final = 2  # maximum number of workloads that a cell names
_NAMES_WIDTH_MAX: Final = 32  # Several names that are longer leave no room for the other columns.


def blocker_tables(blockers: Sequence[Blocker]) -> tuple[ResultTable, ...]:
    """Return three tables: the blockers by owner and reason, the possible changes, the nodes.

    The third table is empty if the first table names all blocked nodes.
    """
    groups: dict[tuple[str, str, str], list[Blocker]] = {}
    for one in blockers:
        owner = _ITSELF if one.owner == f"node/{one.node}" else one.owner
        groups.setdefault((owner, one.cause.value, one.why), []).append(one)
    ordered = sorted(groups.items(), key=lambda item: (-_nodes(item[1]), item[0]))
    rows = [
        {
            "owner": found[0].owner if _nodes(found) == 1 else owner,
            "cause": cause,
            "why": why + _AFTER_OTHERS * (cause in _TOGETHER),
            "where": few_or_count({one.node for one in found}),
            "nodes": _nodes(found),
            "workloads": workloads,
            "of": "" if workloads == [owner] else listed(workloads, _OWNERS_MAX),
            "pods": sorted({one.pod for one in found}),
            "on": sorted({one.node for one in found}),
            **_edit_of(found),
        }
        for (owner, cause, why), found in ordered
        for workloads in [sorted({one.workload for one in found if one.workload})]
    ]
    # Without a budget, the owner is the workload itself.
    of = (ResultColumn("of", "workload", NAME, 1),) if any(row["of"] for row in rows) else ()
    columns = (
        ResultColumn("where", "nodes", NAME),
        ResultColumn("owner", "blocked by", NAME),
        *of,
        ResultColumn("why", "why"),
    )
    changes = _changes([one for _, found in ordered for one in found])
    edits = [
        {
            "edit": one.edit,
            "helps": sorted(one.helps),
            "instead": sorted(one.instead),
            "alone": sorted(one.alone),
            "for": _helped(one),
        }
        for one in changes
    ]
    edit_columns = (ResultColumn("for", "helps", NAME), ResultColumn("edit", "change"))
    return (
        ResultTable("blockers", "what blocks", columns, rows),
        ResultTable("edits", "what would unblock", edit_columns, edits, 4, has_remedies=True),
        _names(() if all(_are_named(row["on"]) for row in rows) else blockers),
    )


def few_or_count(nodes: Collection[str]) -> str:
    """Return the names of a few nodes, or the number of many nodes."""
    return ", ".join(sorted(nodes)) if _are_named(nodes) else counted(len(nodes), "node")


def _are_named(nodes: Collection[str]) -> bool:
    """Return whether a table cell names all `nodes`: one node, or a few nodes with short names."""
    if len(nodes) > _NAMED_MAX:
        return False
    return len(nodes) == 1 or len(", ".join(nodes)) <= _NAMES_WIDTH_MAX


def _names(blockers: Iterable[Blocker]) -> ResultTable:
    owners: dict[str, dict[str, None]] = {}
    for one in blockers:
        owners.setdefault(one.node, {})[one.owner] = None
    rows = [{"node": node, "owners": list(found)} for node, found in sorted(owners.items())]
    columns = (ResultColumn("node", "node", NAME), ResultColumn("owners", "blocked by"))
    return ResultTable("blocked_nodes", "blocked nodes", columns, rows, 0)


def _edit_of(blockers: Sequence[Blocker]) -> Json:
    """Return {"edit": the first edit of `blockers`, "helps": the nodes that it helps to empty}.

    An edit that makes a pod fit another node helps only one node (`_Change`). If there is no edit,
    the values are "" and [].
    """
    first = next((one for one in blockers if one.edit), None)
    if first is None:
        return {"edit": "", "helps": []}
    if first.cause in _TAKES_ROOM:
        return {"edit": first.edit, "helps": [first.node]}
    return {"edit": first.edit, "helps": sorted({one.node for one in blockers})}


class _Change(Struct):
    """An edit of the objects `owners`; `helps` contains the nodes that the edit helps to empty.

    Some edits let pods of a drained node move to another node that has unused resources. The pods
    of only one drained node can take these resources, so `helps` contains only this drained node.
    `instead` contains the other drained nodes whose pods could take the resources. `alone` contains
    the nodes in `helps` and `instead` for which this edit is enough.
    """

    form: str
    owners: list[str] = field(default_factory=list)
    helps: set[str] = field(default_factory=set)
    instead: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)

    @property
    def edit(self) -> str:
        """The text of this edit; a drain command in the text drains the first node of `helps`."""
        text = self.form.replace(_OWNER, listed(self.owners, 2))
        return text.replace(_NODE, min(self.helps))


def _changes(blockers: Iterable[Blocker]) -> list[_Change]:
    """Return the distinct edits of `blockers`, each with the nodes that it helps to empty.

    Edits that differ only in the object to change become one edit, such as `annotate the pods of
    deploy/a/b, deploy/a/c and 8 more with x=1`.
    """
    found: dict[str, _Change] = {}
    forms: dict[str, set[str]] = {}  # {node: forms of the edits of its blockers}
    for one in blockers:
        form = _form(one)
        forms.setdefault(one.node, set()).add(form)
        if not form:
            continue
        change = found.setdefault(form, _Change(form))
        if one.owner not in change.owners:
            change.owners.append(one.owner)
        is_taken = one.cause in _TAKES_ROOM and change.helps
        (change.instead if is_taken else change.helps).add(one.node)
    for change in found.values():
        change.instead -= change.helps
        possible = change.helps | change.instead
        change.alone = {name for name in possible if len(forms[name]) == 1}
    return list(found.values())


def _form(blocker: Blocker) -> str:
    """Return the text of the edit that `blocker` suggests; "" if it suggests no edit.

    If the text is not a kubectl command, it has a placeholder instead of the name of the blocker's
    owner. If the edit evicts pods in a certain order, the text also has a placeholder instead of
    the name of the node.
    """
    edit, owner = blocker.edit, blocker.owner
    if blocker.cause is BlockCause.ORDER:
        edit = edit.replace(f"drain {blocker.node}", f"drain {_NODE}")
    return edit if edit.startswith("kubectl ") or not owner else edit.replace(owner, _OWNER, 1)


def _helped(change: _Change) -> str:
    """Return a text that names or counts the nodes that `change` helps to empty."""
    nodes = sorted(change.helps)
    text = nodes[0] if len(nodes) == 1 else counted(len(nodes), "node")
    if change.instead:
        more = len(change.instead)
        text += f" or {next(iter(change.instead)) if more == 1 else f'{more:,} others'}"
    if not change.alone:
        return f"{text} (not enough alone)"
    is_for_some = not change.instead and len(change.alone) < len(nodes)
    return f"{text} (enough alone for {few_or_count(change.alone)})" if is_for_some else text


def no_change_findings(blockers: Iterable[Blocker]) -> Iterator[str]:
    """Yield a sentence about the nodes with a blocker that has no edit, if there are any."""
    nodes = list(dict.fromkeys(one.node for one in blockers if not one.edit))
    if nodes:
        yield f"No single change was found that would unblock {listed(nodes)}."


def _nodes(blockers: Sequence[Blocker]) -> int:
    return len({one.node for one in blockers})
