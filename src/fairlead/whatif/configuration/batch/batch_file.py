"""Reads the configuration of the batch scheduler, and users' plugins and actions for it.

A class with a method `execute` is an action, any other class is a plugin (`plugin_check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.compose import ACTIONS, compose
from fairlead.engine.batch.configuration_file import (
    RECOMMENDED,
    SHIPPED,
    BatchConfig,
    BatchConfigurationError,
    configuration_from,
    read_configuration,
    shipped_configuration,
)
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.info.job_table import Ownership
from fairlead.engine.batch.plugin_check import extensions_of, refuse_unused
from fairlead.engine.batch.plugins.registry import PLUGINS
from fairlead.engine.framework.fault import describe
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.configuration.batch.options import OPTION, SINGLE_PODS
from fairlead.whatif.configuration.plugin_source import SourceError, find_class
from fairlead.whatif.input.document import Document, decode_text, read_bytes
from fairlead.whatif.input.error import InputError


def recommended_config(scheduler_names: tuple[str, ...]) -> BatchConfig:
    """Return the built-in configuration `fairlead`, for pods of `scheduler_names`."""
    return replace(shipped_configuration(RECOMMENDED), ownership=Ownership(scheduler_names))


def read_batch_config(source: str | Document, plugins: Iterable[str] = ()) -> BatchConfig:
    """Return the batch scheduler's configuration that `source` selects.

    `source` is the name of a built-in configuration, the path of a file, or a document. `plugins`
    name the classes of users' plugins and actions. Raises InputError.
    """
    extensions = read_extensions(plugins)
    name = source if isinstance(source, str) else source.source
    config = _configuration(source, extensions)
    try:
        refuse_unused(config, extensions, name)
    except BatchConfigurationError as cause:
        raise InputError(OPTION, str(cause)) from None
    return config


def _configuration(source: str | Document, extensions: Extensions) -> BatchConfig:
    if isinstance(source, Document):
        return _checked(source.source, lambda: configuration_from(source.value), extensions)
    if source in SHIPPED:
        return shipped_configuration(source)
    path = Path(source)
    if not path.exists():
        known = ", ".join(sorted([*SHIPPED, SINGLE_PODS]))
        raise InputError(source, f"is neither a file nor a built-in configuration; known: {known}")
    text = decode_text(source, read_bytes(path))
    return _checked(source, lambda: read_configuration(text), extensions)


def _checked(source: str, read: Callable[[], BatchConfig], extensions: Extensions) -> BatchConfig:
    """Return the configuration that `read` returns, with `extensions`. Raises InputError."""
    try:
        config = replace(read(), extensions=extensions)
        compose(config, Cluster())  # raises an error for unknown actions and plugins
    except BatchConfigurationError as cause:
        raise InputError(source, str(cause)) from None
    return config


# --- plugins and actions of users ------------------------------------------------------------


def read_extensions(sources: Iterable[str]) -> Extensions:
    """Return the plugins and actions that `sources` name.

    Each of `sources` is MODULE:CLASS, FILE.py:CLASS or the name of an installed plugin. Raises
    InputError.
    """
    plugins: list[type] = []
    actions: list[Action] = []
    extensions = Extensions()
    for source in sources:
        try:
            found = find_class(source)
            if hasattr(found, "execute"):
                actions.append(_made(found))
            else:
                plugins.append(found)
            extensions = extensions_of(plugins, actions)
        except (SourceError, BatchConfigurationError) as cause:
            raise InputError(OPTION, str(cause), object_name=source) from None
    return extensions


def _made(found: type) -> Action:
    try:
        made: Action = found()
    except Exception as cause:  # noqa: BLE001 - one line, never a traceback
        raise SourceError(f"{found.__name__} cannot be built: {describe(cause)}") from None
    return made


def override_notes(config: BatchConfig) -> tuple[str, ...]:
    """Return a note if plugins or actions of the user replace built-in code."""
    own = config.extensions
    replaced = [f"plugin {name}" for name in own.plugins if name in PLUGINS]
    replaced += [f"action {name}" for name in own.actions if name in ACTIONS]
    if not replaced:
        return ()
    what = "the built-in one" if len(replaced) == 1 else "the built-in ones"
    verb = "replaces" if len(replaced) == 1 else "replace"
    return (f"The batch {' and '.join(replaced)} of {OPTION} {verb} {what}.",)
