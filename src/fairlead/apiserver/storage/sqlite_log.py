"""SqliteLog: the SQLite file of the write-ahead log.

The file contains the newest version of every object, and the recent changes, from which watches
resume after a restart. With `synchronous=FULL`, the file survives a power failure; otherwise, it
survives only a crash of the process.

The text of a change is written once, to the table `log`. A row that a later change supersedes is
deleted when watches can no longer resume from it.

    about      numbers by name, such as the versions `base` and `compacted`
    current    the objects at the version `base`, without those that have changed since
    log        the changes after `base`. All changes after the version `compacted` are kept; an
               earlier change is kept only while it contains the newest version of its object

In files of the older format 1, `current` contained the newest versions of all objects.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.kind import KINDS, Kind, kind_of
from fairlead.apiserver.storage.compact_storage import LOG_BYTES_MAX
from fairlead.apiserver.storage.high_water_mark import LoggedRow, Mark, chained
from fairlead.apiserver.storage.storage import ChangeType, Key, Storage, StoredChange, encode

# --- rows ----------------------------------------------------------------------------------------

# A file may be damaged or written by another program.


class _Meta(msgspec.Struct):
    """The metadata fields of a stored object, with their types; only `name` must be present."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's names
    creationTimestamp: str | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[msgspec.Raw] | None = None  # noqa: N815
    managedFields: list[msgspec.Raw] | None = None  # noqa: N815


class _Shape(msgspec.Struct):
    """The fields of a stored object, with their types; `spec` and `status` may be absent."""

    apiVersion: str  # noqa: N815
    kind: str
    metadata: _Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_shape_of: Final = msgspec.json.Decoder(type=_Shape).decode


def require_stored_object(key: tuple[str, str, str], blob: bytes, *, is_built_in: bool) -> None:
    """Check that `blob` is the JSON text of the object with the key (resource, namespace, name).

    If `is_built_in` is True, `spec` and `status` must be objects or null. Raises ValueError, which
    names the object.
    """
    name = "/".join(filter(None, key))
    try:
        found = _shape_of(blob)
    except msgspec.DecodeError as cause:
        raise ValueError(f"{name}: {cause}") from None
    if (found.metadata.namespace, found.metadata.name) != key[1:]:
        raise ValueError(f"{name}: is another object")
    for part, text in (("spec", found.spec), ("status", found.status)) if is_built_in else ():
        if bytes(text)[:1] not in (b"{", b"n"):  # an object or null
            raise ValueError(f"{name}: {part}: is not an object")


# --- file ----------------------------------------------------------------------------------------

