"""The language of CEL expressions about devices.

The expressions know a `device` with these fields, Kubernetes' own functions
(`fairlead.cel`), and `cel.bind`. The library, which has no types with fields, knows
variables by names with dots instead.

upstream: dynamic-resource-allocation/cel/compile.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.cel.checking import Checked
from fairlead.cel.kind import Kind, kind_of
from fairlead.cel.library import environment
from fairlead.cel.reading import read
from fairlead.cel.span import Span

if TYPE_CHECKING:
    from cel_expr_python import cel

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


def device_language() -> cel.Env:
    """The environment in which expressions are compiled."""
    return environment(
        {
            "device.driver": "string",
            "device.allowMultipleAllocations": "bool",
            "device.attributes": "map<string, map<string, dyn>>",
            "device.capacity": "map<string, map<string, map<string, dyn>>>",
        }
    )


def read_selector(expression: str) -> Checked:
    """What an expression about a device is. Raises ExpressionError."""
    fields = {_DEVICE: {name: kind_of(kind) for name, kind in _FIELDS.items()}}
    return read(expression, {"device": Kind(_DEVICE)}, fields, has_bindings=True)


def device_size(path: tuple[str, ...]) -> Span | None:
    """How large the part of a device at a path may be."""
    if path[0] != "device":
        return None
    steps = path[1:]
    if steps not in _SIZES and steps[:-1] == _DOMAIN and not steps[-1].startswith("@"):
        steps = (*_DOMAIN, "@values")
    return Span(0, _SIZES[steps]) if steps in _SIZES else None
