"""`fairlead up` as a process: its output, its API, its clock commands, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
from base64 import b64decode
from contextlib import contextmanager
from pathlib import Path
from struct import pack
from urllib.request import Request, urlopen

import pytest
import yaml
from tests.up_process import Connection

from fairlead.cli.main import run


@contextmanager
def up(*options):
    """Yield the kubeconfig of a cluster that runs with these options."""
    command = [sys.executable, "-m", "fairlead.cli", "up", "--paused", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("export KUBECONFIG="), line
        yield line.partition("=")[2].split()[0]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        process.stdout.close()


def get(kubeconfig, path, token=None):
    """Return the response to a GET with the kubeconfig's token, or with `token`."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = b64decode(cluster["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {token or config['users'][0]['user']['token']}"}
    context = ssl.create_default_context(cadata=authority)
    request = Request(cluster["server"] + path, headers=headers)
    with urlopen(request, context=context, timeout=60) as response:
        return json.load(response)


def test_aborted_connections_print_nothing(capfd):
    with up("--nodes", "1", "--without", "workloads") as kubeconfig:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        host, _, port = config["clusters"][0]["cluster"]["server"][8:].rpartition(":")
        token = config["users"][0]["user"]["token"]
        head = f"GET /openapi/v2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        context = ssl._create_unverified_context()
        for sent, option in ((head, pack("ii", 1, 0)), (f"{head}\0", pack("ii", 0, 0))):
            with socket.create_connection((host, int(port))) as plain:
                connection = context.wrap_socket(plain)
                connection.sendall(sent.encode())
                # The first option resets the connection; the second is an empty request.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
                connection.close()
        get(kubeconfig, "/api/v1/nodes")
    assert capfd.readouterr().err == ""


