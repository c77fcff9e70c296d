"""What `fairlead simulate` does, from its options to its exit code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, perf_counter_ns

from fairlead.cli import exit_code
from fairlead.cli.controllers import node_lifecycle
from fairlead.cli.options import Names, OutputOptions
from fairlead.cli.outage_options import ControllerOptions
from fairlead.cli.output_file import require_writable, write_whole
from fairlead.cli.outputs import command_log, print_bytes, report_to, say_written
from fairlead.cli.plugin_time import print_plugin_times
from fairlead.cli.progress import ProgressBar
from fairlead.cli.simulate import DEFAULT_REPORT
from fairlead.cli.summary import print_simulation
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.whatif.batch_config import Jobs
from fairlead.whatif.report_data import Heading, simulation_report
from fairlead.whatif.result import encode_result, simulation_result
from fairlead.whatif.run import run
from fairlead.whatif.scenario import Outputs, experiment_of, read_scenario
from fairlead.whatif.snapshot import encode_snapshot
from fairlead.whatif.user_plugin import UserPlugins


@dataclass(frozen=True, slots=True)
class Request:
    """What to simulate, as the user wrote it; `jobs` are --batch-config and --batch-plugin."""

    path: str
    seed: int | None
    plugins: Names
    snapshot: Path | None
    metrics: Path | None
    profile_plugins: bool
    jobs: tuple[str | None, Names]
    controllers: ControllerOptions


def answer_simulation(request: Request, options: OutputOptions) -> int:
    """Run the scenario, print and write what came of it; the exit code. Raises InputError."""
    started = perf_counter()
    path, scenario = request.path, read_scenario(request.path)
    files = _files(path, scenario.outputs, options, request.snapshot)
    plugins = UserPlugins(request.plugins)
    experiment = experiment_of(path, scenario, request.seed, plugins, Jobs(*request.jobs))
    require_writable("--metrics", request.metrics)
    wanted = request.profile_plugins or request.metrics is not None
    meter = Meter(perf_counter_ns) if wanted else None
    experiment = replace(
        experiment,
        scheduler=replace(experiment.scheduler, meter=meter),
        node_lifecycle=node_lifecycle(request.controllers, scenario.settings.controller_manager),
    )
    metered = request.metrics is not None
    with ProgressBar() as progress, command_log(files.commands) as log:
        finished = run(experiment, experiment.title, progress, log, metered=metered)
    result = encode_result(simulation_result(experiment, finished.outcome))
    if options.output == "json":
        print_bytes(result)
    else:
        print_simulation(experiment, finished.outcome)
    if meter is not None and request.profile_plugins:
        print_plugin_times(meter.times())
    if files.json is not None:
        write_whole(files.json, result)
        say_written("result", files.json)
    if request.metrics is not None:
        write_whole(request.metrics, finished.metrics)
        say_written("metrics", request.metrics)
    if files.snapshot is not None:
        write_whole(files.snapshot, encode_snapshot(finished.objects, finished.outcome.ended_at))
        say_written("snapshot", files.snapshot)
    heading = Heading(experiment.title, path, experiment.seed, perf_counter() - started)
    report_to(files.report, simulation_report(heading, finished.outcome))
    return exit_code.SUCCESS


@dataclass(frozen=True)
class _Files:
    """Where everything goes; None for what nobody wants."""

    report: Path | None
    commands: Path | None
    json: Path | None
    snapshot: Path | None


def _files(path: str, named: Outputs, options: OutputOptions, snapshot: Path | None) -> _Files:
    """The scenario's outputs, overridden by options. Raises InputError for unwritable ones."""
    report = options.report or _path(named.report)
    files = _Files(
        report=options.report_path(DEFAULT_REPORT) if report is None else report,
        commands=options.commands or _path(named.commands),
        json=_path(named.json),
        snapshot=snapshot or _path(named.snapshot),
    )
    if options.no_report:
        files = replace(files, report=None)
    for name, file in vars(files).items():
        require_writable(f"{path}: outputs.{name}", file)
    return files


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
