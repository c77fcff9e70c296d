"""Runs `fairlead simulate`, from its options to its exit code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Final

from msgspec import structs, to_builtins
from msgspec.structs import replace

from fairlead.cli import exit_code
from fairlead.cli.options.controller import ControllerOptions
from fairlead.cli.options.log import DecisionLogOptions
from fairlead.cli.options.node_lifecycle import node_lifecycle
from fairlead.cli.options.output import OutputOptions, SimulationFormat
from fairlead.cli.options.parameter import Names
from fairlead.cli.options.release import ReleaseOptions
from fairlead.cli.output.atomic_file import is_own_output, write_atomically
from fairlead.cli.output.console.progress_bar import ProgressBar
from fairlead.cli.output.console.terminal import print_table, stderr_console
from fairlead.cli.output.distinct_outputs import require_distinct
from fairlead.cli.output.report_file import write_report
from fairlead.cli.output.result_file import command_log, print_bytes, say_written
from fairlead.cli.output.summary.simulation import print_simulation
from fairlead.engine.framework.user_plugin.meter import Meter, PluginTime
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.field_line import with_lines_of
from fairlead.whatif.outcome.assessment.fail_on import FailOn, parse_simulation_fail_on
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.report.report_builder import Heading, simulation_report
from fairlead.whatif.result.result_json import encode_result, simulation_result
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import Outputs, Scenario, experiment_of, read_scenario
from fairlead.whatif.snapshot.snapshot import encode_snapshot
from fairlead.whatif.sweep.case_run import file_names

DEFAULT_REPORT: Final = "fairlead-simulate.html"


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The arguments of one simulation; `batch` is (--batch-config, --batch-plugin)."""

    path: str
    seed: int | None
    plugins: Names
    snapshot: Path | None
    metrics: Path | None
    profile_plugins: bool
    overwrite: bool
    batch: tuple[str | None, Names]
    controllers: ControllerOptions
    release: ReleaseOptions
    log: DecisionLogOptions
    fail_on: Names
    allow_extenders: bool


def run_simulation(request: SimulationRequest, options: OutputOptions) -> int:
    """Run the scenario, write the results and return the exit code. Raises InputError."""
    started = perf_counter()
    conditions = {text: parse_simulation_fail_on(text) for text in request.fail_on}
    path, scenario = request.path, read_scenario(request.path)
    if not request.overwrite:
        _refuse_foreign_files(path, scenario.outputs)
    files = _files(scenario.outputs, options, request.snapshot)
    _require_distinct(request, scenario, files, options)
    plugins = UserPlugins(request.plugins)
    batch, release = BatchOptions(*request.batch), request.release.choice
    allows = request.allow_extenders
    with with_lines_of(path):
        experiment = experiment_of(
            path, scenario, request.seed, plugins, batch, release, allow_extenders=allows
        )
    wanted = request.profile_plugins or request.metrics is not None
    meter = Meter(perf_counter_ns) if wanted else None
    experiment = replace(
        experiment,
        scheduler=dataclasses.replace(experiment.scheduler, meter=meter),
        node_lifecycle=node_lifecycle(
            request.controllers, scenario.settings.controller_manager, experiment.releases.nodes
        ),
    )
    metered, logging = request.metrics is not None, request.log.logging
    with ProgressBar() as progress, command_log(files.commands) as log:
        finished = run_experiment(
            experiment,
            experiment.title,
            progress if logging is None else None,
            log,
            metered=metered,
            logging=logging,
        )
    matched = _matched(finished.outcome, conditions)
    result = _print_result(experiment, finished.outcome, matched, options.output)
    if meter is not None and request.profile_plugins:
        _print_plugin_times(meter.times())
    if files.json is not None:
        write_atomically(files.json, result)
        say_written("result", files.json)
    if request.metrics is not None:
        write_atomically(request.metrics, finished.metrics)
        say_written("metrics", request.metrics)
    if files.snapshot is not None:
        write_atomically(
            files.snapshot, encode_snapshot(finished.objects, finished.outcome.ended_at)
        )
        say_written("snapshot", files.snapshot)
    if files.report is not None:
        seconds = perf_counter() - started
        heading = Heading(
            experiment.title, path, experiment.seed, seconds, experiment.scheduler_words
        )
        write_report(files.report, simulation_report(heading, finished.outcome))
        say_written("report", files.report)
    return exit_code.CONDITION_HOLDS if matched else exit_code.SUCCESS


