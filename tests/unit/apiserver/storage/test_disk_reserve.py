"""The reserve of disk space is allocated completely or not at all."""

from __future__ import annotations

from fairlead.apiserver.storage.disk_reserve import RESERVE_BYTES, DiskReserve


def test_the_reserve_is_allocated_once_and_released_once(tmp_path):
    reserve = DiskReserve(tmp_path / "reserve")
    reserve.allocate()
    assert (tmp_path / "reserve").stat().st_size == RESERVE_BYTES
    assert reserve.release()
    assert not reserve.release()


def test_a_partial_reserve_is_not_used_and_is_completed(tmp_path):
    """A process can end while it allocates the reserve."""
    (tmp_path / "reserve").write_bytes(b"part")
    reserve = DiskReserve(tmp_path / "reserve")
    assert not reserve.release()
    reserve.allocate()
    assert (tmp_path / "reserve").stat().st_size == RESERVE_BYTES


def test_a_failed_allocation_can_be_repeated(tmp_path):
    reserve = DiskReserve(tmp_path / "folder" / "reserve")
    reserve.allocate()
    assert not reserve.release()
    (tmp_path / "folder").mkdir()
    reserve.allocate()
    assert reserve.release()
