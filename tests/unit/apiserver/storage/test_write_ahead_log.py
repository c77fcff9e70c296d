"""The write-ahead log restores every acknowledged write after any end of the process."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind, find_kind
from fairlead.apiserver.storage import sqlite_log
from fairlead.apiserver.storage import write_ahead_log as journal_module
from fairlead.apiserver.storage.high_water_mark import chained
from fairlead.apiserver.storage.sqlite_log import SqliteLogError, free_bytes_at
from fairlead.apiserver.storage.storage import ChangeType, Storage, encode
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog

CONFIG_MAP = find_kind("configmap")
WIDGET = Kind("example.com", "v1", "Widget", "widgetry", is_custom=True)
WRITER = Path(__file__).with_name("log_writer.py")


def config_map(name, **data):
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def opened(path, **options):
    """Return (storage with the contents of the file, journal that continues to write to it)."""
    storage, journal = Storage(), WriteAheadLog(path, synced=False, **options)
    journal.restore(storage)
    journal.begin(storage)
    return storage, journal


def everything(storage):
    return {kind.resource: list(storage.items(kind)) for kind in storage.kinds()}


def test_a_new_log_is_empty_and_then_contains_the_loaded_objects(tmp_path):
    storage, journal = Storage(), WriteAheadLog(tmp_path / "j", synced=False)
    assert journal.is_empty
    loaded = config_map("a")
    loaded["metadata"]["resourceVersion"] = "7"
    storage.restore([(CONFIG_MAP, loaded)], 9)
    journal.begin(storage)
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert not journal.is_empty
    assert (again.version, everything(again)) == (9, {"configmaps": [loaded]})
    journal.close()


def test_creations_updates_and_deletions_are_restored(tmp_path):
    storage, journal = opened(tmp_path / "j")
    storage.put(CONFIG_MAP, config_map("a", x="1"))
    storage.put(CONFIG_MAP, config_map("b"))
    storage.put(CONFIG_MAP, config_map("a", x="2"))
    storage.remove(CONFIG_MAP, "default", "b")
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert again.version == storage.version == 4
    assert everything(again) == {"configmaps": list(storage.items(CONFIG_MAP))}
    journal.close()


def test_watches_continue_after_a_restart(tmp_path):
    storage, journal = opened(tmp_path / "j")
    storage.put(CONFIG_MAP, config_map("a", x="1"))
    storage.put(CONFIG_MAP, config_map("a", x="2"))
    storage.remove(CONFIG_MAP, "default", "a")
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert again.changes_since(0) == storage.changes_since(0)
    assert again.changes_since(2)[0].type is ChangeType.DELETED
    journal.close()


def test_watches_from_a_compacted_version_are_refused_after_a_restart(tmp_path):
    storage, journal = opened(tmp_path / "j", log_capacity=0)
    for count in range(1_200):
        storage.put(CONFIG_MAP, config_map("a", x=str(count)))
    asyncio.run(journal.wait_until_durable())
    journal.close()
    again, journal = opened(tmp_path / "j")
    with pytest.raises(ApiError) as gone:
        again.changes_since(5)
    assert gone.value.code == 410
    assert again.changes_since(1_200) == []
    journal.close()


def test_only_the_changes_that_fit_into_the_log_limit_are_restored(tmp_path, monkeypatch):
    """A log that was written with a higher limit is not restored completely."""
    monkeypatch.setattr(sqlite_log, "LOG_BYTES_MAX", 1_000)
    storage, journal = opened(tmp_path / "j")
    for count in range(20):
        storage.put(CONFIG_MAP, config_map("a", x=str(count)))
    journal.close()
    again, journal = opened(tmp_path / "j")
    journal.close()
    assert everything(again) == everything(storage)
    assert again.changes_since(17) == storage.changes_since(17)
    with pytest.raises(ApiError):
        again.changes_since(10)


def test_custom_resources_keep_the_plural_of_their_definition(tmp_path):
    storage, journal = opened(tmp_path / "j")
    meta = {"name": "w", "namespace": "default"}
    storage.put(WIDGET, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta})
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert again.find(WIDGET, "default", "w") == storage.find(WIDGET, "default", "w")
    journal.close()


def test_the_time_of_the_last_write_is_restored(tmp_path):
    _, journal = opened(tmp_path / "j")
    assert journal.last_time == 0
    journal.close()
    storage, journal = opened(tmp_path / "k", clock=lambda: 42)
    storage.put(CONFIG_MAP, config_map("a"))
    journal.close()
    again = WriteAheadLog(tmp_path / "k")
    assert again.last_time == 42
    again.close()


def test_wait_until_durable_waits_for_recorded_changes(tmp_path):
    storage, journal = opened(tmp_path / "j")

    async def write():
        storage.put(CONFIG_MAP, config_map("a"))
        await journal.wait_until_durable()

    asyncio.run(write())
    assert journal._durable == storage.version
    journal.close()


def test_a_durable_version_does_not_wait_for_later_changes(tmp_path):
    storage, journal = opened(tmp_path / "j")

    async def write():
        storage.put(CONFIG_MAP, config_map("a"))
        await journal.wait_until_durable()
        with journal._writing:  # the thread cannot write
            storage.put(CONFIG_MAP, config_map("b"))
            await asyncio.wait_for(journal.wait_until_durable(1), 60)
            later = asyncio.create_task(journal.wait_until_durable(2))
            await asyncio.sleep(0.05)
            assert not later.done()
        await later
        assert journal._durable == 2

    asyncio.run(write())
    journal.close()


def test_a_change_that_cannot_be_written_is_not_acknowledged(tmp_path):
    storage, journal = opened(tmp_path / "j")
    journal._file._connection.execute("DROP TABLE log")

    async def write():
        storage.put(CONFIG_MAP, config_map("a"))
        await journal.wait_until_durable()

    for _ in range(2):
        with pytest.raises(ApiError) as refused:
            asyncio.run(write())
        assert refused.value.code == 500
    journal.close()


def until(check):
    """Wait until `check` returns true, which the journal's thread causes."""
    for _ in range(6_000):
        if check():
            return
        threading.Event().wait(0.01)
    raise AssertionError


