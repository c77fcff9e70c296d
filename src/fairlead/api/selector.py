"""Label selectors: matching, and kubectl's short notation.

An absent selector (None) matches nothing; an empty selector matches everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import LabelSelector, LabelSelectorRequirement, NodeSelectorRequirement
from fairlead.api.text.field_problem import quoted
from fairlead.api.text.integer import parse_int64

Labels = Mapping[str, str]
Requirement = LabelSelectorRequirement | NodeSelectorRequirement


class SelectorError(ValueError):
    """Raised if a text is not a valid label selector."""


def selector_matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Return True if `labels` meet all requirements of `selector`; False if `selector` is None."""
    # upstream: apimachinery/pkg/apis/meta/v1/helpers.go:LabelSelectorAsSelector
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        requirement_matches(requirement, labels) for requirement in selector.match_expressions
    )


def map_selector(labels: Labels) -> LabelSelector:
    """Return a selector that requires each of `labels`; without labels, it matches everything."""
    return LabelSelector(match_labels=dict(labels))


def requirement_matches(requirement: Requirement, labels: Labels) -> bool:
    """Return True if `labels` meet `requirement`.

    A missing key meets NotIn and DoesNotExist. Gt and Lt compare integers. A requirement with an
    unknown operator, or with too few or too many values, is never met.
    """
    # upstream: apimachinery/pkg/labels/selector.go:NewRequirement, Requirement.Matches
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn" if requirement.values:
            return value not in requirement.values
        case "Exists" if not requirement.values:
            return value is not None
        case "DoesNotExist" if not requirement.values:
            return value is None
        case "Gt" | "Lt" if value is not None:
            return _is_beyond(value, requirement)
        case _:
            return False


def parse_selector(text: str) -> LabelSelector:
    """Parse kubectl's notation: `a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j,k>5,l<7`.

    An empty text gives a selector that matches everything. Raises SelectorError for an invalid
    text.
    """
    # upstream: apimachinery/pkg/labels/selector.go:Parser
    return _Parser(text).selector()


def format_selector(selector: LabelSelector) -> str:
    """Return `selector` in kubectl's notation, sorted by key; "" if it is empty."""
    # upstream: apimachinery/pkg/labels/selector.go:internalSelector.String, Requirement.String
    terms = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    terms += [
        (one.key, format_requirement(one.key, one.operator, one.values))
        for one in selector.match_expressions
    ]
    return ",".join(term for _, term in sorted(terms))


def format_requirement(key: str, operator: str, values: Iterable[str]) -> str:
    """Return a requirement in kubectl's notation with sorted values, such as `a in (b,c)`.

    `operator` must be In, NotIn, Exists or DoesNotExist.
    """
    match operator:
        case "In":
            return f"{key} in ({','.join(sorted(values))})"
        case "NotIn":
            return f"{key} notin ({','.join(sorted(values))})"
        case "Exists":
            return key
        case _:
            return f"!{key}"


def _is_beyond(value: str, requirement: Requirement) -> bool:
    if len(requirement.values) != 1:
        return False
    number, bound = parse_int64(value), parse_int64(requirement.values[0])
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)")
_SYMBOLS: Final = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_END: Final = ""
_OPERATORS: Final = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    ">": "Gt",
    "<": "Lt",
}


