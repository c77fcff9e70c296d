"""Label selectors: matching, and the notation of kubectl."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.objects import LabelSelector, LabelSelectorRequirement
from fairlead.api.selector import (
    SelectorError,
    format_selector,
    map_selector,
    parse_selector,
    requirement_matches,
    selector_matches,
)
from fairlead.api.text.integer import parse_int64


def demand(key, operator, *values):
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything():
    """A missing selector and an empty selector have opposite results."""
    for labels in ({}, {"a": "b"}):
        assert not selector_matches(None, labels)
        assert selector_matches(LabelSelector(), labels)
        assert selector_matches(map_selector({}), labels)


@pytest.mark.parametrize(
    ("requirement", "matches_b", "matches_missing"),
    [
        (demand("a", "In", "b", "c"), True, False),
        (demand("a", "In", "c"), False, False),
        (demand("a", "In"), False, False),
        (demand("a", "NotIn", "c"), True, True),
        (demand("a", "NotIn", "b"), False, True),
        (demand("a", "NotIn"), False, False),
        (demand("a", "Exists"), True, False),
        (demand("a", "Exists", "b"), False, False),
        (demand("a", "DoesNotExist"), False, True),
        (demand("a", "DoesNotExist", "b"), False, False),
        (demand("a", "Gt", "1"), False, False),
        (demand("a", "Between", "1"), False, False),
    ],
)
def test_a_requirement_is_matched_against_a_present_and_a_missing_key(
    requirement, matches_b, matches_missing
):
    """This covers all operators; malformed requirements match nothing."""
    assert requirement_matches(requirement, {"a": "b"}) == matches_b
    assert requirement_matches(requirement, {"x": "b"}) == matches_missing


@pytest.mark.parametrize(
    ("value", "operator", "bound", "expected"),
    [
        ("08", "Gt", "7", True),
        ("8", "Gt", "8", False),
        ("8", "Lt", "9", True),
        ("+5", "Gt", "4", True),
        ("-5", "Lt", "0", True),
        (" 5", "Gt", "4", False),
        ("5_0", "Gt", "4", False),
        ("5.0", "Gt", "4", False),
        ("", "Lt", "4", False),
        ("9223372036854775807", "Gt", "0", True),
        ("9223372036854775808", "Gt", "0", False),
        ("5", "Gt", "x", False),
    ],
)
def test_gt_and_lt_compare_int64(value, operator, bound, expected):
    """Both values are parsed like Go's ParseInt."""
    assert requirement_matches(demand("n", operator, bound), {"n": value}) is expected


def test_gt_needs_exactly_one_value():
    """It never matches without a value or with two values."""
    assert not requirement_matches(demand("n", "Gt"), {"n": "5"})
    assert not requirement_matches(demand("n", "Gt", "1", "2"), {"n": "5"})


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-9223372036854775808", -(2**63)), ("-9223372036854775809", None),
     ("", None), ("+", None), ("1 ", None), ("٣", None), ("1" * 5000, None)],
)  # fmt: skip
def test_int64_is_parsed_as_in_go(text, number):
    """The text must be in range, may have a sign, and has only ASCII digits."""
    assert parse_int64(text) == number


def test_match_labels_and_expressions_must_all_hold():
    """All of them must match."""
    selector = LabelSelector(
        match_labels={"app": "web"}, match_expressions=(demand("tier", "NotIn", "db"),)
    )
    assert selector_matches(selector, {"app": "web"})
    assert not selector_matches(selector, {"app": "web", "tier": "db"})
    assert not selector_matches(selector, {"tier": "fe"})


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", ()),
        ("  ", ()),
        ("a=b", (demand("a", "In", "b"),)),
        ("a = b", (demand("a", "In", "b"),)),
        ("a==b", (demand("a", "In", "b"),)),
        ("a!=b", (demand("a", "NotIn", "b"),)),
        ("a=", (demand("a", "In", ""),)),
        ("a=,b", (demand("a", "In", ""), demand("b", "Exists"))),
        ("a", (demand("a", "Exists"),)),
        ("!a", (demand("a", "DoesNotExist"),)),
        ("! a", (demand("a", "DoesNotExist"),)),
        ("a in (y,x,y)", (demand("a", "In", "x", "y"),)),
        ("a in (x,)", (demand("a", "In", "", "x"),)),
        ("a in ()", (demand("a", "In", ""),)),
        ("a in (,)", (demand("a", "In", ""),)),
        ("a notin(z)", (demand("a", "NotIn", "z"),)),
        ("in in (in,notin)", (demand("in", "In", "in", "notin"),)),
        ("n>5,n<7", (demand("n", "Gt", "5"), demand("n", "Lt", "7"))),
        ("k8s.io/a=b", (demand("k8s.io/a", "In", "b"),)),
        (
            "a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j",
            (
                demand("a", "In", "b"),
                demand("c", "In", "d"),
                demand("e", "NotIn", "f"),
                demand("g", "In", "x", "y"),
                demand("h", "NotIn", "z"),
                demand("i", "Exists"),
                demand("j", "DoesNotExist"),
            ),
        ),
    ],
)
def test_the_notation_of_kubectl_is_parsed(text, requirements):
    """The texts are the forms of kubectl's option -l."""
    assert parse_selector(text) == LabelSelector(match_expressions=requirements)


