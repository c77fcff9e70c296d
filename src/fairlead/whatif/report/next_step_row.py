"""Rows of the report's list "What now?": links to parts of the report, and next steps.

Each finding of the verdict has a link to the part of the report that explains it. The next steps
about the finding follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypedDict
from urllib.parse import quote

from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.outcome.budget import BudgetResult

ROWS_MAX: Final = 5


class NextStepRow(TypedDict, total=False):
    """A sentence, and the options, the command or the place that belong to it.

    `options` are options to add when the question is asked again. `command` is another command to
    run. `place` is a part of the report: the id of an element, or a link target in the report, such
    as `tab=evictions&row=store/web-1`.
    """

    words: str
    options: str
    command: str
    place: str


def next_step_rows(
    answer: WhatIfAnswer, conditions: Iterable[ConditionResult]
) -> list[NextStepRow]:
    """Return at most ROWS_MAX rows; the rows of the worst outcome come first."""
    steps = answer.next_steps_if(conditions)
    links: dict[str, NextStepRow] = {}
    rows: list[NextStepRow] = []
    for one in answer.verdict.findings:
        for words, place in _LINKS[one.kind](answer) if one.kind in _LINKS else ():
            if place not in links:
                links[place] = {"words": words, "place": place}
                rows.append(links[place])
        rows += [step_row(step) for step in steps if step.outcome is one.kind]
    rows += [step_row(step) for step in steps if step.outcome is None]
    return rows[:ROWS_MAX]


def step_row(step: NextStep) -> NextStepRow:
    """Return the row of `step`."""
    words = f"{step.clause}:"
    if step.options:
        return {"words": words, "options": step.options}
    return {"words": words, "command": step.command}


# --- the links, as sentences and places ----------------------------------------------------------

_Links = Callable[[WhatIfAnswer], Iterable[tuple[str, str]]]


def _link(words: str, place: str) -> _Links:
    return lambda _: ((words, place),)


def _breached(answer: WhatIfAnswer) -> Iterator[tuple[str, str]]:
    breached = [one for one in answer.effect.budgets if one.state is BudgetResult.BREACHED]
    for one in breached[:1]:
        yield (
            f"See which pods were displaced against {one.pdb}, and by what.",
            f"tab=pdb_breaches&row={quote(one.pdb)}",
        )
    if answer.changed.outage is not None:
        yield "See why budgets do not keep pods from leaving failed nodes.", "misconceptions"


def _unavailable(answer: WhatIfAnswer) -> Iterator[tuple[str, str]]:
    down = [one for one in answer.effect.workloads if one.had_no_ready_pod and not one.gone]
    for one in down[:1]:
        name = str(one.workload)
        yield f"See what happens to the pods of {name}.", f"pod={quote(name)}"


_DISPLACED: Final = _link("See every displaced pod and its cause.", "changes")
_LINKS: Final[Mapping[OutcomeKind, _Links]] = {
    OutcomeKind.LOOP: _DISPLACED,
    OutcomeKind.UNDRAINED: _link("See which pods cannot be evicted, and why.", "tab=undrained"),
    OutcomeKind.DATA_DELETED: _link("See which claims are deleted.", "tab=deleted_claims"),
    OutcomeKind.UNAVAILABLE: _unavailable,
    OutcomeKind.PENDING: _link("See why no node takes these pods.", "pending"),
    OutcomeKind.GONE: _link("See which pods are gone for good.", "tab=gone"),
    OutcomeKind.NOT_CREATED: _link(
        "See which pods are not created again, and what they wait for.", "tab=not_created"
    ),
    OutcomeKind.DOWN: _link(
        "See which pods do not come back from failed nodes, and why.", "tab=lost"
    ),
    OutcomeKind.REPLACEMENTS_REFUSED: _link(
        "See which workloads can get no new pods, and why.", "tab=refused_workloads"
    ),
    OutcomeKind.BREACHED: _breached,
    OutcomeKind.BRIEFLY_UNAVAILABLE: _unavailable,
    OutcomeKind.REPEATED: _DISPLACED,
    OutcomeKind.DISPLACED: _DISPLACED,
    OutcomeKind.NEGATIVE_PRIORITY_DISPLACED: _DISPLACED,
    OutcomeKind.NEGATIVE_PRIORITY_PENDING: _link(
        "See why no node takes the pods with a negative priority.", "pending"
    ),
}
