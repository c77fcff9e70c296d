"""The corpus: recorded inputs of every parser that reads untrusted input.

`corpus/<parser>.jsonl` has one line for each input: the text as JSON, and whether it is read or
refused. `corpus/dump` and `corpus/table` have whole files, whose names state the outcome:
`refused-...` or `read-...`. Inputs that fuzzing or a user has found are added here; the text
generators (`strategies.py`) also draw from the lines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from tests.fuzz import test_texts

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.api.selector import SelectorError, parse_selector
from fairlead.api.text.yaml_documents import documents
from fairlead.apiserver.validation.batch.schedule import schedule_problem
from fairlead.cel.device import read_selector as read_expression
from fairlead.cel.error import ExpressionError
from fairlead.whatif.input.document import decode_text
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.table import read_table
from fairlead.whatif.snapshot.snapshot import parse_snapshot

CORPUS: Final = Path(__file__).parent / "corpus"


def read_quantity(text):
    test_texts.test_a_quantity_is_parsed_and_formatted_or_refused.hypothesis.inner_test(text)
    parse_quantity(text)


def read_selector(text):
    test_texts.test_a_label_selector_is_evaluated_or_refused.hypothesis.inner_test(text, {"a": "b"})
    parse_selector(text)


def read_cron(text):
    test_texts.test_a_schedule_has_a_next_time_or_a_problem.hypothesis.inner_test(text)
    if problem := schedule_problem(text):
        raise ValueError(problem)


def read_label_key(text):
    if problems := list(label_key_problems(text)):
        raise ValueError(problems)


def read_label_value(text):
    if problems := list(label_value_problems(text)):
        raise ValueError(problems)


READERS: Final = {
    "quantity": read_quantity,
    "selector": read_selector,
    "cron": read_cron,
    "label-key": read_label_key,
    "label-value": read_label_value,
    "cel": read_expression,
    "yaml": lambda text: list(documents(text)),
}
REFUSALS: Final = (QuantityError, SelectorError, ExpressionError, ValueError)
LINES: Final = [
    (parser, *json.loads(line))
    for parser in READERS
    for line in (CORPUS / f"{parser}.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize(("parser", "text", "outcome"), LINES)
def test_a_line_is_read_or_refused(parser, text, outcome):
    if outcome == "read":
        READERS[parser](text)
        return
    with pytest.raises(REFUSALS) as refused:
        READERS[parser](text)
    assert str(refused.value)


def read_file(path):
    if path.parent.name == "dump":
        return parse_snapshot(path.name, path.read_bytes())
    _, rows = read_table(path.name, decode_text(path.name, path.read_bytes()))
    return list(rows)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: path.name)
def test_a_file_is_read_or_refused_in_one_line(path):
    if path.name.startswith("read-"):
        assert read_file(path)
        return
    with pytest.raises(InputError) as refused:
        read_file(path)
    assert path.name.removesuffix(".gz") in str(refused.value)
    assert "\n" not in str(refused.value)
