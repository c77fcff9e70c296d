"""`from fairlead import plugin` is the public interface: all of it exists and is documented."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from fairlead import plugin

GUIDE = Path(__file__).parents[2] / "docs" / "plugins.md"
ROW = re.compile(r"^\| (`.+?) \|", re.MULTILINE)


def documented():
    """The names in the first column of the guide's tables."""
    rows = ROW.findall(GUIDE.read_text())
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_exports_are_sorted_and_exist() -> None:
    assert len(set(plugin.__all__)) == len(plugin.__all__)
    assert [name for name in plugin.__all__ if not hasattr(plugin, name)] == []


@pytest.mark.parametrize("name", plugin.__all__)
def test_every_exported_name_is_in_the_guide(name) -> None:
    assert name in documented()


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in plugin.__all__
        if inspect.isclass(getattr(plugin, name)) or inspect.isfunction(getattr(plugin, name))
        if getattr(plugin, name).__module__.startswith("fairlead")
    ],
)
def test_every_exported_class_and_function_says_what_it_is(name) -> None:
    exported = getattr(plugin, name)
    assert exported.__doc__
    assert not exported.__doc__.startswith(f"{name}("), "a docstring of its own"
    methods = [m for n, m in vars(exported).items() if inspect.isfunction(m) and n[0] != "_"]
    assert [method.__name__ for method in methods if not method.__doc__] == []
