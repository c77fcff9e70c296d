"""Prints a NextStep: options to add to the command that has just run, or a shell command."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.cli.output.console.shell_command import command_lines
from fairlead.cli.output.console.terminal import print_line
from fairlead.whatif.input.error import one_line
from fairlead.whatif.outcome.assessment.next_step import NextStep

_INDENT: Final = "  "


def print_step(console: Console, step: NextStep) -> None:
    """Print `step` on one line, or on several lines if one line is too short.

    If the command takes several lines, each line except the last ends with a backslash, as the
    shell requires.
    """
    line = f"Next: {step.words}: {step.code}"
    if len(line) <= console.width:
        print_line(console, line)
        return
    console.print(Text(one_line(f"Next: {step.words}:", None)), soft_wrap=False)
    for one in command_lines(one_line(step.code, None), console.width - len(_INDENT)):
        console.print(Text(_INDENT + one), soft_wrap=True)
