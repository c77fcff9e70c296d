"""TabularAnswer: an answer that consists of tables. Text, JSON and Markdown are made from it.

Planners, `explain` and `compare` return their answers in this form. The fields of the JSON are
documented in docs/answers.md; `result/form` has a class for each kind of answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.result.result_json import API_VERSION

Row = Mapping[str, Any]

SECONDS: Final = "seconds"
NAME: Final = "name"
NUMBER: Final = "number"
WORDS: Final = "words"


class ResultColumn(Struct, frozen=True):
    """A column with the heading `heading`, which shows the field `key` of each row of a table.

    `form` is NAME (may be shortened in the middle), NUMBER, SECONDS (shown as a duration) or WORDS.
    A narrow terminal drops the columns with the highest `rank` first; columns of rank 0 stay.
    """

    key: str
    heading: str
    form: str = WORDS
    rank: int = 0


class ResultTable(Struct, frozen=True):
    """A table of an answer; `name` is its field in JSON.

    A terminal shows the first `shown` rows; it does not show the table if `shown` is 0. If
    `has_remedies` is set, the rows are changes that would help. If a screen has no room for
    everything, such a table comes before notes and other tables.
    """

    name: str
    title: str
    columns: tuple[ResultColumn, ...]
    rows: Sequence[Row]
    shown: int = 10
    has_remedies: bool = False


class TabularAnswer(Struct, frozen=True):
    """An answer: the `verdict` in one sentence, further `findings`, tables, and notes."""

    kind: str  # the kind of the JSON object
    source: str
    verdict: str
    findings: tuple[str, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    facts: Json = field(default_factory=dict)  # the further fields of the JSON object
    notes: tuple[str, ...] = ()
    is_no: bool = False  # whether the answer to a yes/no question is no
    # The next steps, None for a kind of answer that never has any.
    steps: tuple[NextStep, ...] | None = None

    def to_json(self) -> Json:
        """Return the answer as JSON; each table is a list in it."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "source": self.source,
            "verdict": self.verdict,
            "findings": list(self.findings),
            **({} if self.steps is None else {"next_steps": [one.to_json() for one in self.steps]}),
            **self.facts,
            **{table.name: [dict(row) for row in table.rows] for table in self.tables},
            "notes": list(self.notes),
        }
