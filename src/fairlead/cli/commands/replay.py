"""`fairlead replay`: compares recorded placements with the scheduler's rules."""

from __future__ import annotations

from typing import Annotated

from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import named
from fairlead.cli.options.present import PRESENT_DEFAULTS, PresentOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def replay(
    file: str,
    /,
    *,
    snapshot: Annotated[
        str | None,
        named("DUMP", "The cluster when the audit log begins, as other commands take it."),
    ] = None,
    present: PresentOptions = PRESENT_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Compare every placement of a recorded history with the scheduler's rules.

    FILE is an audit log of kube-apiserver (JSON lines, level Request or RequestResponse) or an
    export of kube-scheduler-simulator. Each pod that it binds is decided on the state before the
    binding; then the history is followed. The answer counts the pods on the best nodes, and lists
    the others with reasons. `--config` is the configuration that the recorded scheduler had
    (default: the one in the export, else kube-scheduler's defaults).

    Try:

        fairlead replay audit.log

        fairlead replay audit.log --snapshot dump.json --config scheduler.yaml

        fairlead replay audit.log -o json

    Parameters
    ----------
    file
        An audit log or an export, or - for standard input.
    """
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.configuration.release import read_release
    from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
    from fairlead.whatif.configuration.user_plugin import UserPlugins
    from fairlead.whatif.input.content import BYTES_MAX
    from fairlead.whatif.input.document import Document
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.replay.answer import replay_answer
    from fairlead.whatif.replay.replay import (
        as_simulator_export,
        read_history,
        replay_audit_log,
        replay_simulator_export,
    )
    from fairlead.whatif.snapshot.snapshot import read_snapshot

    bytes_max = present.max_input or BYTES_MAX
    source, data = read_history(file, bytes_max)
    export = as_simulator_export(source, data)
    if export is not None and snapshot is not None:
        raise InputError("--snapshot", "is only for audit logs; an export has its objects")
    recorded = None
    if export is not None and export.value.get("schedulerConfig"):
        recorded = Document(f"{source}: schedulerConfig", export.value["schedulerConfig"])
    config = read_scheduler_config(
        present.config or recorded,
        UserPlugins(present.plugin),
        read_release(release.choice),
        allow_extenders=True,
    )
    if config.extenders:
        raise InputError("--config", "extenders cannot be replayed: they would decide again")
    with ProgressBar() as progress:
        if export is not None:
            result = replay_simulator_export(export, config, progress)
        else:
            dump = None if snapshot is None else read_snapshot(snapshot, bytes_max=bytes_max)
            result = replay_audit_log(source, data, dump, config, progress)
    print_tabular(replay_answer(result), output)
    return 0
