"""CEL expressions that select devices: the variable `device`, and the maximum sizes of its fields.

The expressions can use the fields of `device`, the functions in the package `fairlead.cel.library`,
and the macro `cel.bind`.

upstream: dynamic-resource-allocation/cel/compile.go
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fairlead.cel.check.checker import Checked
from fairlead.cel.check.types import CelType, parse_type
from fairlead.cel.compiler import compiled
from fairlead.cel.cost.estimate import Estimate
from fairlead.cel.program import CelEnvironment

_DEVICE: Final = "kubernetes.DRADevice"
_FIELDS: Final = {
    "driver": "string",
    "allowMultipleAllocations": "bool",
    "attributes": "map(string, map(string, any))",
    "capacity": "map(string, map(string, kubernetes.Quantity))",
}
# The greatest sizes of maps, their keys and their values.
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
def device_environment() -> CelEnvironment:
    """Return the environment in which device expressions are evaluated."""
    return CelEnvironment(("device",))


def read_selector(expression: str) -> Checked:
    """Return the checked expression that selects devices. Raises ExpressionError."""
    fields = {_DEVICE: {name: parse_type(type_) for name, type_ in _FIELDS.items()}}
    return compiled(expression, {"device": CelType(_DEVICE)}, fields, has_bindings=True)


def device_size(path: tuple[str, ...]) -> Estimate | None:
    """Return the size of the part of a device at `path`, for the cost estimate; None if unknown."""
    if path[0] != "device":
        return None
    steps = path[1:]
    if steps not in _SIZES and steps[:-1] == _DOMAIN and not steps[-1].startswith("@"):
        steps = (*_DOMAIN, "@values")
    return Estimate(0, _SIZES[steps]) if steps in _SIZES else None
