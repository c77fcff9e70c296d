"""The language of CEL expressions about devices.

The expressions know `device.driver`, `device.attributes` and `device.capacity` under exactly these
names, and Kubernetes' own functions (`fairlead.api.expression`).

upstream: dynamic-resource-allocation/cel/compile.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.api.expression.library import environment

if TYPE_CHECKING:
    from cel_expr_python import cel


def device_language() -> cel.Env:
    """The environment in which expressions are compiled."""
    return environment(
        {
            "device.driver": "string",
            "device.attributes": "map<string, map<string, dyn>>",
            "device.capacity": "map<string, map<string, map<string, dyn>>>",
        }
    )