def test_changes_that_failed_on_a_full_disk_are_written_later(tmp_path, monkeypatch):
    """While the disk is full, writes are answered with an error; later they are stored."""
    monkeypatch.setattr(journal_module, "LOOK_EVERY_S", 0.01)
    storage, journal = opened(tmp_path / "j")
    pages = journal._file._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._file._connection.execute(f"PRAGMA max_page_count = {pages}")

    async def write(name):
        storage.put(CONFIG_MAP, config_map(name, x="x" * 9_999))
        await journal.wait_until_durable()

    for name in ("a", "b"):
        with pytest.raises(ApiError, match=r"^etcdserver: mvcc: database space exceeded$"):
            asyncio.run(write(name))
    assert not journal.has_room()
    journal._file._connection.execute("PRAGMA max_page_count = 99999")
    until(journal.has_room)
    asyncio.run(journal.wait_until_durable())
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert everything(again) == everything(storage)
    assert again.version == storage.version == 2
    journal.close()


def test_changes_are_refused_before_the_disk_is_full(tmp_path, monkeypatch):
    """Earlier writes are durable, and later ones are refused immediately."""
    monkeypatch.setattr(journal_module, "LOOK_EVERY_S", 0.01)
    free = [journal_module.ROOM_BYTES_MIN]
    storage, journal = opened(tmp_path / "j", free_bytes=lambda _: free[-1])
    assert storage.look_for_room()
    stored = storage.put(CONFIG_MAP, config_map("a"))
    free.append(free[0] - 1)
    until(lambda: not storage.look_for_room())
    with pytest.raises(ApiError) as refused:
        storage.put(CONFIG_MAP, config_map("b"))
    assert (refused.value.code, refused.value.reason) == (500, "")
    assert str(refused.value) == "etcdserver: mvcc: database space exceeded"
    asyncio.run(journal.wait_until_durable())
    assert storage.find(CONFIG_MAP, "default", "a") is stored
    free.append(free[0])
    until(storage.look_for_room)
    storage.put(CONFIG_MAP, config_map("b"))
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert [obj["metadata"]["name"] for obj in again.items(CONFIG_MAP)] == ["a", "b"]
    journal.close()


