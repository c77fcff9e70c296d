"""Runs `fairlead whatif`, from its options to its exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from fairlead.cli import exit_code
from fairlead.cli.commands.whatif.options import (
    NO_COMPARISON,
    ChangeOptions,
    ComparisonOptions,
    RunOptions,
)
from fairlead.cli.options.connection import (
    NO_CONNECTION,
    ConnectionOptions,
    kubeconfigs,
    snapshot_of,
)
from fairlead.cli.options.controller import ControllerOptions
from fairlead.cli.options.failure import FailureOptions
from fairlead.cli.options.log import DecisionLogOptions
from fairlead.cli.options.node_lifecycle import require_effect
from fairlead.cli.options.output import AnswerOutputOptions
from fairlead.cli.options.release import ReleaseOptions
from fairlead.cli.output.atomic_file import write_atomically
from fairlead.cli.output.console.progress_bar import ProgressBar, is_terminal
from fairlead.cli.output.distinct_outputs import require_distinct
from fairlead.cli.output.result_file import command_log, print_bytes, say_written
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.cluster_change import NO_CHANGE, ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions, conditions_of
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    CLUSTER_AUTOSCALER,
    OFF,
)
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult, check, parse_fail_on
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import encode_result, whatif_result
from fairlead.whatif.snapshot.snapshot import Snapshot

DEFAULT_REPORT = "fairlead-whatif.html"


@dataclass(frozen=True, slots=True)
class WhatIfRequest:
    """A cluster, a change to it, and settings for the simulations with and without the change.

    `source` is the path of the snapshot, `-` for standard input, or None for the cluster of
    `connection`. `max_input` is the largest accepted size of the input in bytes; None means 2Gi.
    """

    source: str | None
    connection: ConnectionOptions
    max_input: int | None
    change: ClusterChange
    controllers: ControllerOptions
    release: ReleaseOptions
    log: DecisionLogOptions


def run_what_if(
    request: WhatIfRequest,
    options: RunOptions,
    outputs: AnswerOutputOptions,
    comparison: ComparisonOptions = NO_COMPARISON,
) -> int:
    """Simulate with and without the change, print the difference, and return the exit code.

    If `comparison` requests several answers, print them side by side. Write the files that
    `outputs` names. Raises InputError.
    """
    started = perf_counter()
    fail_on = [parse_fail_on(text) for text in options.fail_on]
    change, logging = request.change, request.log.logging
    conditions = _conditions(request, options, [change, *_alternatives(comparison)])
    if comparison.is_given:
        return _compare(request, options, conditions, outputs, comparison)
    report = _report_file(request, options, outputs)
    if fail_on and not change.words:
        raise InputError("--fail-on", f"{NO_CHANGE}, so this condition could never match")
    snapshot = _read(request)
    # On a terminal, the verdict is printed before next steps are tried, which may take long. If it
    # cannot be printed, the file of --commands would be lost.
    is_text = outputs.output in ("text", "details")
    is_read_now = is_text and is_terminal(sys.stdout) and outputs.commands is None
    has_head = False
    with ProgressBar() as progress, command_log(outputs.commands) as log:

        def print_verdict(answer: WhatIfAnswer) -> None:
            nonlocal has_head
            _require_label(options.group_by, [answer])
            from fairlead.cli.output.answer import print_head

            with progress.hidden():
                print_head(answer, [check(condition, answer.effect) for condition in fail_on])
            has_head = True

        answer = what_if(
            snapshot,
            change,
            conditions,
            progress=progress if logging is None else None,
            command_log=log,
            logging=logging,
            on_verdict=print_verdict if is_read_now else None,
        )
        _require_label(options.group_by, [answer])
    results = [check(condition, answer.effect) for condition in fail_on]
    _print(answer, results, options.group_by, outputs.output, has_head=has_head)
    if outputs.junit is not None:
        _write_junit(outputs.junit, [(answer, results, "")])
    if report is not None:
        from fairlead.cli.output.report_file import write_report
        from fairlead.whatif.report.report_builder import Heading, whatif_report

        seconds = perf_counter() - started
        heading = Heading(answer.title, answer.source, answer.seed, seconds)
        write_report(report, whatif_report(heading, answer, results, options.group_by))
        say_written("report", report)
    return _exit_code([answer], results)


def _report_file(
    request: WhatIfRequest,
    options: RunOptions,
    outputs: AnswerOutputOptions,
    comparison: ComparisonOptions = NO_COMPARISON,
) -> Path | None:
    """Return the file of the report, or None for no report.

    Raises InputError if an output file cannot be written, or is also an input or another output.
    """
    report = None
    # Without a question, there is nothing to report, and the default file may hold the answer to an
    # earlier question.
    if outputs.report is not None or request.change.words or comparison.is_given:
        report = outputs.report_path(DEFAULT_REPORT)
    files = {"--report": report, "--commands": outputs.commands, "--junit": outputs.junit}
    read = kubeconfigs(request.connection, by_default=request.source is None)
    require_distinct(files, request, options, comparison, read)
    return report


def _read(request: WhatIfRequest) -> Snapshot:
    with ProgressBar() as progress:
        progress.begin("reading", 0)
        return snapshot_of(request.source, request.connection, request.max_input, progress)


def _read_other(request: WhatIfRequest, source: str) -> Snapshot:
    """Return the dump of --against-snapshot."""
    with ProgressBar() as progress:
        progress.begin("reading", 0)
        return snapshot_of(source, NO_CONNECTION, request.max_input, progress)


def _alternatives(comparison: ComparisonOptions) -> Iterable[ClusterChange]:
    """Return the changes that --change gives. Raises InputError."""
    if not comparison.change:
        return ()
    from fairlead.cli.commands.whatif.alternatives import parse_alternatives

    return [one.change for one in parse_alternatives(comparison.change).values()]


def _conditions(
    request: WhatIfRequest, options: RunOptions, changes: Iterable[ClusterChange]
) -> Conditions:
    """Return the settings for the simulations with and without `changes`. Raises InputError."""
    _refuse_unread_files(options, changes)
    choice = request.release.choice
    conditions = conditions_of(
        behave_like=choice.version,
        feature_gates=choice.gates,
        flags=request.controllers.flags,
        autoscale=options.autoscale,
        node_groups=options.node_groups,
        node_pools=options.node_pools,
        instance_types=options.instance_types,
        provision_time=options.provision_time,
        horizon=options.horizon,
        startup_time=options.startup_time,
        seed=options.seed,
        seeds=options.seeds,
        next_steps=not options.no_next_steps,
        config=options.config,
        plugin=options.plugin,
        allow_extenders=options.allow_extenders,
        batch=BatchOptions(options.batch_config, options.batch_plugin),
        load=options.load,
        runtimes=options.runtimes,
        kwok_stages=options.kwok_stages,
    )
    require_effect(request.controllers, conditions.node_lifecycle)
    return conditions


def _compare(
    request: WhatIfRequest,
    options: RunOptions,
    conditions: Conditions,
    outputs: AnswerOutputOptions,
    comparison: ComparisonOptions,
) -> int:
    """Print several answers side by side, and return the exit code.

    If a condition of --fail-on holds for at least one answer, the exit code says so.
    """
    started = perf_counter()
    of_one_answer = {
        "--commands": outputs.commands,
        "--log-level": request.log.log_level,
        "-v": request.log.verbosity,
    }
    for option, value in of_one_answer.items():
        if value is not None:
            problem = "cannot be combined with --change, --against-snapshot or --against-config"
            raise InputError(option, problem)
    fail_on = [parse_fail_on(text) for text in options.fail_on]
    from fairlead.cli.commands.whatif.alternatives import (
        ParsedChange,
        answer_alternatives,
        print_comparison,
        write_comparison,
    )

    has_change = bool(request.change.words or comparison.change)
    if comparison.against_snapshot is not None and not has_change:
        return _compare_dumps(request, options, outputs, comparison, comparison.against_snapshot)
    report = _report_file(request, options, outputs, comparison)
    snapshots = [_read(request)]
    if comparison.against_snapshot is not None:
        snapshots.append(_read_other(request, comparison.against_snapshot))
    with ProgressBar() as progress:
        asked = ParsedChange(request.change, request.controllers)
        found = answer_alternatives(snapshots, asked, conditions, comparison, progress)
    _require_label(options.group_by, [one.answer for one in found])
    found = [
        replace(one, conditions=tuple(check(condition, one.answer.effect) for condition in fail_on))
        for one in found
    ]
    print_comparison(found, comparison, outputs.output)
    if outputs.junit is not None:
        _write_junit(outputs.junit, [(one.answer, one.conditions, one.name) for one in found])
    if report is not None:
        took_s = perf_counter() - started
        write_comparison(report, found, comparison, options.group_by, took_s)
    return _exit_code(
        [one.answer for one in found], [result for one in found for result in one.conditions]
    )


def _compare_dumps(
    request: WhatIfRequest,
    options: RunOptions,
    outputs: AnswerOutputOptions,
    comparison: ComparisonOptions,
    other: str,
) -> int:
    """Print the differences between two dumps; return the exit code.

    `request` names the first dump, and `other` is the path of the second dump. Nothing is
    simulated. Raises InputError for an option that has a meaning only for a simulated change.
    """
    of_simulations: dict[str, object] = {
        "--against-config": comparison.against_config,
        "--junit": outputs.junit,
        "--report": outputs.report,
    }
    for one in fields(options):
        value = getattr(options, one.name)
        if one.name != "group_by" and value != one.default:
            of_simulations[f"--{one.name.replace('_', '-')}"] = value
    for option, value in of_simulations.items():
        if value is not None:
            problem = "needs a change; without a change, --against-snapshot compares the dumps"
            raise InputError(option, problem)
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.dump_comparison.answer import compare_dumps

    answer = compare_dumps(_read(request), _read_other(request, other), options.group_by)
    print_tabular(answer, outputs.output)
    return exit_code.DIFFERENCE if answer.facts["difference"] else exit_code.SUCCESS


def _require_label(label: str, answers: Iterable[WhatIfAnswer]) -> None:
    """Raise InputError if `label`, the value of --group-by, is the label of no node."""
    runs = [run for answer in answers for run in (answer.without, answer.changed)]
    if label and not any(label in node.labels for run in runs for node in run.nodes):
        raise InputError("--group-by", f"no node has the label {label}")


def _write_junit(
    path: Path, answers: Sequence[tuple[WhatIfAnswer, Sequence[ConditionResult], str]]
) -> None:
    from fairlead.cli.commands.whatif.junit import JunitSuite, junit_report

    suites = [JunitSuite(answer, results, name) for answer, results, name in answers]
    write_atomically(path, junit_report(suites))


def _print(
    answer: WhatIfAnswer,
    results: list[ConditionResult],
    label: str,
    form: str,
    *,
    has_head: bool,
) -> None:
    """Print the answer in the format `form`; `label` is the node label of --group-by.

    If `has_head` is set, the head of the answer has been printed already.
    """
    match form:
        case "json":
            print_bytes(encode_result(whatif_result(answer, results, label)))
        case "markdown":
            from fairlead.cli.output.markdown import markdown_answer

            print_bytes(markdown_answer(answer, results, label).encode())
        case _:
            from fairlead.cli.output.answer import print_answer

            has_details = form == "details"
            print_answer(answer, results, label, has_details=has_details, has_head=has_head)


def _refuse_unread_files(options: RunOptions, changes: Iterable[ClusterChange]) -> None:
    """Raise InputError for an option with a file that neither the autoscaler nor a change reads."""
    chosen, types = options.autoscale, options.instance_types
    if options.node_pools is not None and chosen in (OFF, CLUSTER_AUTOSCALER):
        raise InputError("--node-pools", "needs --autoscale karpenter")
    is_read = chosen != OFF or any(one.instance_type or one.reschedule for one in changes)
    if types is not None and not is_read:
        raise InputError("--instance-types", "needs --autoscale, --instance-type or --reschedule")


def change_of(options: ChangeOptions, failures: FailureOptions) -> ClusterChange:
    """Return the change that `options` and `failures` describe."""
    return ClusterChange(**vars(options), failures=Failures(**vars(failures)))


def _exit_code(answers: Iterable[WhatIfAnswer], results: Sequence[ConditionResult]) -> int:
    """Return the exit code for `answers`, or for the conditions in `results` if there are any.

    If there are conditions, return CONDITION_HOLDS if any of them holds. If there are no
    conditions, return DIFFERENCE if any of the changes has an effect. In all other cases, return
    SUCCESS.
    """
    if results:
        holds = any(one.holds for one in results)
        return exit_code.CONDITION_HOLDS if holds else exit_code.SUCCESS
    differs = any(not one.effect.is_none for one in answers)
    return exit_code.DIFFERENCE if differs else exit_code.SUCCESS
