"""The file of `fairlead watch --ask`."""

from __future__ import annotations

import asyncio
import json
import shlex
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairlead.apiserver.kind import CONFIG_MAP, NODE
from fairlead.cli import exit_code
from fairlead.cli.commands.watch import inquiry as inquiry_module
from fairlead.cli.commands.watch.answer_page import AnswerPage
from fairlead.cli.commands.watch.inquiry import Answer, Inquiry
from fairlead.cli.commands.watch.question_file import (
    INPUT_FILES,
    NAMED_CONFIGURATIONS,
    Question,
    QuestionFile,
    read_questions,
)
from fairlead.cli.commands.watch.run import _token
from fairlead.cli.main import documented_app
from fairlead.cli.own_command import Completed
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES
from fairlead.whatif.snapshot.live.live_snapshot import LiveObjects


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
        ("questions: [{name: a, ask: --drain n -ojson}]", "-o cannot be part of a question"),
        ("questions: [{name: a, ask: --drain n}, {name: a, ask: --drain m}]", "is used twice"),
        ("questions: [{name: a, ask: --help}]", "--help cannot be part of a question"),
        (
            "questions: [{name: b, ask: --drain n}, {name: a, ask: --drian n}]",
            "questions.yaml: question a: questions[1].ask: whatif: --drian is not an option",
        ),
        ("questions: [{name: a, ask: --drain n m}]", "'m' is one argument too many"),
        ("questions: [{name: a, ask: --drain}]", "--drain needs a value"),
        ("questions: [{name: a, ask: --drain n --seeds x}]", "question a: questions[0].ask: "),
        ("questions: [{name: a, ask: --drain n --fail-on x}]", "question a: questions[0].ask: "),
        ("questions: [{name: a, ask: '--change \"x:--drain n\"'}]", "compare several answers"),
        ("questions: [{name: a, ask: --drain n --against-config c}]", "compare several answers"),
        ("every: 1ms\nquestions: [{name: a, ask: --drain n}]", "every: must be at least 1s"),
        ("questions: [{name: a, ask: --drain n, if: x}]", "unknown field"),
    ],
)
def test_malformed_questions_are_refused(tmp_path, text, said):
    with pytest.raises(InputError) as refusal:
        read(tmp_path, text)
    assert said in str(refusal.value)


def test_a_missing_file_of_a_question_is_reported_before_the_cluster_is_read(tmp_path):
    with pytest.raises(InputError) as refusal:
        read(tmp_path, "questions: [{name: a, ask: --drain n --apply=/no/such.yaml}]")
    problem = "question a: questions[0].ask: --apply: /no/such.yaml: cannot be read: No such file"
    assert str(refusal.value).startswith(f"{tmp_path}/questions.yaml: {problem}")


def test_a_question_cannot_read_standard_input(tmp_path):
    with pytest.raises(InputError, match="--load: cannot be standard input"):
        read(tmp_path, "questions: [{name: a, ask: --drain n --load=-}]")


def test_two_existing_files_of_a_question_are_accepted(tmp_path):
    types, prices = tmp_path / "types.csv", tmp_path / "prices.csv"
    types.touch()
    prices.touch()
    read(tmp_path, f"questions: [{{name: a, ask: '--drain n --instance-types {types},{prices}'}}]")


def test_every_file_of_a_question_is_checked_or_may_be_a_name():
    """A new option of `fairlead whatif` for a file must be added to one of the lists."""
    arguments = documented_app()["whatif"].assemble_argument_collection(parse_docstring=False)
    files = {one.name for one in arguments if one.parameter.metavar in ("FILE", "POLICY.yaml")}
    outside = {"--kubeconfig", "--commands", "--against-snapshot", "--against-config"}
    assert files - outside == {*INPUT_FILES, *NAMED_CONFIGURATIONS}


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


def test_an_unfinished_read_does_not_prevent_the_watch_from_ending(tmp_path):
    release = threading.Event()
    inquiry = Inquiry(SimpleNamespace(questions=()), "prod", release.wait, tmp_path)

    async def begin_and_cancel():
        looking = asyncio.create_task(inquiry.look())
        await asyncio.sleep(0.01)
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking

    try:
        asyncio.run(begin_and_cancel())  # waits for the threads of the loop's executor
    finally:
        release.set()


