"""`fairlead up --data-dir`: acknowledged writes and users are still present after `kill -9`."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import sys
from base64 import b64decode
from contextlib import closing
from datetime import UTC, datetime
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.up_process import up

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.cli.commands.up.listener import host_names
from fairlead.cli.main import run
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.worlds.local.data_dir import objects_file, open_data_dir
from fairlead.worlds.local.kubeconfig import is_of_a_local_cluster, kubeconfig

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINE = ("ca.crt", "ca.key", "accounts.key", "tokens")
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def call(config, path, body=None, user=0):
    """Return the response to a GET, or to a POST of `body`, as this user of the kubeconfig."""
    cluster = config["clusters"][0]["cluster"]
    authority = b64decode(cluster["certificate-authority-data"]).decode()
    headers = {
        "Authorization": f"Bearer {config['users'][user]['user']['token']}",
        "Content-Type": "application/json",
    }
    data = None if body is None else json.dumps(body).encode()
    request = Request(cluster["server"] + path, data, headers)
    with urlopen(
        request, context=ssl.create_default_context(cadata=authority), timeout=60
    ) as answer:
        return json.load(answer)


def test_a_cluster_continues_in_a_new_process(tmp_path):
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
        made = call(config, CONFIG_MAPS, {"metadata": {"name": "x"}, "data": {"a": "b"}})
        token = config["users"][1]
        assert (token["name"], len(config["contexts"])) == ("alice", 2)
        with pytest.raises(HTTPError, match="403"):
            call(config, CONFIG_MAPS, user=1)
        stopped_at = call(config, "/fairlead/clock")
    with up("--nodes", "1", "--data-dir", str(home), "--keep-time") as again:
        assert call(config, "/fairlead/clock") == stopped_at
        assert call(config, f"{CONFIG_MAPS}/x") == made  # with the kubeconfig from before
        assert again["clusters"] == config["clusters"]
        assert again["users"][1] == token
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["responseStatus"]["code"] for line in lines] == [201, 403, 200]
    for secret in (home / "tokens", home / "ca.key", home / "objects.db", audit):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600, secret


@pytest.mark.parametrize("stored", ["in use", "99999", "eighty"])
def test_a_stored_port_that_is_not_available_is_replaced(tmp_path, capfd, stored):
    objects_file(tmp_path)
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        taken = other.getsockname()[1]
        (tmp_path / "port").write_text(str(taken) if stored == "in use" else stored)
        with up("--nodes", "0", "--data-dir", str(tmp_path)) as config:
            assert call(config, "/version")["minor"] == "36"
            port = config["clusters"][0]["cluster"]["server"].rpartition(":")[2]
    assert (tmp_path / "port").read_text() == port
    warning = f"port {taken}, which this cluster had before, is not available; "
    assert capfd.readouterr().err.startswith(warning) == (stored == "in use")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--user", "kubernetes-admin"), "already exists (the administrator)"),
        (("--user", ":dev"), "must be NAME or NAME:GROUP"),
        (("--name", "a@b"), "--name: a@b: must consist of letters, digits,"),
        (("--user", "fairlead"), "fairlead: is the name of the administrator's context in the"),
        (("--user", "a", "--user", "a:b"), "--user: a: is given twice"),
        (("--keep-time",), "--keep-time: needs --snapshot or --data-dir"),
        (("--data-dir", "/dev/null/x"), "--data-dir: /dev/null/x: Not a directory"),
        (("--host", "192.0.2.1"), "--host: 192.0.2.1:0: Cannot assign requested address"),
        (("--audit", "/dev/null/x"), "--audit"),
    ],
)
def test_invalid_options_are_refused_in_one_line(capsys, options, message):
    assert run(["up", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("name", ["port", "address"])
def test_a_directory_in_place_of_a_stored_file_is_refused(tmp_path, capsys, name):
    (tmp_path / name).mkdir()
    assert run(["up", "--data-dir", str(tmp_path), "--nodes", "1", "--", "true"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"fairlead: --data-dir: {tmp_path / name}: is not a regular file"
    ]


def test_a_stored_user_does_not_replace_the_administrator_in_the_kubeconfig(tmp_path, capsys):
    """With another name of the cluster, the user and its context were named fairlead@NAME."""
    open_data_dir(home_of(tmp_path), [authenticated("fairlead")], NOW)
    assert run(["up", "--data-dir", str(tmp_path)]) == 2
    assert "--user: fairlead: is the name of the administrator's" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("objects.db", "garbage that is no database", "objects.db: file is not a database"),
        ("tokens", "garbage", "tokens: not a file of tokens"),
        ("tokens", "", "tokens: contains no user kubernetes-admin"),
        ("ca.crt", "garbage", "ca.crt: is damaged"),
        ("ca.key", "garbage", "ca.key: is damaged"),
        ("accounts.key", "garbage", "accounts.key: is damaged"),
    ],
)
def test_a_damaged_data_directory_is_refused_and_not_changed(
    tmp_path, capsys, name, content, message
):
    home = tmp_path / "home"
    open_data_dir(home_of(home), [], NOW)
    (home / name).write_text(content)
    before = {file.name: file.read_bytes() for file in home.iterdir() if file.name in MINE}
    assert run(["up", "--data-dir", str(home), "--user", "bob"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert {name: (home / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("name", ["tokens", "ca.key", "accounts.key"])
def test_credentials_that_others_may_read_are_refused(tmp_path, capsys, name):
    home = tmp_path / "home"
    open_data_dir(home_of(home), [], NOW)
    (home / name).chmod(0o644)
    assert run(["up", "--data-dir", str(home)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{name}: can be read by others (mode 644); run chmod 600 {home / name}" in line


def test_no_files_are_added_to_a_data_directory_with_an_invalid_database(tmp_path, capsys):
    (tmp_path / "objects.db").write_text("garbage that is no database")
    assert run(["up", "--data-dir", str(tmp_path)]) == 2
    assert "file is not a database" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["objects.db"]


def test_unreadable_objects_are_reported(tmp_path, capsys):
    with up("--nodes", "0", "--data-dir", str(tmp_path)):
        pass
    with closing(sqlite3.connect(tmp_path / "objects.db")) as damaged, damaged:
        damaged.execute("UPDATE current SET object = x'7b226b' WHERE resource = 'namespaces'")
    assert run(["up", "--data-dir", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"fairlead: --data-dir: {tmp_path}/objects.db: is damaged: namespaces/default: "
    )


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory):
    """The data directory of a cluster that has ended."""
    home = tmp_path_factory.mktemp("lived_in")
    with up("--nodes", "1", "--data-dir", str(home)):
        pass
    return home


NAMED = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"'


@pytest.mark.parametrize(
    ("statement", "value", "message"),
    [
        ("UPDATE {} SET object = ? WHERE resource = 'namespaces'", "[]", "Expected `object`"),
        ("UPDATE {} SET object = ? WHERE resource = 'namespaces'", "{}", "missing required field"),
        ("UPDATE {} SET object = ? WHERE resource = 'nodes'", NAMED + "}}", "is another object"),
        (
            "UPDATE {} SET object = ? WHERE name = 'default' AND resource = 'namespaces'",
            NAMED + '}, "spec": 5}',
            "spec: is not an object",
        ),
        (
            "UPDATE {} SET object = ? WHERE name = 'default' AND resource = 'namespaces'",
            NAMED + ', "labels": [1]}}',
            "labels",
        ),
        ("UPDATE {} SET object = ?", 7, "is damaged"),
        ("UPDATE about SET value = ? WHERE name = 'time'", "x", "'x' is not a number"),
    ],
)
def test_json_values_that_are_not_objects_are_reported(
    tmp_path, lived_in, capsys, statement, value, message
):
    """The values are valid JSON, but not Kubernetes objects."""
    home = tmp_path / "home"
    shutil.copytree(lived_in, home)
    with closing(sqlite3.connect(home / "objects.db")) as damaged, damaged:
        for table in ("current", "log"):
            damaged.execute(statement.format(table), (value,))
    assert run(["up", "--nodes", "0", "--data-dir", str(home)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fairlead: --data-dir: ")
    assert message in line


def test_keep_time_needs_a_stored_time(tmp_path, lived_in):
    """Otherwise, the clock starts at the time of the machine, not in 1970."""
    home = tmp_path / "home"
    shutil.copytree(lived_in, home)
    with closing(sqlite3.connect(home / "objects.db")) as file, file:
        file.execute("DELETE FROM about WHERE name = 'time'")
    with up("--nodes", "0", "--data-dir", str(home), "--keep-time") as config:
        time = parse_timestamp(call(config, "/fairlead/clock")["now"])
    assert time > NOW.timestamp() * NANOSECONDS_PER_SECOND


def test_two_processes_cannot_use_one_data_directory(tmp_path, capsys):
    with up("--nodes", "0", "--data-dir", str(tmp_path)):
        before = (tmp_path / "tokens").read_bytes()
        assert run(["up", "--data-dir", str(tmp_path), "--user", "bob"]) == 2
        assert "objects.db: is in use by another process" in capsys.readouterr().err
        assert (tmp_path / "tokens").read_bytes() == before


def test_a_kubeconfig_of_another_program_is_not_overwritten(tmp_path, capsys):
    mine = tmp_path / "config"
    for text in ("my notes", "clusters: [{name: production, cluster: {}}]", "clusters: 5", "[1"):
        mine.write_text(text)
        assert run(["up", "--kubeconfig", str(mine)]) == 2
        error = capsys.readouterr().err
        assert "config: was not written by fairlead up" in error
        assert f"KUBECONFIG={mine}:FILE" in error.replace("\n", "")
        assert mine.read_text() == text
    for name in ("fairlead", "blue"):
        text = kubeconfig("https://127.0.0.1:1", "t", name=name)
        assert is_of_a_local_cluster(text.encode())
    assert is_of_a_local_cluster(b"clusters: [{name: fairlead, cluster: {server: x}}]")


def test_kubeconfigs_of_clusters_with_names_can_be_used_together(tmp_path):
    files = []
    for port, name in enumerate(("fairlead", "blue", "green"), 1):
        text = kubeconfig(f"https://127.0.0.1:{port}", name, others={"alice": "a"}, name=name)
        (tmp_path / name).write_text(text)
        files.append(str(tmp_path / name))
    together = Kubeconfig(files)
    contexts = ("", "fairlead", "alice", "blue", "alice@blue", "green", "alice@green")
    found = [together.connection(context) for context in contexts]
    assert [one.server[-1] for one in found] == ["1", "1", "1", "2", "2", "3", "3"]
    assert [one.token for one in found][-3:] == ["a", "green", "a"]


def test_users_keep_their_tokens_and_get_their_new_groups(tmp_path):
    home_of(tmp_path)
    first = open_data_dir(tmp_path, [authenticated("alice", ("dev",)), authenticated("bob")], NOW)
    later = open_data_dir(tmp_path, [authenticated("alice", ("ops",)), authenticated("carol")], NOW)
    assert later == open_data_dir(tmp_path, [authenticated("alice")], NOW)
    assert later.token_of("alice") == first.token_of("alice")
    groups = {user.name: user.groups[:-1] for user in later.users.values()}
    assert groups == {
        "kubernetes-admin": ("system:masters",),
        "alice": ("ops",),
        "bob": (),
        "carol": (),
    }


def test_the_host_option_allows_connections_from_other_machines(tmp_path):
    """With a wildcard address, the certificate also has the machine's own name and addresses."""
    assert host_names("192.0.2.1") == ("192.0.2.1",)
    assert host_names("0.0.0.0")[:2] == ("127.0.0.1", socket.gethostname())
    with up("--nodes", "0", "--host", "0.0.0.0") as config:
        assert call(config, "/version")["minor"] == "36"
        port = int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
        with socket.create_connection(("127.0.0.2", port), timeout=60):
            pass


def home_of(directory):
    """Create an empty database in `directory`, and return `directory`."""
    objects_file(directory)
    return directory


def test_the_size_of_a_stored_cluster_is_printed(tmp_path):
    with up("--nodes", "2", "--zones", "2", "--data-dir", str(tmp_path)):
        pass
    command = [sys.executable, "-m", "fairlead.cli", "up", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert "# 2 nodes in 2 zones; " in process.stdout.readline()
        process.terminate()
