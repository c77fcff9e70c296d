"""A scheduler plugin as a user gives it: as the value of --plugin or, in a script, as a class."""

from __future__ import annotations

PluginSource = str | type


def plugin_text(source: PluginSource) -> str:
    """Return `source` in the form of --plugin."""
    return f"{source.__module__}:{source.__qualname__}" if isinstance(source, type) else source
