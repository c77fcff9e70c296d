"""rewired: a plugin with the same name and methods, each of them wrapped by a function.

The wrapped plugin implements the same Protocols as the original, so callers cannot tell the
difference. Plugins that are not wrapped cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from fairlead.engine.framework.extension_point import ATTRIBUTES, METHODS, Method
from fairlead.engine.framework.interface import Plugin

Ask = Callable[..., Any]
Kind = TypeVar("Kind", bound=Plugin)


def rewired(plugin: Kind, wire: Callable[[Method, Ask], Ask]) -> Kind:
    """`plugin` with `wire(method, ask)` in place of each of its methods."""
    namespace: dict[str, Any] = {"name": plugin.name, "__slots__": ()}
    for attribute in ATTRIBUTES:
        if hasattr(plugin, attribute):
            namespace[attribute] = getattr(plugin, attribute)
    for method in METHODS:
        ask = getattr(plugin, method.name, None)
        if ask is not None:
            namespace[method.name] = staticmethod(wire(method, ask))
    return cast("Kind", type(type(plugin).__name__, (), namespace)())
