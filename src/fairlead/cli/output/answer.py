"""Prints the answer of a what-if: the verdict, then workloads, node pools, budgets and pods.

The facts that matter most are on the first screen. Colours are used only on a terminal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from rich.console import Console
from rich.text import Text

from fairlead.api.timestamp import format_timestamp
from fairlead.cli.output.autoscaling_summary import print_autoscaling, print_pod_autoscalers
from fairlead.cli.output.console.amount import amount_text
from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn
from fairlead.cli.output.console.terminal import print_line, stdout_console
from fairlead.cli.output.jobs_summary import print_queues, print_waiting_groups
from fairlead.cli.output.outage_summary import print_outage, print_rolling_drains
from fairlead.cli.output.start_time_summary import print_start_times
from fairlead.engine.core.instant import Instant, seconds
from fairlead.whatif.change.kubectl_drain import KubectlDrain
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.certainty import RECOVERED
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.assessment.verdict import Severity
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.difference import Difference
from fairlead.whatif.outcome.node_pool import NodePoolOutcome, node_pools
from fairlead.whatif.outcome.rest import Rest
from fairlead.whatif.outcome.run_outcome import Undrained
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.outcome.workload_effect import WorkloadEffect, short_cause
from fairlead.whatif.question import WhatIfAnswer
from fairlead.whatif.snapshot.node_pool import pool_label

Row = TypeVar("Row")

ROWS_MAX: Final = 6
WORKLOADS_MAX: Final = 14
HARMED_MAX: Final = 14
NAMES_MAX: Final = 2
PODS: Final = "pods"
_POOL_RESOURCES: Final = ("cpu", "memory")
_STYLES: Final = {Severity.BAD: "bold red", Severity.WARNING: "bold yellow"}
_GOOD: Final = "bold green"


def print_answer(
    answer: WhatIfAnswer,
    conditions: Sequence[ConditionResult] = (),
    group_by: str = "",
    console: Console | None = None,
) -> None:
    """Print the answer; `conditions` are those of --fail-on, `group_by` the label of node pools."""
    console = console or stdout_console()
    effect, changed, found = answer.effect, answer.changed, answer.difference
    start = changed.started_at
    _print_head(console, answer)
    _print_conditions(console, conditions)
    _print_certainty(console, answer)
    _print_workloads(console, effect.workloads, changed.workloads_total)
    _print_pools(console, answer, group_by)
    _print_budgets(console, effect.budgets)
    if answer.outage is not None:
        print_outage(console, changed)
    print_rolling_drains(console, changed.drains, start)
    _print_kubectl_drain(console, effect.drain)
    _print_undrained(console, changed.undrained)
    _print_pending(console, found)
    if answer.start_times is not None:
        print_start_times(console, answer.start_times)
    _print_displaced(console, found, start)
    _print_other_pods(console, found)
    _print_notes(console, answer)
    print_waiting_groups(console, changed.jobs, start)
    print_queues(console, changed.jobs, answer.without.jobs)
    print_pod_autoscalers(console, changed)
    print_autoscaling(console, changed, answer.without)


# --- head --------------------------------------------------------------------------------------


def _print_head(console: Console, answer: WhatIfAnswer) -> None:
    changed = answer.changed
    print_line(console, answer.change.title, "dim")
    for number, finding in enumerate(answer.verdict.findings):
        style = _STYLES.get(finding.severity, _GOOD)
        _print_words(console, finding.sentence, style if number == 0 else style.split()[1])
    span = for_readers(changed.after_start(changed.ended_at))
    facts = [
        answer.source,
        f"{len(changed.nodes):,} nodes and {len(changed.pods):,} pods at the end",
        f"{span} from {format_timestamp(changed.started_at)}",
        f"seed {answer.seed}",
        answer.scheduler_words,
        f"{changed.choices_among_equals:,} choices among equals",
    ]
    _print_words(console, " · ".join(facts), "dim")
    if answer.releases.words:
        print_line(console, answer.releases.words)
    _print_rest(console, answer.without.rest)


def _print_words(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped between words."""
    console.print(Text(text, style=style), soft_wrap=False)


def _print_rest(console: Console, rest: Rest) -> None:
    """Print what was in progress when the dump was taken."""
    if not rest.activities:
        return
    shown = [f"{one.workload}: {one.words}" for one in rest.activities[:NAMES_MAX]]
    more = len(rest.activities) - len(shown)
    what = "; ".join([*shown, *([f"{more:,} more workloads"] if more > 0 else [])])
    when = (
        "The cluster does not come to rest, so the change is made at once."
        if rest.after is None
        else f"The change is made {for_readers(rest.after)} later, when the cluster is at rest."
    )
    _print_words(console, f"Under way when the dump was taken: {what}. {when}", "yellow")