FORMAT: Final = 2
_UPGRADED_FORMAT: Final = 1
COMPACTION_EVERY: Final = 1_000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS current (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE IF NOT EXISTS log (
    version INTEGER PRIMARY KEY, type TEXT NOT NULL, resource TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL
);
"""
_TABLES: Final = {"about", "current", "log"}
# Built-in kinds by resource. A kind with several versions is in its stored version.
_BUILT_IN: Final = {kind.resource: kind for kind in reversed(KINDS) if not kind.is_custom}
_INSERT_LOGGED: Final = "INSERT INTO log VALUES {}"
_INSERT_CURRENT: Final = "INSERT INTO current VALUES {}"
_DELETE_CURRENT: Final = "DELETE FROM current WHERE (resource, namespace, name) IN (VALUES {})"
# Rows per statement. Each statement releases the GIL and reacquires it, which on a busy server
# takes longer than the write. SQLite allows at most 32,766 parameters.
_ROWS_MAX: Final = 500
# SQLite's extended error codes contain their primary code in the lowest byte.
_PRIMARY_CODE: Final = 0xFF
# Pages that `copy_to` copies at a time.
_COPIED_PAGES: Final = 4_096
# Pages that `shrink` frees at a time; each page is first written to SQLite's -wal file.
_VACUUMED_PAGES: Final = 256
_SELECT_LOGGED: Final = (
    "SELECT version, type, resource, namespace, name, object FROM log "
    "WHERE version > ? ORDER BY version"
)
_SELECT_CURRENT: Final = "SELECT resource, namespace, name, object FROM current"
_DELETE_LOGGED: Final = "DELETE FROM log WHERE version IN (VALUES {})"
# Deletes rows that were written in format 1. `current` has these versions or later versions of the
# same objects.
_DELETE_LOGGED_UNTIL: Final = "DELETE FROM log WHERE version <= ?"
_TRUNCATE_WAL: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
_REPLACE_ABOUT: Final = "INSERT OR REPLACE INTO about VALUES {}"
# Converts a file of format 1, in which the rows of `log` have consecutive versions.
_UPGRADE: Final = """
BEGIN IMMEDIATE;
INSERT OR REPLACE INTO about SELECT 'base', max(
    ifnull((SELECT max(version) FROM log), 0),
    ifnull((SELECT value FROM about WHERE name = 'version'), 0)
);
INSERT OR REPLACE INTO about SELECT 'compacted', ifnull(
    (SELECT min(version) - 1 FROM log), (SELECT value FROM about WHERE name = 'base')
);
UPDATE about SET value = 2 WHERE name = 'format';
COMMIT;
"""

_decode: Final = msgspec.json.Decoder(type=Json).decode

# A row of the log, and the version of the object that it supersedes; 0 for a new object.
Row = tuple[*LoggedRow, int]
_ObjectKey = tuple[str, str, str]  # resource, namespace, name


class SqliteLogError(Exception):
    """The file is not a write-ahead log, is damaged or in use, or cannot be read or written."""


class SqliteLog:
    """The SQLite file at `path`; not for concurrent use by several threads."""

    def __init__(self, path: Path, *, synced: bool, log_capacity: int) -> None:
        """Open or create the file.

        If `synced` is set, every commit is synced to the disk. The log keeps at least
        the newest `log_capacity` changes. Raises SqliteLogError.
        """
        self._path = path
        self._log_capacity = log_capacity
        self._uncompacted = 0
        self._superseded: list[int] = []  # superseded versions that are still in the log
        self._written: Mark | None = None  # the mark after the last write of this process
        with self._error_conversion():
            self._connection = _opened(path, synced=synced)
        try:
            self._base = self._value("base")
        except SqliteLogError:
            self.close()
            raise

    @property
    def version(self) -> int:
        """The newest version in the file. Raises SqliteLogError."""
        query = "SELECT ifnull(max(version), 0) FROM log"
        with self._error_conversion():
            (logged,) = self._connection.execute(query).fetchone()
        return max(self._number(logged), self._value("version"))

    @property
    def time(self) -> int:
        """The time of the last write in ns since 1970, 0 if unknown. Raises SqliteLogError."""
        return self._value("time")

    @property
    def mark(self) -> Mark:
        """The version, time and checksum of the newest change. Raises SqliteLogError."""
        return self._written or Mark(self.version, self.time, self._value("checksum"))

    def continues(self, mark: Mark) -> bool:
        """Return whether the log continues the history that `mark` belongs to.

        A checksum is computed from the checksum of `mark` and the changes after `mark`. If it
        differs from the log's newest checksum, the result is False. If the log lacks some of these
        changes, because they were superseded and deleted, the checksum cannot be computed. The
        result is then True, because nothing shows a difference. Raises SqliteLogError.
        """
        checksum, version = mark.checksum, mark.version
        with self._error_conversion():
            for row in self._connection.execute(_SELECT_LOGGED, (mark.version,)):
                if row[0] != version + 1:
                    return True
                checksum, version = chained(checksum, row), row[0]
        return version != self.version or checksum == self._value("checksum")

    @property
    def is_empty(self) -> bool:
        """Whether the file contains no changes. Raises SqliteLogError."""
        with self._error_conversion():
            row = self._connection.execute("SELECT 1 FROM current LIMIT 1").fetchone()
        return row is None and self.version == 0

    def restore(self, storage: Storage) -> None:
        """Load the file's contents into an empty `storage`. Raises SqliteLogError."""
        try:
            texts = ((*key, blob) for key, blob in sorted(self._newest().items()))
            storage.restore_texts(map(_placed, texts), self.version)
            storage.resume(list(self._logged()))
        except (sqlite3.Error, LookupError, TypeError, ValueError) as cause:
            raise SqliteLogError(f"{self._path}: is damaged: {cause}") from cause

    def _newest(self) -> dict[_ObjectKey, bytes]:
        """Return the newest text of each object.

        The method also sets `_superseded` to the superseded versions that are still in the log.
        """
        newest: dict[_ObjectKey, bytes] = {}
        for *place, blob in self._connection.execute(_SELECT_CURRENT):
            newest[_object_key(place)] = blob
        versions: dict[_ObjectKey, int] = {}
        self._superseded = []
        for version, kind_of_change, *place, blob in self._connection.execute(
            _SELECT_LOGGED, (self._base,)
        ):
            key = _object_key(place)
            if key in versions:
                self._superseded.append(versions.pop(key))
            if kind_of_change == ChangeType.DELETED:
                self._superseded.append(version)
                newest.pop(key, None)
            else:
                newest[key], versions[key] = blob, version
        return newest

    def write_all(self, storage: Storage) -> None:
        """Write the contents of `storage` into an empty file. Raises SqliteLogError."""
        rows = [
            (kind.resource, *key, obj if isinstance(obj, bytes) else encode(obj))
            for kind in storage.kinds()
            for key, obj in storage.stored_items(kind)
        ]
        with self._transaction():
            self._execute(_INSERT_CURRENT, rows)
            names = ("version", "base", "compacted")
            self._execute(_REPLACE_ABOUT, [(name, storage.version) for name in names])
        self._base = storage.version

    def write(self, rows: Sequence[Row], time: int | None, *, keeps_log: bool = True) -> None:
        """Write changes in their order, in one transaction. Raises SqliteLogError.

        If `keeps_log` is False, only the newest version of each object is kept, so watches can
        start only at the newest version. `time` (ns since 1970) is stored in the file as the time
        of the last write. If `time` is None, the stored time does not change.
        """
        before, last = self.mark, rows[-1][0]
        checksum = before.checksum
        for row in rows:
            checksum = chained(checksum, row[:-1])
        about = {"checksum": checksum} if time is None else {"time": time, "checksum": checksum}
        # 1. Find the versions that these changes supersede, and those that may leave the log.
        superseded = [*_superseded_by(rows)]
        uncompacted = self._uncompacted + len(rows)
        compacted = 0
        if not keeps_log:
            compacted = last
        elif uncompacted >= COMPACTION_EVERY:
            compacted = max(0, last - self._log_capacity)
        # 2. Write the changes, and delete superseded versions.
        moved = [row[2:5] for row in rows if 0 < row[-1] <= self._base]
        with self._transaction():
            self._execute(
                _INSERT_LOGGED, [row[:-1] for row in (rows if keeps_log else _newest_of(rows))]
            )
            self._execute(_DELETE_CURRENT, moved)
            if compacted:
                known = (*self._superseded, *superseded)
                self._connection.execute(_DELETE_LOGGED_UNTIL, (min(compacted, self._base),))
                self._execute(_DELETE_LOGGED, [(one,) for one in known if one <= compacted])
                about |= {"version": last, "compacted": compacted}
            self._execute(_REPLACE_ABOUT, [*about.items()])
        # 3. The transaction has succeeded, so update the attributes.
        self._superseded += superseded
        self._uncompacted = uncompacted
        if compacted:
            self._superseded = [one for one in self._superseded if one > compacted]
            self._uncompacted = 0
        self._written = Mark(last, before.time if time is None else time, checksum)

    def shrink(self) -> None:
        """Free the disk space of unused pages and of SQLite's -wal file.

        Raises SqliteLogError.
        """
        with self._error_conversion():
            self._connection.execute(_TRUNCATE_WAL).fetchall()
            (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
            for _ in range(0, free, _VACUUMED_PAGES):
                # `execute` would free one page only: it stops at the first step without columns.
                self._connection.executescript(f"PRAGMA incremental_vacuum({_VACUUMED_PAGES})")
                self._connection.execute(_TRUNCATE_WAL).fetchall()

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy of the file to `path`. Raises SqliteLogError."""
        with self._error_conversion(), closing(sqlite3.connect(path)) as target:
            self._connection.backup(target, pages=_COPIED_PAGES)

    def check_copy(self, path: Path) -> None:
        """Raise SqliteLogError if the copy at `path` is damaged; the file is then damaged too.

        This method does not use the file, so any thread may call it.
        """
        uri = f"{path.resolve().as_uri()}?immutable=1"  # SQLite then needs no other files
        with self._error_conversion(), closing(sqlite3.connect(uri, uri=True)) as copy:
            _require_undamaged(copy, self._path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _error_conversion(self) -> Iterator[None]:
        """Raise SqliteLogError for an SQLite error in the body of the `with` statement."""
        try:
            yield
        except sqlite3.Error as cause:
            why = str(cause)
            if cause.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                why = "is in use by another process"
            elif cause.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_CORRUPT:
                why = f"is damaged: {why}"
            raise SqliteLogError(f"{self._path}: {why}") from cause

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the SQL statements in the body of the `with` statement in one transaction."""
        with self._error_conversion(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _value(self, name: str) -> int:
        query = "SELECT value FROM about WHERE name = ?"
        with self._error_conversion():
            found = self._connection.execute(query, (name,)).fetchone()
        return self._number(found[0]) if found else 0

    def _number(self, found: object) -> int:
        if not isinstance(found, int):
            raise SqliteLogError(f"{self._path}: is damaged: {found!r} is not a number")
        return found

    def _logged(self) -> Iterator[StoredChange]:
        """Return the newest logged changes, as many as a log in memory would keep.

        The StoredChange of an update or deletion contains the previous version of the object. The
        previous version is taken from an earlier change that has also been loaded. If there is no
        such change, the StoredChange and all earlier ones are left out.
        """
        known: dict[tuple[str, str, str], Json] = {}
        changes: list[StoredChange] = []
        for version, kind_of_change, resource, namespace, name, blob in self._connection.execute(
            _SELECT_LOGGED, (self._first_logged() - 1,)
        ):
            key, type_ = (resource, namespace, name), ChangeType(kind_of_change)
            require_stored_object(key, blob, is_built_in=resource in _BUILT_IN)
            kind, obj = _loaded(resource, namespace, blob)
            previous = known.get(key)
            if previous is None and type_ is not ChangeType.ADDED:
                changes.clear()
            else:
                changes.append(StoredChange(type_, kind, obj, previous, version, (namespace, name)))
            known[key] = obj
            if type_ is ChangeType.DELETED:
                del known[key]
        return iter(changes)

    def _first_logged(self) -> int:
        """Return the version of the oldest change to load from the table `log`.

        The table contains all changes from this version on. Together, these changes have at most
        LOG_BYTES_MAX bytes.
        """
        first, size = self.version + 1, 0
        for version, length in self._connection.execute(
            "SELECT version, length(object) FROM log WHERE version > ? ORDER BY version DESC",
            (self._value("compacted"),),
        ):
            size += length
            if size > LOG_BYTES_MAX:
                break
            first = version
        return first

    def _execute(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Execute `statement` with up to _ROWS_MAX rows per execution."""
        for first in range(0, len(rows), _ROWS_MAX):
            some = rows[first : first + _ROWS_MAX]
            params = f"({', '.join('?' * len(some[0]))})"
            values = [value for row in some for value in row]
            self._connection.execute(statement.format(", ".join([params] * len(some))), values)


def free_bytes_at(path: Path) -> int | None:
    """Return the free bytes on the disk of `path`; None if that is unknown."""
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def _opened(path: Path, *, synced: bool) -> sqlite3.Connection:
    """Open or create the file; if `synced` is set, every commit is synced to the disk.

    Raises SqliteLogError, sqlite3.Error.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path, synced=synced)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, *, synced: bool) -> None:
    """Lock the file, and create its tables or convert them from an older format.

    Raises SqliteLogError, sqlite3.Error.
    """
    # One process owns the file. A second process is refused, because its versions would mix with
    # those of the first.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if tables and not tables & _TABLES:  # A killed process may have created the tables.
        raise SqliteLogError(f"{path}: is a database of something else")
    if tables:
        _require_undamaged(connection, path)
    # This allows `shrink` to return free pages; it takes effect in a new file only.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    # SQLite writes commits to the -wal file, its own file beside the database. It copies this file
    # into the database when the file has 4,000 pages of 4 KiB (16 MiB) instead of 1,000 (4 MiB).
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    # FULL syncs the -wal file at every commit, so an acknowledged write survives a power failure.
    # With NORMAL, which most unit tests use (`synced=False`), it survives only `kill -9`. After a
    # power failure, the high-water mark may then name a write that the log has lost.
    connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
    connection.executescript(_SCHEMA)
    connection.execute("INSERT OR IGNORE INTO about VALUES ('format', ?)", (FORMAT,))
    found = connection.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
    if found == (_UPGRADED_FORMAT,):
        connection.executescript(_UPGRADE)
    elif found != (FORMAT,):
        raise SqliteLogError(f"{path}: format {found[0]}, expected {FORMAT}")


def _require_undamaged(connection: sqlite3.Connection, path: Path) -> None:
    """Check the structure of the whole database, also of pages that `restore` does not read.

    Pages of indexes and free pages are examples of such pages. Without this check, damage in such a
    page would be found by a write, perhaps hours later. The check of 200 MB takes a tenth of a
    second. Raises SqliteLogError, which names `path`, and sqlite3.Error.
    """
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise SqliteLogError(f"{path}: is damaged: {found.splitlines()[-1]}")


def _loaded(resource: str, namespace: str, blob: bytes) -> tuple[Kind, Json]:
    obj = _decode(blob)
    kind = kind_of(obj)
    if kind.resource == resource:
        return kind, obj
    # A custom resource; its plural comes from its definition.
    plural, _, group = resource.partition(".")
    version = obj.get("apiVersion", "").rpartition("/")[2]
    return Kind(group, version, obj.get("kind", ""), plural, namespaced=bool(namespace)), obj


def _object_key(place: Sequence[str]) -> _ObjectKey:
    resource, namespace, name = place
    return resource, namespace, name


def _superseded_by(rows: Sequence[Row]) -> Iterator[int]:
    """Yield the versions that `rows` supersede.

    A row supersedes the previous version of its object, if there is one. The version of a
    deletion also counts as superseded.
    """
    for row in rows:
        if row[-1]:
            yield row[-1]
        if row[1] == ChangeType.DELETED:
            yield row[0]


def _newest_of(rows: Sequence[Row]) -> list[Row]:
    """Return the last row of each object in `rows`, unless that row is a deletion."""
    last = {row[2:5]: row for row in rows}
    return [row for row in last.values() if row[1] != ChangeType.DELETED]


def _placed(row: tuple[str, str, str, bytes]) -> tuple[Kind, Key, bytes]:
    resource, namespace, name, blob = row
    require_stored_object(row[:3], blob, is_built_in=resource in _BUILT_IN)
    kind = _BUILT_IN.get(resource) or _loaded(resource, namespace, blob)[0]
    return kind, (namespace, name), blob
