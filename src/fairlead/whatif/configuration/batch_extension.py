"""Loads users' plugins and actions for the batch scheduler (`--batch-plugin`).

A class with a method `execute` is an action, any other class is a plugin. The constructor of a
plugin has no parameters, or takes a `PluginContext` with its arguments from the configuration.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from typing import Any, Final

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.configuration_file import BatchConfig
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.plugins.registry import Factory, PluginContext
from fairlead.engine.batch.session import plugin as protocols
from fairlead.engine.batch.session.plugin import BatchPlugin
from fairlead.whatif.configuration.plugin_source import SourceError, find_class
from fairlead.whatif.input.error import InputError

OPTION: Final = "--batch-plugin"
_METHODS: Final = frozenset(
    name
    for protocol in vars(protocols).values()
    if isinstance(protocol, type) and BatchPlugin in protocol.__mro__
    for name in vars(protocol)
    if not name.startswith("_") and name != "name"
)


def read_extensions(sources: Iterable[str]) -> Extensions:
    """Return the classes that `sources` (MODULE:CLASS, FILE.py:CLASS) name. Raises InputError."""
    plugins: dict[str, Factory] = {}
    actions: dict[str, Action] = {}
    for source in sources:
        try:
            found = find_class(source)
            name = _name_of(found, {*plugins, *actions})
            if hasattr(found, "execute"):
                actions[name] = found()
            else:
                plugins[name] = _factory(found)
        except (SourceError, TypeError) as cause:
            raise InputError(OPTION, str(cause), object_name=source) from None
    return Extensions(plugins, actions)


def _name_of(found: type, taken: Collection[str]) -> str:
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        raise SourceError(f"{found.__name__} has no name: it needs a text attribute `name`")
    if name in taken:
        raise SourceError(f"{name} is given twice")
    return name


def _factory(found: type) -> Factory:
    if not any(hasattr(found, method) for method in _METHODS):
        known = ", ".join(sorted({"execute", *_METHODS}))
        raise SourceError(f"{found.__name__} has none of the methods {known}")
    takes_context = bool(inspect.signature(found).parameters)

    def make(context: PluginContext) -> BatchPlugin:
        made: Any = found(context) if takes_context else found()
        plugin: BatchPlugin = made
        return plugin

    return make


def refuse_unused(config: BatchConfig, extensions: Extensions, source: str) -> None:
    """Raise InputError for an extension that the configuration `source` does not name."""
    named = {*config.actions, *(option.name for tier in config.tiers for option in tier)}
    for name in (*extensions.actions, *extensions.plugins):
        if name not in named:
            raise InputError(OPTION, f"{name} is not named in {source}, so it would never run")
