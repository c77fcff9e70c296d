"""Parsing of JSON, and the errors of invalid texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.text.nesting import DEPTH_MAX
from fairlead.apiserver.schema.gojson.json_text import JsonError, Repeating, parse_json

NINES = "9" * 600


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
        ("-", "invalid character ' ' in numeric literal"),
        ("[1.]", "invalid character ']' after decimal point in numeric literal"),
        ("[1.5.]", "invalid character '.' after array element"),
        ('{"a": 1e}', "invalid character '}' in exponent of numeric literal"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ('"a\tb"', r"invalid character '\t' in string literal"),
        (r'"\x"', "invalid character 'x' in string escape code"),
        (r'"\u12"', "invalid character '\"' in \\u hexadecimal character escape"),
        (r'"\u1234', "unexpected end of JSON input"),
        ('"\\', "invalid character ' ' in string escape code"),
        (r"[\]", r"invalid character '\\' looking for beginning of value"),
        ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        (NINES, f"json: cannot unmarshal number {NINES} into Go value of type float64"),
        (
            f"[{9 * NINES}]",
            f"json: cannot unmarshal number {9 * NINES} into Go value of type float64",
        ),
    ],
)
def test_invalid_json_is_refused_with_upstreams_message(text, problem):
    """The message equals upstream's."""
    with pytest.raises(JsonError) as refused:
        parse_json(text)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"\xef\xbb\xbf{}", "ï"),
        (b"\xff", "ÿ"),
        (b"\x80", r"\u0080"),
        ("é".encode(), "Ã"),
        (b"\x01", r"\x01"),
        (b"'", r"\'"),
    ],
)
def test_an_error_names_the_invalid_byte(text, found):
    with pytest.raises(JsonError) as refused:
        parse_json(text)
    assert str(refused.value) == f"invalid character '{found}' looking for beginning of value"


def test_a_long_integer_is_read_exactly():
    assert parse_json("1" + "0" * 307 + "1 ") == 10**308 + 1


def test_the_last_of_repeated_members_is_used_and_all_are_recorded():
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
        (b'"\xe2\x98"', "\ufffd\ufffd"),
        ('"é"'.encode(), "é"),
    ],
)
def test_lone_surrogates_are_replaced(text, value):
    """So the result can be encoded as UTF-8."""
    assert parse_json(text) == value


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON_VALUES, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_the_parser_of_short_texts_agrees_with_the_general_parser(value, separators, escaped):
    """The parser for bytes may take a fast path; the parser for str never does."""
    text = json.dumps(value, separators=separators, ensure_ascii=escaped, allow_nan=False)
    try:
        careful = repr(parse_json(text))
    except JsonError as refusal:
        careful = str(refusal)
    try:
        short = repr(parse_json(text.encode()))
    except JsonError as refusal:
        short = str(refusal)
    assert short == careful


def test_a_repeated_member_of_a_short_text_is_recorded():
    assert isinstance(parse_json(b'{"a":1,"a":2}\n'), Repeating)


@pytest.mark.parametrize("opened", [200, 201])
@pytest.mark.parametrize("around", [b"%s", b'[{},[],"{}[]{}",%s,"]"]', b'{"[]":%s}'])
def test_a_short_text_that_is_nested_too_deeply_is_refused(opened, around):
    inner = opened - (around != b"%s")  # The other texts have one more level.
    text = around % (b"[" * inner + b"]" * inner)
    if opened > DEPTH_MAX:
        with pytest.raises(JsonError):
            parse_json(text)
    else:
        assert parse_json(text)
