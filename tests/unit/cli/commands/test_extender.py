"""`fairlead extender` as a process: it prints its address, serves requests, and ends on signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from fairlead.cli.main import run

PLUGIN = """\
class ByLabel:
    name = "ByLabel"
    def score(self, state, pod, node):
        return int(node.labels.get("score", "0"))
"""
SCENARIO = """\
cluster: {files: [cluster.json]}
settings: {scheduler: scheduler.yaml}
duration: 1m
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://%s", filterVerb: filter, prioritizeVerb: prioritize, weight: 1,
  nodeCacheCapable: %s}]
"""


def node(name, score):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"score": str(score)}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }


CLUSTER = [
    *(node(f"n{number}", score) for number, score in enumerate((10, 90, 40))),
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
]


@contextmanager
def extender(*options, stop=signal.SIGTERM):
    """Start the extender with these options; yield its address."""
    command = [sys.executable, "-m", "fairlead.cli", "extender", "--listen", "127.0.0.1:0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, *options], text=True, **pipes) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("listening on http://"), process.stderr.read()
            yield line.removeprefix("listening on http://").strip()
        finally:
            process.send_signal(stop)
            rest = process.communicate(timeout=60)
        assert (process.returncode, *rest) == (0, "", "")


@pytest.fixture
def files(tmp_path):
    """The files of a plugin, a cluster, and a scenario that uses them."""
    (tmp_path / "by_label.py").write_text(PLUGIN)
    cluster = {"apiVersion": "v1", "kind": "List", "items": CLUSTER}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    (tmp_path / "s.yaml").write_text(SCENARIO)
    return tmp_path


@pytest.mark.parametrize("by_name", [True, False])
def test_a_scheduler_uses_plugins_that_run_in_an_extender(files, by_name, capsys):
    options = ["--plugin", f"{files}/by_label.py:ByLabel"]
    if by_name:
        options += ["--snapshot", f"{files}/cluster.json"]
    commands = files / "commands.jsonl"
    with extender(*options) as address:
        text = CONFIG % (address, str(by_name).lower())
        (files / "scheduler.yaml").write_text(text)
        arguments = ["simulate", f"{files}/s.yaml", "-o", "json", "--allow-extenders"]
        arguments += ["--commands", str(commands)]
        assert run(arguments) == 0
    made = [json.loads(line) for line in commands.read_text().splitlines()]
    about_pods = [each for each in made if each["command"] not in ("CreateObject", "PatchStatus")]
    assert [each["command"] for each in about_pods[:2]] == ["CallExtender", "CallExtender"]
    [bind] = [each for each in made if each["command"] == "Bind"]
    assert bind["node"] == "n1"


def test_an_extender_ends_when_it_is_interrupted(files):
    with extender("--plugin", f"{files}/by_label.py:ByLabel", stop=signal.SIGINT) as address:
        host, _, port = address.partition(":")
        connection = HTTPConnection(host, int(port), timeout=60)
        connection.request("POST", "/bind", b"{}", {"Content-Type": "application/json"})
        assert "--api-server" in json.loads(connection.getresponse().read())["Error"]
        connection.close()


def refused(capsys, *options):
    assert run(["extender", *options]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--listen", "8888"], "--listen: 8888: must be HOST:PORT"),
        (["--listen", "0.0.0.0:0"], "--listen: 0.0.0.0:0: other machines could reach this"),
        (["--listen", "[::]:0"], "--listen: [::]:0: other machines could reach this"),
        (["--listen", "198.51.100.1:0", "--beyond-loopback"], "--listen: 198.51.100.1:0: "),
        (["--listen", "127.0.0.1:0", "--api-server", "here"], "--api-server: here: must be an"),
        (["--listen", "127.0.0.1:0", "--plugin", "nowhere:N"], "--plugin: nowhere:N: "),
        (["--listen", "127.0.0.1:0", "--config", "/nowhere"], "/nowhere"),
        (["--listen", "127.0.0.1:0", "--snapshot", "/nowhere"], "/nowhere"),
    ],
)
def test_invalid_options_are_refused_in_one_line(capsys, options, line):
    error = refused(capsys, *options)
    assert error.startswith(f"fairlead: {line}")
    assert error.count("\n") == 1


def test_an_extender_cannot_call_extenders(files, capsys):
    (files / "scheduler.yaml").write_text(CONFIG % ("x", "false"))
    error = refused(capsys, "--listen", "127.0.0.1:0", "--config", f"{files}/scheduler.yaml")
    assert "scheduler.yaml: extenders: an extender cannot call extenders" in error
