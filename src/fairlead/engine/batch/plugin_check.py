"""METHODS: the methods of batch plugins; `extensions_of` checks users' plugins and actions.

A class with a method `execute` is an action, any other class is a plugin. The constructor of a
plugin takes no arguments, or takes a `PluginContext`. The context contains the plugin's arguments
from the configuration.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from typing import Any, Final

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.configuration_file import BatchConfig, BatchConfigurationError
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.plugins.registry import Factory, PluginContext
from fairlead.engine.batch.session import plugin as protocols
from fairlead.engine.batch.session.plugin import BatchPlugin
from fairlead.engine.batch.session.session import OnSessionOpen

# The methods of plugins, each with the names of its parameters.
METHODS: Final = {
    name: [each for each in inspect.signature(method).parameters if each != "self"]
    for protocol in (*vars(protocols).values(), OnSessionOpen)
    if isinstance(protocol, type) and BatchPlugin in protocol.__mro__
    for name, method in vars(protocol).items()
    if inspect.isfunction(method) and not name.startswith("_")
}
_TOGETHER: Final = ("allocated", "deallocated")


def extensions_of(plugins: Iterable[type], actions: Iterable[Action]) -> Extensions:
    """Return the classes in `plugins` and the actions in `actions`, keyed by name.

    Raises BatchConfigurationError if one of them cannot be used, or a name is given twice.
    """
    factories: dict[str, Factory] = {}
    by_name: dict[str, Action] = {}
    for plugin in plugins:
        name = _name_of(plugin, plugin.__name__, factories)
        factories[name] = _factory(plugin)
    for action in actions:
        name = _name_of(action, type(action).__name__, {*factories, *by_name})
        by_name[name] = action
    return Extensions(factories, by_name)


def _name_of(found: object, title: str, taken: Collection[str]) -> str:
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        problem = f"{title} has no name: it needs a string attribute `name`"
        raise BatchConfigurationError(problem)
    if name in taken:
        raise BatchConfigurationError(f"{name} is given twice")
    return name


def _factory(found: type) -> Factory:
    _check_methods(found)
    if not any(hasattr(found, method) for method in METHODS):
        known = ", ".join(sorted({"execute", *METHODS}))
        raise BatchConfigurationError(f"{found.__name__} has none of the methods {known}")
    takes_context = bool(inspect.signature(found).parameters)

    def make(context: PluginContext) -> BatchPlugin:
        made: Any = found(context) if takes_context else found()
        plugin: BatchPlugin = made
        return plugin

    return make


def _check_methods(found: type) -> None:
    """Raise BatchConfigurationError for a method that the session cannot call."""
    by_letters = {name.replace("_", ""): name for name in METHODS}
    for name in dir(found):
        meant = by_letters.get(name.replace("_", "").lower(), name)
        if name != meant and not name.startswith("_"):
            problem = f"has {name}, which is never called: it is spelled {meant}"
            raise BatchConfigurationError(f"{found.__name__} {problem}")
        if name in METHODS and not _takes(found, name):
            wanted = ", ".join(("self", *METHODS[name]))
            raise BatchConfigurationError(f"{found.__name__} must take {name}({wanted})")
        # An EventHandler with only one of its methods would never be called (`isinstance`).
        for other in _TOGETHER if name in _TOGETHER else ():
            if not hasattr(found, other):
                raise BatchConfigurationError(f"{found.__name__} has {name}, but not {other}")


def _takes(found: type, name: str) -> bool:
    """Return whether the method `name` of `found` takes the arguments that the session passes."""
    method = inspect.getattr_static(found, name)
    if not inspect.isfunction(method):
        return True  # a static method, a class method or a callable
    try:
        inspect.signature(method).bind("self", *METHODS[name])
    except TypeError:
        return False
    return True


def refuse_unused(config: BatchConfig, extensions: Extensions, source: str) -> None:
    """Raise BatchConfigurationError for an extension that `config` does not name.

    `source` is the name or file of `config`.
    """
    named = {*config.actions, *(option.name for tier in config.tiers for option in tier)}
    for name in (*extensions.actions, *extensions.plugins):
        if name not in named:
            problem = f"{name} is not named in {source}, so it would never run"
            raise BatchConfigurationError(problem)
