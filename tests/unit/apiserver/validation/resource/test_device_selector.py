"""Validation of CEL expressions that select devices."""

from __future__ import annotations

import pytest

from fairlead.apiserver.validation.resource.resource_claim import check_selectors

TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
DEEP = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, {TEN}.all(e, {TEN}.all(f, true))))))"
DRIVER = 'device.attributes["gpu.example.com"]'


def said(expression):
    found = check_selectors("s", [{"cel": {"expression": expression}}])
    return [(cause.field, cause.message.partition(": ")[2]) for cause in found]


@pytest.mark.parametrize(
    "expression",
    [
        f'{DRIVER}.model == "a"',
        f"cel.bind(d, {DRIVER}, d.a && d.b == 1)",
        f"{DRIVER}.ok",
        f"{DRIVER}.all(k, k.startsWith('a'))",
        "device.capacity['x'].memory.compareTo(quantity('1Gi')) >= 0",
        "!device.allowMultipleAllocations",
    ],
)
def test_valid_expressions_are_accepted(expression):
    assert said(expression) == []


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("device.nope", "undefined field 'nope'"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("device.driver == 3", "no matching overload for '_==_' applied to '(string, int)'"),
        ("device.capacity['x'].memory > quantity('1Gi')", "applied to '(kubernetes.Quantity,"),
        (DEEP, "too complex, exceeds cost limit"),
        (f"{DRIVER}.all(k, {DRIVER}.all(l, {DRIVER}.all(m, k + l != m)))", None),
    ],
)
def test_invalid_and_too_costly_expressions_are_refused(expression, why):
    """The cost is estimated for the largest possible device."""
    found = said(expression)
    assert bool(found) is bool(why)
    assert not why or why in found[0][1] or why in str(found)