def test_a_question_is_shown_as_it_can_be_typed(tmp_path):
    """A value with a space stays one word of a shell."""
    asked = Question("drain", ("--drain", "node 1", "--for=5m"))
    inquiry = Inquiry(QuestionFile((asked,), 60), "prod", lambda: None, tmp_path)
    inquiry.answers = {"drain": Answer(asked, "2026-01-01T00:00:00Z", error="no such node")}
    [shown] = inquiry.as_json()["answers"]
    assert shown["ask"] == "--drain 'node 1' --for=5m"
    page = asyncio.run(AnswerPage(inquiry, "token")._page(None)).text
    assert "<code>--drain &#x27;node 1&#x27; --for=5m</code>" in page


def test_a_full_disk_is_reported(tmp_path, capsys):
    live = LiveObjects("prod", 0, (), ())
    inquiry = Inquiry(SimpleNamespace(questions=()), "prod", lambda: live, tmp_path / "absent")
    asyncio.run(inquiry.look())
    assert "No such file or directory" in capsys.readouterr().err
    assert (inquiry.reads, inquiry.failed_reads) == (0, 1)


def test_a_question_without_an_answer_is_reported_once(tmp_path, capsys, monkeypatch):
    completed = [
        Completed(0, b"Usage: fairlead whatif", ""),
        Completed(2, b"", "fairlead: no such node"),
    ]
    outcomes = iter([completed[0], completed[0], completed[1]])

    async def run_own_command(_arguments):
        return next(outcomes)

    monkeypatch.setattr(inquiry_module, "run_own_command", run_own_command)
    lives = iter([LiveObjects("prod", at, ((NODE, [b"%d" % at]),), ()) for at in range(3)])
    file = SimpleNamespace(questions=(Question("help", ("--help",)),))
    inquiry = Inquiry(file, "prod", lambda: next(lives), tmp_path)
    for _ in range(3):
        asyncio.run(inquiry.look())
    assert capsys.readouterr().err.splitlines() == [
        "fairlead: question help: fairlead whatif printed no answer",
        "fairlead: question help: no such node",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff" * 20, "cannot be read: is not text"),
        ("\u00e9".encode() * 20, "is not ASCII"),
        (b"short", "must hold at least 16 characters"),
    ],
)
def test_a_file_without_a_token_is_refused(tmp_path, content, problem):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as refusal:
        _token(file)
    assert str(refusal.value) == f"--token-file: {file}: {problem}"


def test_an_endless_token_file_is_refused():
    with pytest.raises(InputError, match="/dev/zero: cannot be read: longer than 8 MiB"):
        _token(Path("/dev/zero"))


def test_a_lost_permission_is_reported_and_the_what_ifs_run_again(tmp_path, capsys, monkeypatch):
    """Without the right to read budgets, a drain that they block would look possible."""
    commands = []

    async def answer(words):
        commands.append(words)
        finding = b'{"severity": "good", "sentence": "", "outcome": "x"}'
        verdict = b'{"severity": "good", "findings": [%b]}' % finding
        return Completed(0, b'{"verdict": %b, "fail_on": []}' % verdict, "")

    monkeypatch.setattr(inquiry_module, "run_own_command", answer)
    (budgets,) = (
        one for one in LIVE_RESOURCES if one.kind.resource == "poddisruptionbudgets.policy"
    )
    lost = [(), (budgets,), (budgets,), ()]
    reads = iter([LiveObjects("prod", 0, (), unreadable) for unreadable in lost])
    file = read(tmp_path, "questions: [{name: a, ask: --drain n}]")
    inquiry = Inquiry(file, "prod", lambda: next(reads), tmp_path)
    page, said = AnswerPage(inquiry, "token"), []
    for _ in lost:
        asyncio.run(inquiry.look())
        metrics = asyncio.run(page._metrics(None)).body.decode()
        shown = "no poddisruptionbudgets" in asyncio.run(page._page(None)).text
        said.append((len(commands), len(inquiry.as_json()["unreadable"]), shown))
        assert f"fairlead_watch_unreadable {float(shown)}" in metrics
    assert said == [(1, 0, False), (2, 1, True), (2, 1, True), (3, 0, False)]
    lost, found = capsys.readouterr().err.splitlines()
    assert lost.startswith("fairlead: no poddisruptionbudgets could be read: drains and")
    assert found == "fairlead: every resource of prod can be read"


