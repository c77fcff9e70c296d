"""UserPlugins: the users' scheduler plugins of a run, keyed by name.

`--plugin SOURCE[=WEIGHT]` loads a plugin and enables it at all its extension points, after the
default plugins, in every profile. If the scheduler configuration names the plugin, the
configuration determines its extension points and position. If only the configuration names a
plugin, the plugin is loaded from an installed package. A script can also give the class itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from fairlead.engine.framework.extension_point import METHODS
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.user_plugin.plugin_check import misspelt_methods
from fairlead.engine.framework.user_plugin.plugin_factory import Factory, factory_of, with_plugin
from fairlead.engine.plugins.registry import IN_TREE
from fairlead.whatif.configuration.plugin_source import (
    SourceError,
    find_class,
    installed_class,
    installed_names,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.given_plugin import PluginSource, plugin_text
from fairlead.whatif.input.option_type import require_type

OPTION: Final = "--plugin"
NEW_OPTION: Final = "--new-plugin"
WEIGHT_MAX: Final = 100_000
_WEIGHT: Final = re.compile(r"(?P<source>.*)=(?P<weight>[^=:/]*)")
_TAKEN: Final = frozenset(IN_TREE) | frozenset(name for name, _ in DEFAULT_PLUGINS)


class UserPlugin(Struct, frozen=True):
    """A plugin class of a user, with its factory; `weight` multiplies its scores."""

    name: str
    plugin: type
    factory: Factory
    weight: int


class UserPlugins:
    """The plugins of users; `find` also loads installed plugins.

    `named` contains the plugins of --plugin and --new-plugin, in the order of the options.
    """

    def __init__(
        self, options: Iterable[PluginSource] = (), new: Iterable[PluginSource] = ()
    ) -> None:
        """Load the plugins of `options` (--plugin) and `new` (--new-plugin). Raises InputError."""
        self.named: list[UserPlugin] = []
        self._found: dict[str, UserPlugin] = {}
        given = (*((OPTION, one) for one in options), *((NEW_OPTION, one) for one in new))
        for option, source in given:
            try:
                plugin = _plugin(source, 1) if isinstance(source, type) else _named(source)
            except SourceError as cause:
                raise InputError(option, str(cause), object_name=plugin_text(source)) from None
            if plugin.name in self._found:
                problem = f"plugin {plugin.name!r} is given twice"
                raise InputError(option, problem, object_name=plugin_text(source))
            self.named.append(plugin)
            self._found[plugin.name] = plugin

    def find(self, name: str) -> UserPlugin | None:
        """Return the plugin `name`; None if no such plugin is given or installed.

        Raises InputError if an installed plugin cannot be loaded.
        """
        if name not in self._found and name not in _TAKEN and name in installed_names():
            try:
                self._found[name] = _plugin(installed_class(name), 1)
            except SourceError as cause:
                raise InputError(f"plugin {name}", str(cause)) from None
        return self._found.get(name)

    def factories(self) -> dict[str, Factory]:
        """Return the factories of all plugins found so far, keyed by name."""
        return {name: plugin.factory for name, plugin in self._found.items()}

    def placed(self, profile: Profile, mentioned: Collection[str] = ()) -> Profile:
        """Return `profile` plus the plugins in `self.named` whose names are not in `mentioned`.

        `mentioned` are the plugins that some profile of the configuration enables or disables.
        """
        for one in self.named:
            if one.name not in mentioned:
                profile = with_plugin(profile, one.name, one.plugin, one.weight)
        return profile


def user_plugins(
    function: str, plugins: UserPlugins | Iterable[PluginSource] | None
) -> UserPlugins:
    """Return `plugins`, an argument of `function`, as UserPlugins. Raises InputError."""
    if isinstance(plugins, UserPlugins):
        return plugins
    if isinstance(plugins, str | type):
        problem = f"takes a tuple such as ({plugin_text(plugins)!r},), not a single plugin"
        raise InputError(function, problem, field="plugins")
    given = () if plugins is None else plugins
    require_type(function, "plugins", given, Iterable)
    given = tuple(given)
    for place, one in enumerate(given):
        require_type(function, f"plugins[{place}]", one, PluginSource)
    return UserPlugins(given)


def _named(text: str) -> UserPlugin:
    """Return the plugin `text` (`SOURCE[=WEIGHT]`). Raises SourceError."""
    match = _WEIGHT.fullmatch(text)
    source, weight = (match["source"], match["weight"]) if match else (text, "1")
    if not weight.isdecimal() or not 1 <= int(weight) <= WEIGHT_MAX:
        raise SourceError(f"the weight {weight!r} is not a number from 1 to {WEIGHT_MAX}")
    plugin = _plugin(find_class(source), int(weight))
    if match and not any(hasattr(plugin.plugin, each) for each in ("score", "score_columns")):
        raise SourceError(f"{plugin.name} has no score method, so it cannot have a weight")
    return plugin


def _plugin(found: type, weight: int) -> UserPlugin:
    """Return the plugin of the class `found`. Raises SourceError if the class is not a plugin."""
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        raise SourceError(f"{found.__name__} has no name: it needs a string attribute `name`")
    if name in _TAKEN:
        raise SourceError(f"has the name {name}, which is a built-in plugin")
    if not any(method.makes_plugin and hasattr(found, method.name) for method in METHODS):
        known = ", ".join(method.name for method in METHODS if method.makes_plugin)
        missing = f"has no extension point: it has none of the methods {known}"
        raise SourceError(f"{name} {next(misspelt_methods(found), missing)}")
    try:
        return UserPlugin(name, found, factory_of(found), weight)
    except ValueError as cause:
        raise SourceError(f"{name}: {cause}") from None
