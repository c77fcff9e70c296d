"""Parsing of YAML as in Kubernetes: values, refusals, and agreement with JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.text.yaml_documents import TooManyValuesError, YamlError, documents


def read(text):
    return list(documents(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01", "2026-01-01"),
        ("2026-11-20T04:54:19Z", "2026-11-20T04:54:19Z"),
        ("12:30", "12:30"),
        ("78e8770191", "78e8770191"),  # a git commit, not a float beyond 64 bits
        ("1e400", "1e400"),
        ("-1e999", "-1e999"),
        ("9" * 310, "9" * 310),
        ("9" * 500, "9" * 500),
        ("0x" + "f" * 300, "0x" + "f" * 300),
        ("1e5", 100_000.0),
        ("0777", 511),
        ("0b11", 3),
        ("12_3", 123),
        ("+1", 1),
        ("NO", False),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("''", ""),
        ("'yes'", "yes"),
        ("y", True),
        ("N", False),
        ("yEs", "yEs"),
        ("007", 7),
        ("0888", 888.0),
        ("0O17", 15),
        (".1_0", 0.1),
        ("0x", "0x"),
        ("!!float 1", 1.0),
        ("!!binary YQ==", "a"),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("-3", -3),
        ("+7", 7),
        ("1_000", 1000),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("500m", "500m"),
        ("-", [None]),
        ("1.2.3", "1.2.3"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
def test_a_scalar_is_read_as_kubectl_reads_it(text, value):
    [found] = read(f"a: {text}" if text != "-" else "a:\n-")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


# What `kubectl annotate --local -o json` 1.32 printed for an unquoted item of a list.
RECORDED = json.loads(Path(__file__).with_name("kubectl_scalars.json").read_text())


def test_recorded_scalars_are_read_as_kubectl_read_them():
    differing = [(text, value) for text, value in RECORDED if not agrees(text, value)]
    assert differing == []


def agrees(text, recorded):
    """Return whether `text` has the recorded value; kubectl prints huge integers as floats."""
    try:
        [found] = read(f"- {text}")
    except YamlError:
        return recorded == {"refused": True}
    [value] = found
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value == recorded and type(value) is type(recorded)
    is_number = isinstance(recorded, int | float) and not isinstance(recorded, bool)
    return is_number and float(value) == float(recorded)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: b: c", 1, "mapping values are not allowed"),
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' is given twice"),
        ("a: .nan", 1, ".nan is not a number"),
        ("a: -.inf", 1, "-.inf is not a number"),
        ("? [a]\n: b", 1, "a key must be text"),
        ("9223372036854775808: b", 1, "a key must be text"),
        ("a: *b", 1, "the alias *b has no anchor"),
        ("a: &x [1, *x]", 1, "the alias *x has no anchor"),
        ("a: !!python/object:os.system x", 1, "not supported"),
        ("a: !thing {b: 1}", 1, "not supported"),
        ("x: " + "[" * 300 + "]" * 300, 1, "nested more than 200"),
        ("<<: 3", 1, "<< merges mappings only"),
        ("a:\n\t- b", 2, "found character that cannot start any token"),
        ("a: \x01", 0, "a character that YAML does not allow"),
    ],
)
def test_invalid_yaml_is_refused_with_the_line(text, line, problem):
    with pytest.raises(YamlError) as refused:
        read(text)
    assert refused.value.line == line
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [("y", "true"), ("n", "false"), ("1.10", "1.1"), ("0x1F", "31"), ("'y'", "y"), ("yy", "yy")],
)
def test_a_key_is_read_as_kubectl_reads_it(text, key):
    """Recorded from kubectl 1.36.4."""
    assert read(f"{text}: 1") == [{key: 1}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: !!null x", "yaml: cannot decode !!str `x` as a !!null"),
        ("a: b\nc: d: e", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a:\n  b\nc", "yaml: line 4: could not find expected ':'"),
        ("a: 'b", "yaml: found unexpected end of stream"),
        ("a:\n  [b, c", "yaml: line 2: did not find expected ',' or ']'"),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
    ],
)
def test_invalid_yaml_is_refused_with_upstreams_message(text, message):
    """Recorded from upstream 1.36.4."""
    with pytest.raises(YamlError) as refused:
        read(text)
    assert refused.value.upstream == message


def test_aliases_share_values_and_explicit_keys_override_merge_keys():
    text = "a: &a {x: 1, w: 2}\nb: *a\nc: {<<: *a, w: 3}\nd: {<<: [*a, {z: 4}]}"
    [found] = read(text)
    assert found["b"] is found["a"]
    assert found["c"] == {"x": 1, "w": 3}
    assert found["d"] == {"x": 1, "w": 2, "z": 4}


def test_nested_aliases_are_refused_before_they_fill_the_memory():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20)]
    with pytest.raises(YamlError, match="aliases repeat more than"):
        read("\n".join(levels))


def test_documents_are_parsed_one_by_one_and_empty_documents_are_none():
    assert read("---\n---\na: 1\n---\n# nothing\n---\n- b") == [None, {"a": 1}, None, ["b"]]
    assert read("# nothing at all") == []


# To YAML 1.1, U+2028 and U+2029 are line breaks, and it does not allow U+FFFE and U+FFFF.
CHARACTERS = st.characters(
    codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\ufffe\uffff"
)
TEXT = st.text(CHARACTERS, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)


@given(st.dictionaries(TEXT, JSON, max_size=4).filter(lambda value: "<<" not in str(value)))
def test_json_is_parsed_as_yaml_with_the_same_result(value):
    """JSON is a subset of YAML for this parser."""
    assert read(json.dumps(value, ensure_ascii=False)) == [value]


def test_a_document_with_too_many_values_is_refused():
    """Mappings and lists count, aliases count each time, and long texts count more."""
    fits = "a: &a [1, 2]\nb: *a\n"  # 3 for the list, 3 for its alias, and the mapping
    assert list(documents(fits, values_max=7)) == [{"a": [1, 2], "b": [1, 2]}]
    for text in (fits + "c: 3\n", f"a: {'x' * 64 * 8}\n", "[[], [], [], [], [], [], []]"):
        with pytest.raises(TooManyValuesError, match="has more than 7 values"):
            list(documents(text, values_max=7))


def test_an_anchor_can_name_a_scalar():
    assert read("a: &size 8Gi\nb: *size\nc: *size\n") == [{"a": "8Gi", "b": "8Gi", "c": "8Gi"}]


def test_an_alias_as_a_key_is_refused():
    with pytest.raises(YamlError, match="a key must be text"):
        read("a: &a x\n*a : 1\n")


def test_a_repeated_key_is_reported_with_the_line_of_its_last_value():
    reported = []
    text = "a: 1\nb:\n  c: 2\nb:\n  d: 3\na: 4\n"
    assert list(documents(text, lambda *where: reported.append(where))) == [{"a": 4, "b": {"d": 3}}]
    assert reported == [("b", 5), ("a", 6)]


def test_a_hexadecimal_number_of_any_length_is_read_quickly():
    """A number beyond 64 bits is text."""
    for digits in (16, 17, 500):
        text = "0x" + "f" * digits
        expected = 2**64 - 1 if digits == 16 else text
        assert read(f"a: {text}") == [{"a": expected}]