def test_deletions_are_accepted_longer_than_other_changes(tmp_path, monkeypatch):
    """They use first the remaining disk space, then a reserve."""
    monkeypatch.setattr(journal_module, "LOOK_EVERY_S", 0.01)
    free, reserve = [1 << 30], tmp_path / "j.reserve-for-deletions"

    def free_bytes(_):
        return free[-1] if reserve.exists() else free[-1] + (24 << 20)

    storage, journal = opened(tmp_path / "j", free_bytes=free_bytes)
    for name in ("a", "b", "c"):
        storage.put(CONFIG_MAP, config_map(name))
    ending = storage.put(CONFIG_MAP, config_map("ending"))
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert reserve.stat().st_size == 24 << 20
    for rest, name in ((8 << 20, "a"), (1 << 20, "b")):
        free.append(rest)
        until(lambda: not storage.look_for_room() and journal.has_room_to_delete())
        assert storage.problem == "no space left on the disk: only deletions are accepted"
        with pytest.raises(ApiError, match="space exceeded"):
            storage.put(CONFIG_MAP, config_map("another"))
        storage.put(CONFIG_MAP, ending)
        storage.remove(CONFIG_MAP, "default", name)
        asyncio.run(journal.wait_until_durable())
    until(lambda: not reserve.exists())
    free.append(-(24 << 20))
    until(lambda: not journal.has_room_to_delete())
    storage.look_for_room()
    with pytest.raises(ApiError, match="space exceeded"):
        storage.remove(CONFIG_MAP, "default", "c")
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert [obj["metadata"]["name"] for obj in again.items(CONFIG_MAP)] == ["c", "ending"]
    assert again.version == storage.version
    journal.close()


def test_deletions_on_an_almost_full_disk_free_disk_space(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "LOOK_EVERY_S", 0.01)
    free = [1 << 30]
    storage, journal = opened(tmp_path / "j", free_bytes=lambda _: free[-1])

    def size():
        return sum((tmp_path / name).stat().st_size for name in ("j", "j-wal"))

    for number in range(20):
        storage.put(CONFIG_MAP, config_map(f"n{number}", x="x" * 100_000))
    asyncio.run(journal.wait_until_durable())
    assert size() > 2_000_000
    free.append(8 << 20)
    until(lambda: not storage.look_for_room())
    for number in range(20):
        storage.remove(CONFIG_MAP, "default", f"n{number}")
    asyncio.run(journal.wait_until_durable())
    until(lambda: size() < 200_000)
    journal.close()


def test_a_start_on_a_full_disk_succeeds_and_refuses_changes_at_once(tmp_path):
    """Reads succeed, and no write is accepted that could not be stored."""
    reserve = tmp_path / "j.reserve-for-start"
    storage, journal = opened(tmp_path / "j", free_bytes=lambda _: 1 << 30)
    storage.put(CONFIG_MAP, config_map("a"))
    journal.close()
    assert reserve.stat().st_size == 24 << 20
    again, journal = opened(tmp_path / "j", free_bytes=lambda _: 0)
    assert not reserve.exists()
    with pytest.raises(ApiError, match="space exceeded"):
        again.put(CONFIG_MAP, config_map("b"))
    asyncio.run(journal.wait_until_durable())
    assert again.find(CONFIG_MAP, "default", "a") is not None
    again.remove(CONFIG_MAP, "default", "a")
    journal.close()


