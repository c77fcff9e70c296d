"""Compiles the generated methods of dataclasses when they are first called.

Python compiles up to seven methods for each dataclass: that takes a quarter of the time in which a
small what-if is answered, and most of them are never called. `compile_when_called` leaves
`__init__` as it is and defers the others, which then replace themselves:

    class K    __eq__ = deferred          a == b      K    __eq__ = the compiled method

It replaces `dataclasses._create_fn`, through which Python 3.11 and 3.12 compile each method. Later
versions compile the methods of a class together and lack that function; there it does nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, Final

Method = Callable[..., Any]

_COMPILE: Final = "_create_fn"
_AT_ONCE: Final = "__init__"  # its signature is inspected


def compile_when_called() -> None:
    """Defer the compilation of methods of dataclasses that are defined from now on."""
    compiled: Callable[..., Method] | None = getattr(dataclasses, _COMPILE, None)
    if compiled is not None:
        setattr(dataclasses, _COMPILE, partial(_deferred, compiled))


def _deferred(compiled: Callable[..., Method], name: str, *source: Any, **options: Any) -> Method:
    """Return a method that compiles itself when it is called; see `dataclasses._create_fn`."""
    if name == _AT_ONCE:
        return compiled(name, *source, **options)
    made: Method | None = None

    def method(self: object, *arguments: object) -> Any:
        nonlocal made
        if made is None:
            made = compiled(name, *source, **options)
            made.__qualname__ = method.__qualname__
            for owner in type(self).__mro__:
                if vars(owner).get(name) is method:
                    setattr(owner, name, made)
        return made(self, *arguments)

    method.__name__ = name
    return method
