"""`fairlead up --data-dir`: what was answered is there after `kill -9`, and so are its users."""

from __future__ import annotations

import json
import signal
import ssl
import stat
from base64 import b64decode
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.up_process import up

from fairlead.cli.main import run

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def asked(config, path, body=None, user=0):
    """The answer to a GET, or to a POST of `body`, as that user of the kubeconfig."""
    cluster = config["clusters"][0]["cluster"]
    authority = b64decode(cluster["certificate-authority-data"]).decode()
    headers = {
        "Authorization": f"Bearer {config['users'][user]['user']['token']}",
        "Content-Type": "application/json",
    }
    data = None if body is None else json.dumps(body).encode()
    request = Request(cluster["server"] + path, data, headers)
    with urlopen(
        request, context=ssl.create_default_context(cadata=authority), timeout=20
    ) as answer:
        return json.load(answer)


def test_a_cluster_outlives_its_process(tmp_path):
    home, audit = tmp_path / "home", tmp_path / "audit.log"
    options = (
        "--nodes",
        "1",
        "--data-dir",
        str(home),
        "--user",
        "alice:dev",
        "--audit",
        str(audit),
    )
    with up(*options, ending=signal.SIGKILL) as config:
        made = asked(config, CONFIG_MAPS, {"metadata": {"name": "x"}, "data": {"a": "b"}})
        token = config["users"][1]
        assert (token["name"], len(config["contexts"])) == ("alice", 2)
        with pytest.raises(HTTPError, match="403"):
            asked(config, CONFIG_MAPS, user=1)
    with up("--nodes", "1", "--data-dir", str(home)) as config:
        assert asked(config, f"{CONFIG_MAPS}/x") == made
        assert config["users"][1] == token
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["responseStatus"]["code"] for line in lines] == [201, 403]
    for secret in (home / "tokens", home / "ca.key", home / "objects.db", audit):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600, secret


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--user", "kubernetes-admin"), "must be NAME or NAME:GROUP"),
        (("--user", ":dev"), "must be NAME or NAME:GROUP"),
        (("--data-dir", "/dev/null/x"), "--data-dir"),
        (("--audit", "/dev/null/x"), "--audit"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(capsys, options, told):
    assert run(["up", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
