"""The options that name a running cluster to use instead of a snapshot."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.parameter import CLUSTER, named
from fairlead.cli.output.result_file import print_notice

if TYPE_CHECKING:
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.client.connection import ConnectionConfig
    from fairlead.whatif.snapshot.live.live_snapshot import LiveObjects, OnRead
    from fairlead.whatif.snapshot.snapshot import Snapshot


@Parameter(name="*", group=CLUSTER)
@dataclass(frozen=True)
class ConnectionOptions:
    """The options that name a running cluster.

    --in-cluster cannot be combined with --kubeconfig or --context.
    """

    kubeconfig: Annotated[
        str | None,
        named(
            "FILE",
            "Use the cluster of this kubeconfig file (default: the files in KUBECONFIG, or else "
            "~/.kube/config).",
        ),
    ] = None
    context: Annotated[
        str | None,
        named(
            "NAME",
            "Use the cluster of this kubeconfig context (default with --kubeconfig: the current "
            "context of the file).",
        ),
    ] = None
    in_cluster: Annotated[
        bool,
        Parameter(
            help="Use the cluster of the pod that this command runs in, with the pod's service "
            "account.",
            negative=(),
        ),
    ] = False

    @property
    def is_given(self) -> bool:
        """Whether an option names a cluster."""
        return self.in_cluster or self.kubeconfig is not None or self.context is not None

    @property
    def words(self) -> tuple[str, ...]:
        """The options as words of a command."""
        file = () if self.kubeconfig is None else ("--kubeconfig", self.kubeconfig)
        context = () if self.context is None else ("--context", self.context)
        return (*file, *context, *(("--in-cluster",) if self.in_cluster else ()))


NO_CONNECTION: Final = ConnectionOptions()
BOTH_SOURCES: Final = "name either a dump (SNAPSHOT) or a cluster, not both"
KUBECTL_PLUGIN: Final = "kubectl-fairlead"
LARGE_YAML_BYTES: Final = 50_000_000
JSON_IS_FASTER: Final = "YAML takes much longer to read than JSON (kubectl get ... -o json)"
_YAML_STARTS: Final = (b"apiVersion:", b"items:", b"kind:", b"---")


def snapshot_of(
    source: str | None,
    options: ConnectionOptions,
    max_input: MaxInput = None,
    progress: ProgressBar | None = None,
) -> Snapshot:
    """Return the snapshot at `source`, or of the cluster that `options` name. Raises InputError.

    As a kubectl plugin, Fairlead uses kubectl's current context if no snapshot or cluster is named.
    `max_input` limits the bytes that are read; None means BYTES_MAX. `progress` shows how much of a
    file has been read.
    """
    from msgspec import structs

    from fairlead.whatif.input.content import BYTES_MAX, read_silently
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.snapshot.snapshot import read_snapshot, snapshot_of_texts

    limit = () if max_input is None else ("--max-input", str(max_input))
    if source is not None and options.is_given:
        raise InputError("arguments", BOTH_SOURCES)
    if source is not None:
        if is_large_yaml(Path(source)):
            print_notice(f"{source}: {JSON_IS_FASTER}")
        on_read = read_silently if progress is None else progress.read
        snapshot = read_snapshot(source, None, max_input or BYTES_MAX, on_read)
        return structs.replace(snapshot, arguments=(*snapshot.arguments, *limit))
    if not options.is_given and not is_kubectl_plugin():
        problem = (
            "name a dump (SNAPSHOT), or a cluster with --context, --kubeconfig or --in-cluster"
        )
        raise InputError("arguments", f"{problem}{_current_hint()}")
    options = with_context(options)
    live = read_cluster(options, max_input, decode=True)
    snapshot = snapshot_of_texts(live.name, live, live.metadata())
    return structs.replace(snapshot, arguments=(*options.words, *limit))


def with_context(options: ConnectionOptions) -> ConnectionOptions:
    """Return `options` with the name of the current context if they name no context.

    The name is needed because the user may switch to another context while the cluster is read, or
    before a printed command runs. Raises InputError.
    """
    from fairlead.client.kubeconfig import Kubeconfig, kubeconfig_paths

    if options.in_cluster or options.context:
        return options
    with _as_input_errors():
        current = Kubeconfig(kubeconfig_paths(options.kubeconfig or "")).current_context
    return replace(options, context=current or None)


def _current_hint() -> str:
    """Return a hint that names the current context; "" if there is none."""
    from fairlead.whatif.input.error import InputError, one_line

    try:
        current = with_context(NO_CONNECTION).context
    except InputError:  # There is no kubeconfig, or it cannot be read.
        return ""
    return f"; the current context is --context {shlex.quote(one_line(current))}" if current else ""


def is_kubectl_plugin() -> bool:
    """Return whether this process was started as `kubectl fairlead`."""
    return Path(sys.argv[0]).stem == KUBECTL_PLUGIN


def is_large_yaml(path: Path) -> bool:
    """Return whether `path` is a YAML file from kubectl with at least LARGE_YAML_BYTES."""
    try:
        if not path.is_file() or path.stat().st_size < LARGE_YAML_BYTES:
            return False
        with path.open("rb") as file:
            return file.read(len(_YAML_STARTS[0])).startswith(_YAML_STARTS)
    except (OSError, ValueError):  # An unreadable file is reported when it is read.
        return False


def read_cluster(
    options: ConnectionOptions, max_input: MaxInput = None, *, decode: bool = False
) -> LiveObjects:
    """Read the objects of a cluster; show progress on a terminal. Raises InputError.

    `max_input` limits the bytes that are read; None means BYTES_MAX. If `decode` is set, objects
    are decoded as they arrive; see `read_live`.
    """
    from fairlead.whatif.input.content import BYTES_MAX
    from fairlead.whatif.snapshot.live.live_snapshot import read_live

    config = connection_of(options)
    with shown_reading(config.name) as on_read:
        return read_live(config, on_read, decode=decode, bytes_max=max_input or BYTES_MAX)


def connection_of(options: ConnectionOptions) -> ConnectionConfig:
    """Return the connection to the cluster that `options` name. Raises InputError."""
    from fairlead.client.connection import in_cluster
    from fairlead.client.kubeconfig import Kubeconfig, kubeconfig_paths
    from fairlead.whatif.input.error import InputError

    if options.in_cluster and (options.kubeconfig or options.context):
        raise InputError("--in-cluster", "cannot be combined with --kubeconfig or --context")
    with _as_input_errors():
        if options.in_cluster:
            return in_cluster()
        return Kubeconfig(kubeconfig_paths(options.kubeconfig or "")).connection(
            options.context or ""
        )


@contextmanager
def _as_input_errors() -> Iterator[None]:
    """Raise InputError in place of a ConnectionConfigError of the `with` block."""
    from fairlead.client.error import ConnectionConfigError
    from fairlead.whatif.input.error import InputError

    try:
        yield
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem, field=cause.field) from None


def kubeconfigs(options: ConnectionOptions, *, by_default: bool = False) -> tuple[str, ...]:
    """Return the kubeconfig files that a command with `options` reads.

    `by_default` means that the command reads the cluster of the current context if no option names
    a cluster. The result is empty if the command reads no kubeconfig, or if the default files are
    missing.
    """
    if options.in_cluster or not (options.is_given or by_default):
        return ()
    from fairlead.client.error import ConnectionConfigError
    from fairlead.client.kubeconfig import kubeconfig_paths

    try:
        return tuple(kubeconfig_paths(options.kubeconfig or ""))
    except ConnectionConfigError:  # The error is reported when the cluster is read.
        return ()


@contextmanager
def shown_reading(name: str) -> Iterator[OnRead]:
    """Show, until the `with` block ends, how many objects of the cluster `name` have been read.

    Yields a function that adds to this number. Shows nothing if stderr is not a terminal.
    """
    from fairlead.cli.output.console.progress_bar import is_terminal

    if not is_terminal(sys.stderr):
        yield lambda _: None
        return
    from fairlead.cli.output.console.terminal import stderr_console

    total = 0
    with stderr_console().status(f"reading {name}") as shown:

        def on_read(count: int) -> None:
            nonlocal total
            total += count
            shown.update(f"reading {name}: {total:,} objects")

        yield on_read
