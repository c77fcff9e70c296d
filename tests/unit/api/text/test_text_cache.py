"""A cache of parsed texts."""

from __future__ import annotations

import pytest

from fairlead.api.text.text_cache import text_cache


@pytest.fixture
def read():
    """A parser that records the texts that it parses."""
    calls = []

    @text_cache(maxsize=10, characters_max=5)
    def read(text, *, is_long=False):
        calls.append(text)
        return len(text)

    read.calls = calls
    return read


def test_short_texts_are_parsed_once(read):
    assert [read("short"), read("short"), read("short", is_long=True)] == [5, 5, 5]
    assert read.calls == ["short", "short"]


def test_long_texts_are_not_cached(read):
    assert [read("longer"), read("longer")] == [6, 6]
    assert read.calls == ["longer", "longer"]


def test_a_function_of_one_text_is_cached_by_the_same_rule():
    """A function of one text has its own implementation; other values have no length."""
    calls = []

    @text_cache(maxsize=10, characters_max=5)
    def read(text):
        calls.append(text)
        return text

    for text in ("short", "longer", 1_234_567):
        assert [read(text), read(text)] == [text, text]
    assert calls == ["short", "longer", "longer", 1_234_567]
