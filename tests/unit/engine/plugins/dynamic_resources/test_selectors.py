"""CEL expressions about devices: their results, and the errors of invalid expressions."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import ResourceSlice
from fairlead.engine.plugins.dynamic_resources.device_selectors import (
    CompileError,
    DeviceSelectors,
    EvaluationError,
)
from fairlead.engine.state.devices.device_pools import DevicePools
from fairlead.testing.builders import make_node
from fairlead.testing.device_builders import make_device, make_slice

DEVICE = make_device("gpu-0", model="A100", slots=3, ecc=True) | {
    "attributes": {
        "model": {"string": "A100"},
        "slots": {"int": 3},
        "ecc": {"bool": True},
        "firmware": {"version": "1.10.0-rc.1"},
        "example.com/rack": {"string": "r1"},
    }
}
A = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'


@pytest.fixture(scope="module")
def gpu():
    pools = DevicePools()
    pools.put(make_slice("a", [DEVICE]))
    return pools.on(make_node("a"))[0].devices[0]


@pytest.fixture(scope="module")
def selectors():
    return DeviceSelectors()


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.driver.startsWith("net")', False),
        (f'{A}.model == "A100"', True),
        (f'{A}.model.lowerAscii() == "a100"', True),
        (f'{A}.model.matches("^A[0-9]+$")', True),
        (f"{A}.slots > 2 && {A}.ecc", True),
        (f'{A}.model in ["H100", "B200"]', False),
        ('device.attributes["example.com"].rack == "r1"', True),
        (f'{MEMORY}.compareTo(quantity("40Gi")) == 0', True),
        (f'{MEMORY} == quantity("40960Mi")', True),
        (f'{MEMORY}.isGreaterThan(quantity("39Gi"))', True),
        (f'{MEMORY}.isLessThan(quantity("39Gi"))', False),
        (f'{MEMORY}.add(quantity("1Gi")).sub(1).isGreaterThan({MEMORY})', True),
        (f"sign({MEMORY}) == 1 && {MEMORY}.isInteger()", True),
        (f"{MEMORY}.asInteger() == 40 * 1024 * 1024 * 1024", True),
        ('isQuantity("1Gi") && !isQuantity("much")', True),
        (f'{A}.firmware.isLessThan(semver("1.10.0"))', True),
        (f'{A}.firmware.isGreaterThan(semver("1.9.9"))', True),
        (f'{A}.firmware.compareTo(semver("1.10.0-rc.1")) == 0', True),
        (f"{A}.firmware.major() == 1 && {A}.firmware.minor() == 10", True),
        ('isSemver("1.2.3") && !isSemver("1.2") && !isSemver("01.2.3")', True),
        (f'cel.bind(own, {A}, own.slots == 3 && own.model == "A100")', True),
        # The domains and attributes do not exist.
        ('"x" in device.attributes["other.example.com"]', False),
        ("has(device.attributes['other.example.com'].x)", False),
        (f'"model" in {A}', True),
        ('device.attributes["other.example.com"].?x.orValue("none") == "none"', True),
        (f'{A}.nope == "x" || true', True),
    ],
)
def test_what_expressions_say(selectors, gpu, expression, holds):
    """The result is that of upstream's CEL environment."""
    assert selectors.matches(expression, gpu) is holds


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("device.", "Syntax error"),
        ("device.nope", "undefined field 'nope'"),
        ("unknown()", "undeclared reference to 'unknown'"),
        ("device.driver == 3", "no matching overload"),
        (f'{MEMORY} > quantity("1")', "no matching overload"),
        (f"{MEMORY}.major() == 1", "no matching overload"),
        ("1 + 1", "must evaluate to bool or the unknown type, not int"),
        (f'device.driver == "{"x" * 10_240}"', "may not be longer than 10240"),
    ],
)
def test_expressions_that_are_none(selectors, gpu, expression, words):
    """An expression that does not compile has a one-line error."""
    with pytest.raises(CompileError) as caught:
        selectors.matches(expression, gpu)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (f'{A}.nope == "x"', "nope"),
        ('device.attributes["other.example.com"].x == 1', "no such key: x"),
        (f"{A}.model", "could not be converted to bool"),
        ('quantity("much").isInteger()', "quantities must match"),
        ('semver("1").major() == 1', "No Major.Minor.Patch elements found"),
        (f'{A}.firmware.compareTo(quantity("1")) == 0', "no such overload"),
        ("1 / 0 == 1", "division by zero"),
    ],
)
def test_expressions_that_say_nothing_about_a_device(selectors, gpu, expression, words):
    """An evaluation error is one line."""
    with pytest.raises(EvaluationError) as caught:
        selectors.matches(expression, gpu)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_expressions_cannot_run_for_ever(selectors, gpu):
    """The cost of a call is limited."""
    numbers = f"[{','.join(map(str, range(200)))}]"
    endless = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))"
    with pytest.raises(EvaluationError, match="actual cost limit exceeded"):
        selectors.matches(endless, gpu)


def test_an_attribute_without_a_value_is_named(selectors):
    """The attribute has a kind that does not exist in the current API."""
    pools = DevicePools()
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    device = {"name": "x", "attributes": {"new": {"list": [1]}}}
    spec = {"nodeName": "a", "driver": "d", "pool": pool, "devices": [device]}
    pools.put(decode_as(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec}))
    with pytest.raises(EvaluationError, match="attribute new: unsupported attribute value"):
        selectors.matches("true", pools.on(make_node("a"))[0].devices[0])


def test_devices_that_differ_only_in_sharing_are_evaluated_one_by_one(selectors):
    pools = DevicePools()
    shared = {**make_device("gpu-1"), "allowMultipleAllocations": True}
    pools.put(make_slice("a", [make_device("gpu-0"), shared]))
    devices = pools.on(make_node("a"))[0].devices
    found = [selectors.matches("device.allowMultipleAllocations", one) for one in devices]
    assert found == [False, True]
