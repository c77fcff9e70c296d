"""Prints the table of `--profile-plugins`: calls and time by plugin and extension point.

The table is printed to stderr, because stdout must be the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from fairlead.cli.output.console.terminal import print_table, stderr_console
from fairlead.engine.framework.user_plugin.meter import PluginTime

NUMBERS: Final = ("calls", "seconds", "µs a call", "share")


def print_plugin_times(times: Sequence[PluginTime], console: Console | None = None) -> None:
    """Print the table of `times`, by default to stderr.

    If a plugin calls another plugin, the time of the call counts only for the called plugin.
    """
    console = console or stderr_console()
    whole = sum(one.taken for one in times) or 1
    rows = [
        (
            one.plugin,
            one.point,
            f"{one.calls:,}",
            f"{one.taken / 1e9:.3f}",
            f"{one.taken / one.calls / 1e3:,.1f}",
            f"{one.taken / whole:.1%}",
        )
        for one in times
    ]
    title = f"time in plugins: {whole / 1e9:.3f} s"
    print_table(console, title, ("plugin", "extension point", *NUMBERS), rows, numbers=NUMBERS)
