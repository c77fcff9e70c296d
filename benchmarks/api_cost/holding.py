"""Measures many pods: their memory, and the time to recover them."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter, process_time

from api_cost.figure import Figure, Figures
from api_cost.manifest import running_pod
from api_cost.process import resident_mib
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog


def many(directory: Path, pods: int) -> Figures:
    """Measure a storage with `pods` pods, and their recovery from the write-ahead log."""
    path = directory / "many.db"
    before = resident_mib()
    storage = CompactStorage()
    for number in range(pods):
        storage.put(POD, running_pod(number))
    what = f"{pods:,} pods of 4 KB"
    held = resident_mib() - before
    yield Figure(what=f"{what}: memory", value=held, unit="MiB", target=2_048)
    journal = WriteAheadLog(path, synced=False)
    journal.begin(storage)
    journal.close()
    del storage
    wall, cpu = perf_counter(), process_time()
    journal, again = WriteAheadLog(path), CompactStorage()
    journal.restore(again)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    journal.close()
    assert sum(1 for _ in again.unsorted(POD)) == pods
    note = f"{cpu:.2f} s CPU"
    yield Figure(what=f"{what}: recovered", value=wall, unit="s", target=10, note=note)
