"""Runs `fairlead up`: opens the socket and the data directory, writes the kubeconfig, and serves.

Steps that can fail come first, so that a failure leaves nothing behind. The write-ahead log locks
the data directory, so the log is opened before anything is written to the directory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.api.text.count import counted
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair, new_client, new_server
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.request import ADMIN, AUTHENTICATED
from fairlead.apiserver.storage.sqlite_log import SqliteLogError
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.cli.commands.up.audit_log import opened_audit
from fairlead.cli.commands.up.child_command import ChildCommand
from fairlead.cli.commands.up.initial_objects import (
    objects_of_cluster,
    print_age,
    print_invalid_templates,
)
from fairlead.cli.commands.up.listener import (
    certificate_files,
    client_address,
    host_names,
    open_socket,
)
from fairlead.cli.commands.up.options import KUBELET, UpOptions
from fairlead.cli.commands.up.private_folder import private_folder, remove_abandoned
from fairlead.cli.commands.up.running_cluster import require_ended
from fairlead.cli.commands.up.user import require_own_contexts
from fairlead.cli.options.dashboard import open_dashboard_port
from fairlead.cli.output.result_file import print_empty_files, print_notice
from fairlead.engine.configuration.release import CURRENT
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.whatif.configuration.autoscaling.autoscaler import OFF, is_of_karpenter
from fairlead.whatif.configuration.autoscaling.provider_settings import (
    provision_times,
    with_provider,
)
from fairlead.whatif.configuration.kwok_stage import is_stage, stages_note, with_stages
from fairlead.whatif.configuration.release import Releases
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.api_refusal import as_input_error
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.snapshot import DEFAULT_START, Snapshot, read_snapshot
from fairlead.worlds.local.bootstrap.nodes import zone_name
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions
from fairlead.worlds.local.control_plane import OBSERVED
from fairlead.worlds.local.data_dir import (
    ADDRESS,
    DataDir,
    last_port,
    lost_data,
    new_data_dir,
    note_objects,
    note_port,
    objects_file,
    open_data_dir,
)
from fairlead.worlds.local.kubeconfig import entry_name, kubeconfig, write_secret
from fairlead.worlds.local.server.serve import ServeOptions, serve_cluster

if TYPE_CHECKING:
    from fairlead.cli.commands.dashboard.local_dashboard import LocalDashboard
    from fairlead.engine.config import EngineConfig
    from fairlead.engine.core.reporter import Reporter


def serve(options: UpOptions) -> int:
    """Serve until a signal, or until the command after `--` ends; return the exit code.

    Raises InputError.
    """
    options.check()
    if options.kubeconfig is not None and options.kubeconfig.is_file():
        require_ended(options.kubeconfig)
    child = ChildCommand(options.command)
    remove_abandoned()
    with ExitStack() as opened:
        listening = opened.enter_context(_open_socket(options))
        audit = opened.enter_context(opened_audit(options.audit, options.audit_level))
        path = opened.enter_context(_kubeconfig_path(options.kubeconfig))
        address = str(client_address(options.host, listening))
        # Clients check certificates against their own clocks, not against the cluster's clock.
        real_now = datetime.now(UTC)  # noqa: TID251
        clock = LocalClock(speed=options.speed, paused=options.paused)
        log = opened.enter_context(_write_ahead_log(options, clock))
        data_dir = _data_dir(options, real_now)
        dashboard = opened.enter_context(_dashboard(options, path))
        cluster = _cluster(options, address, data_dir, clock, log, dashboard)
        if options.data_dir is not None:
            _note_start(options, options.data_dir, listening.getsockname()[1])
        pairs = _pairs(data_dir, options.name, real_now) if options.client_certificates else {}
        text = _kubeconfig(f"https://{address}", data_dir, pairs, options.name)
        _write_kubeconfig(path, text)

        opened.enter_context(_address_file(options.data_dir, address))

        def say_ready() -> None:
            if options.command:
                if dashboard is not None:
                    print(f"dashboard: {dashboard.new_link()}", file=sys.stderr)
                child.start(path)
                return
            about = _about(cluster)
            if options.release != CURRENT:
                about = f"{about}; {Releases(options.release, options.release).words.rstrip('.')}"
            lines = [f"export KUBECONFIG={path}  # {about}; Ctrl-C ends it"]
            if dashboard is not None:
                # A comment, because users pass the output to eval.
                lines.append(f"# dashboard: {dashboard.new_link()}")
            print("\n".join(lines), flush=True)

        pair = new_server(data_dir.authority, host_names(options.host), real_now)
        serve_options = ServeOptions(
            listening=listening,
            authenticate=cluster.tokens,
            certificate=opened.enter_context(
                certificate_files(pair, data_dir.authority.certificate)
            ),
            audit=audit,
            data_dir=options.data_dir,
            companion=dashboard,
        )
        opened.enter_context(closing(child))
        serve_cluster(cluster, serve_options, say_ready)
    return child.exit_code


def _open_socket(options: UpOptions) -> socket:
    """Return a listening socket. Raises InputError.

    Without --port, the cluster of a data directory gets the port that it had in its last run.
    Kubeconfigs of that run then still work. If this port is not available, or there is no last run,
    any free port is chosen.
    """
    if not options.port and options.data_dir is not None and (port := last_port(options.data_dir)):
        with suppress(InputError):
            return open_socket(options.host, port)
    return open_socket(options.host, options.port)


def _note_start(options: UpOptions, directory: Path, port: int) -> None:
    """Store in the data directory that it has objects, and `port`. Raises InputError."""
    try:
        note_objects(directory)
        _note_port(options, directory, port)
    except OSError as cause:
        raise _data_dir_error(cause) from None


def _note_port(options: UpOptions, directory: Path, port: int) -> None:
    """Store `port` in the data directory.

    Without --port, print a warning if the cluster had another port in its last run.
    """
    before = last_port(directory)
    if before == port:
        return
    if before and not options.port:
        print_notice(
            f"port {before}, which this cluster had before, is not available; the cluster has "
            "another port, so kubeconfigs from before do not reach it"
        )
    note_port(directory, port)


@contextmanager
def _dashboard(options: UpOptions, kubeconfig: Path) -> Iterator[LocalDashboard | None]:
    """Yield the dashboard with its open socket, or None if --dashboard is not given.

    `kubeconfig` is the path of the cluster's kubeconfig. Raises InputError.
    """
    if not options.dashboard:
        yield None
        return
    # Imported only if needed: importing the page and the recorders takes as long as starting a
    # small cluster.
    from fairlead.cli.commands.dashboard.local_dashboard import LocalDashboard

    with open_dashboard_port(options.dashboard_port) as listening:
        yield LocalDashboard(listening, kubeconfig)


@contextmanager
def _address_file(data_dir: Path | None, address: str) -> Iterator[None]:
    """Store the server's address in `data_dir` during the `with` block, for `fairlead backup`.

    Raises InputError.
    """
    if data_dir is None:
        yield
        return
    path = data_dir / ADDRESS
    try:
        write_secret(path, address)
    except OSError as cause:
        raise _data_dir_error(cause) from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _write_kubeconfig(place: Path, text: str) -> None:
    """Write the kubeconfig `text` to `place`. Raises InputError if this fails."""
    try:
        write_secret(place, text)
    except OSError as cause:
        problem = cause.strerror or str(cause)
        raise InputError("--kubeconfig", problem, object_name=str(place)) from None


@contextmanager
def _write_ahead_log(options: UpOptions, clock: LocalClock) -> Iterator[WriteAheadLog | None]:
    """Yield the write-ahead log in the data directory, or None if the cluster is only in memory.

    Set the clock (`_set_clock`) to the time of the log's last entry, if that is known. Raises
    InputError.
    """
    if options.data_dir is None:
        yield None
        return
    with ExitStack() as opened:
        try:
            log = WriteAheadLog(objects_file(options.data_dir), clock=clock.now)
            opened.enter_context(closing(log))
            lived_until = log.last_time
            loss = lost_data(options.data_dir, log)
        except (SqliteLogError, OSError) as cause:
            raise _data_dir_error(cause) from None
        if loss and not options.accept_loss:
            problem = f"{loss}; --accept-loss starts without the missing data"
            raise InputError("--data-dir", problem)
        if lived_until:
            _set_clock(options, clock, lived_until)
        yield log


def _set_clock(options: UpOptions, clock: LocalClock, instant: Instant) -> None:
    """Set the clock to `instant`, the time of the objects with which the cluster starts.

    Without --keep-time, the clock is set only if it shows an earlier time. It shows an earlier
    time, for example, if the objects come from another local cluster whose clock was advanced. If
    the clock stayed behind `instant`, timeouts that began before `instant` would last too long.
    """
    if options.keep_time:
        clock.set_to(instant)
    else:
        clock.jump_to(instant)


def _data_dir(options: UpOptions, now: datetime) -> DataDir:
    """Return the CA, the keys and the users of the cluster.

    The CA, the keys and the users are read from the data directory, which is created if it does not
    exist. If no option names a data directory, the CA, the keys and the users are newly created,
    and not stored. In both cases, the result has the further users that `options` name. Raises
    InputError if the data directory cannot be used, or if a user in the data directory has the name
    of the administrator.
    """
    if options.data_dir is None:
        return new_data_dir(options.further_users, now)
    try:
        data_dir = open_data_dir(options.data_dir, options.further_users, now)
    except (OSError, ValueError) as cause:
        raise _data_dir_error(cause) from None
    require_own_contexts(data_dir.users.values(), options.name)
    return data_dir


def _cluster(
    options: UpOptions,
    address: str,
    data_dir: DataDir,
    clock: LocalClock,
    log: WriteAheadLog | None,
    dashboard: LocalDashboard | None,
) -> LocalCluster:
    """Return the cluster, with the objects of the log, or of the snapshot if the cluster is new.

    Set the clock (`_set_clock`) to the time of the snapshot, if the snapshot contains times. Raises
    InputError if the log or the snapshot cannot be used.
    """
    snapshot = _snapshot(options, log)
    if snapshot is not None and snapshot.taken_at != DEFAULT_START:
        _set_clock(options, clock, snapshot.taken_at)
        print_age(snapshot, clock.now())

    def logging(reporter: Reporter) -> Reporter:
        return options.logging(reporter, clock.now)

    local_options = LocalOptions(
        nodes=options.node_count,
        zones=options.zone_count,
        address=address,
        authority=data_dir.authority.certificate,
        authority_key=data_dir.authority.key,
        without=options.without_components,
        job_duration=options.job_time,
        release=options.release,
        logging=logging if dashboard is None else dashboard.logging(logging),
        limited=options.limited,
        objects=() if snapshot is None else objects_of_cluster(snapshot),
        engine=_engine(options, snapshot, clock.now()),
    )
    is_new = log is None or log.is_empty
    try:
        cluster = LocalCluster(local_options, clock, data_dir.users, data_dir.account_key, log)
    except SqliteLogError as cause:
        raise _data_dir_error(cause) from None
    except ApiError as refused:
        if snapshot is None:
            raise
        raise as_input_error(snapshot.source, snapshot.manifests, refused) from None
    except (ValueError, LookupError, TypeError, AttributeError) as cause:
        if is_new:
            raise
        # The content of the log is the only unchecked input here, so the log must be damaged.
        name = str(options.data_dir)
        raise InputError("--data-dir", f"is damaged: {cause}", object_name=name) from cause
    if snapshot is not None:
        print_invalid_templates(snapshot.source, cluster.store)
    if not is_new:
        _print_unused_size(options, cluster)
    return cluster


def _print_unused_size(options: UpOptions, cluster: LocalCluster) -> None:
    """Print a notice if --nodes or --zones differ from the size of the stored cluster."""
    nodes, zones = _size(cluster)
    differing = [
        name
        for name, wanted, stored in (
            ("--nodes", options.nodes, nodes),
            ("--zones", options.zones, zones),
        )
        if wanted not in (None, stored)
    ]
    if differing:
        verb = "has" if len(differing) == 1 else "have"
        print_notice(
            f"--data-dir already holds a cluster ({_about(cluster)}), so "
            f"{' and '.join(differing)} {verb} no effect"
        )


def _engine(options: UpOptions, snapshot: Snapshot | None, now: Instant) -> EngineConfig:
    """Return the engine's configuration, with the autoscaler and the node controllers of `options`.

    The kubelets, if there are any, follow the KWOK Stages in `snapshot` and of `options`. Raises
    InputError.
    """
    nodes = options.node_lifecycle
    config = OBSERVED if nodes is None else replace(OBSERVED, node_lifecycle=nodes)
    if KUBELET not in options.without_components:
        config = replace(config, kubelet=_with_stages(config.kubelet, snapshot, options.stages))
    if options.autoscale.autoscale == OFF:
        return config
    # Imported only if needed: most clusters have no autoscaler.
    from fairlead.cli.commands.up.node_groups import read_local_autoscaling

    if is_of_karpenter(options.autoscale, () if snapshot is None else snapshot.manifests):
        from fairlead.cli.commands.up.karpenter_setup import karpenter_setup

        zones = {zone_name(number) for number in range(options.zone_count)}
        provider = provision_times(options.provision_time)
        karpenter = karpenter_setup(options.instance_types, zones, snapshot, provider)
        return replace(config, karpenter=karpenter)
    if options.instance_types is not None:
        raise InputError("--instance-types", "needs --autoscale karpenter")
    found = read_local_autoscaling(
        options.autoscale, options.node_count, options.zone_count, snapshot, now
    )
    for note in found.notes if found.config is None else ():
        print_notice(note)
    provider = provision_times(options.provision_time)
    return replace(config, autoscaler=with_provider(found, provider).config)


def _with_stages(
    config: KubeletConfig, snapshot: Snapshot | None, given: Sequence[Manifest]
) -> KubeletConfig:
    """Return `config` with the delays of KWOK Stages, and print notices.

    The Stages are those in `snapshot` and `given`. If a Stage in `snapshot` cannot be simulated,
    none of the Stages in `snapshot` has an effect, and a notice says why. The Stages `given` must
    have been checked (`UpOptions.check`).
    """
    present = () if snapshot is None else samples(snapshot.manifests)
    found = [one for one in present if is_stage(one)]
    try:
        with_stages(config, found, seed=0)
    except InputError as cause:
        print_notice(f"The KWOK Stages of --snapshot have no effect: {cause}")
        found = []
    if not (stages := [*found, *given]):
        return config
    print_notice(stages_note(stages))
    return with_stages(config, stages, seed=0)


def _snapshot(options: UpOptions, log: WriteAheadLog | None) -> Snapshot | None:
    """Return the snapshot with which a new cluster starts; None if no option names one.

    Raises InputError if the snapshot cannot be read, or if `log` already contains a cluster.
    """
    if options.snapshot is None:
        return None
    if log is not None and not log.is_empty:
        raise InputError("--snapshot", "--data-dir holds a cluster; name an empty directory")
    found = read_snapshot(options.snapshot, is_copied=True)
    print_empty_files(found.empty_files)
    return found


def _data_dir_error(cause: Exception) -> InputError:
    if isinstance(cause, OSError) and cause.filename:
        is_file = isinstance(cause, FileExistsError)
        problem = "is not a directory" if is_file else cause.strerror or str(cause)
        return InputError("--data-dir", problem, object_name=str(cause.filename))
    return InputError("--data-dir", str(cause))


def _kubeconfig(
    url: str, data_dir: DataDir, pairs: Mapping[str, CertificateKeyPair], name: str
) -> str:
    others = {user.name: token for token, user in data_dir.users.items() if user.name != ADMIN.name}
    authority = data_dir.authority.certificate
    return kubeconfig(url, data_dir.token_of(ADMIN.name), authority, others, pairs, name)


def _pairs(data_dir: DataDir, cluster: str, now: datetime) -> dict[str, CertificateKeyPair]:
    """Return a client certificate for each user, keyed by the user's name in the kubeconfig.

    `cluster` is the name of the cluster.
    """
    return {
        cluster if user.name == ADMIN.name else entry_name(user.name, cluster): new_client(
            data_dir.authority,
            user.name,
            tuple(group for group in user.groups if group != AUTHENTICATED),
            now,
        )
        for user in data_dir.users.values()
    }


def _about(cluster: LocalCluster) -> str:
    """Return the size of the cluster as text, for the first line of output."""
    nodes, zones = _size(cluster)
    where = f" in {counted(zones, 'zone')}" if zones else ""
    return f"{counted(nodes, 'node')}{where}"


def _size(cluster: LocalCluster) -> tuple[int, int]:
    """Return the number of nodes, and the number of zones that the labels of nodes name."""
    nodes = cluster.store.list(NODE)
    zones = {node["metadata"].get("labels", {}).get(ZONE, "") for node in nodes} - {""}
    return len(nodes), len(zones)


@contextmanager
def _kubeconfig_path(wanted: Path | None) -> Iterator[Path]:
    """Yield the path for the kubeconfig: `wanted`, or if it is None, a path in a private folder."""
    if wanted is not None:
        yield wanted.absolute()
        return
    with private_folder() as folder:
        yield folder / "kubeconfig"
