"""Reads the configuration of the batch scheduler, and users' plugins and actions for it.

A class with a method `execute` is an action, any other class is a plugin. The constructor of a
plugin has no parameters, or takes a `PluginContext` with its arguments from the configuration.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.compose import compose
from fairlead.engine.batch.configuration_file import (
    RECOMMENDED,
    SHIPPED,
    BatchConfig,
    BatchConfigurationError,
    read_configuration,
    shipped_configuration,
)
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.info.job_table import Ownership
from fairlead.engine.batch.plugins.registry import Factory, PluginContext
from fairlead.engine.batch.session import plugin as protocols
from fairlead.engine.batch.session.plugin import BatchPlugin
from fairlead.engine.batch.session.session import OnSessionOpen
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.configuration.batch.options import OPTION, SINGLE_PODS
from fairlead.whatif.configuration.plugin_source import SourceError, find_class
from fairlead.whatif.input.document import decode_text, read_bytes
from fairlead.whatif.input.error import InputError

# The methods of plugins, each with the names of its parameters.
_METHODS: Final = {
    name: [each for each in inspect.signature(method).parameters if each != "self"]
    for protocol in (*vars(protocols).values(), OnSessionOpen)
    if isinstance(protocol, type) and BatchPlugin in protocol.__mro__
    for name, method in vars(protocol).items()
    if inspect.isfunction(method) and not name.startswith("_")
}


def recommended_config(scheduler_names: tuple[str, ...]) -> BatchConfig:
    """Return the recommended configuration, for pods of `scheduler_names`."""
    return replace(shipped_configuration(RECOMMENDED), ownership=Ownership(scheduler_names))


def read_batch_config(source: str, plugins: Iterable[str] = ()) -> BatchConfig:
    """Return the built-in configuration `source`, or else the configuration in the file `source`.

    `plugins` name the classes of users' plugins and actions. Raises InputError.
    """
    extensions = read_extensions(plugins)
    config = _configuration(source, extensions)
    refuse_unused(config, extensions, source)
    return config


def _configuration(source: str, extensions: Extensions) -> BatchConfig:
    if source in SHIPPED:
        return shipped_configuration(source)
    path = Path(source)
    if not path.exists():
        known = ", ".join(sorted([*SHIPPED, SINGLE_PODS]))
        raise InputError(source, f"is neither a file nor a built-in configuration; known: {known}")
    try:
        config = read_configuration(decode_text(source, read_bytes(path)))
        config = replace(config, extensions=extensions)
        compose(config, Cluster())  # raises an error for unknown actions and plugins
    except BatchConfigurationError as cause:
        raise InputError(source, str(cause)) from None
    return config


# --- plugins and actions of users ------------------------------------------------------------


def read_extensions(sources: Iterable[str]) -> Extensions:
    """Return the plugins and actions `sources` (MODULE:CLASS, FILE.py:CLASS).

    Raises InputError.
    """
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
        raise SourceError(f"{found.__name__} has no name: it needs a string attribute `name`")
    if name in taken:
        raise SourceError(f"{name} is given twice")
    return name


def _factory(found: type) -> Factory:
    if not any(hasattr(found, method) for method in _METHODS):
        known = ", ".join(sorted({"execute", *_METHODS}))
        raise SourceError(f"{found.__name__} has none of the methods {known}")
    _check_methods(found)
    takes_context = bool(inspect.signature(found).parameters)

    def make(context: PluginContext) -> BatchPlugin:
        made: Any = found(context) if takes_context else found()
        plugin: BatchPlugin = made
        return plugin

    return make


def _check_methods(found: type) -> None:
    """Raise SourceError for a method that would never be called, or with too many arguments."""
    by_letters = {name.replace("_", ""): name for name in _METHODS}
    for name in dir(found):
        meant = by_letters.get(name.replace("_", "").lower(), name)
        if name != meant and not name.startswith("_"):
            problem = f"has {name}, which is never called: it is spelled {meant}"
            raise SourceError(f"{found.__name__} {problem}")
        if name in _METHODS and not _takes(found, name):
            wanted = ", ".join(("self", *_METHODS[name]))
            raise SourceError(f"{found.__name__} must take {name}({wanted})")


def _takes(found: type, name: str) -> bool:
    """Return whether the method `name` of `found` takes the arguments that the session passes."""
    method = inspect.getattr_static(found, name)
    if not inspect.isfunction(method):
        return True  # a static method, a class method or a callable
    try:
        inspect.signature(method).bind("self", *_METHODS[name])
    except TypeError:
        return False
    return True


def refuse_unused(config: BatchConfig, extensions: Extensions, source: str) -> None:
    """Raise InputError for an extension that `config` does not name.

    `source` is the name or file of `config`.
    """
    named = {*config.actions, *(option.name for tier in config.tiers for option in tier)}
    for name in (*extensions.actions, *extensions.plugins):
        if name not in named:
            raise InputError(OPTION, f"{name} is not named in {source}, so it would never run")
