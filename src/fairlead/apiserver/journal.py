"""Journal: what a storage holds, in a file that survives the process.

    storage --change--> record --(writer thread, many at once)--> SQLite, synced --> settled

Changes are recorded in order and written by one thread: all that came while it wrote the last
ones goes into the next transaction (group commit), so that waiting for the disk costs each of
many writers little. `settle` comes back when everything that was recorded before is on the disk;
whoever acknowledges nothing before it does, never loses what it acknowledged.

The file has every object in its newest version, and a log of the newest changes, from which
watches go on after a restart. With synchronous=FULL it withstands a power failure, without only
the death of the process.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.apiserver.error import internal_error
from fairlead.apiserver.kind import KINDS, Kind, kind_of
from fairlead.apiserver.storage import LOG_CAPACITY, Change, ChangeType, Key, Storage

Json = dict[str, Any]
Row = tuple[int, str, str, str, str, bytes]
# Up to which version, in which loop, and what is resolved then.
Waiting = tuple[int, asyncio.AbstractEventLoop, "asyncio.Future[None]"]

FORMAT: Final = 1
COMPACTION_EVERY: Final = 1_000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS current (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (
    version INTEGER PRIMARY KEY, type TEXT NOT NULL, resource TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL
);
"""
# Of several versions the one that is stored.
_BUILT_IN: Final = {kind.resource: kind for kind in reversed(KINDS) if not kind.is_custom}
_LOGGED: Final = "INSERT INTO log VALUES {}"
_KEPT: Final = "INSERT OR REPLACE INTO current VALUES {}"
_GONE: Final = "DELETE FROM current WHERE (resource, namespace, name) IN (VALUES {})"
# Rows of one statement. Each statement lets go of the interpreter and must wait for it again,
# which on a busy server takes longer than writing; SQLite takes 32,766 parameters at most.
_ROWS_MAX: Final = 500
_FORGOTTEN: Final = "DELETE FROM log WHERE version <= ?"
_SET: Final = "INSERT OR REPLACE INTO about VALUES (?, ?)"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(type=Json).decode


class JournalError(Exception):
    """A file that is no journal of ours, is in use, or cannot be written."""


