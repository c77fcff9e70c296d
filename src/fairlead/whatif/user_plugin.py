"""UserPlugins: the plugins of a run that are not Fairlead's own, by name.

Two ways lead here. `--plugin SOURCE[=WEIGHT]` loads one and enables it at all its extension points,
behind the default plugins, in every profile. A scheduler configuration that names a plugin decides
where it stands; what it names without `--plugin` is looked for among installed packages.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from fairlead.engine.framework.extension_point import METHODS
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.user_plugin.plugin_factory import Factory, factory_of
from fairlead.engine.framework.user_plugin.profile_position import with_plugin
from fairlead.engine.plugins.registry import IN_TREE
from fairlead.whatif.input_error import InputError
from fairlead.whatif.plugin_source import SourceError, find_class, installed_class, installed_names

OPTION: Final = "--plugin"
WEIGHT_MAX: Final = 100_000
_WEIGHT: Final = re.compile(r"(?P<source>.*)=(?P<weight>[^=:/]*)")
_TAKEN: Final = frozenset(IN_TREE) | frozenset(name for name, _ in DEFAULT_PLUGINS)


@dataclass(frozen=True, slots=True)
class UserPlugin:
    """A class that was loaded, and how to make a plugin of it. `weight` counts where it scores."""

    name: str
    plugin: type
    factory: Factory
    weight: int


class UserPlugins:
    """`named` are those of the command line, in order; `find` knows the installed ones too."""

    def __init__(self, options: Iterable[str] = ()) -> None:
        """`options` are values of --plugin. Raises InputError."""
        self.named: list[UserPlugin] = []
        self._found: dict[str, UserPlugin] = {}
        for text in options:
            plugin = _named(text)
            if plugin.name in self._found:
                raise _error(text, f"a plugin {plugin.name!r} is named already")
            self.named.append(plugin)
            self._found[plugin.name] = plugin

    def find(self, name: str) -> UserPlugin | None:
        """The plugin called `name`, None if there is none. Raises InputError if it is broken."""
        if name not in self._found and name not in _TAKEN and name in installed_names():
            try:
                self._found[name] = _plugin(installed_class(name), 1)
            except SourceError as cause:
                raise InputError(f"plugin {name}", str(cause)) from None
        return self._found.get(name)

    def factories(self) -> dict[str, Factory]:
        """How to make every plugin found so far, by name."""
        return {name: plugin.factory for name, plugin in self._found.items()}

    def placed(self, profile: Profile, mentioned: Collection[str] = ()) -> Profile:
        """`profile` with the plugins of the command line, except those `mentioned` elsewhere."""
        for one in self.named:
            if one.name not in mentioned:
                profile = with_plugin(profile, one.name, one.plugin, one.weight)
        return profile


def _named(text: str) -> UserPlugin:
    match = _WEIGHT.fullmatch(text)
    source, weight = (match["source"], match["weight"]) if match else (text, "1")
    if not weight.isdecimal() or not 1 <= int(weight) <= WEIGHT_MAX:
        raise _error(text, f"the weight {weight!r} is not a number from 1 to {WEIGHT_MAX}")
    try:
        plugin = _plugin(find_class(source), int(weight))
    except SourceError as cause:
        raise _error(text, str(cause)) from None
    if match and not any(hasattr(plugin.plugin, each) for each in ("score", "score_columns")):
        raise _error(text, f"{plugin.name} gives no scores that a weight could count")
    return plugin


def _plugin(found: type, weight: int) -> UserPlugin:
    """Raises SourceError for a class that is no plugin."""
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        raise SourceError(f"{found.__name__} has no name: it needs an attribute `name`, a text")
    if name in _TAKEN:
        raise SourceError(f"calls itself {name}, which is one of Fairlead's own plugins")
    if not any(method.enters and hasattr(found, method.name) for method in METHODS):
        known = ", ".join(method.name for method in METHODS if method.enters)
        raise SourceError(f"{name} takes part in no extension point: it has none of {known}")
    try:
        return UserPlugin(name, found, factory_of(found), weight)
    except ValueError as cause:
        raise SourceError(f"{name}: {cause}") from None


def _error(text: str, problem: str) -> InputError:
    return InputError(OPTION, problem, object_name=text)