def _print_conditions(console: Console, conditions: Iterable[ConditionResult]) -> None:
    for one in conditions:
        if one.holds:
            evidence = ", ".join(one.evidence[:NAMES_MAX])
            more = len(one.evidence) - NAMES_MAX
            rest = f" and {more:,} more" if more > 0 else ""
            _print_words(console, f"--fail-on {one.text}: {evidence}{rest}", "bold red")


def _print_certainty(console: Console, answer: WhatIfAnswer) -> None:
    """Print how many seeds have each outcome, and how much the amounts vary."""
    columns = (
        TableColumn(f"IN {answer.seeds:,} SEEDS", is_name=True),
        TableColumn("WHAT"),
        TableColumn("SEEDS", is_number=True),
        TableColumn("LEAST", rank=2, is_number=True),
        TableColumn("MEDIAN", rank=1, is_number=True),
        TableColumn("90%", rank=3, is_number=True),
        TableColumn("MOST", rank=1, is_number=True),
        TableColumn("CERTAIN?"),
    )
    rows = []
    for one in answer.certainty:
        amounts = (one.least, one.median, one.p90, one.most)
        shown = [_amount(one.what, amount) for amount in amounts]
        rows.append((one.subject, one.what, f"{one.seeds:,}/{one.total:,}", *shown, one.words))
    shown_rows = _shown(rows, WORKLOADS_MAX)
    FittedTable(columns, shown_rows).print(console)
    if rest := len(rows) - len(shown_rows):
        print_line(console, f"... and {rest:,} more (all in the report and with -o json)", "dim")


def _amount(what: str, amount: float | None) -> str:
    if amount is None:
        return ""
    return for_readers(seconds(amount)) if what == RECOVERED else f"{amount:,.0f}"


# --- workloads, pools, budgets -----------------------------------------------------------------


def _print_workloads(console: Console, rows: Sequence[WorkloadEffect], total: int) -> None:
    """Print the workloads, up to HARMED_MAX of those that are harmed."""
    harmed = sum(one.is_harmed for one in rows)
    shown = _shown(rows, max(WORKLOADS_MAX, min(harmed, HARMED_MAX)))
    columns = (
        TableColumn("WORKLOAD", is_name=True),
        TableColumn("WANTED", is_number=True),
        TableColumn("LOWEST READY", is_number=True),
        TableColumn("AT END", is_number=True),
        TableColumn("BUDGET", rank=1),
        TableColumn("WHAT HAPPENED"),
    )
    cells = [_workload_cells(one) for one in shown]
    styles = ["red" if one.is_harmed else "" for one in shown]
    FittedTable(columns, cells, styles).print(console)
    if rest := len(rows) - len(shown):
        hidden = sum(one.is_harmed for one in rows[len(shown) :])
        what = f"{hidden:,} of them harmed (-o json lists all)" if hidden else "all back as wanted"
        print_line(console, f"... and {rest:,} more, {what}", "dim")
    if untouched := max(total - len(rows), 0):
        verb = "workload is" if untouched == 1 else "workloads are"
        print_line(console, f"{untouched:,} {'other ' if rows else ''}{verb} untouched.", "dim")


def _shown(rows: Sequence[Row], rows_max: int) -> Sequence[Row]:
    """Return the first rows; prints one row more instead of the line "1 more"."""
    return rows if len(rows) <= rows_max + 1 else rows[:rows_max]


def _workload_cells(one: WorkloadEffect) -> tuple[str, ...]:
    ready = one.readiness
    lowest = f"{ready.lowest:,}"
    if ready.lowest < min(ready.before, ready.wanted):
        lowest += (
            " to the end" if ready.lowest_for is None else f" for {for_readers(ready.lowest_for)}"
        )
    return (
        str(one.workload),
        f"{ready.wanted:,}",
        lowest,
        f"{ready.at_end:,}",
        "" if one.budget is None else one.budget.value,
        one.words,
    )


def _print_pools(console: Console, answer: WhatIfAnswer, group_by: str) -> None:
    """Print the pools whose nodes, pods or requests differ; if none differ, print all pools."""
    pools = node_pools(answer.without, answer.changed, group_by)
    differing = [one for one in pools if one.differs]
    label = group_by or pool_label(node.labels for node in answer.changed.nodes)
    more = [
        name
        for name in dict.fromkeys(name for pool in pools for name in pool.requested)
        if name not in (*_POOL_RESOURCES, PODS) and any(pool.requested.get(name) for pool in pools)
    ]
    resources = [*_POOL_RESOURCES, *more]
    columns = (
        TableColumn("NODE POOL" if label else "NODES", is_name=True),
        TableColumn("NODES", is_number=True),
        TableColumn("CORDONED", is_number=True),
        TableColumn("PODS", is_number=True),
        *(TableColumn(name.upper(), rank=n, is_number=True) for n, name in enumerate(resources)),
    )
    shown = _shown(differing or pools, ROWS_MAX)
    FittedTable(columns, [_pool_cells(one, resources) for one in shown]).print(console)
    if rest := len(differing or pools) - len(shown):
        print_line(console, f"... and {rest:,} more", "dim")
    if label and differing and (same := len(pools) - len(differing)):
        print_line(console, f"{same:,} other {'pool is' if same == 1 else 'pools are'} as before.",
                   "dim")  # fmt: skip


