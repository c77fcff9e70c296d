"""`fairlead replay`: compares recorded placements with the scheduler's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import named
from fairlead.cli.options.plan import RECORDED_DEFAULTS, RecordedOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions

if TYPE_CHECKING:
    from fairlead.engine.configuration.release import Release
    from fairlead.engine.core.instant import DurationNs
    from fairlead.engine.scheduling.config import SchedulerConfig
    from fairlead.whatif.input.document import Document
    from fairlead.whatif.result.tabular_answer import TabularAnswer
    from fairlead.whatif.snapshot.snapshot import Snapshot

_TOLERANCE: Final = "10s"


def replay(
    file: str,
    /,
    *,
    snapshot: Annotated[
        str | None,
        named(
            "SNAPSHOT",
            "A dump of the cluster at the start of the history: a file, a directory, - for "
            "standard input, or openb's table of nodes. Required for a SimKube trace and for "
            "openb's pod table. Optional for an audit log: without a dump, Fairlead knows only the "
            "objects in the log. Cannot be combined with an export of kube-scheduler-simulator.",
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        named(
            "DURATION",
            "For a SimKube trace or the pod table of openb: simulated and recorded start times "
            "count as equal if they differ by at most this time (default: 10s).",
        ),
    ] = None,
    present: RecordedOptions = RECORDED_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Compare each placement in a recorded history with the scheduler's rules.

    FILE is an audit log of kube-apiserver (JSON lines, level Request or RequestResponse) or an
    export of kube-scheduler-simulator. For each recorded binding, Fairlead takes the state of the
    cluster before the binding. It finds the nodes on which the pod fits, and computes the scores of
    these nodes. Then it binds the pod to the recorded node. The recorded node agrees with the rules
    if it has the highest score of all these nodes. In a large cluster, the scheduler scores only a
    sample of the nodes. In such a cluster, the recorded node agrees if it has the highest score in
    at least one possible sample. The answer counts the pods whose node agrees, and lists the other
    pods with the reasons.

    FILE can also be a SimKube trace, or the pod table of openb, a public trace of a GPU cluster.
    These files record when pods started, but not on which node. Fairlead simulates the pods on the
    nodes of `--snapshot`, and compares the simulated start times with the recorded start times.

    Try:

        fairlead replay audit.log
        fairlead replay audit.log --snapshot dump.json --config scheduler.yaml
        fairlead replay trace.sktrace --snapshot nodes.yaml
        fairlead replay openb_pod_list_default.csv --snapshot openb_node_list_all_node.csv

    Parameters
    ----------
    file
        An audit log, an export of kube-scheduler-simulator, a SimKube trace or openb's pod table.
        With -, the command reads standard input. openb's pod table must be a file.
    """
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.input.content import BYTES_MAX
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.input.strict_form import field_duration
    from fairlead.whatif.replay.recorded_start import is_openb_table
    from fairlead.whatif.replay.replay import read_history
    from fairlead.whatif.scenario.simkube_trace import is_simkube_trace

    within = field_duration("--tolerance", "", _TOLERANCE if tolerance is None else tolerance) or 0
    source, data = read_history(file, present.max_input or BYTES_MAX)
    if is_openb_table(data) or is_simkube_trace(data):
        answer = _replayed_starts(file, data, (snapshot, within), present, release)
    elif tolerance is not None:
        problem = f"has no effect, because {source} records nodes of pods, not start times"
        raise InputError("--tolerance", problem)
    else:
        answer = _replayed_placements(source, data, snapshot, present, release)
    print_tabular(answer, output)
    return 0


