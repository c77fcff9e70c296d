"""Writes the answer of a what-if or a simulation as Markdown for a pull request comment.

Names come from users' dumps, so characters with a meaning in Markdown or HTML are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.amount import amount_text, percent_text
from fairlead.cli.output.markdown_limit import within_limit
from fairlead.cli.output.summary.jobs import amounts_text
from fairlead.engine.core.instant import seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import one_line
from fairlead.whatif.outcome.assessment.certainty import RECOVERED
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.result.result_json import whatif_result
from fairlead.whatif.result.table import (
    RESIZED,
    SIMULATION_TABLES,
    TABLES,
    AnswerTable,
    cell_text,
)

# Columns of the table about --seeds: the distribution of an amount over the seeds.
_SEED_AMOUNTS: Final = ("least", "median", "p90", "most")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown_answer(
    answer: WhatIfAnswer, conditions: Sequence[ConditionResult], group_by: str
) -> str:
    """Return the verdict, the table of workloads, all other tables in closed <details>, and notes.

    The text fits into a comment on GitHub (`markdown_limit`). `conditions` are the results of
    --fail-on. `group_by` is the key of the node label whose value names the node's pool. If
    `group_by` is "", `answer.pool_labels` are used.
    """
    result = whatif_result(answer, conditions, group_by)

    tables = partial(_tables, result, TABLES)
    head = list(_head(result, answer.node_cost))
    return within_limit(head, tables, list(_notes(result["notes"])))


def markdown_simulation(
    result: Json, scheduler: str, conditions: Mapping[str, Sequence[str]], unsettled: str
) -> str:
    """Return the result of a simulation as Markdown: verdict, tables in closed <details>, notes.

    The text fits into a comment on GitHub (`markdown_limit`). `result` is the JSON value that
    `simulation_result` returns. `scheduler` names the scheduler. The keys of `conditions` are the
    conditions of --fail-on that are met, and the values are the evidence. `unsettled` is a further
    note, "" for none.
    """
    span = f"{for_readers(seconds(result['virtual_seconds']))} from {result['started_at']}"
    head = [
        *_verdict(result),
        *(
            f"- :x: `--fail-on {_code(condition)}`: {_escaped(listed(list(evidence)))}"
            for condition, evidence in conditions.items()
        ),
        "",
        f"`{_code(result['source'])}`, {span}, seed {result['seed']}, {_escaped(scheduler)}",
    ]
    tables = partial(_tables, result, SIMULATION_TABLES)
    return within_limit(head, tables, list(_notes(filter(None, (*result["notes"], unsettled)))))


def _verdict(result: Json) -> Iterator[str]:
    first, *others = result["verdict"]["findings"]
    yield f"### {_escaped(first['sentence'])}"
    yield ""
    yield from (f"- {_escaped(one['sentence'])}" for one in others)


def _head(result: Json, node_cost: str) -> Iterator[str]:
    yield from _verdict(result)
    if node_cost:
        yield f"- {node_cost}"
    yield from (
        f"- :x: `--fail-on {one['condition']}`: {_escaped(listed(one['evidence']))}"
        for one in result["fail_on"]
        if one["holds"]
    )
    rest = result["rest"]
    if rest["under_way"]:
        after = rest["after_s"]
        yield (
            "- The cluster does not settle, so the change is made at once."
            if after is None
            else f"- The change is made after {for_readers(seconds(after))}, when the cluster has "
            "settled."
        )
    yield ""
    changes = " ".join(result["changes"]) or "no change"
    source = f"`{_code(result['source'])}` as of {result['started_at']}"
    config = result["scheduler_config"]
    scheduler = f"`{_code(config)}`" if config else "the default configuration"
    yield f"`{_code(changes)}` on {source}, seed {result['seed']}, scheduler with {scheduler}"
    if result["next_steps"]:
        yield ""
        yield "Next:"
        yield ""
    for one in result["next_steps"]:
        code = one["options"] or one["command"]
        yield f"- {_escaped(one['sentence'].rstrip('.'))}: `{_code(code)}`"


def _notes(notes: Iterable[str]) -> Iterator[str]:
    for number, note in enumerate(notes):
        if number == 0:
            yield from ("", "Notes:", "")
        yield f"- {_escaped(note)}"


def _tables(result: Json, tables: Iterable[AnswerTable], rows_max: int) -> Iterator[str]:
    for table in tables:
        rows = table.rows(result)
        if not rows or table.name == "notes":
            continue
        yield ""
        if table.name == "workloads":
            yield from _table(table, rows, rows_max)
            continue
        yield f"<details><summary>{_escaped(table.title)} ({len(rows):,})</summary>"
        yield ""
        yield from _table(table, rows, rows_max)
        yield ""
        yield "</details>"


def _table(table: AnswerTable, rows: Sequence[Mapping[str, Any]], rows_max: int) -> Iterator[str]:
    yield f"| {' | '.join(heading for _, heading in table.columns)} |"
    yield f"|{' --- |' * len(table.columns)}"
    for row in rows[:rows_max]:
        cells = (_escaped(one_line(_cell(row, field))) for field, _ in table.columns)
        yield f"| {' | '.join(cells)} |"
    if len(rows) > rows_max:
        yield ""
        yield f"... and {len(rows) - rows_max:,} more"


def _cell(row: Mapping[str, Any], field: str) -> str:
    """Return the text of a cell; amounts of resources, and times, have units."""
    match row.get(field):
        case int() | float() as time_s if field.endswith("_s") or (
            field in _SEED_AMOUNTS and row["what"] == RECOVERED
        ):
            return for_readers(seconds(time_s))
        case int() | float() as amount if "resource" in row:
            return amount_text(row["resource"], amount)
        case dict() as amounts:
            return amounts_text(amounts)
        case list() as shares if field == "resources":
            return ", ".join(filter(None, map(_usage, shares)))
        case None if field == "instead_of":
            return RESIZED
        case value:
            return cell_text(value)


def _usage(share: Mapping[str, Any]) -> str:
    """Return the usage of a resource before and after the change: `cpu 40.0% → 50.0%`.

    Each number is the amount that pods request, as a percentage of the allocatable amount. Equal
    numbers are written once. Returns "" if no pod requests the resource at either time.
    """
    if not (share["requested"] or share["requested_without"]):
        return ""
    before = percent_text(share["requested_without"], share["allocatable_without"]) or "-"
    after = percent_text(share["requested"], share["allocatable"]) or "-"
    return f"{share['resource']} {before if before == after else f'{before} → {after}'}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text, None))


def _code(text: str) -> str:
    return one_line(text, None).replace("`", "'")