def test_a_cluster_starts_serves_requests_and_ends(tmp_path, capsys):
    file = tmp_path / "kubeconfig"
    with up("--nodes", "2", "--kubeconfig", str(file)) as kubeconfig:
        assert kubeconfig == str(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(get(file, "/api/v1/nodes")["items"]) == 2
        assert run(["clock", "advance", "5m", "--kubeconfig", kubeconfig]) == 0
        assert run(["clock", "speed", "60", "--kubeconfig", kubeconfig]) == 0
        assert run(["clock", "advance", "-5m", "--kubeconfig", kubeconfig]) == 2
        assert run(["clock", "advance", "never", "--kubeconfig", kubeconfig]) == 2
        shown = capsys.readouterr()
        assert "paused" in shown.out
        assert "advance: 'never' is not a duration" in shown.err
        assert "advance: must be at least 0" in shown.err
    assert run(["clock", "--kubeconfig", kubeconfig]) == 2
    assert "does not answer" in capsys.readouterr().err


def test_a_context_names_the_cluster_of_a_clock_beside_other_clusters(
    tmp_path, capsys, monkeypatch
):
    """KUBECONFIG names two files, and the current context is in the first."""
    own = tmp_path / "own"
    cluster = {"name": "own", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "own", "context": {"cluster": "own", "user": "own"}}
    config = {"clusters": [cluster], "contexts": [context], "current-context": "own"}
    own.write_text(json.dumps(config))
    with up("--nodes", "1") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", f"{own}:{kubeconfig}")
        assert run(["clock"]) == 2
        assert run(["clock", "--context", "fairlead"]) == 0
        assert run(["dashboard", "--context", "fairlead"]) == 2
        assert run(["clock", "--context", "green"]) == 2
    shown = capsys.readouterr()
    assert "paused" in shown.out
    assert "context fairlead: the cluster has no dashboard" in shown.err
    assert "there is no context 'green'; known contexts: fairlead, own" in shown.err


def test_the_clock_starts_at_the_time_of_a_snapshot_from_the_future(tmp_path, capsys):
    """As in a snapshot of another local cluster whose clock was advanced."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["metadata"]["creationTimestamp"] = "2200-01-01T00:00:00Z"
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(node))
    with up("--snapshot", str(dump)) as kubeconfig:
        assert run(["clock", "--kubeconfig", kubeconfig]) == 0
    assert capsys.readouterr().out.startswith("2200-01-01T00:00:00.")


@pytest.mark.parametrize(
    ("phase", "phases", "notice"),
    [
        (
            "Running",
            ["Pending", "Running"],
            "KWOK Stages say how long the pods that they select take: slow.",
        ),
        (
            "Failed",
            ["Running", "Running"],
            "Stage slow: spec.next: sets the phase Failed; only Running and Succeeded",
        ),
    ],
    ids=["simulated", "not simulated"],
)
def test_pods_follow_the_kwok_stages_of_a_snapshot(tmp_path, capfd, phase, phases, notice):
    dump = _written(tmp_path / "dump.json", *_node_and_pod(), _slow_stage(phase))
    assert _phases_after_60_and_100_seconds("--snapshot", dump) == phases
    assert notice in capfd.readouterr().err


def test_pods_follow_the_kwok_stages_of_a_file(tmp_path, capfd):
    dump = _written(tmp_path / "dump.json", *_node_and_pod())
    stages = _written(tmp_path / "stages.json", _slow_stage("Running"))
    found = _phases_after_60_and_100_seconds("--snapshot", dump, "--kwok-stages", stages)
    assert found == ["Pending", "Running"]
    assert (
        "KWOK Stages say how long the pods that they select take: slow." in capfd.readouterr().err
    )


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_without_kubelets_no_notice_names_the_kwok_stages_of_a_snapshot(tmp_path, capfd, phase):
    dump = _written(tmp_path / "dump.json", *_node_and_pod(), _slow_stage(phase))
    with up("--snapshot", dump, "--without", "kubelet"):
        pass
    assert "Stage" not in capfd.readouterr().err


def test_kwok_stages_without_effect_are_refused(tmp_path, capsys):
    """The files of --snapshot may contain such Stages, because users do not write those files."""
    stages = _written(tmp_path / "stages.json", _slow_stage("Failed"))
    assert run(["up", "--kwok-stages", stages]) == 2
    assert "Stage slow: spec.next: sets the phase Failed" in capsys.readouterr().err
    assert run(["up", "--kwok-stages", stages, "--without", "volumes,kubelet"]) == 2
    assert "--kwok-stages: has no effect with --without kubelet" in capsys.readouterr().err
    assert run(["up", "--kwok-stages", _written(tmp_path / "dump.json", *_node_and_pod())]) == 2
    assert "Node n1: is not a KWOK Stage" in capsys.readouterr().err
    stages = _written(tmp_path / "stages.json", _slow_stage("Running"))
    assert run(["up", "--kwok-stages", stages, "--audit", stages]) == 2
    assert "is an input of this command" in capsys.readouterr().err


def _written(path, *objects):
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


def _node_and_pod():
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    node["status"] = {"capacity": amounts, "allocatable": amounts}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    return node, pod


def _slow_stage(phase):
    """Return a Stage that sets `phase` 90 seconds after the binding."""
    stage = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": "slow"}}
    stage["spec"] = {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {"matchExpressions": [{"key": ".status.podIP", "operator": "DoesNotExist"}]},
        "delay": {"durationMilliseconds": 90_000},
        "next": {"statusTemplate": f"phase: {phase}"},
    }
    return stage


def _phases_after_60_and_100_seconds(*options):
    found = []
    with up(*options) as kubeconfig:
        for time in ("60s", "40s"):
            assert run(["clock", "advance", time, "--kubeconfig", kubeconfig]) == 0
            status = get(kubeconfig, "/api/v1/namespaces/default/pods/p")["status"]
            found.append(status["phase"])
    return found


def test_resources_limited_by_the_admission_configuration_require_a_quota(tmp_path):
    """The option is --admission-control-config-file; it prevents the use of high priorities."""
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
    limited = {"resource": "pods", "matchScopes": [scope]}
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "ResourceQuotaConfiguration",
        "limitedResources": [limited],
    }
    config = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ResourceQuota", "configuration": plugin}],
    }
    file = tmp_path / "admission.yaml"
    file.write_text(yaml.safe_dump(config))
    spec = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": scope["values"][0]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    with (
        up("--nodes", "0", "--admission-control-config-file", str(file)) as kubeconfig,
        Connection(yaml.safe_load(Path(kubeconfig).read_text())) as connection,
    ):
        status, answer = connection.ask("POST", "/api/v1/namespaces/default/pods", pod)
    assert status == 403
    assert "insufficient quota to match these scopes" in answer["message"]


@pytest.fixture
def hanging_up_ends():
    """Resets SIGHUP to its default, because the process of the tests may ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hanging_up_ends")
@pytest.mark.parametrize("nohup", [(), ("nohup",)])
def test_a_closed_terminal_ends_the_cluster_unless_nohup_started_it(tmp_path, nohup):
    """No temporary file remains."""
    command = [*nohup, sys.executable, "-m", "fairlead.cli", "up", "--nodes", "0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        kubeconfig = process.stdout.readline().partition("=")[2].split()[0]
        process.send_signal(signal.SIGHUP)
        if nohup:
            assert get(kubeconfig, "/api/v1/nodes")["items"] == []
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_cluster_runs_with_closed_output_streams(tmp_path):
    """A shell closes them with `>&-` and `2>&-`."""
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "fairlead.cli", "up", "--nodes", "0", "--kubeconfig"]
    closing = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh"]
    with subprocess.Popen([*closing, *command, str(kubeconfig)]) as process:
        while not _answers(kubeconfig):
            assert process.poll() is None
            threading.Event().wait(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def _answers(kubeconfig):
    try:
        return get(kubeconfig, "/api/v1/nodes")["items"] == []
    except OSError:
        return False


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--nodes", "-1"], "--nodes: must be from 0 to 10000"),
        (["--nodes", "2", "--zones", "3"], "--zones: must be from 1 to the number of nodes"),
        (["--port", "70000"], "--port: must be from 0 to 65535"),
        (["--speed", "0"], "--speed: must be from 0.001 to 100000"),
        (["--speed", "nan"], "--speed: must be from 0.001 to 100000"),
        (["--speed", "5e-324"], "--speed: must be from 0.001 to 100000"),
        (["--without", "nope"], "--without: nope: must be one of kubelet"),
    ],
)
def test_invalid_options_are_refused(options, line, capsys):
    assert run(["up", *options]) == 2
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["clock", "advance"], "advance needs an amount"),
        (["clock", "speed", "fast"], "'fast' is not a speed"),
        (["clock", "speed", "nan"], "'nan' is not a speed"),
        (["clock", "pause", "5m"], "pause takes no amount, but '5m' was given"),
        (["clock", "show", "--kubeconfig", "nope.yaml"], "nope.yaml: cannot be read: No such file"),
    ],
)
def test_invalid_clock_commands_are_refused(arguments, line, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    (tmp_path / "kubeconfig").write_text("5")
    assert run(arguments) == 2
    assert line in capsys.readouterr().err


def test_absent_kubeconfig_files_are_skipped(capsys, monkeypatch, tmp_path):
    (tmp_path / "second").write_text("5")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    assert run(["clock"]) == 2
    assert "second: is not a kubeconfig: expected an object" in capsys.readouterr().err
