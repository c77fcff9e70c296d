"""Results of CEL expressions, as in upstream 1.36.4."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.cel import named_format
from fairlead.cel.cost.runtime_cost import CostBudget
from fairlead.cel.program import CelEnvironment

LANGUAGE = CelEnvironment({"self"}, named_format.FUNCTIONS)
NO_BOOL = "type conversion error from 'string' to 'bool'"
VALUE = {"list": ["b", "a", "b"], "text": "hello", "map": {"one": 1, "two": 2}}


def evaluated(text, value=None):
    known = {"self": VALUE if value is None else value}
    answer = LANGUAGE.program(text).evaluate(known, CostBudget())
    return answer.problem or answer.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self.list.indexOf('b')", 0),
        ("self.list.lastIndexOf('b')", 2),
        ("self.list.indexOf('z')", -1),
        ("self.text.indexOf('l')", 2),
        ("self.text.lastIndexOf('l')", 3),
        ("self.map.transformMap(k, v, v + 1)", {"one": 2, "two": 3}),
        ("self.map.transformMap(k, v, v > 1, v)", {"two": 2}),
        ("self.map.transformMapEntry(k, v, {string(v): k})", {"1": "one", "2": "two"}),
        ("self.map.transformMapEntry(k, v, v > 1, {k: 0, string(v): v})", {"two": 0, "2": 2}),
        ("[4, 5].transformMap(i, v, [v].transformMap(j, w, v + w))", {0: {0: 8}, 1: {0: 10}}),
        ("[].transformMap(i, v, v)", {}),
        ("cel.bind(m, {'a': 1}, m.transformMap(k, v, k))", {"a": "a"}),
        ("[1, 1].transformMapEntry(i, v, {v: i})", "insert failed: key 1 already exists"),
        # An error of a later condition replaces the error of an entry, but not vice versa.
        ("[0, 1].transformMap(i, v, v == 0 || bool('b'), 1 / v)", NO_BOOL),
        ("[0, 1].transformMap(i, v, 1 / v + int('b'))", "division by zero"),
        ("[0, 1].transformMapEntry(i, v, v == 0 || bool('b'), {i: 1 / v})", NO_BOOL),
        ("[0, 1].transformMapEntry(i, v, v == 0 ? {i: 1 / v} : {i: int('b')})", "division by zero"),
        ("[2, 0, 1].exists(v, 1 / v == 1) && ![2, 0, 1].all(v, 1 / v > 0)", True),
        ("[0, 1].all(v, 1 / v == 1)", "division by zero"),
        ("dyn({true: 2}) == dyn({1: 2}) || dyn({1: 2}) == dyn({true: 2})", False),
        ("dyn([{0: 2}]) == dyn([{false: 2}]) || dyn({2: 2}) == dyn({true: 2})", False),
        ("dyn({1: 2}) == dyn({1u: 2}) && dyn({2u: 2}) == dyn({2: 2})", True),
        ("{true: 2, false: 3} == {false: 3, true: 2} && {1: 2, 0: 3} == {0: 3, 1: 2}", True),
        ("self.map.exists_one(k, v, v == 2) && !self.list.exists_one(i, v, v == 'b')", True),
        ("'%s %s'.format([self.list, self.map])", '["b", "a", "b"] {"one":1, "two":2}'),
        ("'%s'.format([[1.5, null, true, b'a']])", '[1.500000, null, true, b"a"]'),
        (
            "'%s %s'.format([duration('90s'), timestamp('2020-01-01T00:00:00.5Z')])",
            "90s 2020-01-01T00:00:00.5Z",
        ),
        ("self.text.indexOf('l', 3) + self.text.lastIndexOf('l', 9)", 2),
        ("optional.unwrap([optional.of(1), optional.none(), optional.of(2)])", [1, 2]),
        ("[optional.of('a')].unwrapOpt()", ["a"]),
        ("string(ip('::1'))", "::1"),
        ("string(cidr('10.0.0.1/8').masked())", "10.0.0.0/8"),
        ("semver('v01.2', true).minor()", 2),
        ("isSemver('v1', true) && !isSemver('1.2-a', true) && !isSemver('v1.0.0', false)", True),
        ("self.text.charAt(4) + self.text.charAt(5)", "o"),
        ("self.text.charAt(6)", "index out of range: 6"),
        ("self.text.substring(1, 3) + self.text.substring(4)", "elo"),
        ("self.text.substring(3, 1)", "invalid substring range. start: 3, end: 1"),
        ("self.text.substring(9)", "index out of range: 9"),
        ("format.uuid().validate('x').value()", ["does not match the UUID format"]),
        ("format.dns1123Label().validate('a-b').hasValue()", False),
        ("format.dns1123LabelPrefix().validate('a-').hasValue()", False),
        ("format.named('nothing').hasValue()", False),
        ("format.named('date').value().validate('2020-02-30').value()", ["invalid date"]),
        ("format.datetime().validate('2020-02-03T04:05:06Z').hasValue()", False),
        ("format.byte().validate('aGk=').hasValue()", False),
        ("format.labelValue().validate('-').value().size()", 1),
    ],
)
def test_an_expression_has_upstreams_result(text, expected):
    assert evaluated(text) == expected
