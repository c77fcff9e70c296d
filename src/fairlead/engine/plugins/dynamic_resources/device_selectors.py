"""DeviceSelectors: CEL expressions, and what they say about devices.

An expression is compiled once. What it says depends on a device's make alone (driver, attributes,
capacity), so that is asked once as well. What an evaluation may take is bounded.

upstream: dynamic-resource-allocation/cel/compile.go: CompileCELExpression, DeviceMatches
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.objects import DeviceAttribute
from fairlead.cel.amount import quantity_value, version_value
from fairlead.cel.asking import Budget, OutOfBudgetError, Program, Seen, program
from fairlead.cel.device_language import device_language, read_selector
from fairlead.cel.expansion import ExpressionError
from fairlead.cel.problem import CALL_LIMIT
from fairlead.engine.state.devices.device_pools import PoolDevice

if TYPE_CHECKING:
    from cel_expr_python import cel

LENGTH_MAX: Final = 10 * 1024  # CELSelectorExpressionMaxLength
_ANSWERS_MAX: Final = 1 << 18
# Domains that an expression names; upstream's maps have an empty entry for every domain.
_NAMED: Final = re.compile(r"""\b(?:attributes|capacity)\s*\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]""")
_NOISE: Final = re.compile(r"^[A-Z_]+: (?:ERROR: <input>:)?|\s*\[[A-Z_]+\]$")

Maps = dict[str, dict[str, Any]]


class CompileError(Exception):
    """An expression that is none; the text says why."""


class EvaluationError(Exception):
    """An expression that says nothing about some device; the text says why."""


@dataclass(frozen=True, slots=True)
class _Program:
    asked: Program
    domains: tuple[str, ...]


class DeviceSelectors:
    """Everything asked so far."""

    def __init__(self) -> None:
        """Nothing has been asked."""
        self._environment: cel.Env | None = None
        self._programs: dict[str, _Program | str] = {}
        self._answers: dict[tuple[str, bytes], bool | str] = {}

    def matches(self, expression: str, device: PoolDevice) -> bool:
        """Whether `expression` holds of `device`. Raises CompileError and EvaluationError."""
        key = (expression, device.make)
        answer = self._answers.get(key)
        if answer is None:
            program = self._program(expression)
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            answer = self._answers[key] = _evaluate(self._language(), program, device)
        if isinstance(answer, str):
            raise EvaluationError(answer)
        return answer

    def _program(self, expression: str) -> _Program:
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = self._compile(expression)
        if isinstance(program, str):
            raise CompileError(program)
        return program

    def _language(self) -> cel.Env:
        if self._environment is None:
            self._environment = device_language()
        return self._environment

    def _compile(self, expression: str) -> _Program | str:
        if len(expression) > LENGTH_MAX:
            return f"may not be longer than {LENGTH_MAX}"
        try:
            kind = read_selector(expression).kind
            asked = program(self._language(), expression)
        except ExpressionError as cause:
            return f"compilation failed: {_one_line(str(cause))}"
        if kind.name not in ("bool", "any"):
            return f"must evaluate to bool or the unknown type, not {kind.named}"
        return _Program(asked, tuple(a or b for a, b in _NAMED.findall(expression)))


def _evaluate(environment: cel.Env, program: _Program, device: PoolDevice) -> bool | str:
    try:
        described = _described(device, program.domains)
    except ValueError as cause:
        return str(cause)
    named = {f"device.{name}": value for name, value in described.items()}
    try:
        answer = Seen(environment, {"device": described}, named).ask(program.asked, Budget())
    except OutOfBudgetError:
        return CALL_LIMIT
    if answer.problem:
        return _one_line(answer.problem)
    if not isinstance(answer.value, bool):
        return f"CEL result of type {answer.kind.lower()} could not be converted to bool"
    return answer.value


def _described(one: PoolDevice, domains: Iterable[str]) -> dict[str, Any]:
    """The device as expressions see it. Raises ValueError for values that are none."""
    driver = one.id[0]
    attributes: Maps = {domain: {} for domain in domains}
    capacity: Maps = {domain: {} for domain in domains}
    for name, attribute in one.device.attributes.items():
        domain, own_name = qualified(name, driver)
        attributes.setdefault(domain, {})[own_name] = _value(name, attribute)
    for name, amount in one.device.capacity.items():
        domain, own_name = qualified(name, driver)
        capacity.setdefault(domain, {})[own_name] = quantity_value(amount.value)
    return {
        "driver": driver,
        "allowMultipleAllocations": bool(one.device.allow_multiple_allocations),
        "attributes": attributes,
        "capacity": capacity,
    }


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and name; a name without a domain is in the driver's."""
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
    """The library's words without its picture of the expression."""
    return _NOISE.sub("", text.splitlines()[0])
