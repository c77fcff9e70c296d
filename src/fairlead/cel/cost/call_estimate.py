"""The cost of a call, and the size of its result.

upstream: apiserver/pkg/cel/library/cost.go:EstimateCallCost, cel-go's checker/cost.go:functionCost,
ext/{lists,sets}.go
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from msgspec import Struct

from fairlead.cel.check.types import CelType
from fairlead.cel.cost.estimate import ENDLESS, ONE, UNKNOWN, Estimate, fixed
from fairlead.cel.syntax.syntax_tree import Literal, Node

TRAVERSAL: Final = 0.1
PATTERN: Final = 0.25
_FORMAT_PATTERN: Final = 128
_FORMAT_MAX: Final = 64
_ADDRESS: Final = Estimate(4, 16)
_LIST: Final = fixed(10)
_CHECK: Final = fixed(350_000)

Result = tuple[Estimate, Estimate | None]


class Operand(Struct, frozen=True):
    """The target or an argument of a call, with the type and the size of its value."""

    path: tuple[str, ...]
    type_: CelType
    known_size: Estimate | None
    node: Node
    size_of: Callable[[tuple[str, ...]], Estimate | None]

    @property
    def size(self) -> Estimate:
        """The size of the operand; UNKNOWN if nothing limits it."""
        if self.known_size is not None:
            return self.known_size
        return (self.size_of(self.path) if self.path else None) or UNKNOWN

    @property
    def item(self) -> tuple[CelType, Estimate] | None:
        """(type, size) of the operand's items; None if it has no items."""
        if not self.type_.parameters:
            return None
        known_size = self.size_of((*self.path, "@items")) if self.path else None
        return self.type_.parameters[0], known_size or UNKNOWN

    def number(self, otherwise: int) -> int:
        """Return the value of a literal integer ≥ 0; return `otherwise` for other operands."""
        node = self.node
        is_number = isinstance(node, Literal) and node.type_name == "int" and node.value >= 0
        return node.value if is_number and isinstance(node, Literal) else otherwise


def call_cost(
    function: str, overload: str, target: Operand | None, arguments: list[Operand]
) -> Result:
    """Return (cost, result size) of a call; the cost excludes the evaluation of its arguments.

    `overload` is the id of the called overload of `function`. `target` is the value on which a
    method is called, None for a function.
    """
    every = arguments if target is None else [target, *arguments]
    own = _BY_OVERLOAD.get(overload) or _LISTS.get(_sorting(overload))
    if own is not None:
        return own(every)
    if function in _NOMINAL or overload == "cidr_ip":
        return ONE, None
    by_name = _BY_FUNCTION.get(function)
    if by_name is not None:
        return by_name(every)
    if function == "_==_":
        comparison = _comparison_cost(every)
        if comparison is not None:
            return comparison, None
    return _plain(overload, every)


def _sorting(overload: str) -> str:
    if overload.endswith("_sortByAssociatedKeys"):
        return "sort by"
    return "sort" if overload.endswith("_sort") else overload


def _comparison_cost(every: list[Operand]) -> Estimate | None:
    """Return the cost of comparing two operands of a Kubernetes type; None for other types."""
    one, other = every[0].type_, every[1].type_
    if one != other:
        return None
    match one.name:
        case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
            return ONE
        case "kubernetes.NamedFormat":
            return Estimate(1, _FORMAT_MAX).scaled(TRAVERSAL)
        case "kubernetes.URL":
            size = every[1].known_size or ONE
            return Estimate(1, size.high).scaled(TRAVERSAL)
        case name:
            return ONE if name.startswith("kubernetes.authorization.") else None


def _scan(every: list[Operand]) -> Result:
    return every[0].size.scaled(TRAVERSAL), None


def _scan_to_same(every: list[Operand]) -> Result:
    return every[0].size.scaled(TRAVERSAL), every[0].size