def _pool_cells(pool: NodePoolOutcome, resources: Iterable[str]) -> tuple[str, ...]:
    pods, before = pool.requested.get(PODS, 0), pool.requested_without.get(PODS, 0)
    return (
        pool.name,
        _changed(f"{pool.nodes_without:,}", f"{pool.nodes:,}"),
        f"{pool.cordoned:,}" if pool.cordoned else "",
        _changed(f"{before:,}", f"{pods:,}"),
        *(_usage(pool, name) for name in resources),
    )


def _changed(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _usage(pool: NodePoolOutcome, resource: str) -> str:
    """Return how much of the allocatable amount is used, with and without the change."""
    allocatable = pool.allocatable.get(resource, 0)
    after, before = pool.requested.get(resource, 0), pool.requested_without.get(resource, 0)
    if not allocatable:
        return "" if not after else amount_text(resource, after)
    return _changed(_percent(before, pool.allocatable_without.get(resource, 0)),
                    _percent(after, allocatable))  # fmt: skip


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _print_budgets(console: Console, rows: Sequence[BudgetOutcome]) -> None:
    columns = (
        TableColumn("BUDGET", is_name=True),
        TableColumn("RULE", rank=2),
        TableColumn("ALLOWED", rank=1, is_number=True),
        TableColumn("LOWEST HEALTHY", is_number=True),
        TableColumn("NEEDED", is_number=True),
        TableColumn("RESULT"),
    )
    bad = (BudgetResult.BREACHED, BudgetResult.BLOCKS)
    worst = sum(one.state in bad for one in rows)
    shown = _shown(rows, max(ROWS_MAX, min(worst, HARMED_MAX)))
    cells = [
        (one.pdb, one.rule, f"{one.allowed:,}", f"{one.lowest_healthy:,}", f"{one.needed:,}",
         one.words)
        for one in shown
    ]  # fmt: skip
    FittedTable(columns, cells, ["red" if one.state in bad else "" for one in shown]).print(console)
    if rest := len(rows) - len(shown):
        hidden = sum(one.state in bad for one in rows[len(shown) :])
        what = f"{hidden:,} of which did not hold (-o json lists all)" if hidden else "which held"
        print_line(console, f"... and {rest:,} more, {what}", "dim")


# --- pods --------------------------------------------------------------------------------------


def _print_kubectl_drain(console: Console, drain: KubectlDrain) -> None:
    """Print the nodes that kubectl refuses to drain, and which pods need which flag."""
    rows = [(one.node, one.summary) for one in drain.refused]
    named = TableColumn(f"REFUSED BY KUBECTL DRAIN ({len(rows):,})", is_name=True)
    _print_first(console, (named, TableColumn("ERROR")), rows)
    flags = [(one.flag, f"{len(one.pods):,}", _first_name(one.pods)) for one in drain.needed]
    columns = (
        TableColumn(f"FLAGS THAT KUBECTL DRAIN NEEDS ({len(flags):,})"),
        TableColumn("PODS", is_number=True),
        TableColumn("FOR", is_name=True),
    )
    FittedTable(columns, flags).print(console)


def _print_undrained(console: Console, rows: Sequence[Undrained]) -> None:
    by_reason: dict[str, list[Undrained]] = defaultdict(list)
    for one in rows:
        by_reason[one.why].append(one)
    cells = [
        (f"{len(pods):,}", _first_name([f"{one.pod.key} on {one.pod.node}" for one in pods]), why)
        for why, pods in by_reason.items()
    ]
    title = f"NOT DRAINED ({len(rows):,})"
    pods, names = TableColumn("PODS", is_number=True), TableColumn(title, is_name=True)
    FittedTable((pods, names, TableColumn("WHY")), cells).print(console)


def _print_pending(console: Console, found: Difference) -> None:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for pod in found.pending:
        by_reason[short_reason(pod.reason)].append(pod.key)
    reasons = sorted(by_reason, key=lambda why: (-len(by_reason[why]), why))
    cells = [(f"{len(by_reason[why]):,}", _first_name(by_reason[why]), why) for why in reasons]
    title = f"PENDING ({len(found.pending):,})"
    pods, names = TableColumn("PODS", is_number=True), TableColumn(title, is_name=True)
    FittedTable((pods, names, TableColumn("WHY")), cells).print(console)


def _print_displaced(console: Console, found: Difference, start: Instant) -> None:
    """Print one row per displacement, and one per pod that moved without being displaced."""
    targets = {move.pod.key: move.target for move in found.moved}
    rows = [
        (one.pod.key, one.node, targets.get(one.pod.key, ""), for_readers(one.at - start),
         f"preempted by {one.by} ({one.rule})")
        for one in found.preempted
    ]  # fmt: skip
    rows += [
        (one.pod.key, one.node, targets.get(one.pod.key, ""), for_readers(one.at - start),
         short_cause(one.why))
        for one in found.evicted
    ]  # fmt: skip
    listed = {row[0] for row in rows}
    rows += [
        (one.pod.key, one.origin, one.target, "", "placed elsewhere")
        for one in found.moved
        if one.pod.key not in listed
    ]
    counts = {
        "PREEMPTED": len(found.preempted),
        "EVICTED": len(found.evicted),
        "MOVED": len(found.moved),
    }
    title = ", ".join(f"{name} ({count:,})" for name, count in counts.items() if count)
    columns = (
        TableColumn(title, is_name=True),
        TableColumn("FROM", is_name=True),
        TableColumn("TO", is_name=True),
        TableColumn("AFTER", rank=1, is_number=True),
        TableColumn("WHY"),
    )
    _print_first(console, columns, rows)


def _print_other_pods(console: Console, found: Difference) -> None:
    node = TableColumn("NODE", is_name=True)
    for title, rows in (
        ("GONE FOR GOOD", [(one.key, one.node) for one in found.gone]),
        ("NEWLY PLACED", [(one.key, one.node) for one in found.placed]),
        ("REMOVED", [(one.key, one.node) for one in found.removed]),
    ):
        named = TableColumn(f"{title} ({len(rows):,})", is_name=True)
        _print_first(console, (named, node), rows)
    missing = [(one.pod.key, one.pod.node, one.waits_for or "-") for one in found.not_created]
    named = TableColumn(f"NOT CREATED AGAIN ({len(missing):,})", is_name=True)
    _print_first(console, (named, node, TableColumn("WAITS FOR", is_name=True)), missing)
    updated = [(one.pod.key, one.pod.node, one.before.key) for one in found.updated]
    named = TableColumn(f"UPDATED ({len(updated):,})", is_name=True)
    _print_first(console, (named, node, TableColumn("INSTEAD OF", rank=1, is_name=True)), updated)
    breaches = [(one.pod, one.pdb, short_cause(one.by)) for one in found.pdb_breaches]
    named = TableColumn(f"BUDGET BREACHED FOR ({len(breaches):,})", is_name=True)
    _print_first(console, (named, TableColumn("BUDGET", is_name=True), TableColumn("BY")), breaches)


def _print_notes(console: Console, answer: WhatIfAnswer) -> None:
    """Print notes about problems other than pods."""
    changed, start = answer.changed, answer.changed.started_at
    skipped = [(one.what, for_readers(one.at - start), one.why) for one in changed.skipped]
    errors = [
        (one.subject, f"{one.missing:,}" if one.missing else "", one.message)
        for one in changed.complaints
    ]
    loops = [(one.kind, for_readers(one.at - start), one.message) for one in changed.recurrences]
    after = TableColumn("AFTER", is_number=True)
    for title, columns, rows in (
        ("EVENTS WITHOUT EFFECT", (after, TableColumn("WHY")), skipped),
        ("ERRORS", (TableColumn("PODS MISSING", is_number=True), TableColumn("MESSAGE")), errors),
        ("REPEATEDLY DISPLACED", (after, TableColumn("WHAT")), loops),
    ):
        named = TableColumn(f"{title} ({len(rows):,})", is_name=True)
        _print_first(console, (named, *columns), rows)
    for note in changed.notes:
        _print_words(console, f"Note: {note}", "yellow")
    if not changed.settled:
        text = "The cluster had not settled when the run ended (--horizon); changes continue."
        _print_words(console, text, "yellow")


def _print_first(
    console: Console, columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]
) -> None:
    """Print the first rows, and the number of further rows."""
    shown = _shown(rows, ROWS_MAX)
    FittedTable(columns, shown).print(console)
    if rest := len(rows) - len(shown):
        print_line(console, f"... and {rest:,} more (all in the report and with -o json)", "dim")


def _first_name(names: Sequence[str]) -> str:
    """Return the first name, and the number of further names."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
