"""`fairlead up` as a separate process, and connections to it, for tests of stored data."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import subprocess
import sys
from base64 import b64decode
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml


@contextmanager
def up(*options, ending=signal.SIGTERM, paused=True):
    """Yield the kubeconfig of a cluster with these options; `ending` is the signal that ends it."""
    clock = ("--paused",) if paused else ()
    command = [sys.executable, "-m", "fairlead.cli", "up", *clock, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("export KUBECONFIG="), line
        yield yaml.safe_load(Path(line.partition("=")[2].split()[0]).read_text())
    finally:
        process.send_signal(ending)
        process.wait(timeout=60)
        process.stdout.close()


BROKEN = (http.client.HTTPException, OSError, ValueError)
"""What a client gets when the process ends."""


class Connection:
    """A client's connection to the cluster of a kubeconfig."""

    def __init__(self, config):
        cluster = config["clusters"][0]["cluster"]
        context = ssl.create_default_context(
            cadata=b64decode(cluster["certificate-authority-data"]).decode()
        )
        url = urlsplit(cluster["server"])
        self._http = http.client.HTTPSConnection(
            url.hostname, url.port, context=context, timeout=60
        )
        self._headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._http.close()

    def ask(self, method, path, body=None):
        """Return (status, body) of the response."""
        answer = self._exchange(method, path, body)
        return answer.status, json.loads(answer.read())

    def lines(self, path):
        """Return (status, iterator over the lines) of the response."""
        answer = self._exchange("GET", path, None)
        return answer.status, map(json.loads, answer)

    def send(self, method, path, body=None):
        """Send a request (a patch is a merge patch), and do not wait for the response."""
        text = None if body is None else json.dumps(body)
        form = "merge-patch+json" if method == "PATCH" else "json"
        headers = {**self._headers, "Content-Type": f"application/{form}"}
        self._http.request(method, path, text, headers)

    def _exchange(self, method, path, body):
        self.send(method, path, body)
        return self._http.getresponse()
