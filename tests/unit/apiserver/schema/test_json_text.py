"""JSON texts, and what is wrong with those that are none."""

from __future__ import annotations

import pytest

from fairlead.apiserver.schema.json_text import JsonError, Repeating, parse_json


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "unexpected end of JSON input"),
        ("", "unexpected end of JSON input"),
        ('{"a": 1} x', "invalid character 'x' after top-level value"),
        ("{bad}", "invalid character 'b' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("kind: Pod", "invalid character 'k' looking for beginning of value"),
    ],
)
def test_no_json(text, problem):
    """The problem is told in upstream's words."""
    with pytest.raises(JsonError) as refused:
        parse_json(text)
    assert str(refused.value) == problem


def test_a_repeated_member_counts_last_and_is_seen():
    value = parse_json('{"a": 1, "a": 2}')
    assert value == {"a": 2}
    assert isinstance(value, Repeating)
    assert value.pairs == [("a", 1), ("a", 2)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ude00\ud83dx"', "\ufffd\ufffdx"),
        (rb'"\\ud83d"', r"\ud83d"),
        (rb'"\uD83D\uDE00\uDE00"', "\U0001f600\ufffd"),
        (b'"\xff"', "\ufffd"),
        ('"é"'.encode(), "é"),
    ],
)
def test_halves_of_pairs(text, value):
    """What was read can be written."""
    assert parse_json(text) == value
