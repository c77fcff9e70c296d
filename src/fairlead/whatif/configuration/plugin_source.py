"""Imports users' plugins from a module, a file, or an installed package.

Users name a plugin in one of three ways:

    package.module:Class    imported from Python's path, including the current directory
    path/cost.py:Class      imported from the file, which need not be on Python's path
    Name                    an installed package's entry point in the group `fairlead.plugins`
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fairlead.engine.framework.fault import describe
from fairlead.whatif.input.error import known_names

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP: Final = "fairlead.plugins"
Loaded = TypeVar("Loaded")


class SourceError(ValueError):
    """The error that a plugin cannot be imported; its message is one line."""


def find_class(text: str) -> type:
    """Return the class that `text` names. Raises SourceError."""
    place, colon, name = text.rpartition(":")
    if not colon and not text.endswith(".py"):
        return installed_class(text)
    if not place or not name:
        raise SourceError("must be MODULE:CLASS or FILE.py:CLASS")
    found = _attribute(_module_of_file(place) if place.endswith(".py") else _module(place), name)
    if not isinstance(found, type):
        raise SourceError(f"{name} is not a class")
    return found


def _attribute(module: ModuleType, name: str) -> Any:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError:
        own = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        raise SourceError(f"has no {name}; {known_names(name, own)}") from None


def _module(name: str) -> ModuleType:
    _add_to_path(Path.cwd())
    try:
        return _imported(lambda: importlib.import_module(name))
    except ModuleNotFoundError as cause:
        if cause.name is not None and f"{name}.".startswith(f"{cause.name}."):
            raise SourceError(f"there is no module {cause.name}") from None
        raise SourceError(_failed(cause)) from None


def _module_of_file(path: str) -> ModuleType:
    file = Path(path).resolve()
    if not file.is_file():
        raise SourceError("there is no such file")
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known
    _add_to_path(file.parent)
    name = file.stem if known is None else f"{file.stem} ({file})"
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses and msgspec look up annotations in `sys.modules`
    try:
        _imported(partial(specification.loader.exec_module, module))
    except (SourceError, ModuleNotFoundError) as cause:
        del sys.modules[name]
        if isinstance(cause, SourceError):
            raise
        raise SourceError(_failed(cause)) from None
    return module


def _imported(load: Callable[[], Loaded]) -> Loaded:
    """Return the result of `load`; raise SourceError for any error except ModuleNotFoundError."""
    try:
        return load()
    except (ModuleNotFoundError, KeyboardInterrupt):
        raise
    except BaseException as cause:  # noqa: BLE001 - one line, never a traceback
        raise SourceError(_failed(cause)) from None


def _add_to_path(folder: Path) -> None:
    """Add `folder` to the end of Python's import path."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _failed(cause: BaseException) -> str:
    if isinstance(cause, SyntaxError):
        return f"cannot be imported: line {cause.lineno}: {cause.msg}"
    if isinstance(cause, SystemExit):
        return "cannot be imported: it calls sys.exit"
    return f"cannot be imported: {describe(cause)}"


# --- installed packages ------------------------------------------------------------------------


def installed_names() -> list[str]:
    """Return the names of all installed plugins, sorted."""
    return sorted({each.name for each in _entry_points()})


def installed_class(name: str) -> type:
    """Return the class that an installed package registers as `name`. Raises SourceError."""
    offers = list(dict.fromkeys(_entry_points().select(name=name)))
    if not offers:
        known = installed_names()
        hint = known_names(name, known) if known else "none are installed"
        form = "MODULE:CLASS or FILE.py:CLASS"
        raise SourceError(f"no plugin {name!r} is installed ({hint}); otherwise use {form}")
    if len(offers) > 1:
        packages = sorted(_package(each) for each in offers)
        raise SourceError(f"{name!r} is registered by several packages: {', '.join(packages)}")
    try:
        found = _imported(offers[0].load)
    except (SourceError, ModuleNotFoundError) as cause:
        raise SourceError(f"{_package(offers[0])}: {cause}") from None
    if not isinstance(found, type):
        raise SourceError(f"{offers[0].value} is not a class")
    return found


def installed_code() -> str:
    """Return a digest of the files of all installed packages with plugins; "" if there are none.

    The files belong to the top-level module or package of each plugin; bytecode files are left out.
    """
    offers = sorted({(each.name, each.value) for each in _entry_points()})
    modules = sorted({value.partition(":")[0].partition(".")[0] for _, value in offers})
    digest = hashlib.sha256(repr(offers).encode())
    for file in (file for module in modules for file in _files_of(module)):
        content = file.read_bytes()
        digest.update(f"{file}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest() if offers else ""


def _files_of(module: str) -> list[Path]:
    """Return the files of the top-level module or package `module`; [] if it does not exist."""
    specification = importlib.util.find_spec(module)
    if specification is None:
        return []
    if specification.submodule_search_locations is None:
        return [] if specification.origin is None else [Path(specification.origin)]
    folders = map(Path, specification.submodule_search_locations)
    files = (file for folder in folders for file in sorted(folder.rglob("*")))
    return [file for file in files if file.is_file() and file.suffix != ".pyc"]


def _entry_points() -> EntryPoints:
    # The import is slow, and few runs have installed plugins.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return entry_points(group=GROUP)


def _package(offer: EntryPoint) -> str:
    return offer.dist.name if offer.dist is not None else offer.value
