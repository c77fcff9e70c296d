"""A process that writes until it is killed, and prints the acknowledged versions."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog

WRITERS = 16
OBJECTS = 4
CONFIG_MAP = find_kind("configmap")


async def main(path):
    storage, journal = Storage(log_capacity=500), WriteAheadLog(Path(path), log_capacity=500)
    journal.restore(storage)
    journal.begin(storage)
    print("ready", storage.version, flush=True)
    await asyncio.gather(*(write(storage, journal, n) for n in range(WRITERS)))


async def write(storage, journal, writer):
    """Write a few objects in a loop; sometimes remove one."""
    count = 0
    while True:
        name = f"w{writer}-{count % OBJECTS}"
        count += 1
        found = storage.find(CONFIG_MAP, "default", name)
        if found is not None and count % 7 == 0:
            storage.remove(CONFIG_MAP, "default", name)
            said = f"gone {name} {storage.version}"
        else:
            meta = {"name": name, "namespace": "default"}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
            stored = storage.put(CONFIG_MAP, {**obj, "data": {"count": str(count)}})
            said = f"kept {name} {stored['metadata']['resourceVersion']}"
        await journal.wait_until_durable()
        print(said, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
