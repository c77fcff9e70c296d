"""What `fairlead whatif` does, from its options to its exit code."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from fairlead.cli import exit_code
from fairlead.cli.controllers import node_lifecycle
from fairlead.cli.options import OutputOptions
from fairlead.cli.outage_options import ControllerOptions, FailureOptions
from fairlead.cli.output_file import require_writable
from fairlead.cli.outputs import command_log, print_bytes, report_to
from fairlead.cli.progress import ProgressBar
from fairlead.cli.summary import print_answer
from fairlead.cli.whatif import DEFAULT_REPORT, ChangeOptions, RunOptions
from fairlead.whatif.answer import Answer
from fairlead.whatif.asking import Conditions, what_if
from fairlead.whatif.batch_config import Jobs
from fairlead.whatif.change import NO_CHANGE, Change
from fairlead.whatif.fail_on import FailOn, parse_fail_on
from fairlead.whatif.failures import Failures
from fairlead.whatif.input_error import InputError
from fairlead.whatif.outcome import PodEnd
from fairlead.whatif.report_data import Heading, whatif_report
from fairlead.whatif.result import encode_result, whatif_result
from fairlead.whatif.snapshot import read_snapshot
from fairlead.whatif.strict import field_duration


@dataclass(frozen=True, slots=True)
class Asked:
    """What to change, and under which controllers."""

    changing: ChangeOptions
    failing: FailureOptions
    controllers: ControllerOptions

    @property
    def change(self) -> Change:
        """All that is to be changed."""
        return Change(**vars(self.changing), failures=Failures(**vars(self.failing)))


def answer_what_if(source: str, asked: Asked, running: RunOptions, outputs: OutputOptions) -> int:
    """Ask, print and write what differs; the exit code. Raises InputError."""
    started = perf_counter()
    conditions = [parse_fail_on(text) for text in running.fail_on]
    horizon = field_duration("--horizon", "", running.horizon) or 0
    report = outputs.report_path(DEFAULT_REPORT)
    require_writable("--report", report)
    require_writable("--commands", outputs.commands)
    change, controllers = asked.change, node_lifecycle(asked.controllers)
    if conditions and not change.words:
        raise InputError("--fail-on", f"{NO_CHANGE}, so this gate would always pass")
    snapshot = read_snapshot(source)
    with ProgressBar() as progress, command_log(outputs.commands) as log:
        answer = what_if(
            snapshot,
            change,
            Conditions(
                seed=running.seed,
                horizon=horizon,
                node_lifecycle=controllers,
                jobs=Jobs(running.batch_config, running.batch_plugin),
            ),
            progress=progress,
            command_log=log,
        )
    forbidden = _forbidden(answer, conditions)
    if outputs.output == "json":
        print_bytes(encode_result(whatif_result(answer)))
    else:
        print_answer(answer, forbidden)
    report_to(report, whatif_report(_heading(answer, perf_counter() - started), answer))
    return _exit_code(answer, forbidden)


def _heading(answer: Answer, wall_seconds: float) -> Heading:
    return Heading(answer.change.title, answer.source, answer.seed, wall_seconds)


def _forbidden(answer: Answer, conditions: list[FailOn]) -> list[PodEnd]:
    """The displaced pods that must not be."""
    displaced = answer.difference.displaced
    return [pod for pod in displaced if any(each.matches(pod) for each in conditions)]


def _exit_code(answer: Answer, forbidden: list[PodEnd]) -> int:
    if forbidden:
        return exit_code.DISPLACED
    return exit_code.SUCCESS if answer.difference.is_empty else exit_code.DIFFERENCE
