"""Prints the answer of a what-if: the verdict, then workloads, node pools, budgets and pods.

By default, the answer fits one screen. The most important sections are printed. The last line names
the sections that are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import BETA_ZONE, ZONE
from fairlead.cli.output.console.amount import amount_text, percent_text
from fairlead.cli.output.console.finding import print_findings
from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn
from fairlead.cli.output.console.screen import (
    DETAILS,
    Rank,
    Section,
    print_screen,
    rows_of,
    table_section,
)
from fairlead.cli.output.console.step import print_step
from fairlead.cli.output.console.terminal import print_facts, print_line, stdout_console
from fairlead.cli.output.summary.autoscaling import autoscaling, pod_autoscalers
from fairlead.cli.output.summary.jobs import queues, waiting_groups
from fairlead.cli.output.summary.outage import known_outage, outage_sections, rolling_drains
from fairlead.cli.output.summary.pod import (
    NodeGroups,
    deleted_claims,
    displaced,
    kubectl_drain,
    other_pods,
    pending,
    still_pending,
    undrained,
    waited,
)
from fairlead.cli.output.summary.start_time import start_time_section
from fairlead.engine.core.instant import seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import one_line
from fairlead.whatif.outcome.assessment.certainty import RECOVERED
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.comparison.node_pool import NodePoolOutcome, node_pools
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.rest import Rest
from fairlead.whatif.outcome.run_outcome import ObjectError, resource_rank
from fairlead.whatif.snapshot.node_pool import PoolNames

ROWS_MAX: Final = 6
WORKLOADS_MAX: Final = 14
WORKLOADS_MIN: Final = 3
HARMED_FIRST: Final = 10  # rows of harmed workloads that get lines before other sections
HARMED_NAMED: Final = 6
POOLS_MIN: Final = 3
BUDGETS_MIN: Final = 4
NOTES_MIN: Final = 2
NAMES_MAX: Final = 2
STEPS_SHOWN: Final = 2
CODE_MAX: Final = 160  # characters of a step; longer ones are printed only if there is room
PODS: Final = "pods"
_POOL_RESOURCES: Final = ("cpu", "memory")
_NO_EFFECT: Final = "also without the change"
_OVER: Final = "no longer at the end"
_BAD_BUDGETS: Final = (BudgetResult.BREACHED, BudgetResult.BLOCKS, BudgetResult.UNMET)


def print_answer(
    answer: WhatIfAnswer,
    conditions: Sequence[ConditionResult] = (),
    group_by: str = "",
    console: Console | None = None,
    *,
    has_details: bool = False,
    has_head: bool = False,
) -> None:
    """Print the answer on one screen, or the full answer if `has_details` is set.

    `conditions` are the results of --fail-on. `group_by` is the label whose value is the name of a
    node's pool. If `group_by` is "", `answer.pool_labels` are used. If `has_head` is set, the head
    has been printed already (`print_head`).
    """
    sections = _sections(answer, conditions, group_by, has_details=has_details)
    screen = console or stdout_console()
    print_screen(screen, sections, has_details=has_details, has_head=has_head)


def print_head(
    answer: WhatIfAnswer, conditions: Sequence[ConditionResult], console: Console | None = None
) -> None:
    """Print the first section of the answer: the question, the verdict and the cost of nodes.

    `conditions` are the results of --fail-on.
    """
    head = _head(answer, conditions)
    head.show(console or stdout_console(), head.rows)


def _sections(
    answer: WhatIfAnswer,
    conditions: Sequence[ConditionResult],
    group_by: str,
    *,
    has_details: bool,
) -> Iterator[Section]:
    """Yield the sections of the answer in the order in which they are printed."""
    effect, changed = answer.effect, answer.changed
    start = changed.started_at

    yield _head(answer, conditions)
    yield _run_facts(answer, has_details=has_details)
    yield _packing(answer)
    yield _certainty(answer)
    yield _workloads(
        effect.workloads,
        effect.untouched_workloads,
        {
            "static pods": effect.untouched_static_pods,
            "pods without a controller": effect.untouched_bare_pods,
        },
        has_seeds=bool(answer.certainty),
    )
    yield _pools(answer, group_by)
    yield _budgets(effect.budgets)
    if answer.outage is not None:
        yield from outage_sections(changed, answer.outage)
    yield known_outage(_known_failures(answer))
    yield rolling_drains(changed.drains, start)
    yield from kubectl_drain(effect.drain)
    yield undrained(changed.undrained)
    yield pending(answer.difference)
    yield still_pending(answer.still_pending)
    yield waited(effect.waited)
    if answer.start_times is not None:
        yield start_time_section(answer.start_times)
    yield displaced(answer.difference, start)
    yield from other_pods(answer.difference, changed, _groups(answer, group_by))
    yield deleted_claims(effect.deleted_claims)
    yield _refused_workloads(answer, has_details=has_details)
    yield from _problems(answer)
    yield _notes(answer)
    has_start_times = answer.start_times is not None and bool(answer.start_times.rows)
    before = answer.without.jobs
    yield waiting_groups(changed.jobs, start, before, has_start_times=has_start_times)
    yield queues(changed.jobs, before)
    yield pod_autoscalers(changed)
    yield from autoscaling(changed, answer.without)
    yield _next_steps(answer.next_steps_if(conditions))


def _known_failures(answer: WhatIfAnswer) -> list[str]:
    """Return the names of the nodes that are out of service even without the change.

    These nodes are out of service at the end of the run without the change, and exist at the end of
    the run with the change.
    """
    known = answer.without.failed_nodes
    return [one.name for one in answer.changed.nodes if one.name in known]


# --- head --------------------------------------------------------------------------------------


def _head(answer: WhatIfAnswer, conditions: Sequence[ConditionResult]) -> Section:
    """Return the section with the question, the verdict and the cost of the autoscaled nodes."""

    def show(console: Console, count: int) -> None:
        del count
        print_line(console, answer.title, "dim")
        print_findings(console, answer.verdict.findings)
        if answer.node_cost:
            _print_words(console, answer.node_cost)
        _print_conditions(console, conditions)

    return Section("", 1, show, Rank.HEAD)


def _run_facts(answer: WhatIfAnswer, *, has_details: bool) -> Section:
    """Return the section of facts about both runs: the input, the period, the seed, the releases.

    The section also names the workloads that still created, deleted or started pods before the
    change.
    """
    changed = answer.changed
    span = for_readers(changed.after_start(changed.ended_at))
    facts = [
        answer.source,
        f"{counted(len(changed.nodes), 'node')} and {counted(len(changed.pods), 'pod')} at the end",
        f"{span} from {format_timestamp(changed.started_at)}",
        f"seed {answer.seed}",
        answer.scheduler_words,
        counted(changed.choices_among_equals, "tie broken at random", "ties broken at random"),
    ]

    def show(console: Console, count: int) -> None:
        del count
        print_facts(console, facts, "dim")
        if answer.releases.words:
            print_line(console, answer.releases.words)
        rest = answer.without.rest
        _print_rest(console, rest, len(rest.activities) if has_details else NAMES_MAX)

    return Section("input and period", 1, show, Rank.PROBLEMS, is_urgent=True)


def _print_words(console: Console, text: str, style: str = "") -> None:
    """Print the sentence `text` without control characters; lines break only between words."""
    console.print(Text(one_line(text, None), style=style), soft_wrap=False)


def _print_rest(console: Console, rest: Rest, names_max: int) -> None:
    """Print the workloads whose pods changed before the what-if change.

    At most `names_max` workloads are named. Nothing is printed if there are no such workloads.
    """
    if not rest.activities:
        return
    shown = [f"{one.workload}: {one.words}" for one in rest.activities[:names_max]]
    more = len(rest.activities) - len(shown)
    what = "; ".join([*shown, *([counted(more, "more workload")] if more > 0 else [])])
    when = (
        "The cluster does not settle, so the change is made at once."
        if rest.after is None
        else f"The change is made {for_readers(rest.after)} later, when the cluster has settled."
    )
    _print_words(console, f"Under way before the change: {what}. {when}", "yellow")


def _print_conditions(console: Console, conditions: Iterable[ConditionResult]) -> None:
    for one in conditions:
        if one.holds:
            evidence = listed(one.evidence, NAMES_MAX)
            _print_words(console, f"--fail-on {one.text}: {evidence}", "bold red")


def _packing(answer: WhatIfAnswer) -> Section:
    """Return the section on how tightly pods are packed."""
    columns = (
        TableColumn("PACKING", is_name=True),
        TableColumn("IN THE DUMP", is_number=True),
        TableColumn("WITHOUT THE CHANGE", is_number=True),
        TableColumn("WITH THE CHANGE", is_number=True),
    )
    rows = [
        (one.measure, *("-" if value is None else f"{value:,}"
                        for value in (one.today, one.without, one.changed)))
        for one in answer.packing
    ]  # fmt: skip
    least = len(rows)
    return table_section("packing", columns, rows, Rank.VERDICTS, least=least, most=max(least, 1))


def _certainty(answer: WhatIfAnswer) -> Section:
    """Return the section that shows which outcomes depend on the seed.

    Each row shows one outcome and the number of seeds with which it occurred. The outcome may have
    an amount (pods or seconds). The row then also shows the least, the median, the 90th percentile
    and the greatest amount with these seeds.
    """
    columns = (
        TableColumn(f"IN {answer.seeds:,} SEEDS", is_name=True),
        TableColumn("WHAT"),
        TableColumn("SEEDS", is_number=True),
        TableColumn("LEAST", rank=2, is_number=True),
        TableColumn("MEDIAN", rank=1, is_number=True),
        TableColumn("90%", rank=3, is_number=True),
        TableColumn("MOST", rank=1, is_number=True),
        TableColumn("CERTAIN?", rank=4),  # the column SEEDS says the same
    )
    rows = []
    for one in answer.certainty:
        amounts = (one.least, one.median, one.p90, one.most)
        shown = [_amount(one.what, amount) for amount in amounts]
        rows.append((one.subject, one.what, f"{one.seeds:,}/{one.total:,}", *shown, one.words))
    most = WORKLOADS_MAX  # the user asked for these rows with --seeds
    return table_section(
        "outcomes by seed", columns, rows, Rank.PROBLEMS, least=most, most=most, is_urgent=True
    )


def _amount(what: str, amount: float | None) -> str:
    if amount is None:
        return ""
    return for_readers(seconds(amount)) if what == RECOVERED else f"{amount:,.0f}"


# --- workloads, pools, budgets -----------------------------------------------------------------


def _workloads(
    rows: Sequence[WorkloadEffect],
    untouched: int,
    single: Mapping[str, int],
    *,
    has_seeds: bool,
) -> Section:
    """Return the section of workloads.

    The rows of harmed workloads come first, and get lines before most other sections. Harmed
    workloads whose rows do not fit are named below the table. `untouched` is the number of
    workloads that the change does not affect. Some of these workloads are single pods; `single`
    maps each sort of single pods to their number. `has_seeds` is set if the answer also has a
    section about seeds. If so, this section gets lines before the rows of harmed workloads.
    """
    columns = (
        TableColumn("WORKLOAD", is_name=True),
        TableColumn("WANTED", is_number=True),
        TableColumn("LOWEST READY", is_number=True),
        TableColumn("AT END", is_number=True),
        TableColumn("BUDGET", rank=1),
        TableColumn("WHAT HAPPENED"),
    )

    def table(count: int) -> FittedTable:
        shown = rows_of(rows, count)
        styles = ["red" if one.is_harmed else "" for one in shown]
        return FittedTable(columns, [_workload_cells(one) for one in shown], styles)

    def show(console: Console, count: int) -> None:
        shown = rows_of(rows, count)
        table(count).print(console)
        if rest := len(rows) - len(shown):
            hidden = [str(one.workload) for one in rows[len(shown) :] if one.is_harmed]
            some = "all" if len(hidden) == rest else f"{len(hidden):,} of them"
            what = f"{some} harmed: {listed(hidden, HARMED_NAMED)}" if hidden else "all as wanted"
            print_line(console, f"... and {rest:,} more, {what}", "dim")
        if untouched:
            verb = "workload is" if untouched == 1 else "workloads are"
            sorts = [
                f"{'all' if count == untouched else f'{count:,}'} of them {sort}"
                for sort, count in single.items()
                if count > 1
            ]
            pods = f" ({', '.join(sorts)})" if sorts else ""
            other = "other " if rows else ""
            print_line(console, f"{untouched:,} {other}{verb} untouched{pods}.", "dim")

    harmed = sum(one.is_harmed for one in rows)
    urgent = min(harmed, HARMED_FIRST)
    least, most = max(urgent, WORKLOADS_MIN), max(WORKLOADS_MAX, harmed)
    return Section(
        "workloads", max(len(rows), 1), show, Rank.VERDICTS, least, most,
        is_urgent=bool(urgent) and not has_seeds,
        left_out=lambda count, width: table(count).left_out(width),
    )  # fmt: skip


def _workload_cells(one: WorkloadEffect) -> tuple[str, ...]:
    ready = one.readiness
    lowest = f"{ready.lowest:,}"
    if lasted := ready.lowest_for_words:
        lowest = f"{lowest} {lasted if ready.lowest_for is None else f'for {lasted}'}"
    return (
        str(one.workload),
        f"{ready.wanted:,}",
        lowest,
        f"{ready.at_end:,}",
        "" if one.budget is None else one.budget.words,
        one.short_words,
    )


def _pools(answer: WhatIfAnswer, group_by: str) -> Section:
    """Return the section of the node pools that the change affects.

    If the change affects no pool, the section shows all pools if there is room. `group_by` has the
    same meaning as in `print_answer`.
    """
    labels = (group_by,) if group_by else answer.pool_labels
    pools = node_pools(answer.without, answer.changed, labels)
    differing = [one for one in pools if one.differs]
    keys = ", ".join(one.rpartition("/")[2] for one in labels)
    heading = f"NODE POOL ({keys})" if labels else "NODES"
    requested: Counter[str] = Counter()
    for pool in pools:
        requested.update(pool.requested)
        requested.update(pool.requested_without)
    more = [name for name in requested if name not in (*_POOL_RESOURCES, PODS) and requested[name]]
    resources = [*_POOL_RESOURCES, *sorted(more, key=resource_rank)]
    columns = (
        TableColumn(heading, is_name=True),
        TableColumn("NODES", is_number=True),
        TableColumn("NOT READY", is_number=True),
        TableColumn("CORDONED", is_number=True),
        TableColumn("PODS", is_number=True),
        *(TableColumn(name.upper(), rank=n, is_number=True) for n, name in enumerate(resources)),
    )
    rows = differing or pools
    # Readers might wonder why percentages change if pods stay where they are. A drain, by contrast,
    # leaves only pods of DaemonSets and static pods on the cordoned nodes.
    may_puzzle = answer.effect.is_none or _has_pods_on_newly_cordoned_nodes(answer)

    def table(count: int) -> FittedTable:
        cells = [_pool_cells(one, resources) for one in rows_of(rows, count)]
        return FittedTable(columns, cells)

    def show(console: Console, count: int) -> None:
        shown = rows_of(rows, count)
        table(count).print(console)
        if rest := len(rows) - len(shown):
            print_line(console, f"... and {rest:,} more", "dim")
        if labels and differing and (same := len(pools) - len(differing)):
            verb = "pool is" if same == 1 else "pools are"
            print_line(console, f"{same:,} other {verb} as before.", "dim")
        if may_puzzle and any(one.is_cordoned_anew for one in shown):
            print_line(console, "Cordoned nodes do not count in the percentages.", "dim")

    least = min(len(rows), POOLS_MIN)
    rank = Rank.VERDICTS if differing else Rank.MOVES
    return Section(
        "node pools", len(rows), show, rank, least, ROWS_MAX,
        left_out=lambda count, width: table(count).left_out(width),
    )  # fmt: skip


def _has_pods_on_newly_cordoned_nodes(answer: WhatIfAnswer) -> bool:
    """Return whether a node that only the change cordons has a pod that could run elsewhere.

    Static pods and pods of DaemonSets cannot run on another node.
    """
    before = {node.name for node in answer.without.nodes if node.unschedulable}
    return any(
        not pod.belongs_to_node
        for node in answer.changed.nodes
        if node.unschedulable and node.name not in before
        for pod in node.pods
    )


def _groups(answer: WhatIfAnswer, group_by: str) -> NodeGroups:
    """Return the node pools, or the zones if the nodes have no pools.

    `group_by` has the same meaning as in `print_answer`.
    """
    labels = (group_by,) if group_by else answer.pool_labels
    nodes = [*answer.without.nodes, *answer.changed.nodes]
    names = PoolNames.of(labels or (ZONE, BETA_ZONE), [node.labels for node in nodes])
    group_of = {node.name: names.name(node.labels) for node in nodes}
    return NodeGroups("NODE POOL" if labels else "ZONE", group_of)


def _pool_cells(pool: NodePoolOutcome, resources: Iterable[str]) -> tuple[str, ...]:
    return (
        pool.name,
        _changed(f"{pool.nodes_without:,}", f"{pool.nodes:,}"),
        f"{pool.not_ready:,}" if pool.not_ready else "",
        f"{pool.cordoned:,}" if pool.cordoned else "",
        _changed(f"{pool.pods_without:,}", f"{pool.pods:,}"),
        *(_usage(pool, name) for name in resources),
    )


def _changed(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _usage(pool: NodePoolOutcome, resource: str) -> str:
    """Return the share of the pool's allocatable `resource` that pods request, as a text.

    If the change affects the share, the text contains two shares: without and with the change.
    """
    allocatable = pool.allocatable.get(resource, 0)
    allocatable_without = pool.allocatable_without.get(resource, 0)
    after, before = pool.requested.get(resource, 0), pool.requested_without.get(resource, 0)
    if not allocatable and not allocatable_without:
        return "" if not after else amount_text(resource, after)
    return _changed(_percent(before, allocatable_without), _percent(after, allocatable))


def _percent(part: int, whole: int) -> str:
    return percent_text(part, whole) or "-"


def _budgets(rows: Sequence[BudgetOutcome]) -> Section:
    """Return the section of disruption budgets.

    If there are many budgets, those with the best results are left out. Budgets with a result in
    `_BAD_BUDGETS` are left out only if there is no room for them.
    """
    columns = (
        TableColumn("BUDGET", is_name=True),
        TableColumn("RULE", rank=2),
        TableColumn("ALLOWED", rank=1, is_number=True),
        TableColumn("LOWEST HEALTHY", is_number=True),
        TableColumn("NEEDED", is_number=True),
        TableColumn("RESULT"),
    )
    cells = [
        (one.pdb, one.rule, f"{one.allowed:,}", f"{one.lowest_healthy:,}", f"{one.needed:,}",
         one.words)
        for one in rows
    ]  # fmt: skip
    styles = ["red" if one.state in _BAD_BUDGETS else "" for one in rows]

    def table(count: int) -> FittedTable:
        return FittedTable(columns, rows_of(cells, count), styles)

    def show(console: Console, count: int) -> None:
        shown = rows_of(cells, count)
        table(count).print(console)
        if rest := len(rows) - len(shown):
            hidden = sum(one.state in _BAD_BUDGETS for one in rows[len(shown) :])
            some = "none of which held" if hidden == rest else f"{hidden:,} of which did not hold"
            what = some if hidden else "which held"
            print_line(console, f"... and {rest:,} more, {what}", "dim")

    bad = sum(one.state in _BAD_BUDGETS for one in rows)
    least = min(max(bad, 1), BUDGETS_MIN)
    rank = Rank.VERDICTS if bad else Rank.MOVES
    return Section(
        "budgets", len(rows), show, rank, least, max(bad, ROWS_MAX),
        left_out=lambda count, width: table(count).left_out(width),
    )  # fmt: skip


# --- problems and notes ------------------------------------------------------------------------


def _with_remark(error: ObjectError, *, is_additional: bool) -> str:
    """Return the message of `error`, with a remark if one applies.

    If the error no longer exists at the end of the run, the remark says so. Otherwise, if
    `is_additional` is False, the remark says that the error also occurs without the change.
    """
    if error.is_over:
        return f"{error.message} ({_OVER})"
    return error.message if is_additional else f"{error.message} ({_NO_EFFECT})"


def _refused_workloads(answer: WhatIfAnswer, *, has_details: bool) -> Section:
    """Return the section of the workloads whose next pods would be refused.

    If there is only one such workload and `has_details` is not set, the section is empty. The
    verdict or a note then names the workload.
    """
    found = answer.effect.refused_workloads
    columns = (
        TableColumn(f"NEW PODS REFUSED ({len(found):,})", is_name=True),
        TableColumn("REPLACEMENTS", rank=1),
        TableColumn("WHY"),
    )
    rows = [
        (str(one.workload), "refused" if one.replacements_refused else "admitted", one.message)
        for one in (found if has_details or len(found) > 1 else ())
    ]
    what = f"{counted(len(rows), 'workload')} without new pods"
    return table_section(what, columns, rows, Rank.CAUSES)


def _problems(answer: WhatIfAnswer) -> Iterator[Section]:
    """Yield three sections: events without effect, errors, and repeated displacements."""
    changed, start = answer.changed, answer.changed.started_at
    skipped = [(one.what, for_readers(one.at - start), one.why) for one in changed.skipped]
    errors = [
        (
            one.subject,
            f"{one.missing:,}" if one.missing else "",
            _with_remark(one, is_additional=one in answer.effect.errors),
        )
        for one in changed.errors
    ]
    loops = [(one.kind, for_readers(one.at - start), one.message) for one in changed.recurrences]
    after = TableColumn("AFTER", is_number=True)
    missing = TableColumn("PODS MISSING", is_number=True)
    for title, what, columns, rows in (
        (
            "EVENTS WITHOUT EFFECT",
            counted(len(skipped), "event without effect", "events without effect"),
            (after, TableColumn("WHY")),
            skipped,
        ),
        ("ERRORS", counted(len(errors), "error"), (missing, TableColumn("MESSAGE")), errors),
        (
            "REPEATEDLY DISPLACED",
            counted(len(loops), "repeated displacement"),
            (after, TableColumn("WHAT")),
            loops,
        ),
    ):
        named = TableColumn(f"{title} ({len(rows):,})", is_name=True)
        yield table_section(what, (named, *columns), rows, Rank.PROBLEMS)


def _notes(answer: WhatIfAnswer) -> Section:
    """Return the section of the answer's notes, such as defaults that were filled in."""
    lines = [f"Note: {note}" for note in answer.changed.notes]

    def show(console: Console, count: int) -> None:
        shown = rows_of(lines, count)
        for line in shown:
            _print_words(console, line, "yellow")
        if rest := len(lines) - len(shown):
            print_line(console, f"... and {rest:,} more notes", "dim")

    title, least = counted(len(lines), "note"), min(len(lines), NOTES_MIN)
    if answer.causes:
        least = 1
    return Section(
        title, len(lines), show, Rank.PROBLEMS, least, len(lines), is_urgent=bool(answer.causes)
    )


def _next_steps(steps: Sequence[NextStep]) -> Section:
    """Return the section that suggests what to do next.

    The first step needs two rows if its options or its command are long. If the section then has
    only one row, the row contains the words of the step, but neither its options nor its command.
    """
    is_long = any(len(one.code) > CODE_MAX for one in steps[:1])

    def show(console: Console, count: int) -> None:
        shown = rows_of(steps, max(count - is_long, 1))
        for number, one in enumerate(shown):
            if is_long and count == 1 and number == 0:
                what = "options" if one.options else "command"
                print_line(console, f"Next: {one.words}. {DETAILS} prints the {what}.")
            else:
                print_step(console, one)
        if rest := len(steps) - len(shown):
            print_line(console, f"... and {counted(rest, 'more step')}", "dim")

    title = counted(len(steps), "next step")
    most = STEPS_SHOWN + is_long
    rows = len(steps) + is_long
    return Section(title, rows, show, Rank.NEXT_STEPS, least=1 + is_long, most=most)
