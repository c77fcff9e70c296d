"""rewired: a plugin of the same name and abilities, whose methods are led through a function.

What the runtime looks for on a plugin it finds here too, so nothing that asks plugins knows of it,
and plugins that are not rewired pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from fairlead.engine.framework.extension_point import ATTRIBUTES, METHODS, Method
from fairlead.engine.framework.interface import Plugin

Ask = Callable[..., Any]
Kind = TypeVar("Kind", bound=Plugin)


def rewired(plugin: Kind, wire: Callable[[Method, Ask], Ask]) -> Kind:
    """`plugin` with `wire(method, ask)` in place of each method it has."""
    namespace: dict[str, Any] = {"name": plugin.name, "__slots__": ()}
    for attribute in ATTRIBUTES:
        if hasattr(plugin, attribute):
            namespace[attribute] = getattr(plugin, attribute)
    for method in METHODS:
        ask = getattr(plugin, method.name, None)
        if ask is not None:
            namespace[method.name] = staticmethod(wire(method, ask))
    return cast("Kind", type(type(plugin).__name__, (), namespace)())