def test_unknown_free_space_is_treated_as_sufficient(tmp_path):
    _, journal = opened(tmp_path / "j", free_bytes=lambda _: None)
    assert journal.has_room()
    journal.close()
    assert free_bytes_at(tmp_path / "nowhere") is None
    assert free_bytes_at(tmp_path) > 0


@pytest.mark.parametrize("text", ["", "no database, but long enough to be taken for one" * 99])
def test_a_file_that_is_not_a_database_is_refused(tmp_path, text):
    (tmp_path / "j").write_text(text)
    if text:
        with pytest.raises(SqliteLogError, match="not a database"):
            WriteAheadLog(tmp_path / "j")
    else:
        WriteAheadLog(tmp_path / "j").close()


def test_a_foreign_database_is_refused_and_not_changed(tmp_path):
    with closing(sqlite3.connect(tmp_path / "j")) as other:
        other.execute("CREATE TABLE theirs (x)")
    before = (tmp_path / "j").read_bytes()
    with pytest.raises(SqliteLogError, match="is a database of something else"):
        WriteAheadLog(tmp_path / "j")
    assert (tmp_path / "j").read_bytes() == before


def test_a_log_of_another_format_is_refused(tmp_path):
    opened(tmp_path / "j")[1].close()
    with closing(sqlite3.connect(tmp_path / "j")) as newer, newer:
        newer.execute("UPDATE about SET value = 3 WHERE name = 'format'")
    with pytest.raises(SqliteLogError, match="format 3, expected 2"):
        WriteAheadLog(tmp_path / "j")


def test_a_log_in_use_is_refused(tmp_path):
    _, journal = opened(tmp_path / "j")
    with pytest.raises(SqliteLogError, match="in use by another process"):
        WriteAheadLog(tmp_path / "j")
    journal.close()


def rounds_of_kill_9(path, rounds):
    """Start a writing process, kill it, and check the log; repeat this `rounds` times."""
    safe: dict[str, tuple[str, int]] = {}
    for number in range(rounds):
        acknowledged = killed_after(path, 5 + number * 37 % 300)
        for what, name, version in acknowledged:
            safe[name] = (what, int(version))
        check(path, safe)


