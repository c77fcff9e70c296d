"""Options that choose the format and the files of results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.options.parameter import OUTPUT, named
from fairlead.cli.output.atomic_file import require_writable
from fairlead.cli.output.result_file import print_notice
from fairlead.whatif.input.error import InputError

Format = Literal["text", "json"]
Output = Annotated[
    Format, Parameter(name=["--output", "-o"], help="Format of the result.", group=OUTPUT)
]
SimulationFormat = Literal["text", "json", "markdown"]
SimulationOutput = Annotated[
    SimulationFormat,
    Parameter(
        name=["--output", "-o"],
        group=OUTPUT,
        help="Format of the result. With markdown, the result is a comment for a pull request.",
    ),
]
AnswerFormat = Literal["text", "details", "json", "markdown"]
AnswerOutput = Annotated[
    AnswerFormat,
    Parameter(
        name=["--output", "-o"],
        group=OUTPUT,
        help="Format of the answer: text (a summary on one screen), details (the full text), json "
        "or markdown.",
        show_choices=False,
    ),
]
TEXT_FORMATS: Final = ("text", "details")


SimulationReport = Annotated[
    Path | None,
    named(
        "FILE.html",
        "Write the HTML report to FILE.html. Without this option, a report is written if the "
        "output is text, or if the scenario names a file for the report.",
    ),
]
Report = Annotated[
    Path | None,
    named(
        "FILE.html",
        "Write the HTML report to FILE.html. Without this option, only -o text and -o details "
        "write a report, to fairlead-whatif.html.",
    ),
]
NoReport = Annotated[bool, Parameter(help="Do not write an HTML report.", negative=())]
Commands = Annotated[
    Path | None,
    named(
        "FILE",
        "Write every command (Bind, EvictPod, ...) of the simulated scheduler and controllers to "
        "FILE, as one JSON object per line.",
    ),
]


def _report_path(report: Path | None, default: str, *, is_text: bool, off: bool) -> Path | None:
    if off and report is not None:
        raise InputError("--no-report", f"cannot be combined with --report {report}")
    if off or report is not None or not is_text:
        return report
    try:
        require_writable("--report", Path(default))
    except InputError as refusal:  # The file was not requested, so the answer must not fail.
        print_notice(f"no report: {refusal.problem} (--report FILE chooses another file)")
        return None
    return Path(default)


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class OutputOptions:
    """The options that choose the format and the files of a simulation's results."""

    output: SimulationOutput = "text"
    report: SimulationReport = None
    no_report: NoReport = False
    commands: Commands = None

    def report_path(self, default: str) -> Path | None:
        """Return the path of the HTML report that the options choose, or None if they choose none.

        If --report and --no-report are absent, the path is `default` for text output, and None for
        other formats. If `default` cannot be written, the path is None, and a notice on stderr says
        why. Raises InputError if both options are given.
        """
        return _report_path(self.report, default, is_text=self.output == "text", off=self.no_report)


DEFAULT_OUTPUTS: Final = OutputOptions()


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class AnswerOutputOptions:
    """The options that choose the format and the files of a what-if's answer."""

    output: AnswerOutput = "text"
    report: Report = None
    no_report: NoReport = False
    junit: Annotated[
        Path | None,
        named(
            "FILE.xml",
            "Write the conditions of --fail-on to FILE.xml as JUnit test cases. A condition that "
            "is true becomes a failed test.",
        ),
    ] = None
    commands: Annotated[
        Path | None,
        named(
            "FILE",
            "Write every command (Bind, EvictPod, ...) of the simulated scheduler and controllers "
            "to FILE, as one JSON object per line. FILE contains only the commands of the "
            "simulation with the change.",
        ),
    ] = None

    def report_path(self, default: str) -> Path | None:
        """Return the path of the HTML report, or None if no report shall be written.

        See `OutputOptions.report_path` for the conditions. Raises InputError.
        """
        return _report_path(
            self.report, default, is_text=self.output in TEXT_FORMATS, off=self.no_report
        )


DEFAULT_ANSWER_OUTPUTS: Final = AnswerOutputOptions()
