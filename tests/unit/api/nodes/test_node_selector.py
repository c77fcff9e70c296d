"""Node selectors and node affinity, with upstream's parse errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode_as
from fairlead.api.nodes.node_selector import (
    name_restriction,
    node_selector_matches,
    preferred_term_error,
    preferred_terms_error,
    required_node_affinity_matches,
    requirement_matches,
    term_matches,
)
from fairlead.api.objects import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    PreferredSchedulingTerm,
)

LABELS = {"zone": "a", "cores": "08", "empty": ""}
NOT_A_LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    "  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NO_INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"


def demand(key, operator, *values):
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions, fields=()):
    return NodeSelectorTerm(match_expressions=expressions, match_fields=tuple(fields))


def named(*names, operator="In"):
    return demand("metadata.name", operator, *names)


def preferred(*expressions, fields=(), weight=1):
    return PreferredSchedulingTerm(weight=weight, preference=term(*expressions, fields=fields))


def spec_with(*terms, **others):
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return decode_as(PodSpec, {"affinity": affinity, **others})


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (demand("zone", "In", "a", "b"), True),
        (demand("zone", "In", "b"), False),
        (demand("zone", "NotIn", "b"), True),
        (demand("zone", "NotIn", "a"), False),
        (demand("rack", "NotIn", "a"), True),
        (demand("zone", "Exists"), True),
        (demand("empty", "Exists"), True),
        (demand("empty", "In", ""), True),
        (demand("rack", "Exists"), False),
        (demand("rack", "DoesNotExist"), True),
        (demand("zone", "DoesNotExist"), False),
        (demand("cores", "Gt", "7"), True),
        (demand("cores", "Gt", "8"), False),
        (demand("cores", "Lt", "9"), True),
        (demand("zone", "Gt", "0"), False),
        (demand("rack", "Lt", "9"), False),
    ],
)
def test_all_operators_of_requirements_match_as_upstream(requirement, expected):
    """NotIn and DoesNotExist match a missing key, Gt and Lt do not."""
    assert requirement_matches(requirement, LABELS) is expected
    assert term_matches(term(requirement), LABELS, "n1") is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((named("n1"),), True),
        ((named("n2"),), False),
        ((named("n2", operator="NotIn"),), True),
        ((named("n1", operator="NotIn"),), False),
        ((named("n1"), named("n2")), False),
        ((demand("spec.unschedulable", "In", "x"),), False),
        ((demand("spec.unschedulable", "NotIn", "x"),), True),
        ((named("n1", "n2"),), False),
        ((named(operator="Exists"),), False),
    ],
)
def test_match_fields_support_only_metadata_name(fields, expected):
    """In and NotIn need one value; any other requirement cannot be parsed and never matches."""
    assert term_matches(term(fields=fields), LABELS, "n1") is expected


def test_an_empty_term_matches_nothing():
    """A selector without terms matches nothing either."""
    assert not term_matches(term(), LABELS, "n1")
    assert not node_selector_matches(NodeSelector(), LABELS, "n1")
    assert not node_selector_matches(NodeSelector(node_selector_terms=(term(),)), LABELS, "n1")


def test_terms_are_ored_and_requirements_are_anded():
    """Terms are alternatives; all requirements of a term must match."""
    both = term(demand("zone", "In", "a"), demand("rack", "Exists"))
    one = term(demand("zone", "In", "a"), fields=(named("n1"),))
    assert not term_matches(both, LABELS, "n1")
    assert node_selector_matches(NodeSelector(node_selector_terms=(both, one)), LABELS, "n1")
    assert not node_selector_matches(NodeSelector(node_selector_terms=(both, one)), LABELS, "n2")


@pytest.mark.parametrize(
    "requirement",
    [
        demand("cores", "Gt", "-5"),
        demand("cores", "Gt", "x"),
        demand("cores", "Gt"),
        demand("zone", "NotIn", "not a label"),
        demand("zone", "NotIn"),
        demand("zone", "Exists", "a"),
        demand("zone", "Like", "a"),
        demand("no/such/key", "DoesNotExist"),
    ],
)
def test_a_term_that_cannot_be_parsed_never_matches(requirement):
    """It does not match even if its other requirements do; other terms are still evaluated."""
    broken = term(requirement, demand("zone", "In", "a"))
    assert not term_matches(broken, LABELS, "n1")
    either = NodeSelector(node_selector_terms=(broken, term(demand("zone", "In", "a"))))
    assert node_selector_matches(either, LABELS, "n1")


def test_node_selector_and_affinity_must_both_match():
    """Both are optional."""
    in_a = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    assert required_node_affinity_matches(PodSpec(), LABELS, "n1")
    assert required_node_affinity_matches(PodSpec(node_selector={"zone": "a"}), LABELS, "n1")
    assert not required_node_affinity_matches(PodSpec(node_selector={"zone": "b"}), LABELS, "n1")
    assert not required_node_affinity_matches(PodSpec(node_selector={"rack": ""}), LABELS, "n1")
    assert required_node_affinity_matches(spec_with(in_a), LABELS, "n1")
    assert not required_node_affinity_matches(spec_with(in_a), {"zone": "b"}, "n1")
    assert not required_node_affinity_matches(spec_with(), LABELS, "n1")
    both = spec_with(in_a, nodeSelector={"rack": "r"})
    assert not required_node_affinity_matches(both, LABELS, "n1")


def by_name(*names, operator="In"):
    return {"key": "metadata.name", "operator": operator, "values": list(names)}


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([], None),
        ([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}], None),
        ([{"matchFields": [by_name("b")]}, {"matchFields": [by_name("a")]}], ("a", "b")),
        ([{"matchFields": [by_name("a")]}, {}], None),
        ([{"matchFields": [by_name("a", operator="NotIn")]}], None),
        ([{"matchFields": [by_name("a"), by_name("b")]}], ()),
        ([{"matchFields": [by_name("a"), by_name("b")]}, {"matchFields": [by_name("c")]}], ("c",)),
        ([{"matchFields": [by_name("a"), by_name("b", operator="NotIn")]}], ("a",)),
    ],
)
def test_names_restrict_only_if_every_term_names_nodes(terms, names):
    """Names in a term are intersected, terms are united; empty means that the terms conflict."""
    assert name_restriction(spec_with(*terms)) == names


def test_without_affinity_there_is_no_restriction():
    """Affinity of other kinds does not restrict nodes either."""
    assert name_restriction(PodSpec()) is None
    assert name_restriction(decode_as(PodSpec, {"affinity": {"nodeAffinity": {}}})) is None


@pytest.mark.parametrize(
    ("index", "one", "text"),
    [
        (
            4,
            preferred(demand("cores", "Gt", "-5")),
            f'[4].matchExpressions[0].values[0][cores]: Invalid value: "-5": {NOT_A_LABEL}',
        ),
        (
            0,
            preferred(demand("a", "Exists"), demand("cores", "Lt", "x")),
            f'[0].matchExpressions[1].values[0]: Invalid value: "x": {NO_INTEGER}',
        ),
        (
            1,
            preferred(demand("cores", "Gt", "-")),
            (
                f'[[1].matchExpressions[0].values[0]: Invalid value: "-": {NO_INTEGER}, '
                f'[1].matchExpressions[0].values[0][cores]: Invalid value: "-": {NOT_A_LABEL}]'
            ),
        ),
        (
            2,
            preferred(demand("a", "In")),
            (
                "[2].matchExpressions[0].values: Invalid value: []string(nil): "
                "for 'in', 'notin' operators, values set can't be empty"
            ),
        ),
        (
            2,
            preferred(demand("a", "Exists", "x", "y")),
            (
                '[2].matchExpressions[0].values: Invalid value: []string{"x", "y"}: '
                "values set must be empty for exists and does not exist"
            ),
        ),
        (
            2,
            preferred(demand("a", "Gt", "1", "2")),
            (
                '[2].matchExpressions[0].values: Invalid value: []string{"1", "2"}: '
                "for 'Gt', 'Lt' operators, exactly one value is required"
            ),
        ),
        (
            0,
            preferred(demand("a", "Like", "1")),
            (
                '[0].matchExpressions[0].operator: Unsupported value: "Like": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ),
        ),
        (
            0,
            preferred(fields=(named(operator="Exists"),)),
            (
                '[0].matchFields[0].operator: Unsupported value: "Exists": '
                'supported values: "In", "NotIn"'
            ),
        ),
        (
            0,
            preferred(fields=(named("a", "b"),)),
            '[0].matchFields[0].values: Invalid value: []string{"a", "b"}: must have one element',
        ),
    ],
)
def test_the_error_of_a_preferred_term_equals_upstreams(index, one, text):
    """The text has the path, the invalid value and the rule; several errors are in brackets."""
    assert preferred_term_error(index, one) == text


def test_an_invalid_key_is_reported_with_its_path():
    """The key is validated before the values."""
    text = preferred_term_error(0, preferred(demand("a b", "Exists")))
    assert text.startswith('[0].matchExpressions[0].key: Invalid value: "a b": name part must')


@pytest.mark.parametrize(
    "one",
    [
        preferred(demand("cores", "Gt", "5"), fields=(named("n1"),)),
        preferred(),
        preferred(demand("cores", "Gt", "-5"), weight=0),
    ],
)
def test_valid_empty_and_zero_weight_terms_have_no_error(one):
    """Upstream does not parse empty terms and terms of weight zero."""
    assert preferred_term_error(0, one) is None


def test_the_errors_of_all_terms_are_joined():
    """The errors are one flat list, in order, without duplicates."""
    good, bad = preferred(demand("a", "Exists")), preferred(demand("cores", "Gt", "x"))
    first = preferred_term_error(1, bad)
    third = preferred_term_error(3, bad)
    assert preferred_terms_error((good, bad)) == first
    assert preferred_terms_error((good, bad, good, bad)) == f"[{first}, {third}]"
    assert preferred_terms_error((good,)) is None
    double = preferred(demand("a", "In", "-", "-"), demand("cores", "Gt", "x"))
    assert preferred_term_error(0, double).count('values[1][a]: Invalid value: "-"') == 1


names = st.sampled_from(["n1", "n2", "n3"])
name_terms = st.lists(
    st.tuples(st.sampled_from(["In", "NotIn"]), names).map(
        lambda pair: by_name(pair[1], operator=pair[0])
    ),
    max_size=3,
).map(lambda fields: {"matchFields": fields})


@given(st.lists(name_terms, min_size=1, max_size=4))
def test_every_matching_node_is_in_the_restriction(terms):
    """Nodes outside of the restriction do not match, so leaving them out changes nothing."""
    spec = spec_with(*terms)
    restriction = name_restriction(spec)
    matching = {
        name
        for name in ("n1", "n2", "n3", "n4")
        if required_node_affinity_matches(spec, LABELS, name)
    }
    assert restriction is None or matching <= set(restriction)
