"""The language of CEL expressions about devices.

They know a `device` with these fields, the functions of `library`, and `cel.bind`.

upstream: dynamic-resource-allocation/cel/compile.go
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fairlead.cel.checker import Checked
from fairlead.cel.compiler import compiled
from fairlead.cel.kind import Kind, kind_of
from fairlead.cel.program import Environment
from fairlead.cel.span import Span

_DEVICE: Final = "kubernetes.DRADevice"
_FIELDS: Final = {
    "driver": "string",
    "allowMultipleAllocations": "bool",
    "attributes": "map(string, map(string, any))",
    "capacity": "map(string, map(string, kubernetes.Quantity))",
}
# How large something may be: maps, their keys, and what is in them.
_SIZES: Final = {
    (): 0,
    ("driver",): 63,
    ("allowMultipleAllocations",): 0,
    ("attributes",): 32,
    ("attributes", "@keys"): 63,
    ("attributes", "@values"): 32,
    ("attributes", "@values", "@keys"): 32,
    ("attributes", "@values", "@values"): 64,
    ("capacity",): 32,
    ("capacity", "@keys"): 63,
    ("capacity", "@values"): 32,
    ("capacity", "@values", "@keys"): 32,
    ("capacity", "@values", "@values"): 0,
}
_DOMAIN: Final = ("attributes", "@values")


@lru_cache(maxsize=1)
def device_environment() -> Environment:
    """The environment in which expressions are evaluated."""
    return Environment(("device",))


def read_selector(expression: str) -> Checked:
    """What an expression about a device is. Raises ExpressionError."""
    fields = {_DEVICE: {name: kind_of(kind) for name, kind in _FIELDS.items()}}
    return compiled(expression, {"device": Kind(_DEVICE)}, fields, has_bindings=True)


def device_size(path: tuple[str, ...]) -> Span | None:
    """How large the part of a device at a path may be."""
    if path[0] != "device":
        return None
    steps = path[1:]
    if steps not in _SIZES and steps[:-1] == _DOMAIN and not steps[-1].startswith("@"):
        steps = (*_DOMAIN, "@values")
    return Span(0, _SIZES[steps]) if steps in _SIZES else None
