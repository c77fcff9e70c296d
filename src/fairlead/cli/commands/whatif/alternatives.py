"""A what-if that compares several changes, snapshots or configurations.

The user names them with `--change`, `--against-snapshot` and `--against-config`.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cyclopts import App, CycloptsError, UnknownOptionError, UnusedCliTokensError
from msgspec import Struct
from msgspec.structs import replace

from fairlead.cli.commands.whatif.options import NO_CHANGES, ChangeOptions, ComparisonOptions
from fairlead.cli.options.controller import NO_FLAGS, ControllerOptions
from fairlead.cli.options.failure import NO_FAILURES, FailureOptions
from fairlead.cli.options.node_lifecycle import node_lifecycle
from fairlead.cli.options.output import AnswerFormat
from fairlead.cli.options.parameter import Names
from fairlead.cli.output.atomic_file import write_atomically
from fairlead.cli.output.result_file import say_written
from fairlead.cli.output.tabular_answer import print_tabular
from fairlead.cli.unknown_option import option_hint
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.comparison import Alternative, compare
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError, one_line
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.snapshot import Snapshot

OPTION: Final = "--change"
DEFAULT: Final = "default scheduler"


class ParsedChange(Struct, frozen=True):
    """A change, and the flags of kube-controller-manager with which it is simulated."""

    change: ClusterChange
    controllers: ControllerOptions = NO_FLAGS

    def conditions(self, shared: Conditions, controllers: ControllerOptions) -> Conditions:
        """Return `shared` with the controller flags of this change.

        `controllers` contains the flags that all changes share. A flag of this change takes
        precedence over the same flag in `controllers`. Raises InputError.
        """
        if not self.controllers.flags:
            return shared
        given = {name: value for name, value in vars(self.controllers).items() if value}
        merged = dataclasses.replace(controllers, **given)
        found = node_lifecycle(merged, release=shared.releases.nodes)
        return replace(shared, node_lifecycle=found)


def parse_alternatives(texts: Names) -> dict[str, ParsedChange]:
    """Parse `texts`, the values of --change; return each change by its name. Raises InputError."""
    changes: dict[str, ParsedChange] = {}
    for text in texts:
        name, colon, words = text.partition(":")
        name = name.strip()
        if not colon or not name or name.startswith("-"):
            raise InputError(OPTION, f"{text!r} is not NAME:OPTIONS, such as 'b:--drain n1'")
        if name in changes:
            raise InputError(OPTION, f"the name {name} appears twice")
        changes[name] = _change(name, words)
    return changes


def _change(name: str, words: str) -> ParsedChange:
    def change(
        *,
        change: ChangeOptions = NO_CHANGES,
        failures: FailureOptions = NO_FAILURES,
        controllers: ControllerOptions = NO_FLAGS,
    ) -> ParsedChange:
        found = ClusterChange(**vars(change), failures=Failures(**vars(failures)))
        return ParsedChange(found, controllers)

    app = App(default_command=change, help_flags=(), version_flags=())
    try:
        command, bound, _ = app.parse_args(
            shlex.split(words), exit_on_error=False, print_error=False
        )
    except UnknownOptionError as refusal:
        option = (refusal.token.keyword or refusal.token.value).partition("=")[0]
        own = {name for one in app.assemble_argument_collection() for name in one.names}
        hint = option_hint("whatif", option, own, lambda _: ())
        problem = f"{one_line(option)} is not an option of a change"
        problem = f"{problem}; {hint}" if hint else problem
        raise InputError(OPTION, problem, object_name=name) from None
    except UnusedCliTokensError as refusal:
        first = one_line(str((refusal.unused_tokens or [""])[0]))
        problem = f"{first!r} is one argument too many; is its option missing?"
        raise InputError(OPTION, problem, object_name=name) from None
    except CycloptsError as refusal:
        problem = " ".join(str(refusal).split())
        raise InputError(OPTION, problem, object_name=name) from None
    except ValueError as cause:  # The text has an unclosed quote.
        raise InputError(OPTION, str(cause), object_name=name) from None
    found: ParsedChange = command(*bound.args, **bound.kwargs)
    if not found.change.words:
        problem = "has no options"
        if found.controllers.flags:
            problem = "has no options that change the cluster, such as --fail-node"
        raise InputError(OPTION, problem, object_name=name)
    return found


def answer_alternatives(
    snapshots: Sequence[Snapshot],
    asked: ParsedChange,
    conditions: Conditions,
    options: ComparisonOptions,
    progress: Progress,
) -> list[Alternative]:
    """Answer every alternative, in the order of the options. Raises InputError.

    `snapshots` contains the dump and, if --against-snapshot is given, the dump that this option
    names.

    `asked` contains the change and the flags that are given outside of --change. `conditions`
    already contain the settings of these flags.
    """
    changes = parse_alternatives(options.change)
    if changes and asked.change.words:
        raise InputError(
            asked.change.words[0].split()[0],
            f"cannot be used with {OPTION}; write it into each {OPTION}",
        )
    return [
        Alternative(
            " on ".join(part for part in (name, where) if part),
            _answer(name, where, one.change, cluster, present, progress),
            flags=tuple(f"--{flag} {value}" for flag, value in one.controllers.flags.items()),
        )
        for where, cluster, shared in _cases(snapshots, conditions, options)
        for name, one in (changes or {"": ParsedChange(asked.change)}).items()
        for present in [_conditions(name, one, shared, asked.controllers)]
    ]


def _conditions(
    name: str, one: ParsedChange, shared: Conditions, controllers: ControllerOptions
) -> Conditions:
    """Return the conditions of the alternative `name`.

    Raises an InputError that contains `name`.
    """
    try:
        return one.conditions(shared, controllers)
    except InputError as cause:
        raise InputError(OPTION, str(cause), object_name=name) from None


def _answer(
    name: str,
    where: str,
    change: ClusterChange,
    snapshot: Snapshot,
    conditions: Conditions,
    progress: Progress,
) -> WhatIfAnswer:
    """Answer the alternative `name`; the name is "" if no option --change is given.

    `where` names the snapshot and the configuration. If there is only one snapshot and one
    configuration, `where` is "". Raises InputError. If an option of the alternative causes the
    error, the error's message contains `name` and `where`.
    """
    try:
        return what_if(snapshot, change, conditions, progress=progress)
    except InputError as cause:
        if not _is_about(change, cause.source):
            raise
        about = f" (asked about {where})" if where else ""
        if name:
            raise InputError(OPTION, f"{cause}{about}", object_name=name) from None
        raise InputError(
            cause.source,
            f"{cause.problem}{about}",
            object_name=cause.object_name,
            field=cause.field,
        ) from None


def _is_about(change: ClusterChange, source: str) -> bool:
    """Return whether `source`, the source of an error, belongs to an option of `change`.

    `source` belongs to an option if it is the option itself, the option's value, or a file in a
    directory that the value names.
    """
    words = [word for one in change.words for word in one.split(" ", 1)]
    return any(source == word or source.startswith(f"{word}/") for word in words)


def print_comparison(
    alternatives: Sequence[Alternative],
    options: ComparisonOptions,
    output: AnswerFormat,
) -> None:
    """Print the comparison of `alternatives` in the format `output`."""
    print_tabular(compare(alternatives, is_choice=bool(options.change)), output)


def write_comparison(
    path: Path,
    alternatives: Sequence[Alternative],
    options: ComparisonOptions,
    label: str,
    took_s: float,
) -> None:
    """Write the report of the comparison to `path`; it includes the report of each answer.

    `label` is the node label that groups nodes; `took_s` is the time for all answers, in seconds.
    """
    from fairlead.whatif.report.comparison_data import comparison_data
    from fairlead.whatif.report.report_builder import Heading, whatif_report
    from fairlead.whatif.report.write import render_comparison

    reports = []
    for one in alternatives:
        answer = one.answer
        heading = Heading(answer.title, answer.source, answer.seed, took_s / len(alternatives))
        reports.append(whatif_report(heading, answer, [], label))
    page = render_comparison(comparison_data(alternatives, is_choice=bool(options.change)), reports)
    write_atomically(path, page.encode())
    say_written("report", path)


def _cases(
    snapshots: Sequence[Snapshot], conditions: Conditions, options: ComparisonOptions
) -> Iterator[tuple[str, Snapshot, Conditions]]:
    """Yield (name, snapshot, conditions) for each combination of a snapshot and a configuration.

    The name contains only what differs between the combinations. If there is only one combination,
    the name is "".
    """
    configs = [conditions]
    if options.against_config is not None:
        configs.append(replace(conditions, config=options.against_config))
    for cluster in snapshots:
        for present in configs:
            words = [cluster.source] if len(snapshots) > 1 else []
            words += [present.config or DEFAULT] if len(configs) > 1 else []
            yield ", ".join(words), cluster, present
