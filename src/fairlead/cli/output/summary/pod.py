"""The sections of an answer that list pods: not drained, pending, displaced, gone, new."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from rich.console import Console

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.fitted_table import TableColumn
from fairlead.cli.output.console.screen import (
    Rank,
    Section,
    table_section,
)
from fairlead.cli.output.console.terminal import print_line
from fairlead.engine.core.instant import Instant
from fairlead.whatif.change.kubectl_drain import KubectlDrain
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.comparison.difference import Difference
from fairlead.whatif.outcome.comparison.pod_role import is_kept
from fairlead.whatif.outcome.comparison.waited_pod import WaitedPod
from fairlead.whatif.outcome.comparison.workload_effect import short_cause
from fairlead.whatif.outcome.run_outcome import (
    NODE_DELETED,
    DeletedClaim,
    PodEnd,
    RunOutcome,
    Undrained,
)
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.result.table import RESIZED

MOVES_MIN: Final = 3
NAMES_MAX: Final = 2
_IN_PARENTHESES: Final = re.compile(r" \([^()]*\)$")


def kubectl_drain(drain: KubectlDrain) -> Iterator[Section]:
    """Yield two sections: nodes that `kubectl drain` refuses to drain, and flags that it needs."""
    rows = [(one.node, one.summary) for one in drain.refused]
    named = TableColumn(f"REFUSED BY KUBECTL DRAIN ({len(rows):,})", is_name=True)
    yield table_section(
        "nodes refused by kubectl drain", (named, TableColumn("ERROR")), rows, Rank.PROBLEMS
    )
    flags = [(one.flag, f"{len(one.pods):,}", _first_name(one.pods)) for one in drain.needed]
    columns = (
        TableColumn(f"FLAGS THAT KUBECTL DRAIN NEEDS ({len(flags):,})"),
        TableColumn("PODS", is_number=True),
        TableColumn("FOR", is_name=True),
    )
    yield table_section(
        "flags that kubectl drain needs", columns, flags, Rank.ADVICE, least=len(flags)
    )


def undrained(rows: Sequence[Undrained]) -> Section:
    """Return the section of pods that a drain has not removed, grouped by reason."""
    by_reason: dict[str, list[Undrained]] = defaultdict(list)
    for one in rows:
        by_reason[_IN_PARENTHESES.sub("", one.why)].append(one)
    cells = [
        (f"{len(pods):,}", _first_name([f"{one.pod.key} on {one.pod.node}" for one in pods]), why)
        for why, pods in by_reason.items()
    ]
    title = f"NOT DRAINED ({len(rows):,})"
    pods, names = TableColumn("PODS", is_number=True), TableColumn(title, is_name=True)
    columns = (pods, names, TableColumn("WHY"))
    return table_section(f"{counted(len(rows), 'pod')} not drained", columns, cells, Rank.CAUSES)


def pending(difference: Difference) -> Section:
    """Return the section of pending pods, with a row for each reason.

    A row names the first workload that has pods pending for this reason. If all pods have the same
    reason, the section has a row for each pod instead.
    """
    by_reason: dict[str, dict[str, None]] = defaultdict(dict)
    counts: Counter[str] = Counter()
    for pod in difference.pending:
        why = short_reason(pod.reason)
        by_reason[why][str(pod.workload)] = None
        counts[why] += 1
    named = TableColumn(f"PENDING ({len(difference.pending):,})", is_name=True)
    what = counted(len(difference.pending), "pending pod")
    if len(by_reason) == 1:
        names = [(pod.key,) for pod in difference.pending]
        return table_section(what, (named,), names, Rank.MOVES, least=MOVES_MIN)
    reasons = sorted(by_reason, key=lambda why: (-counts[why], why))
    cells = [(f"{counts[why]:,}", _first_name(list(by_reason[why])), why) for why in reasons]
    columns = (TableColumn("PODS", is_number=True), named, TableColumn("WHY"))
    return table_section(what, columns, cells, Rank.CAUSES)


def still_pending(pods: Sequence[PodEnd]) -> Section:
    """Return a one-line section about `pods`; if there are none, the section is empty.

    The pods are pending even in the run without the what-if change.
    """
    names = listed([pod.key for pod in pods], NAMES_MAX)
    verb = "is" if len(pods) == 1 else "are"

    def show(console: Console, count: int) -> None:
        del count
        console.print()
        who = f"{counted(len(pods), 'pod')} {verb} pending with and without the change"
        print_line(console, f"{who}: {names}.")

    return Section("pods pending in both runs", min(len(pods), 1), show, Rank.ADVICE)


def waited(rows: Sequence[WaitedPod]) -> Section:
    """Return the section of pods that waited long and no longer wait, grouped by reason.

    `rows` are sorted by waiting time, the longest first. All waits last for at least WAITED_MIN,
    which is a minute.
    """
    by_reason: dict[str, list[WaitedPod]] = defaultdict(list)
    for one in rows:
        by_reason[short_reason(one.pod.reason)].append(one)
    cells = [
        (f"{len(pods):,}", _first_name(list(dict.fromkeys(str(one.pod.workload) for one in pods))),
         for_readers(pods[0].waited), why)
        for why, pods in by_reason.items()
    ]  # fmt: skip
    columns = (
        TableColumn("PODS", is_number=True),
        TableColumn(f"WAITED 1M OR LONGER ({len(rows):,})", is_name=True),
        TableColumn("LONGEST", is_number=True),
        TableColumn("WHY"),
    )
    what = f"{counted(len(rows), 'pod')} that waited a minute or longer for a node"
    return table_section(what, columns, cells, Rank.CAUSES)


def displaced(difference: Difference, start: Instant) -> Section:
    """Return the section of displaced and moved pods.

    If a pod was displaced several times, each displacement has a row. The row shows where the pod
    went: to the node from which it was next displaced, or to its last node.
    """
    targets = {pod.key: pod.node for pod in difference.returned}
    targets |= {move.pod.key: move.target for move in difference.moved}
    whys = [f"preempted by {one.by} ({one.rule})" for one in difference.preempted]
    whys += [short_cause(one.why) for one in difference.evicted]
    events = (*difference.preempted, *difference.evicted)
    reached = dict[int, str]()  # by the index of an event
    for index in sorted(range(len(events)), key=lambda index: events[index].at, reverse=True):
        one = events[index]
        reached[index] = targets.get(one.pod.key, "")
        targets[one.pod.key] = one.node  # of the pod's previous event
    rows = [
        (one.pod.key, one.node, reached[index], for_readers(one.at - start), whys[index])
        for index, one in enumerate(events)
    ]
    listed, elsewhere = {row[0] for row in rows}, {pod.key for pod in difference.elsewhere}
    rows += [
        (one.pod.key, one.origin, one.target, "",
         one.how if one.pod.key in elsewhere else NODE_DELETED)
        for one in difference.moved
        if one.pod.key not in listed
    ]  # fmt: skip
    counts = {
        "preempted": len(difference.preempted),
        "evicted": len(difference.evicted),
        "moved": len(difference.moved),
        "returned": len(difference.returned),
    }
    title = ", ".join(f"{name.upper()} ({count:,})" for name, count in counts.items() if count)
    columns = (
        TableColumn(title, is_name=True),
        TableColumn("FROM", is_name=True),
        TableColumn("TO", is_name=True),
        TableColumn("AFTER", rank=1, is_number=True),
        TableColumn("WHY"),
    )
    pods = {
        "preempted": len({one.pod.key for one in difference.preempted}),
        "evicted": len({one.pod.key for one in difference.evicted}),
    }
    nouns = {"preempted": "preemption", "evicted": "eviction"}
    what = ", ".join(
        f"{counted(count, 'pod')} {name}" if pods.get(name, count) == count
        else f"{counted(count, nouns[name])} of {counted(pods[name], 'pod')}"
        for name, count in counts.items()
        if count
    )  # fmt: skip
    return table_section(what, columns, rows, Rank.MOVES, least=MOVES_MIN)


class NodeGroups(Struct, frozen=True):
    """Groups of nodes, such as zones: a title, and the group of each node ("" if it has none)."""

    title: str
    group_of: Mapping[str, str]


def other_pods(
    difference: Difference, changed: RunOutcome, groups: NodeGroups
) -> Iterator[Section]:
    """Yield the sections GONE FOR GOOD, NEWLY PLACED and REMOVED, and further sections of pods.

    `changed` is the run with the change.

    If a list of new or removed pods is too long, its section instead has a row for each combination
    of a workload and one of `groups`; see `_placements`.
    """
    node = TableColumn("NODE", is_name=True)
    gone = [(one.key, one.node) for one in difference.gone]
    named = TableColumn(f"GONE FOR GOOD ({len(gone):,})", is_name=True)
    what = f"{counted(len(gone), 'pod')} gone for good"
    yield table_section(what, (named, node), gone, Rank.CAUSES, least=MOVES_MIN)
    fewer = {one.key for one in difference.fewer}
    removed = [one for one in difference.removed if one.key not in fewer]
    kept: list[PodEnd] = []
    new: list[PodEnd] = []
    for one in difference.placed:
        (kept if is_kept(one, changed) else new).append(one)
    yield _placements("NEWLY PLACED", new, groups)
    yield _placements("REMOVED ONLY WITHOUT THE CHANGE", kept, groups)
    yield _placements("REMOVED", removed, groups)
    yield _placements("ONLY WITHOUT THE CHANGE", difference.fewer, groups)
    ended = [(one.key, one.node, one.phase) for one in difference.completed]
    named = TableColumn(f"COMPLETED ({len(ended):,})", is_name=True)
    columns = (named, node, TableColumn("PHASE"))
    what = f"{counted(len(ended), 'pod')} completed"
    yield table_section(what, columns, ended, Rank.MOVES, least=MOVES_MIN)
    missing = [(one.pod.key, one.pod.node, one.awaited or "-") for one in difference.not_created]
    named = TableColumn(f"NOT CREATED AGAIN ({len(missing):,})", is_name=True)
    columns = (named, node, TableColumn("WAITS FOR", is_name=True))
    yield table_section(
        f"{counted(len(missing), 'pod')} not created again", columns, missing, Rank.CAUSES
    )
    updated = [
        (one.pod.key, one.pod.node, RESIZED if one.is_resize else one.before.key)
        for one in difference.replaced
    ]
    named = TableColumn(f"UPDATED ({len(updated):,})", is_name=True)
    columns = (named, node, TableColumn("INSTEAD OF", rank=1, is_name=True))
    yield table_section(
        f"{counted(len(updated), 'pod')} updated", columns, updated, Rank.MOVES, least=MOVES_MIN
    )
    breaches = [(one.pod, one.pdb, short_cause(one.by)) for one in difference.pdb_breaches]
    named = TableColumn(f"BUDGET BREACHED FOR ({len(breaches):,})", is_name=True)
    columns = (named, TableColumn("BUDGET", is_name=True), TableColumn("BY"))
    what = f"{counted(len(breaches), 'pod')} displaced against a budget"
    yield table_section(what, columns, breaches, Rank.MOVES, least=MOVES_MIN)


def _placements(title: str, pods: Sequence[PodEnd], groups: NodeGroups) -> Section:
    """Return the section of `pods` and their nodes.

    If not all pods can be printed, the section instead has a row for each combination of a workload
    and one of `groups`. If this would not reduce the number of rows, the section has a row for each
    pod.
    """
    named = TableColumn(f"{title} ({len(pods):,})", is_name=True)
    what = f"{counted(len(pods), 'pod')} {title.lower()}"
    rows = [(one.key, one.node) for one in pods]
    listed = table_section(
        what, (named, TableColumn("NODE", is_name=True)), rows, Rank.MOVES, least=MOVES_MIN
    )
    nodes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in pods:
        nodes[str(one.workload), groups.group_of.get(one.node, "")].append(one.node)
    if len(nodes) == len(pods):
        return listed
    cells = [
        (workload, group, f"{len(found):,}", f"{len(set(found)):,}")
        for (workload, group), found in sorted(nodes.items())
    ]
    columns = (
        named,
        TableColumn(groups.title, is_name=True),
        TableColumn("PODS", is_number=True),
        TableColumn("NODES", is_number=True),
    )
    summary = table_section(what, columns, cells, Rank.MOVES)

    def show(console: Console, count: int) -> None:
        shown = listed if count + 1 >= len(rows) else summary
        shown.show(console, count)

    return Section(what, len(rows), show, Rank.MOVES, MOVES_MIN)


def deleted_claims(claims: Sequence[DeletedClaim]) -> Section:
    """Return the section of deleted claims, with the effect on their volumes."""
    named = TableColumn(f"CLAIMS DELETED ({len(claims):,})", is_name=True)
    columns = (named, TableColumn("VOLUME", rank=1, is_name=True), TableColumn("ITS DATA"))
    rows = [(one.claim, one.volume or "-", _data_of(one)) for one in claims]
    what = counted(len(claims), "deleted claim")
    return table_section(what, columns, rows, Rank.CAUSES)


def _data_of(claim: DeletedClaim) -> str:
    if not claim.volume:
        return "-"
    if not claim.reclaim_policy:
        return "unknown reclaim policy"
    data = "kept" if claim.keeps_data else "deleted"
    if claim.is_in_use and not claim.keeps_data:
        data = "deleted when no pod uses it"
    return f"{data} (reclaim policy {claim.reclaim_policy})"


def _first_name(names: Sequence[str]) -> str:
    """Return a text with the first of `names`, and the number of further names."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
