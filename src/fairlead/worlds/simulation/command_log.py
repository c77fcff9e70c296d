"""The command log: every command as one line of JSON, the record that runs are compared by.

    {"t_ns":1767225600000000000,"command":"Bind","pod":{…},"node":"node-1"}

Members stand in the order of the command's fields; inside free-form JSON (a patch, a manifest)
they are sorted, so equal commands give equal lines.
"""

from __future__ import annotations

import msgspec

from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant

_ENCODER = msgspec.json.Encoder(order="deterministic")


def command_line(command: Command, now: Instant) -> str:
    """The line for `command`, issued at `now`, without a line break."""
    fields = _ENCODER.encode(command).decode()
    return f'{{"t_ns":{now},"command":"{type(command).__name__}",{fields[1:]}'
