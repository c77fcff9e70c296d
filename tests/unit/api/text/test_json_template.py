"""JSON texts that differ only in strings are decoded with a template."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.text.json_template import (
    JsonTemplate,
    TemplateRows,
    pieces_of,
    places_in,
    substitution,
)

POD = '{"name": "web-x", "image": "web:1", "ports": [80, {"a": "b"}], "node": "n1"}'
OTHER = POD.replace("web-x", "web-bb").replace("n1", "")


class Pod(msgspec.Struct, frozen=True):
    name: str
    ports: tuple[int | dict[str, str], ...]
    node: str = ""


def template_of(*texts):
    first, *others = (pieces_of(one.encode()) for one in texts)
    found = JsonTemplate(first, frozenset())
    for one in others:
        found = found.extended(one)
    return found


def test_the_varying_strings_are_extracted():
    template = template_of(POD, OTHER)
    assert template.strings(POD.encode()) == ["web-x", "n1"]
    assert template.strings(OTHER.encode()) == ["web-bb", ""]


STRINGS = st.text(alphabet='ab"\\\n€', max_size=3)


@given(st.lists(st.tuples(STRINGS, STRINGS, st.sampled_from(("80", "81", "8")))))
def test_earlier_texts_do_not_change_the_strings_of_a_text(pods):
    """Strings of the same lengths as in an earlier text are found without a search."""
    template = template_of(POD, OTHER)
    for name, node, port in pods:
        text = POD.replace("web-x", name).replace("n1", node).replace("80", port).encode()
        assert template.strings(text) == template_of(POD, OTHER).strings(text)


@given(st.text(alphabet="a ~\x7f\x1f\t\n\xa0\u20ac\xe9", max_size=4))
def test_strings_with_characters_that_are_not_printable_do_not_match(name):
    """ASCII and other characters are treated alike."""
    found = template_of(POD, OTHER).strings(POD.replace("web-x", name).encode())
    assert found == ([name, "n1"] if name.isprintable() else None)


def test_a_quote_ends_a_string_even_if_the_text_has_the_usual_length():
    template = template_of(POD, OTHER)
    assert template.strings(POD.encode()) == ["web-x", "n1"]
    assert template.strings(POD.replace("web-x", 'we"-x').encode()) is None


@pytest.mark.parametrize("decode", [json.loads, msgspec.json.Decoder(Pod).decode])
def test_substitution_of_strings_equals_decoding(decode):
    template = template_of(POD, OTHER)
    like = decode(template.marked)
    made = substitution(like, places_in(like))(template.strings(OTHER.encode()))
    assert made == decode(OTHER.encode())


def test_parts_without_placeholders_are_shared():
    template = template_of(POD, OTHER)
    like = json.loads(template.marked)
    made = substitution(like, places_in(like))(["web-c", "n2"])
    assert made["ports"] is like["ports"]
    assert (made["name"], like["name"]) == ("web-c", "\x7f0")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(POD.replace("80", "81"), id="a number"),
        pytest.param(POD.replace("web:1", "web:2"), id="a string that did not vary"),
        pytest.param(POD.replace('"a"', '"c"'), id="a key"),
        pytest.param(POD + " ", id="more text"),
        pytest.param(POD[:-1], id="less text"),
        pytest.param(POD.replace("web-x", r"a\"b"), id="a quote"),
        pytest.param(POD.replace("web-x", r"a\n"), id="an escape"),
        pytest.param(POD.replace("web-x", "a\nb"), id="a line break"),
        pytest.param(POD.replace("web-x", "a\tb"), id="a control character"),
    ],
)
def test_texts_with_other_differences_do_not_match(text):
    assert template_of(POD, OTHER).strings(text.encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(POD.replace("80", "81"), id="a number"),
        pytest.param(POD.replace('"a"', '"c"'), id="a key"),
        pytest.param(POD.replace(', "node": "n1"', ""), id="a field less"),
        pytest.param(POD.replace("80", '"80"'), id="another type"),
    ],
)
def test_texts_that_differ_in_more_than_strings_have_no_template(text):
    assert template_of(POD, text) is None


def test_a_template_accepts_what_it_accepted_before_it_was_extended():
    wider = template_of(POD, OTHER, POD.replace("web:1", "web:2"))
    for text in (POD, OTHER, OTHER.replace("web:1", "web:3")):
        assert wider.strings(text.encode()) is not None


@pytest.mark.parametrize("note", ["\x7f0", "\x7fboom", "\\u007f0", "\\u007F1"])
def test_strings_that_look_like_markers_are_not_placeholders(note):
    """A pod may contain any string, including one that begins with the marker's character."""
    noted = POD.replace('"web:1"', f'"{note}"')
    assert template_of(noted).extended(pieces_of(noted.replace("web-x", "web-y").encode())) is None


class Spec(msgspec.Struct, frozen=True):
    node: str


class Whole(msgspec.Struct, frozen=True):
    spec: Spec
    names: tuple[str, ...] = ()


NESTED = '{"spec": {"node": "n1"}, "names": ["a", "b"]}'


@pytest.mark.parametrize("decode", [json.loads, msgspec.json.Decoder(Whole).decode])
def test_strings_are_substituted_in_nested_values(decode):
    """Objects, arrays and tuples are supported; the value of the template does not change."""
    other = NESTED.replace("n1", "n2").replace('"b"', '"c"')
    template = template_of(NESTED, other)
    like = decode(template.marked)
    before = decode(template.marked)
    made = substitution(like, places_in(like))(template.strings(other.encode()))
    assert made == decode(other.encode())
    assert like == before


def test_a_text_can_be_a_single_string():
    template = template_of('"a"', '"b"')
    like = json.loads(template.marked)
    assert substitution(like, places_in(like))(template.strings(b'"c"')) == "c"


def test_a_text_with_another_beginning_does_not_match():
    assert template_of(POD, OTHER).strings(b" " + POD.encode()) is None


def test_rows_of_texts_are_sorted_by_one_of_their_strings():
    """Rows that are sorted already are returned as they are."""
    rows = TemplateRows(template_of(POD, OTHER), [["b", "a"], ["n1", "n2"]], 2)
    found = rows.sorted_by(0)
    assert [text.strings for text in found] == [("a", "n2"), ("b", "n1")]
    assert rows.sorted_by(1) is rows
    assert bytes(found[0]) == POD.replace("web-x", "a").replace("n1", "n2").encode()


def test_rows_without_placeholders_are_equal_texts():
    rows = TemplateRows(template_of(POD), [], 2)
    assert [bytes(text) for text in rows] == [POD.encode()] * 2
