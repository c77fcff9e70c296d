"""Help texts and guides call the input of commands a dump; SNAPSHOT is only its placeholder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.cli.main import COMMANDS, documented_app

DOCS = Path(__file__).parents[3] / "docs"
# A snapshot file is what `fairlead snapshot` writes.
OTHER_WORD = re.compile(r"\b(?:the|this|another|a)\s+snapshot(?:'s)?\b(?!\s+file)", re.IGNORECASE)
DEFINITION = re.compile(r"SNAPSHOT is (?!a \*?dump\*? of)")


def help_texts(command: str) -> Iterator[str]:
    """Yield the help of a command and of each of its parameters."""
    app = documented_app()[command]
    yield app.help or ""
    yield app.default_command.__doc__ or ""
    for argument in app.assemble_argument_collection():
        yield argument.parameter.help or ""


@pytest.mark.parametrize("command", [one.name for one in COMMANDS])
def test_the_help_of_a_command_calls_its_input_a_dump(command):
    for text in help_texts(command):
        assert not OTHER_WORD.search(text), text
        assert not DEFINITION.search(text), text


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_guide_calls_the_input_a_dump(page):
    text = page.read_text(encoding="utf-8")
    assert not OTHER_WORD.search(text)
    assert not DEFINITION.search(text)
