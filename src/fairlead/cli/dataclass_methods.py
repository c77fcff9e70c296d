"""Compiles the generated methods of dataclasses when they are first called.

Python compiles up to seven methods for each dataclass, and most of them are never called. For a
small what-if, compiling them would take a third of the time. After `compile_when_called`, a method
is compiled only when it is called; it then replaces itself:

    class K    __eq__ = deferred          a == b      K    __eq__ = the compiled method

Cyclopts inspects the signature of `__init__` in the classes of command-line options. So `__init__`
is deferred only in Fairlead's other packages.

`dataclasses._create_fn` compiles all methods, and is replaced here. Python versions after 3.12
compile all methods of a class together and lack that function; there, nothing is deferred.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

Method = Callable[..., Any]

_COMPILE: Final = "_create_fn"


def compile_when_called() -> None:
    """Defer the compilation of methods of all dataclasses that are defined after this call."""
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
