"""The CEL library functions of Kubernetes."""

from __future__ import annotations

import pytest

from fairlead.cel.check.declarations import signatures
from fairlead.cel.cost.runtime_cost import CostBudget
from fairlead.cel.library import FUNCTIONS
from fairlead.cel.program import CelEnvironment

LANGUAGE = CelEnvironment({"self"})


def answer(expression, value=None):
    return LANGUAGE.program(expression).evaluate({"self": value}, CostBudget())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
        ("quantity('1.5').add(quantity('500m')) == quantity('2')", True),
        ("quantity('3').sub(1).asInteger()", 2),
        ("sign(quantity('-1'))", -1),
        ("quantity('500m').asApproximateFloat()", 0.5),
        ("isQuantity('1XX')", False),
        ("semver('1.2.3').isLessThan(semver('1.10.0'))", True),
        ("semver('1.2.3-rc.1').compareTo(semver('1.2.3'))", -1),
        ("isSemver('1.2')", False),
        ("ip('10.0.0.1').family()", 4),
        ("ip('fe80::1').isLinkLocalUnicast()", True),
        ("ip('10.0.0.1').isGlobalUnicast()", True),
        ("ip('255.255.255.255').isGlobalUnicast()", False),
        ("ip('224.0.0.1').isLinkLocalMulticast()", True),
        ("ip('ff02::1').isLinkLocalMulticast()", True),
        ("ip.isCanonical('2001:0db8::1')", False),
        ("isIP('fe80::1%eth0')", False),
        ("isIP('::ffff:1.2.3.4')", False),
        ("isIP('01.2.3.4')", False),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("cidr('10.0.0.0/8').containsIP(ip('11.1.2.3'))", False),
        ("cidr('10.0.0.0/8').containsIP('::1')", False),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))", False),
        ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", True),
        ("cidr('10.1.2.3/8').ip() == ip('10.1.2.3')", True),
        ("cidr('10.1.2.3/8').prefixLength()", 8),
        ("isCIDR('10.0.0.0/255.0.0.0')", False),
        ("isCIDR('10.0.0.0')", False),
        ("url('HTTPS://a.b:80/c?d=e&d=f%20g#h').getScheme()", "https"),
        ("url('https://u@a.b:80/c').getHost()", "a.b:80"),
        ("url('https://[::1]:80/c').getHostname()", "::1"),
        ("url('https://a.b:80/c').getPort()", "80"),
        ("url('https://a.b/c%20d').getEscapedPath()", "/c%20d"),
        ("url('/c?d=e&d=f%20g').getQuery()", {"d": ["e", "f g"]}),
        ("isURL('a.b/c')", False),
        ("isURL('https://a b')", False),
        ("isURL('')", False),
        ("'ab12cd34'.find('[0-9]+')", "12"),
        ("'ab'.find('[0-9]+')", ""),
        ("'1 2 3'.findAll('[0-9]')", ["1", "2", "3"]),
        ("'1 2 3'.findAll('[0-9]', 2)", ["1", "2"]),
        ("[1, 2, 2].isSorted()", True),
        ("['b', 'a'].isSorted()", False),
        ("[1, 2].sum() + [3, 5].max() - [4, 2].min()", 6),
        ("sets.contains([1, 2], [1])", True),
        ("sets.equivalent([1, 2], [2, 1, 1])", True),
        ("sets.intersects([1], [2])", False),
    ],
)
def test_a_function_has_upstreams_result(expression, expected):
    found = answer(expression)
    assert (found.problem, found.value) == ("", expected)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("quantity('x')", "quantities must match"),
        ("quantity('500m').asInteger()", "cannot convert value to integer"),
        ("dyn(ip('10.0.0.1')).compareTo(quantity('1'))", "no such overload"),
        ("dyn(quantity('1')).family()", "no such overload"),
        ("ip('1').family()", "unable to parse IP"),
        ("cidr('10.0.0.0/33')", "prefix length out of range"),
        ("url('a').getHost()", "URL parse error"),
        ("'a'.find('(')", "Illegal regex"),
        ("[].min() == 1", "min called on empty list"),
    ],
)
def test_an_invalid_call_is_an_error(expression, said):
    assert said in answer(expression).problem


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: f"{one.name}{len(one.taken)}")
def test_each_function_is_declared(function):
    """The declaration has the same number of parameters."""
    declared = signatures()[function.name]
    shapes = {(one.is_member, len(one.taken)) for one in declared}
    assert (function.is_member, len(function.taken)) in shapes


def test_each_declared_function_is_implemented():
    """The evaluator implements operators, `or`, `orValue`; the API server formats and rights."""
    outside = ("_", "!", "@in", "@not", "-", "cel.", "format.")
    known = {one.name for one in FUNCTIONS}
    missing = {name for name in signatures() if not name.startswith(outside)} - known
    rights = {"check", "group", "resource", "subresource", "namespace", "name", "path"}
    assert missing == rights | {
        "serviceAccount", "allowed", "reason", "errored", "error",
        "fieldSelector", "labelSelector", "validate", "or", "orValue",
    }  # fmt: skip
