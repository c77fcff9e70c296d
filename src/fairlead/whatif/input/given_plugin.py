"""A scheduler plugin as a user gives it: the value of --plugin, or in a script the class itself."""

from __future__ import annotations

PluginSource = str | type


def plugin_text(source: PluginSource) -> str:
    """Return `source` in the form of --plugin."""
    return f"{source.__module__}:{source.__qualname__}" if isinstance(source, type) else source
