"""A requirement on one label: the values that a node's label may have.

A requirement is a set of values or the complement of a set, and may have integer bounds. `In a b`
is the set {a, b}, and `NotIn a` is the complement of {a}. `Exists` is the complement of the empty
set, and `DoesNotExist` is the empty set. `Gt 4` is Exists with the lower bound 5. Two requirements
combine by intersection.

    In [a b] ∩ NotIn [b]     = In [a]
    Gt 4     ∩ In [3 5 x]    = In [5]         only integers within the bounds are kept
    In [a]   ∩ In [b]        = DoesNotExist

upstream: pkg/scheduling/requirement.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import LabelSelectorRequirement, NodeSelectorRequirement
from fairlead.api.text.integer import parse_int64
from fairlead.engine.autoscaling.karpenter.labels import normalized_label

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"

_SHOWN_MAX: Final = 5
_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_NONE: Final[frozenset[str]] = frozenset()


class LabelRequirement(Struct, frozen=True):
    """The values that a label may have. If `complement` is set, `values` are the forbidden values.

    `gte` and `lte` bound integer values. `min_values` is the number of distinct values that the
    instance types of a NodeClaim must offer.
    """

    key: str
    complement: bool = False
    values: frozenset[str] = _NONE
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def operator(self) -> str:
        """In, NotIn, Exists or DoesNotExist.

        The operator does not depend on `gte` and `lte`.
        """
        if self.complement:
            return NOT_IN if self.values else EXISTS
        return IN if self.values else DOES_NOT_EXIST

    @property
    def allows_missing_label(self) -> bool:
        """Whether nodes without the label are accepted: True for NotIn and DoesNotExist."""
        return self.complement == bool(self.values)

    @property
    def single(self) -> str | None:
        """The only allowed value; None if no value or several values are allowed."""
        if self.complement or len(self.values) != 1:
            return None
        return next(iter(self.values))

    def has(self, value: str) -> bool:
        """Return whether the requirement allows `value`."""
        if (value in self.values) == self.complement:
            return False
        return (self.gte is None and self.lte is None) or _within(value, self.gte, self.lte)

    def intersection(self, other: LabelRequirement) -> LabelRequirement:
        """Return the intersection of both requirements.

        The result has the larger `min_values` of the two.
        """
        if other is self:
            return self
        complement = self.complement and other.complement
        gte, lte = _largest(self.gte, other.gte), _smallest(self.lte, other.lte)
        min_values = _largest(self.min_values, other.min_values)
        if gte is not None and lte is not None and gte > lte:
            return LabelRequirement(self.key, min_values=min_values)
        values = _combined(self, other)
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if _within(value, gte, lte))
        if not complement:
            gte = lte = None
        return LabelRequirement(self.key, complement, values, gte, lte, min_values)

    def has_intersection(self, other: LabelRequirement) -> bool:
        """Return whether some value satisfies both requirements.

        Two requirements that both forbid values (`complement`) intersect if their integer bounds
        have a common value.
        """
        gte, lte = _largest(self.gte, other.gte), _smallest(self.lte, other.lte)
        if gte is not None and lte is not None and gte > lte:
            return False
        if self.complement and other.complement:
            return True
        if gte is None and lte is None:
            if self.complement:
                return not other.values <= self.values
            if other.complement:
                return not self.values <= other.values
            return not self.values.isdisjoint(other.values)
        return any(_within(value, gte, lte) for value in _combined(self, other))

    def with_min_values(self, min_values: int | None) -> LabelRequirement:
        """Return this requirement with another `min_values`."""
        return replace(self, min_values=min_values)

    def sorted_values(self) -> list[str]:
        """Return `values`, sorted."""
        return sorted(self.values)

    def __str__(self) -> str:
        """Return `key Op [v1 v2] >=g <=l minValues m` with at most five values, as in upstream."""
        text = f"{self.key} {self.operator}"
        if self.values:
            shown = self.sorted_values()
            rest = len(shown) - _SHOWN_MAX
            listed = " ".join(shown[:_SHOWN_MAX])
            text += f" [{listed} and {rest} others]" if rest > 0 else f" [{listed}]"
        if self.gte is not None:
            text += f" >={self.gte}"
        if self.lte is not None:
            text += f" <={self.lte}"
        return text if self.min_values is None else f"{text} minValues {self.min_values}"


def requirement(
    key: str, operator: str, values: Sequence[str] = (), min_values: int | None = None
) -> LabelRequirement:
    """Return the LabelRequirement for `key`, `operator` and `values`, as an API object states them.

    An alias of a label is replaced by the label's stable name. Gt, Gte, Lt and Lte take one
    integer. An unknown operator allows no value. `min_values` is the value of the field
    `minValues`.
    """
    # upstream: requirement.go:NewRequirementWithFlexibility
    key = normalized_label(key)
    match operator:
        case "In":
            return LabelRequirement(key, values=frozenset(values), min_values=min_values)
        case "NotIn":
            return LabelRequirement(key, True, frozenset(values), min_values=min_values)  # noqa: FBT003
        case "Exists":
            return LabelRequirement(key, complement=True, min_values=min_values)
        case "Gt" | "Gte" | "Lt" | "Lte":
            return _bounded(key, operator, values, min_values)
        case _:
            return LabelRequirement(key, min_values=min_values)


def of_selector(
    stated: NodeSelectorRequirement | LabelSelectorRequirement,
) -> LabelRequirement:
    """Return the requirement of one expression of a node selector or label selector."""
    return requirement(stated.key, stated.operator, stated.values)


def _bounded(
    key: str, operator: str, values: Sequence[str], min_values: int | None
) -> LabelRequirement:
    bound = (parse_int64(values[0]) if values else None) or 0
    if (operator == "Gt" and bound == _INT64_MAX) or (operator == "Lt" and bound == _INT64_MIN):
        return LabelRequirement(key, min_values=min_values)
    if operator in ("Gt", "Gte"):
        gte = bound + (operator == "Gt")
        return LabelRequirement(key, complement=True, gte=gte, min_values=min_values)
    lte = bound - (operator == "Lt")
    return LabelRequirement(key, complement=True, lte=lte, min_values=min_values)


def _combined(a: LabelRequirement, b: LabelRequirement) -> frozenset[str]:
    """Return the `values` of the intersection, before bounds are applied."""
    if a.complement and b.complement:
        return a.values | b.values
    if a.complement:
        return b.values - a.values
    if b.complement:
        return a.values - b.values
    return a.values & b.values


def _within(value: str, gte: int | None, lte: int | None) -> bool:
    number = parse_int64(value)
    if number is None:
        return False
    return (gte is None or number >= gte) and (lte is None or number <= lte)


def _largest(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b)


def _smallest(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)
