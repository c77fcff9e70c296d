"""The commands in docs/from-the-documents confirm each claim, in its version and in 1.36."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parent.parent


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("claims_pages", ROOT / "tools/claims_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["claims_pages"] = module
    spec.loader.exec_module(module)
    return module


TOOL: Final = _tool()
EXAMPLES: Final = [
    (example.version, example)
    for document in TOOL.read_documents()
    for example in document.examples
]
CLAIMS: Final = [claim for _, example in EXAMPLES for claim in example.claims]


@pytest.mark.parametrize(
    ("version", "example"),
    EXAMPLES,
    ids=[f"{example.claims[0].number} {example.run}" for _, example in EXAMPLES],
)
def test_the_claims_hold(version: str, example: Any) -> None:
    """In its version as the document states, and in 1.36 as the page states."""
    for claim in example.claims:
        for which, checks in ((version, claim.shows), (TOOL.TODAY, claim.today)):
            problem = TOOL.failure(checks, TOOL.output(example.run, which))
            assert not problem, (claim.number, which, problem)


def test_the_checks_of_a_difference_hold_in_one_version_only() -> None:
    """The check for 1.36 must fail in the other version."""
    for version, example in EXAMPLES:
        for claim in example.claims:
            if claim.differs:
                here, today = (TOOL.output(example.run, one) for one in (version, TOOL.TODAY))
                assert TOOL.failure(claim.shows, today), claim.number
                assert TOOL.failure(claim.today, here), claim.number


def test_every_example_has_a_check_for_present_output() -> None:
    """Otherwise, a command that prints nothing would pass all checks."""
    for _, example in EXAMPLES:
        checks = [check for claim in example.claims for check in (*claim.shows, *claim.today)]
        assert not all(check.is_absent for check in checks), example.run


def test_every_scenario_file_is_used() -> None:
    """A file in the folder belongs to a command, directly or through a scenario or program."""
    commands = " ".join(example.run for _, example in EXAMPLES)
    texts = [path.read_text() for path in TOOL.SCENARIOS.glob("*.*")]
    for path in TOOL.SCENARIOS.glob("*.*"):
        assert path.name in commands or any(path.name in text for text in texts), path.name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("b", ""),
        ("a … c", ""),
        ("c … a", "c … a is in 0 lines"),
        ("not: x", ""),
        ("not: b", "b is in 1 lines"),
        ("2 times: a", ""),
        ("1 times: a", "a is in 2 lines"),
    ],
)
def test_a_check_accepts_matching_lines(text: str, problem: str) -> None:
    assert TOOL.failure([TOOL.parse_check(text)], ["abc", "a"]) == problem


def test_a_check_with_then_searches_later_lines_only() -> None:
    first, then = TOOL.parse_check("a"), TOOL.parse_check("then: a")
    assert TOOL.failure([first, then], ["a", "b", "a"]) == ""
    assert TOOL.failure([first, then, then], ["a", "b", "a"]) != ""


def test_the_pages_are_up_to_date() -> None:
    """`python tools/claims_pages.py` writes the pages."""
    assert len(CLAIMS) == len({claim.number for claim in CLAIMS})
    for name, text in TOOL.pages().items():
        assert (TOOL.FOLDER / name).read_text() == text, name
