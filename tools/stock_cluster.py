"""Runs the cluster suite against a stock Kubernetes API server, with etcd, TLS and RBAC.

    python tools/stock_cluster.py DIRECTORY [COMMAND ...]

DIRECTORY contains kube-apiserver and, optionally, kube-controller-manager of any version. etcd is
searched for in DIRECTORY and on the PATH. All servers listen on the loopback address only, and all
their files are removed at the end. COMMAND gets the path of the administrator's kubeconfig as
KUBECONFIG and FAIRLEAD_TEST_KUBECONFIG. The default is to run the tests of tests/worlds that use a
remote cluster. The tool exits with the exit status of COMMAND. The controller manager runs the
controllers that are on by default, except node-lifecycle and taint-eviction, because the tests run
Fairlead's own.

docs/production.md lists the tested versions and the results.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from fairlead.apiserver.auth.certificate_authority import new_authority, new_client, new_server

ROOT: Final = Path(__file__).parent.parent
SUITE: Final = [sys.executable, "-m", "pytest", "-q", "tests/worlds", "-k", "remote"]
LOOPBACK: Final = "127.0.0.1"
START_SECONDS_MAX: Final = 90
# The controllers that Fairlead replaces, by the names in older and in newer versions.
REPLACED: Final = ("nodelifecycle", "node-lifecycle-controller", "taint-eviction-controller")
KUBECONFIG: Final = "kubeconfig"


def free_port() -> int:
    """Return a free port of the loopback address."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def write_credentials(folder: Path, server: str) -> None:
    """Write the certificates of a server and an administrator, and the administrator's kubeconfig.

    `server` is the URL of the API server.
    """
    now = datetime.now(UTC)  # noqa: TID251 - certificates are valid in real time
    authority = new_authority(now)
    for name, pair in (
        ("ca", authority),
        ("server", new_server(authority, [LOOPBACK, "localhost"], now)),
        ("admin", new_client(authority, "admin", ["system:masters"], now)),
        ("accounts", new_authority(now)),
    ):
        (folder / f"{name}.crt").write_text(pair.certificate)
        (folder / f"{name}.key").write_text(pair.key)
    files = {"client-certificate": "admin.crt", "client-key": "admin.key"}
    user = {key: str(folder / name) for key, name in files.items()}
    cluster = {"server": server, "certificate-authority": str(folder / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "stock", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "stock", "context": {"cluster": "stock", "user": "admin"}}],
        "current-context": "stock",
    }
    (folder / KUBECONFIG).write_text(json.dumps(config))


@contextmanager
def running(folder: Path, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` within the `with` block; its output goes to `folder`/PROGRAM.log.

    PROGRAM is the file name of the program, such as etcd.
    """
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)  # noqa: S603 - the user's
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def etcd(folder: Path, binaries: Path, port: int) -> list[str]:
    """Return the command of etcd, which listens on `port`; exit if there is no etcd."""
    own = binaries / "etcd"
    found = str(own) if own.exists() else shutil.which("etcd")
    if found is None:
        sys.exit(f"there is no etcd in {binaries} or on the PATH")
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{free_port()}"
    return [
        found,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        "--unsafe-no-fsync",
    ]


def api_server(folder: Path, binaries: Path, store: int, port: int) -> list[str]:
    """Return the command of kube-apiserver; `store` is the port of etcd, `port` its own port."""
    return [
        str(binaries / "kube-apiserver"),
        f"--etcd-servers=http://{LOOPBACK}:{store}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--service-account-key-file={folder / 'accounts.crt'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
    ]


def controller_manager(folder: Path, binary: Path) -> list[str]:
    """Return the command of kube-controller-manager; its options depend on its version."""
    shown = subprocess.run([binary, "--help"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    without = [f"-{name}" for name in REPLACED if name in shown]
    insecure = ["--port=0"] if "--port int" in shown else []
    return [
        str(binary),
        f"--kubeconfig={folder / KUBECONFIG}",
        f"--service-account-private-key-file={folder / 'accounts.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--controllers={','.join(('*', *without))}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={free_port()}",
        "--leader-elect=false",
        *insecure,
    ]


def wait_until_ready(url: str, folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the API server is ready; exit if it ends, or if it takes too long."""
    for _ in range(2 * START_SECONDS_MAX):
        if process.poll() is not None:
            sys.exit((folder / "kube-apiserver.log").read_text()[-2000:])
        if is_accepted(Request(f"{url}/readyz"), folder):  # noqa: S310 - of this process
            return
        time.sleep(0.5)  # noqa: TID251 - another process starts
    sys.exit(f"the API server was not ready after {START_SECONDS_MAX} seconds")


def wait_for_accounts(url: str, folder: Path) -> None:
    """Wait until the API server accepts a pod; exit if this takes too long.

    The API server refuses pods until the controller manager has created their ServiceAccount.
    """
    container = {"name": "c", "image": "i"}
    pod = {"metadata": {"generateName": "p-"}, "spec": {"containers": [container]}}
    request = Request(  # noqa: S310 - as above
        f"{url}/api/v1/namespaces/default/pods?dryRun=All",
        json.dumps(pod).encode(),
        {"Content-Type": "application/json"},
    )
    for _ in range(2 * START_SECONDS_MAX):
        if is_accepted(request, folder):
            return
        time.sleep(0.5)  # noqa: TID251 - another process starts
    sys.exit(f"no pod can be created after {START_SECONDS_MAX} seconds")


def is_accepted(request: Request, folder: Path) -> bool:
    """Send `request` as the administrator; return whether the API server answers with success."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    try:
        with urlopen(request, context=context, timeout=5):  # noqa: S310
            return True
    except (URLError, OSError):
        return False


def main() -> None:
    """Start everything, run the command, and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    binaries: Path = given.directory.resolve()
    store, port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        url = f"https://{LOOPBACK}:{port}"
        write_credentials(folder, url)
        stack.enter_context(running(folder, etcd(folder, binaries, store)))
        command = api_server(folder, binaries, store, port)
        server = stack.enter_context(running(folder, command))
        wait_until_ready(url, folder, server)
        manager = binaries / "kube-controller-manager"
        if manager.exists():
            stack.enter_context(running(folder, controller_manager(folder, manager)))
            wait_for_accounts(url, folder)
        kubeconfig = str(folder / KUBECONFIG)
        known = {"KUBECONFIG": kubeconfig, "FAIRLEAD_TEST_KUBECONFIG": kubeconfig}
        done = subprocess.run(  # noqa: S603 - the user's command
            given.command or SUITE, cwd=ROOT, env={**os.environ, **known}, check=False
        )
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