def _replayed_placements(
    source: str,
    data: bytes,
    snapshot: str | None,
    present: RecordedOptions,
    release: ReleaseOptions,
) -> TabularAnswer:
    """Return the answer about `data`, a history that contains the node of each placed pod.

    Raises InputError.
    """
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.result_file import print_empty_files
    from fairlead.whatif.configuration.release import read_release
    from fairlead.whatif.input.content import BYTES_MAX
    from fairlead.whatif.input.document import Document
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.replay.answer import replay_answer
    from fairlead.whatif.replay.replay import (
        as_simulator_export,
        replay_audit_log,
        replay_simulator_export,
    )
    from fairlead.whatif.snapshot.snapshot import read_dump

    export = as_simulator_export(source, data)
    if export is not None and snapshot is not None:
        problem = "cannot be combined with an export of kube-scheduler-simulator"
        raise InputError("--snapshot", problem)
    recorded = None
    if export is not None and export.value.get("schedulerConfig"):
        recorded = Document(f"{source}: schedulerConfig", export.value["schedulerConfig"])
    version = read_release(release.choice)
    with ProgressBar() as progress:
        bytes_max = present.max_input or BYTES_MAX
        dump = None if snapshot is None else read_dump(snapshot, bytes_max=bytes_max)
        print_empty_files(() if dump is None else dump.empty_files)
        config = _scheduler_config(present, version, dump, recorded)
        if export is not None:
            result = replay_simulator_export(export, config, progress)
        else:
            result = replay_audit_log(source, data, dump, config, progress)
    return replay_answer(result)


def _replayed_starts(
    file: str,
    data: bytes,
    options: tuple[str | None, DurationNs],
    present: RecordedOptions,
    release: ReleaseOptions,
) -> TabularAnswer:
    """Return the answer about `data`, a history that contains only the start times of pods.

    `options` is (--snapshot, duration of --tolerance in ns). Raises InputError.
    """
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.result_file import print_empty_files
    from fairlead.whatif.configuration.release import Releases, read_release
    from fairlead.whatif.input.content import BYTES_MAX
    from fairlead.whatif.input.document import STDIN
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.replay.recorded_start import (
        TABLE_SUFFIXES,
        ReplaySettings,
        is_openb_table,
        replay_openb,
        replay_simkube,
    )
    from fairlead.whatif.snapshot.snapshot import read_dump

    snapshot, within = options
    source = STDIN if file == "-" else file
    if snapshot is None:
        raise InputError("--snapshot", f"is missing: {source} has no nodes")
    version = read_release(release.choice)
    is_table = snapshot.endswith(TABLE_SUFFIXES)
    if is_openb_table(data) and file == "-":
        raise InputError(source, "a table of pods must be a file, not standard input")
    if is_table and not is_openb_table(data):
        raise InputError("--snapshot", f"{snapshot} is a table; name a dump with the nodes")
    with ProgressBar() as progress:
        dump = None if is_table else read_dump(snapshot, bytes_max=present.max_input or BYTES_MAX)
        print_empty_files(() if dump is None else dump.empty_files)
        config = _scheduler_config(present, version, dump)
        settings = ReplaySettings(config, Releases(version, version), present.seed, within)
        if is_openb_table(data):
            return replay_openb(file, dump or snapshot, settings, progress)
        assert dump is not None
        return replay_simkube(source, data, dump, settings, progress)


def _scheduler_config(
    present: RecordedOptions,
    release: Release,
    dump: Snapshot | None,
    recorded: Document | None = None,
) -> SchedulerConfig:
    """Return the configuration of --config, or else `recorded`, or else the default.

    --config may name a ConfigMap in `dump`.

    Raises InputError if the configuration is invalid or names extenders.
    """
    from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
    from fairlead.whatif.configuration.stored_configuration import chosen_configuration
    from fairlead.whatif.configuration.user_plugin import UserPlugins
    from fairlead.whatif.input.error import InputError

    manifests = () if dump is None else dump.manifests
    config = read_scheduler_config(
        (present.config and chosen_configuration("--config", present.config, manifests))
        or recorded,
        UserPlugins(present.plugin),
        release,
        allow_extenders=True,
    )
    if config.extenders:
        raise InputError("--config", "must not name extenders: a replay calls no extender")
    return config