def _twice(every: list[Operand]) -> Result:
    return every[0].size.scaled(2 * TRAVERSAL), None


def _selector(every: list[Operand]) -> Result:
    size = every[1].size
    parts = size.scaled(0.5).scaled(50)
    return _LIST.plus(size.scaled(TRAVERSAL)).plus(parts), None


def _over_items(every: list[Operand]) -> Result:
    whole = every[0]
    if whole.item is None:  # a string
        return whole.size.scaled(TRAVERSAL), None
    type_, size = whole.item
    each = ONE.plus(size.scaled(TRAVERSAL)) if type_.name in ("string", "bytes") else ONE
    return whole.size.times(each), None


def _replace(every: list[Operand]) -> Result:
    size, old, new = (one.size for one in every[:3])
    high, kept_high = _longest(size, old, new)
    low, kept_low = _shortest(size, old, new)
    made = Estimate(low, high).times(new).plus(Estimate(kept_low, kept_high))
    return size.scaled(2 * TRAVERSAL), made


def _longest(size: Estimate, old: Estimate, new: Estimate) -> tuple[int, int]:
    """Return (number of replacements, size of the kept text) for the longest result of `replace`.

    The arguments are the sizes of the operands of CEL's function `replace`: the text, the part to
    replace, and the replacement. The kept text consists of the characters that are not replaced. If
    the replacement is at most as long as the part to replace, the unchanged text is the longest
    result.
    """
    if old.low == 0:
        return min(size.high + 1, ENDLESS), size.high
    if new.high <= old.low:
        return 0, size.high
    return ceil(size.high / old.low), 0


def _shortest(size: Estimate, old: Estimate, new: Estimate) -> tuple[int, int]:
    if old.high == 0:
        return min(size.low + 1, ENDLESS), size.low
    if old.high <= new.low:
        return 0, size.low
    return ceil(size.low / old.high), 0


def _split(every: list[Operand]) -> Result:
    size = every[0].size
    most = every[2].number(size.high) if len(every) > 2 else size.high
    return size.scaled(2 * TRAVERSAL), Estimate(0, most)


def _join(every: list[Operand]) -> Result:
    whole, item = every[0].size, every[0].item
    made = whole.times(item[1]) if item else fixed(0)
    if len(every) > 1:
        between = Estimate(max(whole.low - 1, 0), max(whole.high - 1, 0))
        made = made.plus(every[1].size.times(between))
    return made.scaled(TRAVERSAL), made


def _find(every: list[Operand]) -> Result:
    text, pattern = every[0].size, every[1].size
    cost = text.plus(ONE).scaled(TRAVERSAL).times(pattern.scaled(PATTERN))
    return cost, Estimate(0, text.high)


def _matches(every: list[Operand]) -> Result:
    return _find(every)[0], None


def _validate(every: list[Operand]) -> Result:
    return every[1].size.scaled(TRAVERSAL).scaled(_FORMAT_PATTERN * PATTERN), None


def _contains_address(every: list[Operand]) -> Result:
    cost = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL)
    is_text = every[1].type_.name == "string"
    return (cost.plus(every[1].size.scaled(TRAVERSAL)) if is_text else cost), None


def _contains_range(every: list[Operand]) -> Result:
    cost = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL).plus(_ADDRESS.scaled(TRAVERSAL)).plus(ONE)
    is_text = every[1].type_.name == "string"
    return (cost.plus(every[1].size.scaled(TRAVERSAL)) if is_text else cost), None


def _listed(size: Estimate, factor: float = 1) -> Result:
    return size.scaled(factor).plus(_LIST).plus(ONE), size


def _squared(whole: Estimate, type_: str) -> Result:
    return _listed(whole.times(whole), 2 + TRAVERSAL if type_ in ("string", "bytes") else 2)


def _item_type_name(one: Operand) -> str:
    return one.type_.parameters[0].name if one.type_.parameters else ""


