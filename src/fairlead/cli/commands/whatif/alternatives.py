"""Several answers of one what-if: `--change`, `--against-snapshot`, `--against-config`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cyclopts import App, CycloptsError

from fairlead.cli.commands.whatif.options import NO_CHANGES, ChangeOptions, ComparisonOptions
from fairlead.cli.options.failure import NO_FAILURES, FailureOptions
from fairlead.cli.options.output import AnswerFormat
from fairlead.cli.options.parameter import Names
from fairlead.cli.output.tabular_answer import print_tabular
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.comparison import Alternative, compare
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import Conditions, what_if
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.snapshot import Snapshot, read_snapshot

OPTION: Final = "--change"
DEFAULT: Final = "default scheduler"


def parse_alternatives(texts: Names) -> dict[str, ClusterChange]:
    """Return the changes by name. Raises InputError."""
    changes: dict[str, ClusterChange] = {}
    for text in texts:
        name, colon, words = text.partition(":")
        name = name.strip()
        if not colon or not name or name.startswith("-"):
            raise InputError(OPTION, f"{text!r} is not NAME:OPTIONS, such as 'b:--drain n1'")
        if name in changes:
            raise InputError(OPTION, f"the name {name} appears twice")
        changes[name] = _change(name, words)
    return changes


def _change(name: str, words: str) -> ClusterChange:
    def change(
        *, change: ChangeOptions = NO_CHANGES, failures: FailureOptions = NO_FAILURES
    ) -> ClusterChange:
        return ClusterChange(**vars(change), failures=Failures(**vars(failures)))

    app = App(default_command=change, help_flags=(), version_flags=())
    try:
        command, bound, _ = app.parse_args(
            shlex.split(words), exit_on_error=False, print_error=False
        )
    except CycloptsError as refusal:
        problem = " ".join(str(refusal).split())
        raise InputError(OPTION, problem, object_name=name) from None
    except ValueError as cause:  # A text with unclosed quotes.
        raise InputError(OPTION, str(cause), object_name=name) from None
    found: ClusterChange = command(*bound.args, **bound.kwargs)
    if not found.words:
        raise InputError(OPTION, "has no options", object_name=name)
    return found


def print_comparison(
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions,
    options: ComparisonOptions,
    output: AnswerFormat,
    progress: Progress,
) -> bool:
    """Answer every alternative and print the comparison; return whether any answer differs.

    Raises InputError.
    """
    changes = parse_alternatives(options.change)
    if changes and change.words:
        raise InputError(change.words[0].split()[0], f"stands beside {OPTION}; put it into each")
    found = [
        Alternative(" on ".join(part for part in (name, where) if part), answer)
        for where, cluster, present in _cases(snapshot, conditions, options)
        for name, one in (changes or {"": change}).items()
        for answer in [what_if(cluster, one, present, progress=progress)]
    ]
    print_tabular(compare(found, is_choice=bool(changes)), output)
    return any(not one.answer.difference.is_empty for one in found)


def _cases(
    snapshot: Snapshot, conditions: Conditions, options: ComparisonOptions
) -> Iterator[tuple[str, Snapshot, Conditions]]:
    """Yield each snapshot with each configuration, and the words that distinguish them."""
    snapshots = [snapshot]
    if options.against_snapshot is not None:
        snapshots.append(read_snapshot(options.against_snapshot))
    configs = [conditions]
    if options.against_config is not None:
        configs.append(replace(conditions, config=options.against_config))
    for cluster in snapshots:
        for present in configs:
            words = [cluster.source] if len(snapshots) > 1 else []
            words += [present.config or DEFAULT] if len(configs) > 1 else []
            yield ", ".join(words), cluster, present
