"""Compiles the generated methods of dataclasses when they are first called.

Python compiles up to seven methods for each dataclass: that takes a third of the time in which a
small what-if is answered, and most of them are never called. `compile_when_called` defers that;
when a deferred method is called, it replaces itself:

    class K    __eq__ = deferred          a == b      K    __eq__ = the compiled method

The signature of `__init__` may be inspected: that of the command line's options is. So it is
deferred only in Fairlead's other packages.

All methods are compiled by `dataclasses._create_fn`, which is replaced. Versions of Python after
3.12 compile the methods of a class together and lack that function; there nothing is deferred.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

Method = Callable[..., Any]

_COMPILE: Final = "_create_fn"


def compile_when_called() -> None:
    """Defer the compilation of methods of dataclasses that are defined from now on."""
    compiled: Callable[..., Method] | None = getattr(dataclasses, _COMPILE, None)
    if compiled is not None:
        setattr(dataclasses, _COMPILE, partial(_deferred, compiled))


def _deferred(compiled: Callable[..., Method], name: str, *source: Any, **options: Any) -> Method:
    """Return a method that compiles itself when it is called; see `dataclasses._create_fn`."""
    if name == "__init__" and not _is_internal(options.get("globals") or {}):
        return compiled(name, *source, **options)
    made: Method | None = None

    def method(self: object, *arguments: object, **named: object) -> Any:
        nonlocal made
        if made is None:
            made = compiled(name, *source, **options)
            made.__qualname__ = method.__qualname__
            for owner in type(self).__mro__:
                if vars(owner).get(name) is method:
                    setattr(owner, name, made)
        return made(self, *arguments, **named)

    method.__name__ = name
    return method


def _is_internal(module: Mapping[str, object]) -> bool:
    """Return whether only Fairlead uses the classes of the module with these globals."""
    package, _, below = str(module.get("__name__", "")).partition(".")
    return package == "fairlead" and not below.startswith("cli")
