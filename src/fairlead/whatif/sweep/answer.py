"""The answer of a sweep: the distribution of each measure, and the cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.sweep.case import Case, value_text
from fairlead.whatif.sweep.measure import (
    BY_NAME,
    MEASURES,
    Number,
    distribution,
    worst_case,
)

Measured = Mapping[str, Number | None]
CASES_SHOWN: Final = 20
NOTES_SHOWN: Final = 5


class CheckedCondition(Struct, frozen=True):
    """A condition of --fail-on, and the cases of the sweep in which it is true.

    `text` is the condition as the user wrote it. `measure` is the name of the measure that the
    condition is about. `cases` are the numbers of the cases.
    """

    text: str
    measure: str
    cases: tuple[int, ...]


def sweep_answer(
    source: str,
    cases: Sequence[Case],
    rows: Sequence[Measured],
    rank_by: str,
    conditions: Sequence[CheckedCondition] = (),
    noted: Sequence[Sequence[str]] = (),
) -> TabularAnswer:
    """Return the answer for `cases`, whose measures are `rows`.

    `rank_by` is the measure that defines the worst case. `conditions` are the conditions of
    --fail-on. `noted` are the notes of each result.
    """
    worst = worst_case(rows, rank_by)
    return TabularAnswer(
        kind="SweepResult",
        source=source,
        verdict=" ".join(_verdict(cases, rows, worst, rank_by)),
        findings=tuple(_holding(conditions, len(cases))),
        tables=(_measures_table(cases, rows), _cases_table(cases, rows)),
        facts={
            "parameters": _parameters(cases),
            "rank_by": rank_by,
            "worst": {"case": cases[worst].number, "parameters": dict(cases[worst].parameters)},
            "fail_on": [
                {"condition": one.text, "holds": bool(one.cases), "cases": list(one.cases)}
                for one in conditions
            ],
        },
        notes=(*_notes(rows, rank_by, conditions), *_notes_of_cases(noted)),
    )


def _holding(conditions: Sequence[CheckedCondition], total: int) -> Iterator[str]:
    """Yield a sentence for each of `conditions` that holds in at least one of `total` cases."""
    for one in conditions:
        if one.cases:
            which = "case" if len(one.cases) == 1 else "cases"
            numbers = listed([f"{number:,}" for number in one.cases])
            held = f"{len(one.cases):,} of {counted(total, 'case')}"
            yield f"--fail-on {one.text} holds in {held} ({which} {numbers})."


def _notes(
    rows: Sequence[Measured], rank_by: str, conditions: Sequence[CheckedCondition]
) -> Iterator[str]:
    """Yield notes about results that lack the measure `rank_by` or a measure in `conditions`."""
    total = counted(len(rows), "case")
    missing = {name: sum(row[name] is None for row in rows) for name in BY_NAME}
    for one in conditions:
        text, measure = one.text, one.measure
        if missing[measure] == len(rows):
            yield f"--fail-on {text} is not checked, because no result contains {measure}."
        elif missing[measure]:
            cases = f"{missing[measure]:,} of {total}"
            yield f"--fail-on {text} is not checked in {cases}, whose results lack {measure}."
    if 0 < missing[rank_by] < len(rows):
        cases = f"{missing[rank_by]:,} of {total}"
        yield f"{rank_by} counts as 0 in {cases}, whose results lack it."


def _notes_of_cases(noted: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield each different note in `noted` once.

    If only some of the cases have a note, the number of these cases comes before the note. After
    NOTES_SHOWN notes, one more text says how many notes remain.
    """
    cases = Counter(note for notes in noted for note in dict.fromkeys(notes))
    for note, count in list(cases.items())[:NOTES_SHOWN]:
        some = f"In {count:,} of {counted(len(noted), 'case')}: "
        yield note if count == len(noted) else some + note
    if len(cases) > NOTES_SHOWN:
        yield f"The results of the cases have {counted(len(cases) - NOTES_SHOWN, 'more note')}."


def _parameters(cases: Sequence[Case]) -> Json:
    names = list(cases[0].parameters)
    found: Json = {}
    for name in names:
        texts = {value_text(one.parameters[name]): one.parameters[name] for one in cases}
        found[name] = list(texts.values())
    return found


def _verdict(
    cases: Sequence[Case], rows: Sequence[Measured], worst: int, rank_by: str
) -> Iterator[str]:
    """Yield a sentence about `rank_by`.

    If `rank_by` is 0 in every case, also yield a sentence about the damage that defines the worst
    case.
    """
    yield _sentence(cases, rows, worst, rank_by)
    if any(row[rank_by] != 0 for row in rows):
        return
    for measure in MEASURES:
        if measure.is_damage and len({row[measure.name] or 0 for row in rows}) > 1:
            yield _sentence(cases, rows, worst, measure.name)
            return


def _sentence(cases: Sequence[Case], rows: Sequence[Measured], worst: int, rank_by: str) -> str:
    meaning = BY_NAME[rank_by].meaning.removesuffix(" (s)")
    total = counted(len(cases), "case")
    known = [value for row in rows if (value := row[rank_by]) is not None]
    if not known:
        return f"No result contains the measure {rank_by} ({meaning})."
    affected = sum(1 for value in known if value)
    least, most = min(row[rank_by] or 0 for row in rows), rows[worst][rank_by] or 0
    subject, fewest, largest = f"{meaning[0].upper()}{meaning[1:]}", f"{least:,}", f"{most:,}"
    if BY_NAME[rank_by].is_duration:
        fewest, largest = for_readers(seconds(least)), for_readers(seconds(most))
    if least == most:
        return f"{subject}: {largest} in each of {total}."
    some = "" if affected == len(cases) else f", above 0 in {affected:,} of {total}"
    return (
        f"{subject}: {fewest} to {largest}{some}; "
        f"worst with {cases[worst].title} (case {cases[worst].number:,})."
    )


def _measures_table(cases: Sequence[Case], rows: Sequence[Measured]) -> ResultTable:
    found = []
    for measure in MEASURES:
        spread = distribution([row[measure.name] for row in rows])
        if spread is None or spread.most == spread.least == 0:
            continue
        found.append(
            {
                "measure": measure.name,
                "meaning": measure.meaning,
                "least": spread.least,
                "median": spread.median,
                "p95": spread.p95,
                "most": spread.most,
                "worst": cases[spread.worst].title if spread.most > spread.least else "",
                "case": cases[spread.worst].number,
            }
        )
    columns = (
        ResultColumn("meaning", "measure", NAME),
        ResultColumn("least", "least", NUMBER),
        ResultColumn("median", "median", NUMBER),
        ResultColumn("p95", "95%", NUMBER, 1),
        ResultColumn("most", "most", NUMBER),
        ResultColumn("worst", "case with the most", NAME, 2),
    )
    return ResultTable("measures", "Distribution over the cases", columns, found, len(MEASURES))


def _cases_table(cases: Sequence[Case], rows: Sequence[Measured]) -> ResultTable:
    shown = [one for one in MEASURES if len({row[one.name] for row in rows}) > 1]
    columns = (
        ResultColumn("case", "case", NUMBER),
        *(ResultColumn(name, name, NAME) for name in cases[0].parameters),
        *(
            ResultColumn(one.name, one.heading, SECONDS if one.is_duration else NUMBER, rank)
            for rank, one in enumerate(shown)
        ),
    )
    found = [
        {
            "case": case.number,
            **{name: value_text(value) for name, value in case.parameters.items()},
            **row,
        }
        for case, row in zip(cases, rows, strict=True)
    ]
    return ResultTable("cases", "Cases", columns, found, CASES_SHOWN)