class _Parser:
    """Parses the tokens of a selector; error messages are in upstream's words."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), _END]
        self._position = 0

    def selector(self) -> LabelSelector:
        requirements: list[LabelSelectorRequirement] = []
        while self._peek() != _END or requirements:
            if self._peek() in _SYMBOLS and self._peek() != "!":
                raise _unexpected(self._peek(), ", expected: !, identifier, or 'end of string'")
            requirements.append(self._requirement())
            if self._peek() == _END:
                break
            self._expect(",", ", expected: ',' or 'end of string'")
            if self._peek() == _END or (self._peek() in _SYMBOLS and self._peek() != "!"):
                raise _unexpected(self._peek(), ", expected: identifier after ','")
        return LabelSelector(match_expressions=tuple(requirements))

    def _requirement(self) -> LabelSelectorRequirement:
        try:
            return self._parsed_requirement()
        except SelectorError as cause:
            raise SelectorError(f"unable to parse requirement: {cause}") from None

    def _parsed_requirement(self) -> LabelSelectorRequirement:
        negated = self._accept("!")
        key = self._identifier()
        _require_valid("<nil>", key, label_key_problems(key))
        if negated:
            return LabelSelectorRequirement(key=key, operator="DoesNotExist")
        if self._peek() in (_END, ","):
            return LabelSelectorRequirement(key=key, operator="Exists")
        written = self._next()
        if written not in _OPERATORS:
            raise _unexpected(written, ", expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if written in ("in", "notin") else (self._value(),)
        _check_values(key, written, values)
        return LabelSelectorRequirement(key=key, operator=_OPERATORS[written], values=values)

    def _values(self) -> tuple[str, ...]:
        """Parse `(a,b)`; a missing value between commas or parentheses is the empty value."""
        self._expect("(", " expected: '('")
        if self._accept(")"):
            return ("",)
        if self._peek() != "," and self._is_at_symbol():
            raise _unexpected(self._peek(), ", expected: ',', ')' or identifier")
        values: dict[str, None] = {}
        while self._more_values(values):
            pass
        self._next()
        return tuple(sorted(values))

    def _more_values(self, values: dict[str, None]) -> bool:
        """Parse one value and append it to `values`; return True if more values follow.

        A missing value before or after a comma is parsed as the empty value.
        """
        # upstream: labels/selector.go:parseIdentifiersList
        found = self._next()
        if found == ",":
            if not values:
                values[""] = None
            if self._peek() in (",", ")"):
                values[""] = None
            return self._peek() != ")"
        if found == _END or found in _SYMBOLS:
            raise _unexpected(found, ", expected: ',', or identifier")
        values[found] = None
        if self._peek() not in (",", ")"):
            raise _unexpected(self._peek(), ", expected: ',' or ')'")
        return self._peek() == ","

    def _is_at_symbol(self) -> bool:
        return self._peek() == _END or self._peek() in _SYMBOLS

    def _value(self) -> str:
        return "" if self._peek() in (",", _END) else self._identifier()

    def _identifier(self) -> str:
        token = self._next()
        if token == _END or token in _SYMBOLS:
            raise _unexpected(token, ", expected: identifier")
        return token

    def _expect(self, token: str, expected: str) -> None:
        found = self._next()
        if found != token:
            raise _unexpected(found, expected)

    def _accept(self, token: str) -> bool:
        found = self._peek() == token
        self._position += found
        return found

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _next(self) -> str:
        token = self._peek()
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token


def _unexpected(token: str, expected: str) -> SelectorError:
    return SelectorError(f"found '{token}'{expected}")


def _check_values(key: str, written: str, values: tuple[str, ...]) -> None:
    # upstream: apimachinery/pkg/labels/selector.go:NewRequirement
    wrong: dict[str, None] = {}
    if written in ("<", ">"):
        for index, value in enumerate(values):
            if parse_int64(value) is None:
                why = "for 'Gt', 'Lt' operators, the value must be an integer"
                wrong[_invalid(f"values[{index}]", value, (why,))] = None
    for index, value in enumerate(values):
        problems = label_value_problems(value)
        if problems:
            wrong[_invalid(f"values[{index}][{key}]", value, problems)] = None
    if wrong:
        together = ", ".join(wrong)
        raise SelectorError(together if len(wrong) == 1 else f"[{together}]")


def _require_valid(field: str, value: str, problems: tuple[str, ...]) -> None:
    if problems:
        raise SelectorError(_invalid(field, value, problems))


def _invalid(field: str, value: str, problems: tuple[str, ...]) -> str:
    return f"{field}: Invalid value: {quoted(value)}: {'; '.join(problems)}"
