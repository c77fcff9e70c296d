"""A kubeconfig with client certificates instead of tokens."""

from __future__ import annotations

import base64
import json
import signal
import ssl
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from fairlead.cli.main import run


@contextmanager
def up(file, *options):
    """Run a cluster with these options; yield the content of `file`."""
    command = [sys.executable, "-m", "fairlead.cli", "up", "--paused", "--kubeconfig", str(file)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("export KUBECONFIG=")
        yield yaml.safe_load(file.read_text())
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        process.stdout.close()


def get(config, user, path, folder):
    """Return the response to a GET by a user of the kubeconfig."""
    cluster = config["clusters"][0]["cluster"]
    shown = next(row["user"] for row in config["users"] if row["name"] == user)
    assert set(shown) == {"client-certificate-data", "client-key-data"}
    pair = folder / user
    pair.write_bytes(b"".join(base64.b64decode(text) for text in shown.values()))
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(pair)
    with urlopen(Request(cluster["server"] + path), context=context, timeout=60) as response:
        return json.load(response)


def test_users_authenticate_with_certificates_instead_of_tokens(tmp_path):
    file = tmp_path / "kubeconfig"
    options = ("--nodes", "2", "--client-certificates", "--user", "alice:dev", "--name", "blue")
    with up(file, *options) as config:
        assert len(get(config, "blue", "/api/v1/nodes", tmp_path)["items"]) == 2
        with pytest.raises(HTTPError) as refused:
            get(config, "alice@blue", "/api/v1/nodes", tmp_path)
        assert refused.value.code == 403
        assert 'User "alice" cannot list' in json.load(refused.value)["message"]
        refused.value.close()
        assert run(["clock", "advance", "1m", "--kubeconfig", str(file)]) == 0


def test_an_invalid_certificate_is_reported(tmp_path, capsys):
    nonsense = base64.b64encode(b"nonsense").decode()
    user = {"client-certificate-data": nonsense, "client-key-data": nonsense}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "c", "user": user}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    assert run(["clock", "--kubeconfig", str(file)]) == 2
    assert "the client certificate and key cannot be used" in capsys.readouterr().err
