"""Compiles CEL selectors of devices and evaluates them with the variable `device`.

upstream: dynamic-resource-allocation/cel/compile.go: CompileCELExpression, DeviceMatches
"""

from __future__ import annotations

import re
from typing import Any, Final

from fairlead.api.objects import DeviceAttribute
from fairlead.cel.cost.runtime_cost import CostBudget, OutOfBudgetError
from fairlead.cel.device import device_environment, read_selector
from fairlead.cel.error import CALL_LIMIT, ExpressionError
from fairlead.cel.library.quantity import quantity_value
from fairlead.cel.library.semver import version_value
from fairlead.cel.program import Program
from fairlead.cel.value import DefaultMap
from fairlead.engine.state.devices.device_pools import PoolDevice

LENGTH_MAX: Final = 10 * 1024  # CELSelectorExpressionMaxLength
_NOISE: Final = re.compile(r"^ERROR: <input>:")

Maps = dict[str, dict[str, Any]]


def compiled(expression: str) -> Program | str:
    """Compile the selector `expression`; return its program, or the compiler's error message."""
    if len(expression) > LENGTH_MAX:
        return f"may not be longer than {LENGTH_MAX}"
    try:
        type_ = read_selector(expression).type_
        program = device_environment().program(expression)
    except ExpressionError as cause:
        return f"compilation failed: {_one_line(str(cause))}"
    if type_.name not in ("bool", "any"):
        return f"must evaluate to bool or the unknown type, not {type_.full_name}"
    return program


def evaluated(program: Program, device: PoolDevice) -> bool | str:
    """Return whether `program` selects `device`, or the error message if the evaluation fails."""
    try:
        described = _described(device)
    except ValueError as cause:
        return str(cause)
    try:
        answer = program.evaluate({"device": described}, CostBudget())
    except OutOfBudgetError:
        return CALL_LIMIT
    if answer.problem:
        return _one_line(answer.problem)
    if not isinstance(answer.value, bool):
        return f"CEL result of type {answer.type_name} could not be converted to bool"
    return answer.value


def _described(one: PoolDevice) -> dict[str, Any]:
    """Return the value of the CEL variable `device`, which describes the device `one`.

    In `attributes` and `capacity`, looking up a domain without entries gives an empty map.
    Raises ValueError if an attribute has an invalid value.
    """
    driver = one.id[0]
    attributes: Maps = {}
    capacity: Maps = {}
    for name, attribute in one.device.attributes.items():
        domain, own_name = qualified(name, driver)
        attributes.setdefault(domain, {})[own_name] = _value(name, attribute)
    for name, amount in one.device.capacity.items():
        domain, own_name = qualified(name, driver)
        capacity.setdefault(domain, {})[own_name] = quantity_value(amount.value)
    return {
        "driver": driver,
        "allowMultipleAllocations": bool(one.device.allow_multiple_allocations),
        "attributes": DefaultMap(attributes, {}),
        "capacity": DefaultMap(capacity, {}),
    }


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Split the qualified name `name` into (domain, name within the domain).

    If `name` has no domain, the domain is `driver`.
    """
    domain, separator, own_name = name.partition("/")
    return (domain, own_name) if separator else (driver, name)


def _value(name: str, attribute: DeviceAttribute) -> Any:
    if attribute.version_value is not None:
        try:
            return version_value(attribute.version_value)
        except ValueError as cause:
            raise ValueError(f"attribute {name}: parse semantic version: {cause}") from None
    values = (attribute.int_value, attribute.bool_value, attribute.string_value)
    found = [value for value in values if value is not None]
    if not found:
        raise ValueError(f"attribute {name}: unsupported attribute value")
    return found[0]


def _one_line(text: str) -> str:
    """Return the first line of a CEL error message, without the quoted expression."""
    return _NOISE.sub("", text.splitlines()[0])
