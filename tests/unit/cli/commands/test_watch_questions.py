"""The file of `fairlead watch --ask`."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from fairlead.cli.commands.watch.inquiry import Inquiry
from fairlead.cli.commands.watch.question_file import Question, read_questions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.live import LiveObjects


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


def test_a_cluster_that_disappears_and_returns_is_reported_once(tmp_path, capsys):
    live = LiveObjects("prod", 0, (), ())
    reads = iter([live, InputError("prod", "does not answer"), InputError("prod", "is gone"), live])

    def look():
        found = next(reads)
        if isinstance(found, InputError):
            raise found
        return found

    inquiry = Inquiry(SimpleNamespace(questions=()), "prod", look, tmp_path)
    printed = []
    for _ in range(4):
        asyncio.run(inquiry.look())
        printed.append(capsys.readouterr().err)
    assert printed == [
        "",
        "fairlead: prod: does not answer; the answers stay as they were\n",
        "",
        "fairlead: prod can be read again\n",
    ]
    assert (inquiry.reads, inquiry.failed_reads, inquiry.problem) == (2, 2, "")
