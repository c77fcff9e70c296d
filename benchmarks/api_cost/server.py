"""Runs an API server with durable writes and TLS, but without controllers, until SIGINT.

python benchmarks/api_cost/server.py --data-dir DIR --kubeconfig FILE [--plain]
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from time import time_ns
from typing import Final

import uvloop

from fairlead import __version__
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.auth.authentication.token import TokenAuthenticator
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.bootstrap_policy.objects import bootstrap_objects
from fairlead.apiserver.auth.certificate_authority import new_server
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.http.listener import Certificate, Listener
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import PodCopying, Store
from fairlead.apiserver.request import ADMIN
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.worlds.gc_thresholds import collect_briefly
from fairlead.worlds.local.bootstrap.nodes import node_manifests
from fairlead.worlds.local.data_dir import DataDir, new_data_dir
from fairlead.worlds.local.kubeconfig import kubeconfig, write_secret
from fairlead.worlds.local.random_ids import RandomIds

HOST: Final = "127.0.0.1"
NODES: Final = 20
ACCOUNT: Final = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "default", "namespace": "default"},
}


def new_store() -> Store:
    """Return a store like that of `fairlead up`, with the objects of a new cluster."""
    ids, now = RandomIds(), time_ns()
    store = Store(
        ids,
        admission=served_admission(ids.new_suffix),
        registry=API_SERVER,
        storage=CompactStorage(),
        copying=PodCopying(),
    )
    store.load(node_manifests(NODES, 1, now), now)
    for manifest in (*bootstrap_objects(), ACCOUNT):
        store.create(manifest, now)
    return store


async def serve(directory: Path, config: Path, *, is_plain: bool) -> None:
    """Serve HTTP or HTTPS until SIGINT."""
    home, store, ended = new_data_dir((), now()), new_store(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
    journal = WriteAheadLog(directory / "objects.db", clock=time_ns)
    journal.begin(store.storage)
    with socket() as listening:
        listening.bind((HOST, 0))
        address = f"{HOST}:{listening.getsockname()[1]}"
        server = complete_server(
            store,
            clock=time_ns,
            address=address,
            version=__version__,
            authorize=Rbac(store.storage),
        )
        app = ApiApp(server, TokenAuthenticator(home.users), time_ns, journal.wait_until_durable)
        safe = None if is_plain else certificate(home, directory)
        listener = Listener(app, listening, safe)
        await listener.start()
        token = home.token_of(ADMIN.name)
        url = f"{'http' if is_plain else 'https'}://{address}"
        write_secret(config, kubeconfig(url, token, home.authority.certificate))
        print("ready", flush=True)
        await ended.wait()
        await listener.stop()
    journal.close()


def certificate(home: DataDir, directory: Path) -> Certificate:
    """Write the server's certificate and key to files in `directory`; return their paths."""
    pair = new_server(home.authority, (HOST,), now())
    chain, key = directory / "server.crt", directory / "server.key"
    write_secret(chain, pair.certificate)
    write_secret(key, pair.key)
    return Certificate(str(chain), str(key))


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--plain", action="store_true", help="HTTP without TLS")
    wanted = parser.parse_args()
    collect_briefly()
    uvloop.run(serve(wanted.data_dir, wanted.kubeconfig, is_plain=wanted.plain))
