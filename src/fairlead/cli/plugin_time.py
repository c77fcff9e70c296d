"""What `--profile-plugins` prints: calls and time by plugin and extension point, dearest first.

It goes to stderr: what a run prints on stdout is the same each time, and these figures are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from fairlead.cli.terminal import print_table, stderr_console
from fairlead.engine.framework.user_plugin.meter import PluginTime

NUMBERS: Final = ("calls", "seconds", "µs a call", "share")


def print_plugin_times(times: Sequence[PluginTime], console: Console | None = None) -> None:
    """The table. A plugin's time is its own: what it spends on asking others counts as theirs."""
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