def _print_result(
    experiment: Experiment,
    outcome: RunOutcome,
    matched: Mapping[str, Sequence[str]],
    output: SimulationFormat,
) -> bytes:
    """Print the result in the format `output`, and return it as JSON.

    The keys of `matched` are the conditions of --fail-on that are met; the values are the evidence.
    """
    value = simulation_result(experiment, outcome)
    result = encode_result(value)
    match output:
        case "json":
            print_bytes(result)
        case "markdown":
            from fairlead.cli.output.markdown import markdown_simulation

            unsettled = outcome.unsettled("duration") if experiment.duration is None else ""
            text = markdown_simulation(value, experiment.scheduler_words, matched, unsettled)
            print_bytes(text.encode())
        case "text":
            print_simulation(experiment, outcome)
    return result


def _matched(outcome: RunOutcome, conditions: Mapping[str, FailOn | None]) -> dict[str, list[str]]:
    """Return the `conditions` that are true, each with its evidence.

    A value of None in `conditions` stands for the condition `loop`, which is true if pods are
    displaced again and again. Any other condition is true if a displaced pod matches the condition.
    """
    found = {}
    for text, one in conditions.items():
        evidence = (
            [loop.message for loop in outcome.loops]
            if one is None
            else [pod.key for pod in outcome.displaced if one.matches(pod)]
        )
        if evidence:
            found[text] = list(dict.fromkeys(evidence))
    return found


@dataclass(frozen=True)
class _Files:
    """The output file of each result; None for a result that is not written."""

    report: Path | None
    commands: Path | None
    json: Path | None
    snapshot: Path | None


def _files(named: Outputs, options: OutputOptions, snapshot: Path | None) -> _Files:
    """Return the file for each result: the file in an option, or else the file in the scenario.

    Raises InputError.
    """
    is_named = options.report is None and not options.no_report and named.report
    return _Files(
        report=_path(named.report) if is_named else options.report_path(DEFAULT_REPORT),
        commands=options.commands or _path(named.commands),
        json=_path(named.json),
        snapshot=snapshot or _path(named.snapshot),
    )


def _require_distinct(
    request: SimulationRequest, scenario: Scenario, files: _Files, options: OutputOptions
) -> None:
    """Raise InputError if an output cannot be written, or is also an input or another output."""
    path, chosen = request.path, {**vars(options), "snapshot": request.snapshot}
    outputs = {
        f"{path}: outputs.{name}"
        if chosen.get(name) is None and getattr(scenario.outputs, name) is not None
        else f"--{name}": file
        for name, file in vars(files).items()
    }
    read = {name: value for name, value in to_builtins(scenario).items() if name != "outputs"}
    require_distinct(
        {**outputs, "--metrics": request.metrics},
        dataclasses.replace(request, snapshot=None, metrics=None),
        [Path(path).parent / name for name in file_names(read)],
    )


def _refuse_foreign_files(path: str, named: Outputs) -> None:
    """Raise InputError if an output file that the scenario names must not be written.

    The scenario must not name a file outside the current directory, or an existing file that
    Fairlead did not write, because a scenario may come from an untrusted source.
    """
    here = Path.cwd().resolve()
    for name, text in structs.asdict(named).items():
        if text is None:
            continue
        file = Path(text).resolve()
        source, field = path, f"outputs.{name}"
        if not file.is_relative_to(here):
            problem = f"{text} is not below the current directory; --overwrite allows it"
            raise InputError(source, problem, field=field)
        if file.exists() and not is_own_output(file):
            problem = f"{text} exists and was not written by Fairlead; --overwrite replaces it"
            raise InputError(source, problem, field=field)


def _print_plugin_times(times: Sequence[PluginTime]) -> None:
    """Print the table of `--profile-plugins`: calls and time by plugin and extension point.

    The table is printed to stderr, because stdout must be the same in every run. If a plugin calls
    another plugin, the time of the call counts only for the called plugin.
    """
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
    numbers = ("calls", "seconds", "µs a call", "share")
    columns = ("plugin", "extension point", *numbers)
    print_table(stderr_console(), title, columns, rows, numbers=numbers)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
