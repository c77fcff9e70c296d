"""The page of `fairlead watch` in a real browser."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.cli.commands.watch.answer_page import AnswerPage
from fairlead.cli.commands.watch.inquiry import Answer, Inquiry
from fairlead.cli.commands.watch.question_file import Question, QuestionFile

pytestmark = pytest.mark.needs("chromium")

LONG = "x" * 253


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Answers and an error that contain names of the greatest length."""
    folder = tmp_path_factory.mktemp("watch")
    question = Question(f"drain {LONG}", ("--drain", LONG))
    findings = [{"severity": "bad", "sentence": f"1 pod of deploy/a/{LONG} stays pending."}]
    verdict = {"verdict": {"severity": "bad", "findings": findings}, "fail_on": []}
    inquiry = Inquiry(QuestionFile((question,), 60), f"context {LONG}", lambda: None, folder)
    inquiry.answers = {
        "a": Answer(question, "2026-01-01T00:00:00Z", verdict),
        "b": Answer(question, "2026-01-01T00:00:00Z", error=f"there is no Node {LONG}"),
    }
    text = asyncio.run(AnswerPage(inquiry, "token")._page(None)).text
    (folder / "page.html").write_text(text)
    return folder / "page.html"


@pytest.mark.parametrize("width", [360, 760, 1280])
def test_the_answers_are_visible_without_scrolling_sideways(page, answers, width):
    page.open(answers, width=width)
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
    assert page.problems == []
    assert page.lines("td time") == ["2026-01-01T00:00:00Z"] * 2


def test_a_page_without_answers_says_so(page, tmp_path):
    question = Question("drain", ("--drain", "a"))
    inquiry = Inquiry(QuestionFile((question,), 60), "context prod", lambda: None, tmp_path)
    text = asyncio.run(AnswerPage(inquiry, "token")._page(None)).text
    (tmp_path / "page.html").write_text(text)
    page.open(tmp_path / "page.html")
    assert page.lines("main p") == ["not read yet", "No question is answered yet."]