def test_answers_and_errors_name_the_cluster_instead_of_the_temporary_file(
    tmp_path, monkeypatch, capsys
):
    async def answer(words):
        if "n" in words:
            return Completed(exit_code.BAD_INPUT, b"", f"fairlead: {words[1]}: has no node n")
        text = f"see fairlead explain {shlex.quote(words[1])} pod/a"
        verdict = {"severity": "good", "findings": [{"text": text}]}
        return Completed(0, json.dumps({"verdict": verdict, "fail_on": []}).encode(), "")

    monkeypatch.setattr(inquiry_module, "run_own_command", answer)
    file = read(tmp_path, "questions: [{name: a, ask: --drain n}, {name: b, ask: --drain m}]")
    live = LiveObjects("context prod", 0, (), ())
    arguments = ("--context", "prod 1")
    folder = tmp_path / "a folder"
    folder.mkdir()
    inquiry = Inquiry(file, "context prod", lambda: live, folder, arguments)
    asyncio.run(inquiry.look())
    said = capsys.readouterr().err
    assert said == "fairlead: question a: context prod: has no node n\n"
    assert inquiry.answers["a"].error == "context prod: has no node n"
    text = "see fairlead explain --context 'prod 1' pod/a"
    assert inquiry.answers["b"].findings == [{"text": text}]


def test_a_condition_that_holds_is_served(tmp_path, monkeypatch):
    """A question can have --fail-on: the page, the JSON and the metrics show what holds."""
    conditions = [
        {"condition": "pending>0", "holds": True, "evidence": ["shop/web-1"]},
        {"condition": "evicted>9", "holds": False, "evidence": []},
        {"condition": "evicted>9", "holds": False, "evidence": []},  # stated twice
    ]
    result = {"verdict": {"severity": "good", "findings": []}, "fail_on": conditions}

    async def answer(_words):
        return Completed(exit_code.CONDITION_HOLDS, json.dumps(result).encode(), "")

    monkeypatch.setattr(inquiry_module, "run_own_command", answer)
    ask = "--drain n --fail-on pending>0 --fail-on evicted>9"
    file = read(tmp_path, f"questions: [{{name: a, ask: {ask}}}]")
    inquiry = Inquiry(file, "prod", lambda: LiveObjects("prod", 0, (), ()), tmp_path)
    asyncio.run(inquiry.look())
    page = AnswerPage(inquiry, "token")
    shown = asyncio.run(page._page(None)).text
    assert '<span class="bad">--fail-on pending&gt;0: shop/web-1</span>' in shown
    assert "--fail-on evicted&gt;9: " not in shown
    assert inquiry.as_json()["answers"][0]["failOn"] == conditions
    metrics = asyncio.run(page._metrics(None)).body.decode()
    for text, value in (("pending>0", 1.0), ("evicted>9", 0.0)):
        labels = f'condition="{text}",question="a"'
        assert metrics.count(f"fairlead_question_condition_holds{{{labels}}} {value}") == 1


def status_read_at(time, most):
    """Returns the objects of a cluster: the status of Cluster Autoscaler at this time."""
    metadata = {"name": "cluster-autoscaler-status", "resourceVersion": time}
    metadata["annotations"] = {"cluster-autoscaler.kubernetes.io/last-updated": f"{time}.1 UTC"}
    text = f"time: {time}.123 +0000 UTC\nnodeGroups: [{{maxSize: {most}}}]\n"
    item = json.dumps({"metadata": metadata, "data": {"status": text}}, separators=(",", ":"))
    return LiveObjects("prod", 0, ((CONFIG_MAP, [item.encode()]),), ())


def test_the_time_in_the_status_of_cluster_autoscaler_is_no_change(tmp_path, monkeypatch):
    """Cluster Autoscaler writes it every ten seconds."""
    asked = []

    async def answer(words):
        asked.append(words)
        verdict = b'{"severity": "good", "findings": []}'
        return Completed(0, b'{"verdict": %b, "fail_on": []}' % verdict, "")

    monkeypatch.setattr(inquiry_module, "run_own_command", answer)
    first, later = "2026-11-27 05:50:14", "2026-11-27 05:50:24"
    reads = iter([status_read_at(first, 3), status_read_at(later, 3), status_read_at(later, 4)])
    file = read(tmp_path, "questions: [{name: a, ask: --drain n}]")
    inquiry = Inquiry(file, "prod", lambda: next(reads), tmp_path)
    counts = []
    for _ in range(3):
        asyncio.run(inquiry.look())
        counts.append(len(asked))
    assert counts == [1, 1, 2]