class Journal:
    """The journal in the file `path`. Single writer, like its storage."""

    def __init__(
        self,
        path: Path,
        *,
        synced: bool = True,
        log_capacity: int = LOG_CAPACITY,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """Open or create it; `synced`: withstand power failures. Raises JournalError.

        `clock` (ns since 1970) tells the time that `last_time` is to know.
        """
        self._path = path
        self._log_capacity = log_capacity
        self._clock = clock
        self._connection = _opened(path, synced=synced)
        self._pending: list[Row] = []
        self._recorded = self._durable = self._newest()
        self._changed = threading.Condition()
        self._waiting: list[Waiting] = []
        self._failure = ""
        self._is_closing = False
        self._uncompacted = 0
        self._writer = threading.Thread(target=self._write, name="journal", daemon=True)

    # --- the past --------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to it."""
        row = self._connection.execute("SELECT 1 FROM current LIMIT 1").fetchone()
        return row is None and self._recorded == 0

    @property
    def last_time(self) -> int:
        """When something was written last, by the clock of then; 0 if nobody told."""
        found = self._connection.execute("SELECT value FROM about WHERE name = 'time'").fetchone()
        return int(found[0]) if found else 0

    def restore(self, storage: Storage) -> None:
        """Fill an empty `storage` with what was written. Raises JournalError."""
        query = "SELECT resource, namespace, name, object FROM current"
        try:
            storage.restore_texts(map(_placed, self._connection.execute(query)), self._newest())
            storage.resume(list(self._logged()))
        except (sqlite3.Error, msgspec.DecodeError, LookupError, ValueError) as cause:
            raise JournalError(f"{self._path}: is damaged: {cause}") from cause

    def _logged(self) -> Iterator[Change]:
        """The log from where each change is known with what was there before."""
        known: dict[tuple[str, str, str], Json] = {}
        changes: list[Change] = []
        for version, kind_of_change, resource, namespace, name, blob in self._connection.execute(
            "SELECT version, type, resource, namespace, name, object FROM log ORDER BY version"
        ):
            kind, obj = _loaded(resource, namespace, blob)
            key, type_ = (resource, namespace, name), ChangeType(kind_of_change)
            previous = known.get(key)
            if previous is None and type_ is not ChangeType.ADDED:
                changes.clear()
            else:
                changes.append(Change(type_, kind, obj, previous, version))
            known[key] = obj
            if type_ is ChangeType.DELETED:
                del known[key]
        return iter(changes)

    # --- the present -----------------------------------------------------------------------

    def begin(self, storage: Storage) -> None:
        """Write what `storage` holds if that is not there yet, and from now on each change."""
        if self.is_empty:
            self._write_all(storage)
        storage.subscribe(self.record)
        self._writer.start()

    def record(self, change: Change) -> None:
        """Write a change, soon."""
        meta = change.object["metadata"]
        row = (
            change.version,
            change.type.value,
            change.kind.resource,
            meta.get("namespace", ""),
            meta["name"],
            _encode(change.object),
        )
        with self._changed:
            self._pending.append(row)
            self._recorded = change.version
            self._changed.notify()

    async def settle(self) -> None:
        """Come back when all that was recorded is on the disk. Raises ApiError 500 if it cannot."""
        if self._durable >= self._recorded and not self._failure:
            return
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        with self._changed:
            if self._failure:
                raise internal_error(self._failure)
            if self._durable >= self._recorded:
                return
            self._waiting.append((self._recorded, loop, written))
        await written

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._writer.is_alive():
            self._writer.join()
        self._connection.close()

    # --- the writer's thread ---------------------------------------------------------------

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._is_closing:
                    self._changed.wait()
                rows, self._pending = self._pending, []
            if not rows:
                return
            try:
                self._commit(rows)
            except sqlite3.Error as cause:
                self._fail(f"{self._path}: {cause}")
                return
            self._settled(rows[-1][0])

    def _commit(self, rows: list[Row]) -> None:
        kept: dict[tuple[str, str, str], Row] = {row[2:5]: row for row in rows}
        gone = [key for key, row in kept.items() if row[1] == ChangeType.DELETED]
        stay = [(*key, row[5]) for key, row in kept.items() if row[1] != ChangeType.DELETED]
        self._connection.execute("BEGIN IMMEDIATE")
        self._execute(_LOGGED, rows)
        self._execute(_KEPT, stay)
        self._execute(_GONE, gone)
        if self._clock is not None:
            self._connection.execute(_SET, ("time", self._clock()))
        self._uncompacted += len(rows)
        if self._uncompacted >= COMPACTION_EVERY:
            self._uncompacted = 0
            self._connection.execute(_FORGOTTEN, (rows[-1][0] - self._log_capacity,))
            self._connection.execute(_SET, ("version", rows[-1][0]))
        self._connection.execute("COMMIT")

    def _execute(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Execute `statement` with many rows at once."""
        for first in range(0, len(rows), _ROWS_MAX):
            some = rows[first : first + _ROWS_MAX]
            places = f"({', '.join('?' * len(some[0]))})"
            values = [value for row in some for value in row]
            self._connection.execute(statement.format(", ".join([places] * len(some))), values)

    def _settled(self, version: int) -> None:
        with self._changed:
            self._durable = version
            ready = [entry for entry in self._waiting if entry[0] <= version]
            self._waiting = [entry for entry in self._waiting if entry[0] > version]
        _tell(ready, "")

    def _fail(self, why: str) -> None:
        """Nothing more is acknowledged."""
        with self._changed:
            self._failure = why
            waiting, self._waiting = self._waiting, []
        _tell(waiting, why)

    # --- the file --------------------------------------------------------------------------

    def _newest(self) -> int:
        (logged,) = self._connection.execute("SELECT ifnull(max(version), 0) FROM log").fetchone()
        loaded = self._connection.execute("SELECT value FROM about WHERE name = 'version'")
        newest: int = max(logged, *(row[0] for row in loaded), 0)
        return newest

    def _write_all(self, storage: Storage) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for kind in storage.kinds():
            for obj in storage.unsorted(kind):
                self._execute(_KEPT, [(kind.resource, *_key(obj), _encode(obj))])
        self._connection.execute(_SET, ("version", storage.version))
        self._connection.execute("COMMIT")
        self._recorded = self._durable = storage.version


def _opened(path: Path, *, synced: bool) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
        connection.executescript(_SCHEMA)
        connection.execute("INSERT OR IGNORE INTO about VALUES ('format', ?)", (FORMAT,))
        found = connection.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
    except sqlite3.Error as cause:
        is_locked = cause.sqlite_errorcode == sqlite3.SQLITE_BUSY
        why = "is in use by another process" if is_locked else str(cause)
        raise JournalError(f"{path}: {why}") from cause
    if found != (FORMAT,):
        raise JournalError(f"{path}: format {found[0]}, expected {FORMAT}")
    return connection


def _loaded(resource: str, namespace: str, blob: bytes) -> tuple[Kind, Json]:
    obj = _decode(blob)
    kind = kind_of(obj)
    if kind.resource == resource:
        return kind, obj
    # A custom resource, whose plural is whatever its definition says.
    plural, _, group = resource.partition(".")
    version = obj.get("apiVersion", "").rpartition("/")[2]
    return Kind(group, version, obj.get("kind", ""), plural, namespaced=bool(namespace)), obj


def _placed(row: tuple[str, str, str, bytes]) -> tuple[Kind, Key, bytes]:
    resource, namespace, name, blob = row
    kind = _BUILT_IN.get(resource) or _loaded(resource, namespace, blob)[0]
    return kind, (namespace, name), blob


def _key(obj: Json) -> tuple[str, str]:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _tell(waiting: Sequence[Waiting], failure: str) -> None:
    """Let those go on who wait, each in its loop, which is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for _, loop, written in waiting:
        loops.setdefault(loop, []).append(written)
    for loop, together in loops.items():
        loop.call_soon_threadsafe(_resolve, together, failure)


def _resolve(together: Sequence[asyncio.Future[None]], failure: str) -> None:
    for written in together:
        if written.done():
            continue
        if failure:
            written.set_exception(internal_error(failure))
        else:
            written.set_result(None)
