"""factory_of: builds instances of a user's plugin class.

The constructor may declare these arguments, which are passed by name:

    handle    read access to the engine (`Handle`)
    args      the plugin's pluginConfig: a dict, or an instance of the class's own `Args` if the
              class has one

`Args` is a msgspec Struct, or any other type to which msgspec can convert a dict. Unknown fields
are refused. A constructor raises ValueError to refuse its arguments.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.framework.fault import describe
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.runtime import Handle

Factory = Callable[[Handle, Mapping[str, Any]], Plugin]

_FACTORY_ARGUMENTS: Final = ("handle", "args")
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
QUEUE_SORT: Final = "PrioritySort"
LAST: Final = "DefaultBinder"


class ClassFactory(Struct, frozen=True):
    """The factory of the class `plugin`; `wanted` are the arguments of its constructor."""

    plugin: type
    wanted: tuple[str, ...]

    def __call__(self, handle: Handle, args: Mapping[str, Any]) -> Plugin:
        """Return an instance of the class. Raises ValueError for invalid arguments."""
        given: dict[str, Any] = {}
        if "handle" in self.wanted:
            given["handle"] = handle
        if "args" in self.wanted:
            given["args"] = _decoded(self.plugin, args)
        elif args:
            raise ValueError("takes no arguments")
        try:
            made: Plugin = self.plugin(**given)
        except (ValueError, KeyboardInterrupt):
            raise
        except BaseException as cause:
            raise ValueError(f"cannot be made: {describe(cause)}") from cause
        return made


def factory_of(plugin: type) -> ClassFactory:
    """Return a factory for the class `plugin`; the factory raises ValueError for invalid arguments.

    Raises ValueError if the constructor needs arguments other than `handle` and `args`.
    """
    return ClassFactory(plugin, tuple(_wanted(plugin)))


def may_delay_binding(factory: Factory) -> bool:
    """Return whether the plugin of `factory` is a user's class with the method `permit`."""
    return isinstance(factory, ClassFactory) and hasattr(factory.plugin, "permit")


def _wanted(plugin: type) -> list[str]:
    """Return which of `handle` and `args` are parameters of the plugin's constructor."""
    try:
        parameters = inspect.signature(plugin).parameters.values()
    except (TypeError, ValueError):  # a class without a Python constructor
        return []
    by_name = [
        each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    for each in by_name:
        if each.name in _FACTORY_ARGUMENTS and each.kind is not each.POSITIONAL_ONLY:
            continue
        if each.default is each.empty:
            raise ValueError(
                f"its constructor requires {each.name!r}; it gets only handle and args"
            )
    return [each.name for each in by_name if each.name in _FACTORY_ARGUMENTS]


def _decoded(plugin: type, args: Mapping[str, Any]) -> Any:
    """Return `args` decoded into the plugin's `Args`, or as a dict if the plugin has no `Args`.

    Raises ValueError that names the invalid field.
    """
    form = getattr(plugin, "Args", None)
    if form is None:
        return dict(args)
    known = _field_names(form)
    for name in args:
        if known is not None and name not in known:
            raise ValueError(f"args.{name}: unknown; known: {', '.join(known) or 'none'}")
    try:
        return msgspec.convert(dict(args), form)
    except msgspec.ValidationError as cause:
        raise ValueError(_refusal(str(cause))) from None


def _field_names(form: Any) -> tuple[str, ...] | None:
    """Return the names that the fields of the type `form` have in a configuration.

    Returns None if the type has no fixed fields.
    """
    if dataclasses.is_dataclass(form):
        return tuple(field.name for field in dataclasses.fields(form))
    return getattr(form, "__struct_encode_fields__", None)


def _refusal(message: str) -> str:
    """Rewrite a msgspec error message in the form `args.price: expected int, got str`."""
    problem, _, path = message.partition(" - at `$")
    path = f"args{path.removesuffix('`')}"
    if missing := _MISSING.fullmatch(problem):
        return f"{path}.{missing[1]}: is required"
    return f"{path}: {problem[0].lower()}{problem[1:].replace('`', '')}"


def with_plugin(profile: Profile, name: str, plugin: type, weight: int) -> Profile:
    """Return `profile` with the class `plugin` added under `name` and with score weight `weight`.

    The plugin runs after the plugins that the profile already has, at every extension point that it
    implements. But a QueueSort plugin replaces PrioritySort, and DefaultBinder stays last.
    """
    sorts_queue = hasattr(plugin, "sort_key")
    others = [one for one in profile.plugins if not (sorts_queue and one[0] == QUEUE_SORT)]
    end = next((at for at, (other, _) in enumerate(others) if other == LAST), len(others))
    return replace(profile, plugins=(*others[:end], (name, weight), *others[end:]))
