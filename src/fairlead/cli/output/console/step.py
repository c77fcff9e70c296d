"""Prints the next steps of an answer: the options of another question, or a shell command."""

from __future__ import annotations

import re
from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.cli.output.console.terminal import print_line
from fairlead.whatif.input.error import one_line
from fairlead.whatif.outcome.assessment.next_step import NextStep

_WORD: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")  # a word of a shell command


def print_step(console: Console, step: NextStep) -> None:
    """Print `step` on one line, or on several lines if one line is too short.

    If the command takes several lines, all but the last end in a backslash for the shell.
    """
    line = f"Next: {step.words}: {step.code}"
    if len(line) <= console.width:
        print_line(console, line)
        return
    console.print(Text(one_line(f"Next: {step.words}:", None)), soft_wrap=False)
    lines = [""]
    for word in (one_line(found, None) for found in _WORD.findall(step.code)):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and len(f"  {longer} \\") > console.width:
            lines.append(word)
        else:
            lines[-1] = longer
    for one in (*(f"  {part} \\" for part in lines[:-1]), f"  {lines[-1]}"):
        console.print(Text(one), soft_wrap=True)
