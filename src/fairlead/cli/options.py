"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter, Token

Format = Literal["text", "json"]
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="text or json.")]
Names = tuple[str, ...]


def whole_number(_: type, tokens: Sequence[Token]) -> int:
    """The converter of options that are integers; 1.5 is not rounded but refused."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def repeatable(metavar: str, text: str, *, show: bool = True) -> Parameter:
    """An option that may be given several times."""
    return Parameter(help=text, metavar=metavar, negative=(), show_default=False, show=show)


def named(metavar: str, text: str) -> Parameter:
    """An option that is a name or a file."""
    return Parameter(help=text, metavar=metavar, show_default=False)


Plugins = Annotated[
    Names,
    repeatable(
        "MODULE:CLASS",
        "Schedule with a plugin of yours too: MODULE:CLASS, FILE.py:CLASS or the name of an "
        "installed one; =N behind it is the weight of its scores.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class OutputOptions:
    """Where results go."""

    output: Output = "text"
    report: Annotated[
        Path | None, named("FILE.html", "Where to write the HTML report (default: see --output).")
    ] = None
    no_report: Annotated[bool, Parameter(help="Write no HTML report.", negative=())] = False
    commands: Annotated[
        Path | None, named("FILE", "Write every command of the run to FILE, as JSON lines.")
    ] = None

    def report_path(self, default: str) -> Path | None:
        """Where the report goes: where it is asked for, else `default` beside text output."""
        if self.no_report:
            return None
        if self.report is None and self.output == "text":
            return Path(default)
        return self.report


DEFAULT_OUTPUTS: Final = OutputOptions()
