"""How a class becomes a plugin: the arguments of its constructor."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
import pytest

from fairlead.engine.framework.user_plugin.plugin_factory import factory_of

HANDLE = object()


class Neither:
    name = "Neither"


class Both:
    name = "Both"

    def __init__(self, handle, args):
        self.given = (handle, args)


class Swapped:
    name = "Swapped"

    def __init__(self, args, handle, more=3, *rest, **others):
        self.given = (handle, args)


class OnlyArgs:
    name = "OnlyArgs"

    def __init__(self, *, args):
        self.given = args


class Typed:
    name = "Typed"

    class Args(msgspec.Struct, rename="camel"):
        node_label: str
        weights: list[int] = []

    def __init__(self, args: Args):
        self.given = (args.node_label, args.weights)


@dataclass
class Limits:
    upper: int = 5


class Data:
    name = "Data"
    Args = Limits

    def __init__(self, args: Limits):
        if args.upper < 0:
            raise ValueError("args.upper: is negative")
        self.given = args.upper


class Fragile:
    name = "Fragile"

    def __init__(self):
        raise KeyError("nothing here")


def made(plugin, **args):
    return factory_of(plugin)(HANDLE, args)


@pytest.mark.parametrize(
    ("plugin", "args", "given"),
    [
        (Both, {"a": 1}, (HANDLE, {"a": 1})),
        (Swapped, {}, (HANDLE, {})),
        (OnlyArgs, {"a": 1}, {"a": 1}),
        (Typed, {"nodeLabel": "x"}, ("x", [])),
        (Typed, {"nodeLabel": "x", "weights": [1, 2]}, ("x", [1, 2])),
        (Data, {}, 5),
        (Data, {"upper": 7}, 7),
    ],
)
def test_the_constructor_gets_the_arguments_that_it_accepts(plugin, args, given) -> None:
    assert made(plugin, **args).given == given


def test_a_class_without_a_constructor_becomes_a_plugin() -> None:
    assert isinstance(made(Neither), Neither)


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        (Neither, {"a": 1}, "takes no arguments"),
        (Typed, {}, "args.nodeLabel: is required"),
        (Typed, {"nodeLabel": 3}, "args.nodeLabel: expected str, got int"),
        (Typed, {"nodeLabel": "x", "weights": ["a"]}, "args.weights[0]: expected int, got str"),
        (Typed, {"nodeLabel": "x", "label": 1}, "args.label: unknown; known: nodeLabel, weights"),
        (Data, {"lower": 1}, "args.lower: unknown; known: upper"),
        (Data, {"upper": -1}, "args.upper: is negative"),
        (Fragile, {}, "cannot be made: KeyError: 'nothing here'"),
    ],
)
def test_classes_that_cannot_become_plugins_are_refused(plugin, args, problem) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        made(plugin, **args)


def test_a_constructor_with_further_arguments_is_refused_at_once() -> None:
    class Demanding:
        def __init__(self, handle, client): ...

    with pytest.raises(ValueError, match="its constructor requires 'client'"):
        factory_of(Demanding)
