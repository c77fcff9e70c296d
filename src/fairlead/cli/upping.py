"""What `fairlead up` does: open the door, write the kubeconfig, let the cluster live."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from typing import Final

from fairlead.apiserver.auth.certificate import Pair, new_server
from fairlead.apiserver.auth.token import authenticated
from fairlead.apiserver.http.app import Audit
from fairlead.apiserver.http.listener import Certificate
from fairlead.apiserver.journal import Journal, JournalError
from fairlead.apiserver.request import ADMIN, User
from fairlead.cli import exit_code
from fairlead.cli.options import Names
from fairlead.whatif.input_error import InputError
from fairlead.worlds.local.clock import SteeredClock
from fairlead.worlds.local.clock_control import SPEED_MAX
from fairlead.worlds.local.cluster import PARTS, LocalCluster, LocalOptions
from fairlead.worlds.local.home import Home, kept_home, new_home, objects_file
from fairlead.worlds.local.kubeconfig import kubeconfig, write_secret
from fairlead.worlds.local.serve import Door, serve_cluster

HOST: Final = "127.0.0.1"
NODES_MAX: Final = 10_000
BACKLOG: Final = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user asked for."""

    nodes: int
    zones: int
    port: int
    data_dir: Path | None
    users: Names
    audit: Path | None
    kubeconfig: Path | None
    speed: float
    paused: bool
    without: Names


def serve(wanted: Wanted) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. Raises InputError."""
    without = _checked(wanted)
    with _open(wanted.port) as listening, _place(wanted.kubeconfig) as place:
        address = f"{HOST}:{listening.getsockname()[1]}"
        # Whether a certificate is good is judged by the clocks of clients, not by the cluster's.
        real_now = datetime.now(UTC)  # noqa: TID251
        home = _home(wanted, real_now)
        options = LocalOptions(
            nodes=wanted.nodes,
            zones=wanted.zones,
            address=address,
            authority=home.authority.certificate,
            without=without,
        )
        clock = SteeredClock(speed=wanted.speed, paused=wanted.paused)
        journal = _journal(wanted, clock)
        cluster = LocalCluster(options, clock, home.users, home.account_key, journal)
        _hand_out(place, _kubeconfig(f"https://{address}", home))

        def say_ready() -> None:
            print(f"export KUBECONFIG={place}  # {_about(wanted)}; Ctrl-C ends it", flush=True)

        with (
            _certificate(new_server(home.authority, (HOST,), real_now)) as certificate,
            _audit(wanted.audit) as audit,
        ):
            door = Door(
                listening=listening,
                authenticate=cluster.tokens,
                certificate=certificate,
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


def _home(wanted: Wanted, now: datetime) -> Home:
    """Who is known, and by what. Raises InputError."""
    users = [_user(text) for text in wanted.users]
    if wanted.data_dir is None:
        return new_home(users, now)
    try:
        return kept_home(wanted.data_dir, users, now)
    except (OSError, ValueError) as cause:
        raise InputError("--data-dir", str(cause)) from None


def _journal(wanted: Wanted, clock: SteeredClock) -> Journal | None:
    """Where objects are kept, None where they are not; time goes on from where it was there.

    Raises InputError.
    """
    if wanted.data_dir is None:
        return None
    try:
        journal = Journal(objects_file(wanted.data_dir), clock=clock.now)
    except (JournalError, OSError) as cause:
        raise InputError("--data-dir", str(cause)) from None
    clock.jump_to(journal.last_time)
    return journal


def _user(text: str) -> User:
    """`NAME`, or `NAME:GROUP,GROUP`. Raises InputError."""
    name, _, groups = text.partition(":")
    if not name or name == ADMIN.name or "," in name:
        raise InputError("--user", "must be NAME or NAME:GROUP,…", object_name=text)
    return authenticated(name, tuple(filter(None, groups.split(","))))


def _kubeconfig(url: str, home: Home) -> str:
    others = {user.name: token for token, user in home.users.items() if user.name != ADMIN.name}
    return kubeconfig(url, home.token_of(ADMIN.name), home.authority.certificate, others)


def _checked(wanted: Wanted) -> Names:
    """The parts to leave out. Raises InputError for options that make no sense."""
    if not 0 <= wanted.nodes <= NODES_MAX:
        raise InputError("--nodes", f"must be from 0 to {NODES_MAX}")
    if not 1 <= wanted.zones <= max(1, wanted.nodes):
        raise InputError("--zones", "must be from 1 to the number of nodes")
    if not 0 <= wanted.port <= 65_535:
        raise InputError("--port", "must be from 0 to 65535")
    if not 0 < wanted.speed <= SPEED_MAX:
        raise InputError("--speed", f"must be more than 0 and at most {SPEED_MAX:g}")
    named = [name.strip() for text in wanted.without for name in text.split(",")]
    for name in named:
        if name not in PARTS:
            raise InputError("--without", f"must be one of {', '.join(PARTS)}", object_name=name)
    return tuple(named)


def _about(wanted: Wanted) -> str:
    def counted(number: int, noun: str) -> str:
        return f"{number} {noun}{'' if number == 1 else 's'}"

    return f"{counted(wanted.nodes, 'node')} in {counted(wanted.zones, 'zone')}"


def _open(port: int) -> socket:
    """A listening socket. Raises InputError for a port that is taken."""
    listening = socket()
    listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as cause:
        listening.close()
        raise InputError("--port", cause.strerror or str(cause), object_name=str(port)) from None
    listening.listen(BACKLOG)
    return listening


@contextmanager
def _audit(path: Path | None) -> Iterator[Audit | None]:
    """What keeps the lines of the audit log. Raises InputError."""
    if path is None:
        yield None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as cause:
        raise InputError("--audit", cause.strerror or str(cause), object_name=str(path)) from None
    with os.fdopen(descriptor, "ab", buffering=0) as file:
        yield file.write


@contextmanager
def _certificate(pair: Pair) -> Iterator[Certificate]:
    """The server's certificate and key as files, for as long as they are needed."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        chain, key = Path(folder) / "server.crt", Path(folder) / "server.key"
        write_secret(chain, pair.certificate)
        write_secret(key, pair.key)
        yield Certificate(str(chain), str(key))


@contextmanager
def _place(wanted: Path | None) -> Iterator[Path]:
    """Where the kubeconfig goes; a place of our own is gone afterwards."""
    if wanted is not None:
        yield wanted.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        yield Path(folder) / "kubeconfig"
