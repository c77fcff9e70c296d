"""WriteAheadLog: makes every change of a storage durable in an SQLite file.

    storage --change--> record --(writer thread, batches)--> SqliteLog, fsync --> durable

Changes are recorded in order and written by one thread. All changes that arrive during one
transaction are written in the next transaction (group commit), so writers share the cost of an
fsync. A transaction begins as soon as a caller waits for changes. If no caller waits, the writer
collects changes for at most COLLECT_S before it begins a transaction. A server that acknowledges
writes only after `wait_until_durable` never loses an acknowledged write. A response that contains
one object waits only until the version in the response is durable. Therefore reads do not wait for
unrelated writes.

A failed write is retried until it succeeds. `has_room` returns False before the disk is full, so
that all accepted changes can still be written. Deletions are accepted with less free disk space
than other changes, because they free disk space. Some disk space is reserved for deletions
(`disk_reserve`). The free disk space decides what is accepted:

    free disk space      changes    deletions
    32 MiB and more      yes        yes
    4 MiB and more       no         yes; the log of changes is dropped, and the file shrinks
    less                 no         yes; the reserve of 24 MiB is released
    less, no reserve     no         no

A second reserve is for the writes that the server makes when it starts. The second reserve is
released if the server starts with less than 4 MiB of free disk space.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.error import no_space
from fairlead.apiserver.storage.disk_reserve import RESERVE_BYTES, DiskReserve
from fairlead.apiserver.storage.high_water_mark import HighWaterMark
from fairlead.apiserver.storage.sqlite_log import Row, SqliteLog, SqliteLogError, free_bytes_at
from fairlead.apiserver.storage.storage import LOG_CAPACITY, Storage, StoredChange, version_of

# A version to wait for, the waiting event loop, and the future to resolve.
Waiter = tuple[int, asyncio.AbstractEventLoop, "asyncio.Future[None]"]

# `has_room` returns False below this amount of free disk space. The space is for the pending
# changes, and for SQLite, which needs it to checkpoint its own log.
ROOM_BYTES_MIN: Final = 32 << 20
DELETION_BYTES_MIN: Final = 4 << 20
LOOK_EVERY_S: Final = 1.0
# Changes that nobody waits for are collected for this time, or until there are ROWS_COLLECTED_MAX.
COLLECT_S: Final = 0.02
ROWS_COLLECTED_MAX: Final = 256
MARK_SUFFIX: Final = ".mark"
DELETION_RESERVE_SUFFIX: Final = ".reserve-for-deletions"
START_RESERVE_SUFFIX: Final = ".reserve-for-start"


class WriteAheadLog:
    """The write-ahead log at `path`. Like `Storage`, it supports only one writer."""

    def __init__(
        self,
        path: Path,
        *,
        synced: bool = True,
        log_capacity: int = LOG_CAPACITY,
        clock: Callable[[], int] | None = None,
        free_bytes: Callable[[Path], int | None] = free_bytes_at,
    ) -> None:
        """Open or create the file. Raises SqliteLogError.

        If `synced` is True, writes survive power failures. The file keeps the newest
        `log_capacity` changes for watches. `clock` returns the current time in ns since 1970; each
        write stores it as `last_time`. `free_bytes` returns the free space on the disk, or None if
        it is unknown.
        """
        self._deletion_reserve = DiskReserve(path.with_suffix(DELETION_RESERVE_SUFFIX))
        self._start_reserve = DiskReserve(path.with_suffix(START_RESERVE_SUFFIX))
        free = free_bytes(path.parent)
        if free is not None and free < DELETION_BYTES_MIN:
            self._start_reserve.release()
        self._file = SqliteLog(path, synced=synced, log_capacity=log_capacity)
        try:
            self._recorded = self._durable = self._file.version
        except SqliteLogError:
            self._file.close()
            raise
        self._mark = HighWaterMark(path.with_suffix(MARK_SUFFIX))
        self._path = path
        self._clock = clock
        self._free_bytes = free_bytes
        self._pending: list[Row] = []
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._waiting: list[Waiter] = []
        self._failure = ""
        self._is_scheduled = False  # a call of `_begin_transaction` is scheduled
        self._is_wanted = False  # callers wait for the pending changes
        self._is_short = False
        self._is_exhausted = False
        self._is_closing = False
        self._writer = threading.Thread(target=self._write, name="write-ahead-log", daemon=True)

    # --- reading ---------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether no change has been written to the log, in this run or in an earlier run."""
        return self._recorded == 0 and self._file.is_empty

    @property
    def last_time(self) -> int:
        """The time of the last write in ns since 1970, 0 if unknown."""
        return self._file.time

    def loss(self) -> str:
        """Return a description of the acknowledged writes that the file lost; "" if it lost none.

        Raises SqliteLogError.
        """
        mark, found = self._mark.read(), self._file.mark
        if mark is None or mark.version == 0:
            return ""
        if found.version < mark.version:
            lost = mark.version - found.version
            last = (
                f"the last one of {format_timestamp(mark.time)}" if mark.time else "the last ones"
            )
            kept = "is empty" if self.is_empty else f"ends with version {found.version:,}"
            changes = "1 more change was" if lost == 1 else f"{lost:,} more changes were"
            return f"{self._path}: {kept}, but {changes} acknowledged, {last}"
        if not self._file.continues(mark):
            return f"{self._path}: differs from what was acknowledged as version {mark.version:,}"
        return ""

    def restore(self, storage: Storage) -> None:
        """Load the file's contents into an empty `storage`. Raises SqliteLogError."""
        self._file.restore(storage)

    # --- writing ---------------------------------------------------------------------------

    def begin(self, storage: Storage) -> None:
        """Start to record each change of `storage`.

        If the file is empty, first write the contents of `storage`. After this call, `storage`
        refuses changes while there is no disk space. Raises SqliteLogError.
        """
        if self.is_empty:
            self._file.write_all(storage)
            self._recorded = self._durable = storage.version
        self._advance_mark()
        self._look_for_room()
        storage.subscribe(self.record)
        storage.has_room = self.has_room
        storage.has_room_to_delete = self.has_room_to_delete
        storage.look_for_room()
        self._writer.start()

    def has_room(self) -> bool:
        """Return True if the last write succeeded and there is disk space for more changes."""
        return not self._is_short and not self._failure

    def has_room_to_delete(self) -> bool:
        """Return True if the last write succeeded and there is disk space for deletions."""
        return not self._is_exhausted and not self._failure

    def record(self, change: StoredChange) -> None:
        """Queue a change for the writer thread."""
        previous = change.previous
        row = (
            change.version,
            change.type.value,
            change.kind.resource,
            *change.key,
            change.text,
            0 if previous is None else version_of(previous),
        )
        with self._changed:
            self._pending.append(row)
            self._recorded = change.version
            if len(self._pending) in (1, ROWS_COLLECTED_MAX):
                self._changed.notify()

    async def wait_until_durable(self, version: int | None = None) -> None:
        """Wait until all recorded changes, or those up to `version`, are on disk.

        Raises ApiError 500 if writing fails.
        """
        if version is not None:
            if self._durable >= version:
                return
        elif self._durable >= self._recorded and not self._failure:
            return
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        with self._changed:
            if self._failure:
                raise no_space()
            wanted = self._recorded if version is None else version
            if self._durable >= wanted:
                return
            self._waiting.append((wanted, loop, written))
            is_first, self._is_scheduled = not self._is_scheduled, True
        if is_first:
            # Requests that arrived together are handled first, and share a transaction.
            loop.call_soon(self._begin_transaction)
        await written

    def _begin_transaction(self) -> None:
        with self._changed:
            self._is_scheduled, self._is_wanted = False, True
            self._changed.notify()

    def close(self) -> None:
        """Try once to write the pending changes, and close the file."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._writer.is_alive():
            self._writer.join()
        self._mark.close()
        self._file.close()

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy of the file to `path`; any thread may call this.

        Raises SqliteLogError if the file cannot be copied. Also raises SqliteLogError if the copy
        is damaged; the file is then damaged too.
        """
        with self._writing:
            self._file.copy_to(path)
        self._file.check_copy(path)

    # --- the writer's thread ---------------------------------------------------------------

    def _write(self) -> None:
        rows: list[Row] = []
        is_last = False
        while not is_last:
            with self._changed:
                self._changed.wait_for(self._has_work, LOOK_EVERY_S)
                if self._pending:
                    self._changed.wait_for(self._is_urgent, COLLECT_S)
                rows += self._pending
                self._pending = []
                self._is_wanted = False
                is_last = self._is_closing
            if rows and self._has_written(rows):
                rows = []
            self._look_for_room()

    def _has_work(self) -> bool:
        return bool(self._pending) or self._is_closing

    def _is_urgent(self) -> bool:
        is_long = len(self._pending) >= ROWS_COLLECTED_MAX
        return is_long or self._is_wanted or self._is_closing

    def _has_written(self, rows: Sequence[Row]) -> bool:
        try:
            with self._writing:
                self._write_rows(rows)
        except SqliteLogError as cause:
            self._deletion_reserve.release()
            self._fail(str(cause))
            return False
        self._mark_durable(rows[-1][0])
        return True

    def _write_rows(self, rows: Sequence[Row]) -> None:
        """Write `rows`, the pending changes.

        If disk space is short, the log of changes is dropped and the file is shrunk.
        """
        time = None if self._clock is None else self._clock()
        self._file.write(rows, time, keeps_log=not self._is_short)
        self._advance_mark()
        if self._is_short:
            self._shrink()

    def _shrink(self) -> None:
        """Free the unused space of the file. If this fails, no error is raised."""
        with suppress(SqliteLogError):
            self._file.shrink()

    def _advance_mark(self) -> None:
        """Write the version, time and checksum of the newest change to the high-water mark's file.

        If the file cannot be written, no error is raised.
        """
        with suppress(OSError):
            self._mark.write(self._file.mark)

    def _look_for_room(self) -> None:
        free_bytes = self._free_bytes(self._path)
        if free_bytes is None:
            self._is_short = self._is_exhausted = False
            return
        if free_bytes < DELETION_BYTES_MIN and self._deletion_reserve.release():
            free_bytes += RESERVE_BYTES
        elif free_bytes >= ROOM_BYTES_MIN + 3 * RESERVE_BYTES:
            self._deletion_reserve.allocate()
            self._start_reserve.allocate()
        was_short, self._is_short = self._is_short, free_bytes < ROOM_BYTES_MIN
        if self._is_short and not was_short:
            self._shrink()  # This runs while there is enough space to shrink the file.
        self._is_exhausted = free_bytes < DELETION_BYTES_MIN

    def _mark_durable(self, version: int) -> None:
        with self._changed:
            self._failure = ""
            self._durable = version
            ready = [entry for entry in self._waiting if entry[0] <= version]
            self._waiting = [entry for entry in self._waiting if entry[0] > version]
        _wake(ready, is_written=True)

    def _fail(self, why: str) -> None:
        """Fail all callers of `wait_until_durable`, because of the error `why`.

        The rows stay pending, and writing is retried.
        """
        with self._changed:
            self._failure = why
            waiting, self._waiting = self._waiting, []
        _wake(waiting, is_written=False)


def _wake(waiting: Sequence[Waiter], *, is_written: bool) -> None:
    """Resolve the futures of the waiting callers; wake each event loop only once.

    If `is_written` is False, the callers get an error.
    """
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for _, loop, written in waiting:
        loops.setdefault(loop, []).append(written)
    for loop, together in loops.items():
        loop.call_soon_threadsafe(_resolve, together, is_written)


def _resolve(together: Sequence[asyncio.Future[None]], is_written: bool) -> None:  # noqa: FBT001 - called by the event loop
    for written in together:
        if written.done():
            continue
        if is_written:
            written.set_result(None)
        else:
            written.set_exception(no_space())  # The message names no path, unlike SQLite's error.