def killed_after(path, lines):
    """Return the writes that a process acknowledged before it was killed."""
    with subprocess.Popen(
        [sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline().startswith("ready")
        said = list(itertools.islice(process.stdout, lines))
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    return [line.split() for line in said if line.endswith("\n")]


def check(path, safe):
    storage, journal = Storage(), WriteAheadLog(path, synced=False)
    journal.restore(storage)
    journal.close()
    for name, (what, version) in safe.items():
        found = storage.find(CONFIG_MAP, "default", name)
        newer = found is not None and int(found["metadata"]["resourceVersion"])
        if what == "kept":
            assert newer is not False or removed_after(storage, name, version)
            assert newer is False or newer >= version
        else:
            assert newer is False or newer > version
    changes = storage.changes_since(storage._oldest)
    versions = [change.version for change in changes]
    assert versions == list(range(storage._oldest + 1, storage.version + 1))


def removed_after(storage, name, version):
    """Return whether an object was deleted after `version`."""
    changes = storage.changes_since(max(version, storage._oldest))
    return any(
        change.type is ChangeType.DELETED and change.object["metadata"]["name"] == name
        for change in changes
    )


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path):
    rounds_of_kill_9(tmp_path / "j", 4)


@pytest.mark.long
def test_nothing_acknowledged_is_lost_in_two_hundred_rounds_of_kill_9(tmp_path):
    rounds_of_kill_9(tmp_path / "j", 200)


@pytest.fixture
def history(tmp_path):
    """A closed log with five changes, and copies of its file after each of them."""
    storage, journal = opened(tmp_path / "j.db", clock=lambda: 0)
    copies = []
    for number in range(5):
        storage.put(CONFIG_MAP, config_map(f"c{number}"))
        asyncio.run(journal.wait_until_durable())
        copies.append(tmp_path / f"copy{number}.db")
        journal.copy_to(copies[-1])
    journal.close()
    return copies


def without_index(path):
    """Overwrite the first page of an index in the closed file at `path`, and return its number."""
    with closing(sqlite3.connect(path)) as file:
        index = "SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'current'"
        [(page,)] = file.execute(index)
        [(size,)] = file.execute("PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    return page


def test_a_file_with_a_damaged_index_is_refused(history, tmp_path):
    """Reading all objects does not read the index, so without a check, a write would fail."""
    path = tmp_path / "j.db"
    page = without_index(path)
    with pytest.raises(SqliteLogError, match=f"^{path}: is damaged: Page {page}: "):
        WriteAheadLog(path, synced=False)


def test_a_file_with_a_damaged_schema_is_refused(history, tmp_path):
    path = tmp_path / "j.db"
    with path.open("r+b") as file:
        file.seek(100)  # the header of the page that contains the schema
        file.write(bytes(200))
    with pytest.raises(SqliteLogError, match=f"^{path}: is damaged: database disk image is malf"):
        WriteAheadLog(path, synced=False)


def test_a_copy_of_a_damaged_file_is_refused(history, tmp_path, monkeypatch):
    """The file can be damaged after it was opened."""
    path, copied = tmp_path / "j.db", sqlite_log.SqliteLog.copy_to

    def damaged_copy(log, copy):
        copied(log, copy)
        without_index(copy)

    monkeypatch.setattr(sqlite_log.SqliteLog, "copy_to", damaged_copy)
    with (
        closing(WriteAheadLog(path, synced=False)) as journal,
        pytest.raises(SqliteLogError, match=f"^{path}: is damaged: Page "),
    ):
        journal.copy_to(tmp_path / "copy.db")


def loss_of(path):
    with closing(WriteAheadLog(path, synced=False)) as journal:
        return journal.loss()


def test_a_complete_log_has_no_loss(history, tmp_path):
    assert loss_of(tmp_path / "j.db") == ""


def test_a_deleted_log_is_detected(history, tmp_path):
    (tmp_path / "j.db").unlink()
    assert "is empty, but 5 more changes were acknowledged" in loss_of(tmp_path / "j.db")


@pytest.mark.parametrize(("copy", "lost"), [(2, "2 more changes were"), (3, "1 more change was")])
def test_an_older_copy_of_the_log_is_detected(history, tmp_path, copy, lost):
    history[copy].rename(tmp_path / "j.db")
    loss = loss_of(tmp_path / "j.db")
    assert f"ends with version {copy + 1}, but {lost} acknowledged" in loss


def test_a_different_log_of_the_same_length_is_detected(history, tmp_path):
    storage, journal = opened(tmp_path / "other.db")
    for number in range(6):
        storage.put(CONFIG_MAP, config_map(f"other{number}"))
    journal.close()
    (tmp_path / "other.db").rename(tmp_path / "j.db")
    assert "differs from what was acknowledged as version 5" in loss_of(tmp_path / "j.db")


def test_an_outdated_mark_is_not_a_loss(history, tmp_path):
    """The mark file is not synced, so it can be outdated after a power failure."""
    mark = (tmp_path / "j.mark").read_bytes()
    storage, journal = opened(tmp_path / "j.db")
    storage.put(CONFIG_MAP, config_map("later"))
    journal.close()
    (tmp_path / "j.mark").write_bytes(mark)
    assert loss_of(tmp_path / "j.db") == ""


@pytest.mark.parametrize("content", [b"", b"7 0", b"9 0 5 1\n", b"\xff"])
def test_an_unreadable_mark_is_ignored(history, tmp_path, content):
    (tmp_path / "j.mark").write_bytes(content)
    assert loss_of(tmp_path / "j.db") == ""


@pytest.mark.parametrize("length", [0, 1, 2_046, 2_047, 2_048, 4_094, 9_999])
def test_the_checksum_covers_the_whole_text(length):
    text = bytes(number % 251 for number in range(length))
    head = b"5\x007\x00ADDED\x00pods\x00n\x00a\x00"
    digest = hashlib.blake2b(head + text, digest_size=8).digest()
    assert chained(5, (7, "ADDED", "pods", "n", "a", text)) == int.from_bytes(digest) >> 1


def test_a_file_with_a_table_without_rowid_can_be_continued(tmp_path):
    """Earlier versions created such files."""
    with closing(sqlite3.connect(tmp_path / "j")) as file:
        file.executescript(
            "CREATE TABLE current (resource TEXT NOT NULL, namespace TEXT NOT NULL, "
            "name TEXT NOT NULL, object BLOB NOT NULL, "
            "PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID"
        )
    for count in range(3):
        storage, journal = opened(tmp_path / "j")
        storage.put(CONFIG_MAP, config_map("a", x=str(count)))
        storage.put(CONFIG_MAP, config_map(f"b{count}"))
        journal.close()
    again, journal = opened(tmp_path / "j")
    assert everything(again) == everything(storage)
    assert journal.loss() == ""
    journal.close()


OF_FORMAT_1 = """
CREATE TABLE about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE current (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE log (
    version INTEGER PRIMARY KEY, type TEXT NOT NULL, resource TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL
);
"""


@pytest.mark.parametrize("logged_from", [1, 4, 9])
def test_a_file_of_format_1_can_be_continued(tmp_path, logged_from):
    """In format 1, all newest versions are in one table, and the log has the recent changes."""
    old = Storage()
    for count in range(3):
        old.put(CONFIG_MAP, config_map("a", x=str(count)))
        old.put(CONFIG_MAP, config_map(f"b{count}"))
    old.remove(CONFIG_MAP, "default", "b1")
    with closing(sqlite3.connect(tmp_path / "j")) as file, file:
        file.executescript(OF_FORMAT_1)
        file.executemany("INSERT INTO about VALUES (?, ?)", [("format", 1), ("version", 7)])
        file.executemany(
            "INSERT INTO current VALUES ('configmaps', 'default', ?, ?)",
            [(one["metadata"]["name"], encode(one)) for one in old.items(CONFIG_MAP)],
        )
        file.executemany(
            "INSERT INTO log VALUES (?, ?, 'configmaps', 'default', ?, ?)",
            [
                (one.version, one.type.value, one.object["metadata"]["name"], one.text)
                for one in old.changes_since(0)
                if one.version >= logged_from
            ],
        )
    storage, journal = opened(tmp_path / "j")
    assert (storage.version, everything(storage)) == (7, everything(old))
    if logged_from == 1:
        assert storage.changes_since(0) == old.changes_since(0)
    storage.put(CONFIG_MAP, config_map("a", x="new"))
    storage.remove(CONFIG_MAP, "default", "b0")
    journal.close()
    again, journal = opened(tmp_path / "j")
    assert (again.version, everything(again)) == (9, everything(storage))
    if logged_from == 1:
        assert again.changes_since(0) == [*old.changes_since(0), *storage.changes_since(7)]
    journal.close()


def test_superseded_versions_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_log, "COMPACTION_EVERY", 1)
    storage, journal = opened(tmp_path / "j", log_capacity=10)
    for name in "abc":
        storage.put(CONFIG_MAP, config_map(name))
    for count in range(50):
        storage.put(CONFIG_MAP, config_map("b", x=str(count)))
    storage.remove(CONFIG_MAP, "default", "c")
    for count in range(50):
        storage.put(CONFIG_MAP, config_map("b", x=str(count)))
    journal.close()
    with closing(sqlite3.connect(tmp_path / "j")) as file:
        logged = [version for (version,) in file.execute("SELECT version FROM log")]
    assert logged == [1, *range(95, 105)]  # version 1 is still the newest version of `a`
    again, journal = opened(tmp_path / "j")
    journal.close()
    assert everything(again) == everything(storage)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put"] * 8 + ["remove"] * 4 + ["settle"] * 2 + ["disk", "restart"]),
        st.sampled_from("abcde"),
    ),
    max_size=120,
)


