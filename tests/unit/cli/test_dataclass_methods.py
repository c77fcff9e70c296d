"""Dataclasses whose methods are compiled when they are first called."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import FrozenInstanceError, dataclass
from inspect import signature
from types import ModuleType

import pytest

from fairlead.cli.dataclass_methods import compile_when_called


@pytest.fixture(autouse=True)
def deferring(monkeypatch):
    """Compile methods later within a test, and at once after it."""
    if not hasattr(dataclasses, "_create_fn"):
        pytest.skip("this version of Python compiles the methods of a class together")
    monkeypatch.setattr(dataclasses, "_create_fn", dataclasses._create_fn)
    compile_when_called()


CLASSES = """
@dataclass(**options)
class Point:
    x: int
    y: int = 0

@dataclass(**options)
class Point3(Point):
    z: int = 0
"""


def point(package="fairlead.engine", **options):
    """Define a dataclass and a subclass in a module of `package`."""
    module = ModuleType(f"{package}.points")
    sys.modules[module.__name__] = module
    exec(CLASSES, module.__dict__ | {"dataclass": dataclass, "options": options}, module.__dict__)
    del sys.modules[module.__name__]
    return module.Point, module.Point3


@pytest.mark.parametrize("slots", [False, True], ids=["with a dict", "with slots"])
def test_values_behave_as_usual(slots):
    """Twice, because the first call compiles."""
    plain, solid = point(frozen=True, order=True, slots=slots)
    for _ in range(2):
        assert plain(1) == plain(1, 0) != plain(2)
        assert plain(1) != solid(1)
        assert solid(1, 2, 3) == solid(1, 2, 3)
        assert hash(solid(1, 2)) == hash((1, 2, 0))
        assert plain(1, 2) < plain(1, 3)
        assert repr(solid(1)).endswith("Point3(x=1, y=0, z=0)")
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
            plain(1).x = 2
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
            del plain(1).x


def test_the_compiled_method_takes_the_place_of_the_deferred_one():
    """So later calls cost nothing more; the class that inherits it uses it too."""
    plain, _ = point(frozen=True, slots=True)
    inheriting = type("Inheriting", (plain,), {"__slots__": ()})
    before = plain.__eq__
    assert inheriting(1) == inheriting(1)
    after = plain.__eq__
    assert before is not after
    assert plain(1) == plain(1)
    assert plain.__eq__ is after
    assert "__eq__" not in vars(inheriting)


@pytest.mark.parametrize("package", ["fairlead.cli", "acme"])
def test_the_signatures_of_options_and_plugins_are_known_at_once(package):
    _, solid = point(package, frozen=True)
    assert list(signature(solid).parameters) == ["x", "y", "z"]


def test_wrong_arguments_are_refused_in_the_usual_words():
    _, solid = point(frozen=True, slots=True)
    with pytest.raises(
        TypeError, match=r"__init__\(\) missing 1 required positional argument: 'x'"
    ):
        solid(y=1)
    assert solid(x=1, z=2) == solid(1, 0, 2)


def test_a_mutable_class_stays_mutable():
    plain, _ = point()
    one = plain(1)
    one.x = 2
    assert one == plain(2)
    assert plain.__hash__ is None
