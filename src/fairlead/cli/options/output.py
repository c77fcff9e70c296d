"""Options that say where results go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.options.parameter import named

Format = Literal["text", "json"]
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="text or json.")]


@Parameter(name="*")
@dataclass(frozen=True)
class OutputOptions:
    """Where results go."""

    output: Output = "text"
    report: Annotated[
        Path | None,
        named("FILE.html", "Where to write the HTML report (default: only with text output)."),
    ] = None
    no_report: Annotated[bool, Parameter(help="Do not write an HTML report.", negative=())] = False
    commands: Annotated[
        Path | None, named("FILE", "Write every command of the run to FILE, as JSON lines.")
    ] = None

    def report_path(self, default: str) -> Path | None:
        """Where the report goes; `default` if text is printed, None for no report."""
        if self.no_report:
            return None
        if self.report is None and self.output == "text":
            return Path(default)
        return self.report


DEFAULT_OUTPUTS: Final = OutputOptions()