@settings(max_examples=25)
@given(STEPS)
def test_any_history_is_restored(steps):
    """Objects are created, changed and deleted, the disk fills up, and the process restarts."""
    room = [1 << 30]
    options = {"log_capacity": 10, "free_bytes": lambda _: room[-1]}
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_log, "COMPACTION_EVERY", 7)
        patch.setattr(journal_module, "LOOK_EVERY_S", 0.001)
        file = Path(directory) / "j"
        storage, journal = opened(file, **options)
        for count, (step, name) in enumerate([*steps, ("restart", "")]):
            has_room = storage.look_for_room()
            if step == "put" and has_room:
                storage.put(CONFIG_MAP, config_map(name, x=str(count)))
            elif step == "remove" and storage.find(CONFIG_MAP, "default", name):
                storage.remove(CONFIG_MAP, "default", name)
            elif step == "settle":
                asyncio.run(journal.wait_until_durable())
            elif step == "disk":
                room.append(8 << 20 if has_room else 1 << 30)
                while storage.look_for_room() == has_room:
                    threading.Event().wait(0.001)
            elif step == "restart":
                journal.close()
                again, journal = opened(file, **options)
                assert again.version == storage.version
                assert [*again.items(CONFIG_MAP)] == [*storage.items(CONFIG_MAP)]
                known = [change.version for change in again.changes_since(again._oldest)]
                assert known == [*range(again._oldest + 1, again.version + 1)]
                assert journal.loss() == ""
                storage = again
        journal.close()