@pytest.mark.parametrize(
    "text",
    [",", "a,", ",a", "a,,b", "a b", "a=b c", "=b", "!", "!a=b", "a in", "a in x", "a in (x",
     "a in (x y)", "a in x)", "a=(b)", "a===b", "a=!b", "(a)", "a>", "a>x", "a<5.5", "a=-b",
     "a/b/c=d", "-a", "a in (-)", f"a={'x' * 64}"],
)  # fmt: skip
def test_an_invalid_selector_is_refused_with_one_line(text):
    """SelectorError has a message of one line."""
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    assert "\n" not in str(caught.value)


keys = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["", "1", "2", "x"])
label_maps = st.dictionaries(keys, values, max_size=3)
requirements = st.one_of(
    st.builds(
        lambda key, operator, chosen: demand(key, operator, *chosen),
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=3, unique=True),
    ),
    st.builds(demand, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)


def universe(key):
    """Return every state of a key: missing, or one of the values."""
    return [{}] + [{key: value} for value in ("", "1", "2", "x")]


def allowed(requirement):
    """Return the states of its key that a requirement matches, by enumeration."""
    listed = [{requirement.key: value} for value in requirement.values]
    match requirement.operator:
        case "In":
            return listed
        case "NotIn":
            return [state for state in universe(requirement.key) if state not in listed]
        case "Exists":
            return universe(requirement.key)[1:]
        case _:
            return [{}]


@given(label_maps, st.lists(requirements, max_size=4), label_maps)
def test_matching_agrees_with_enumeration(match_labels, expressions, labels):
    """A selector matches exactly the label sets that every part of it admits."""
    selector = LabelSelector(match_labels=match_labels, match_expressions=tuple(expressions))
    expected = match_labels.items() <= labels.items() and all(
        {one.key: labels[one.key]} in allowed(one) if one.key in labels else {} in allowed(one)
        for one in expressions
    )
    assert selector_matches(selector, labels) == expected


@given(st.lists(requirements, min_size=1, max_size=4))
def test_notation_round_trips(expressions):
    """A selector in kubectl's notation is parsed to the same requirements."""
    written = {
        "In": "{} in ({})",
        "NotIn": "{} notin ({})",
        "Exists": "{}",
        "DoesNotExist": "!{}",
    }
    text = ",".join(
        written[one.operator].format(one.key, ",".join(one.values)) for one in expressions
    )
    parsed = parse_selector(text).match_expressions
    assert [(one.key, one.operator, set(one.values)) for one in parsed] == [
        (one.key, one.operator, set(one.values)) for one in expressions
    ]


@given(st.text("ab=!(),<> in", max_size=12))
def test_any_text_is_parsed_or_refused(text):
    """The parser terminates for any tokens."""
    with contextlib.suppress(SelectorError):
        assert isinstance(parse_selector(text), LabelSelector)


NO_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NO_NUMBER = "for 'Gt', 'Lt' operators, the value must be an integer"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a in ((b)", "found '(', expected: ',', ')' or identifier"),
        ("a in (,=,b)", "found '=', expected: ',', or identifier"),
        ("a in (b c)", "found 'c', expected: ',' or ')'"),
        ("a in b", "found 'b' expected: '('"),
        ("a>b", f'values[0]: Invalid value: "b": {NO_NUMBER}'),
        (
            "a<_",
            (
                f'[values[0]: Invalid value: "_": {NO_NUMBER}, values[0][a]: Invalid value: "_": '
                f"{NO_VALUE}]"
            ),
        ),
        (
            "a in (_,-)",
            (
                f'[values[0][a]: Invalid value: "-": {NO_VALUE}, values[1][a]: Invalid value: "_": '
                f"{NO_VALUE}]"
            ),
        ),
    ],
)
def test_an_invalid_selector_is_refused_with_upstreams_message(text, problem):
    """Recorded from upstream 1.36.4."""
    with pytest.raises(SelectorError) as refused:
        parse_selector(text)
    assert str(refused.value) == f"unable to parse requirement: {problem}"


def test_omitted_values_are_empty_strings():
    """Recorded from upstream 1.36.4."""
    for text in ("a in ()", "a in (,)", "a in (,,)"):
        assert parse_selector(text).match_expressions[0].values == ("",)
    assert parse_selector("a in (c,,b)").match_expressions[0].values == ("", "b", "c")


def test_a_selector_is_written_as_kubectl_writes_it():
    """The requirements are sorted by key, and the values are sorted."""
    selector = LabelSelector(
        match_labels={"tier": "db", "app": "shop"},
        match_expressions=(
            demand("zone", "NotIn", "b", "a"),
            demand("disk", "In", "ssd", "nvme"),
            demand("gpu", "Exists"),
            demand("old", "DoesNotExist"),
        ),
    )
    written = "app=shop,disk in (nvme,ssd),gpu,!old,tier=db,zone notin (a,b)"
    assert format_selector(selector) == written
    assert format_selector(LabelSelector()) == ""
