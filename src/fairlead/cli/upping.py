"""What `fairlead up` does: open the door, write the kubeconfig, let the cluster live.

The order matters: what may be refused comes first, so that a refusal leaves nothing behind; who
holds the journal has the directory to themselves, so that comes before anything is written there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair, new_client, new_server
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.request import ADMIN, AUTHENTICATED
from fairlead.apiserver.storage.sqlite_log import SqliteLogError
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.cli import exit_code
from fairlead.cli.audit_log import opened_audit
from fairlead.cli.own_folder import own_folder, sweep
from fairlead.cli.up_door import (
    certificate_files,
    hosts_of,
    open_door,
    told_address,
)
from fairlead.cli.up_wanted import Wanted
from fairlead.whatif.input_error import InputError
from fairlead.worlds.local.bootstrap.nodes import ZONE
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions
from fairlead.worlds.local.data_dir import DataDir, new_data_dir, objects_file, open_data_dir
from fairlead.worlds.local.kubeconfig import NAME, kubeconfig, write_secret
from fairlead.worlds.local.server.serve import ServeOptions, serve_cluster


def serve(wanted: Wanted) -> int:
    """Serve until a signal ends it; the exit code. Raises InputError."""
    wanted.check()
    sweep()
    with ExitStack() as opened:
        listening = opened.enter_context(open_door(wanted.host, wanted.port))
        audit = opened.enter_context(opened_audit(wanted.audit))
        place = opened.enter_context(_place(wanted.kubeconfig))
        address = str(told_address(wanted.host, listening))
        # Whether a certificate is good is judged by the clocks of clients, not by the cluster's.
        real_now = datetime.now(UTC)  # noqa: TID251
        clock = LocalClock(speed=wanted.speed, paused=wanted.paused)
        journal = opened.enter_context(_journal(wanted, clock))
        home = _home(wanted, real_now)
        cluster = _cluster(wanted, address, home, clock, journal)
        pairs = _pairs(home, real_now) if wanted.client_certificates else {}
        _hand_out(place, _kubeconfig(f"https://{address}", home, pairs))

        def say_ready() -> None:
            print(f"export KUBECONFIG={place}  # {_about(cluster)}; Ctrl-C ends it", flush=True)

        pair = new_server(home.authority, hosts_of(wanted.host), real_now)
        door = ServeOptions(
            listening=listening,
            authenticate=cluster.tokens,
            certificate=opened.enter_context(certificate_files(pair, home.authority.certificate)),
            audit=audit,
        )
        serve_cluster(cluster, door, say_ready)
    return exit_code.SUCCESS


def _hand_out(place: Path, text: str) -> None:
    """Write the kubeconfig. Raises InputError where it cannot be."""
    try:
        write_secret(place, text)
    except OSError as cause:
        problem = cause.strerror or str(cause)
        raise InputError("--kubeconfig", problem, object_name=str(place)) from None


@contextmanager
def _journal(wanted: Wanted, clock: LocalClock) -> Iterator[WriteAheadLog | None]:
    """Where objects are kept, None where they are not; time goes on from where it was there.

    Raises InputError.
    """
    if wanted.data_dir is None:
        yield None
        return
    try:
        journal = WriteAheadLog(objects_file(wanted.data_dir), clock=clock.now)
        lived_until = journal.last_time
    except (SqliteLogError, OSError) as cause:
        raise _refused_home(cause) from None
    with closing(journal):
        clock.jump_to(lived_until)
        yield journal


def _home(wanted: Wanted, now: datetime) -> DataDir:
    """Who is known, and by what. Raises InputError."""
    if wanted.data_dir is None:
        return new_data_dir(wanted.further_users, now)
    try:
        return open_data_dir(wanted.data_dir, wanted.further_users, now)
    except (OSError, ValueError) as cause:
        raise _refused_home(cause) from None


def _cluster(
    wanted: Wanted, address: str, home: DataDir, clock: LocalClock, journal: WriteAheadLog | None
) -> LocalCluster:
    """The cluster, with what the journal holds. Raises InputError."""
    options = LocalOptions(
        nodes=wanted.nodes,
        zones=wanted.zones,
        address=address,
        authority=home.authority.certificate,
        authority_key=home.authority.key,
        without=wanted.parts_left_out,
    )
    is_new = journal is None or journal.is_empty
    try:
        return LocalCluster(options, clock, home.users, home.account_key, journal)
    except SqliteLogError as cause:
        raise _refused_home(cause) from None
    except (ValueError, LookupError, TypeError, AttributeError) as cause:
        if is_new:
            raise
        # Of what is kept, which was read just now: nothing else comes from outside.
        name = str(wanted.data_dir)
        raise InputError("--data-dir", f"is damaged: {cause}", object_name=name) from cause


def _refused_home(cause: Exception) -> InputError:
    if isinstance(cause, OSError) and cause.filename:
        problem = cause.strerror or str(cause)
        return InputError("--data-dir", problem, object_name=str(cause.filename))
    return InputError("--data-dir", str(cause))


def _kubeconfig(url: str, home: DataDir, pairs: Mapping[str, CertificateKeyPair]) -> str:
    others = {user.name: token for token, user in home.users.items() if user.name != ADMIN.name}
    authority = home.authority.certificate
    return kubeconfig(url, home.token_of(ADMIN.name), authority, others, pairs)


def _pairs(home: DataDir, now: datetime) -> dict[str, CertificateKeyPair]:
    """A certificate for everybody who is known, by the names that the kubeconfig has for them."""
    return {
        NAME if user.name == ADMIN.name else user.name: new_client(
            home.authority,
            user.name,
            tuple(group for group in user.groups if group != AUTHENTICATED),
            now,
        )
        for user in home.users.values()
    }


def _about(cluster: LocalCluster) -> str:
    """How large it is: as it was asked for at first, or as it was left."""
    nodes = cluster.store.list(NODE)
    zones = {node["metadata"].get("labels", {}).get(ZONE, "") for node in nodes}

    def counted(number: int, noun: str) -> str:
        return f"{number} {noun}{'' if number == 1 else 's'}"

    return f"{counted(len(nodes), 'node')} in {counted(len(zones), 'zone')}"


@contextmanager
def _place(wanted: Path | None) -> Iterator[Path]:
    """Where the kubeconfig goes; a place of our own is gone afterwards."""
    if wanted is not None:
        yield wanted.absolute()
        return
    with own_folder() as folder:
        yield folder / "kubeconfig"