def test_changes_without_a_waiting_request_are_written_in_batches(tmp_path, monkeypatch):
    storage, journal = opened(tmp_path / "j")
    is_over = threading.Event()  # the time to collect changes
    wait_for = journal._changed.wait_for

    def wait(ready, seconds):
        if seconds == journal_module.COLLECT_S:
            return wait_for(lambda: ready() or is_over.is_set())
        return wait_for(ready, seconds)

    monkeypatch.setattr(journal._changed, "wait_for", wait)
    written = []
    write = journal._file.write
    monkeypatch.setattr(
        journal._file,
        "write",
        lambda rows, *more, **other: write(written.append(len(rows)) or rows, *more, **other),
    )
    for count in range(5):
        storage.put(CONFIG_MAP, config_map(f"a{count}"))
        threading.Event().wait(0.01)
    assert not written
    with journal._changed:
        is_over.set()
        journal._changed.notify_all()
    until(lambda: written)
    storage.put(CONFIG_MAP, config_map("b"))
    asyncio.run(journal.wait_until_durable())
    assert written == [5, 1]
    journal.close()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("UPDATE about SET value = 'x' WHERE name = 'base'", id="base"),
        pytest.param("UPDATE about SET value = 'x' WHERE name = 'version'", id="version"),
        pytest.param("UPDATE about SET value = 99 WHERE name = 'format'", id="format"),
    ],
)
def test_a_file_that_cannot_be_opened_is_closed(tmp_path, monkeypatch, damage):
    """Otherwise it would stay locked until garbage collection."""
    path = tmp_path / "objects.db"
    storage, log = opened(path)
    with closing(log):
        storage.put(CONFIG_MAP, config_map("a"))
    with closing(sqlite3.connect(path)) as damaged, damaged:
        damaged.execute("INSERT OR IGNORE INTO about VALUES ('base', 0), ('version', 0)")
        damaged.execute(damage)
    found = []
    connect = sqlite3.connect

    def recorded(*arguments, **options):
        found.append(connect(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    with pytest.raises(SqliteLogError):
        WriteAheadLog(path, synced=False)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        found[0].execute("SELECT 1")
