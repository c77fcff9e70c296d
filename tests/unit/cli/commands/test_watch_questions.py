"""The file of `fairlead watch --ask`."""

from __future__ import annotations

import pytest

from fairlead.cli.commands.watch.question_file import Question, read_questions
from fairlead.whatif.input.error import InputError


def read(folder, text):
    file = folder / "questions.yaml"
    file.write_text(text)
    return read_questions(str(file))


def test_questions_are_split_into_words(tmp_path):
    found = read(tmp_path, "questions: [{name: a, ask: --drain 'node 1' --for=5m}]")
    assert found.questions == (Question("a", ("--drain", "node 1", "--for=5m")),)
    assert found.every_s == 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("questions: []", "questions: has no question"),
        ("questions: [{name: a, ask: ''}]", "questions[0].ask: must not be empty"),
        ("questions: [{name: a, ask: other.yaml}]", "must begin with an option"),
        ("questions: [{name: a, ask: --context x}]", "--context cannot be part of a question"),
        ("questions: [{name: a, ask: --drain n}, {name: a, ask: --drain m}]", "is used twice"),
        ("every: 1ms\nquestions: [{name: a, ask: --drain n}]", "every: must be at least 1s"),
        ("questions: [{name: a, ask: --drain n, if: x}]", "unknown field"),
    ],
)
def test_malformed_questions_are_refused(tmp_path, text, said):
    with pytest.raises(InputError) as refusal:
        read(tmp_path, text)
    assert said in str(refusal.value)