def _slice(every: list[Operand]) -> Result:
    start, end = every[1].number(0), every[2].number(every[0].size.high)
    return _listed(fixed((end - start) % (ENDLESS + 1)))


def _flatten(every: list[Operand]) -> Result:
    depth = every[1].number(ENDLESS) if len(every) > 1 else 1
    return _listed(every[0].size, depth)


def _sets(every: list[Operand], factor: float = 1) -> Result:
    return every[0].size.times(every[1].size).scaled(factor).plus(ONE), None


def _plain(overload: str, every: list[Operand]) -> Result:
    """Return (cost, result size) of a function of the CEL standard library."""
    if overload in ("add_string", "add_bytes"):
        made = every[0].size.plus(every[1].size)
        return made.scaled(TRAVERSAL), made
    if overload == "add_list":
        return ONE, every[0].size.plus(every[1].size)
    if overload in _COMPARED:
        most = min(every[0].size.high, every[1].size.high)
        return Estimate(min(most, 1), most).scaled(TRAVERSAL), None
    return ONE, None


_COMPARED: Final = frozenset(
    {"equals", "not_equals"}
    | {
        f"{how}_{type_}"
        for how in ("less", "less_equals", "greater", "greater_equals")
        for type_ in ("string", "bytes")
    }
)
_NOMINAL: Final = frozenset(
    {"serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed"}
    | {"reason", "error", "errored", "masked", "prefixLength", "family", "isUnspecified"}
    | {"isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"}
    | {"format.named", "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan"}
    | {"isLessThan", "compareTo", "add", "sub", "major", "minor", "patch", "getScheme"}
    | {"getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"}
)
_BY_FUNCTION: Final[dict[str, Callable[[list[Operand]], Result]]] = {
    "check": lambda _: (_CHECK, None),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_items),
    "url": _scan_to_same,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _scan_to_same),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip"), _scan),
    "containsIP": _contains_address,
    "containsCIDR": _contains_range,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _scan),
    "validate": _validate,
}
_BY_OVERLOAD: Final[dict[str, Callable[[list[Operand]], Result]]] = {
    "string_format": _scan,
    "ip_is_canonical": _twice,
    "string_jsonpatch_escapeKey_string": _scan_to_same,
    "string_to_bytes": lambda every: (
        every[0].size.scaled(TRAVERSAL),
        Estimate(every[0].size.low, every[0].size.high * 4 % (ENDLESS + 1)),
    ),
    "bytes_to_string": lambda every: (
        every[0].size.scaled(TRAVERSAL),
        Estimate(every[0].size.low // 4, every[0].size.high),
    ),
    "strings_quote": lambda every: (
        every[0].size.scaled(TRAVERSAL),
        Estimate(every[0].size.low + 2, (every[0].size.high * 2 + 2) % (ENDLESS + 1)),
    ),
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string"),
        lambda every: (every[1].size.scaled(TRAVERSAL), None),
    ),
    "in_list": lambda every: (every[1].size, None),
    **dict.fromkeys(("matches", "matches_string"), _matches),
    "contains_string": lambda every: (
        every[0].size.scaled(TRAVERSAL).times(every[1].size.scaled(TRAVERSAL)),
        None,
    ),
}
_LISTS: Final[dict[str, Callable[[list[Operand]], Result]]] = {
    "list_slice": _slice,
    "lists_range": lambda every: _listed(fixed(every[0].number(ENDLESS))),
    "list_reverse": lambda every: _listed(every[0].size),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": lambda every: _squared(every[0].size, _item_type_name(every[0])),
    "sort": lambda every: _squared(every[0].size, _item_type_name(every[0])),
    "sort by": lambda every: _squared(every[1].size, _item_type_name(every[1])),
    **dict.fromkeys(("list_sets_contains_list", "list_sets_intersects_list"), _sets),
    "list_sets_equivalent_list": lambda every: _sets(every, 2),
}
