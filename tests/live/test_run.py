"""`fairlead run` as a process, connected to a cluster in another process."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config
from tests.up_process import up


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The kubeconfig of a cluster with five nodes and no scheduler."""
    path = tmp_path_factory.mktemp("run") / "kubeconfig"
    options = ("--nodes", "5", "--without", "scheduler", "--kubeconfig", str(path))
    with up(*options, paused=False):
        config.load_kube_config(str(path))
        yield str(path)


@contextmanager
def replica(kubeconfig, listen):
    """A process of `fairlead run`; it ends without an error."""
    command = [sys.executable, "-m", "fairlead.cli", "run", "--kubeconfig", kubeconfig]
    command += ["--listen", listen]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        process.stderr.close()


@contextmanager
def running(kubeconfig):
    """A replica that leads."""
    with replica(kubeconfig, "none") as process:
        assert "running in" in process.stderr.readline()
        yield process


@contextmanager
def serving(kubeconfig):
    """The URL of a replica that leads."""
    with replica(kubeconfig, "127.0.0.1:0") as process:
        found = re.search(r"serving on (https://127\.0\.0\.1:\d+)$", process.stderr.readline())
        assert "running in" in process.stderr.readline()
        yield found[1]


def pod(name, cpu="10m", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def create(*pods):
    api = client.CoreV1Api()
    for one in pods:
        api.create_namespaced_pod("default", one)


def eventually(found, seconds=60):
    end = time.monotonic() + seconds  # noqa: TID251 - another process works in real time
    while not (value := found()):
        assert time.monotonic() < end, "waited in vain"  # noqa: TID251
        time.sleep(0.05)  # noqa: TID251
    return value


def read(name):
    return client.CoreV1Api().read_namespaced_pod(name, "default")


@pytest.fixture
def clean():
    """Removes the pods of a test."""
    yield
    api = client.CoreV1Api()
    api.delete_collection_namespaced_pod("default", grace_period_seconds=0)
    eventually(lambda: not api.list_namespaced_pod("default").items)


def test_pods_are_bound_and_events_written(cluster, clean):
    with running(cluster):
        create(*(pod(f"p{number}") for number in range(10)), pod("other", schedulerName="other"))
        for number in range(10):
            eventually(lambda name=f"p{number}": read(name).spec.node_name)
        events = eventually(
            lambda: (
                client.EventsV1Api()
                .list_namespaced_event(
                    "default", field_selector="reason=Scheduled,regarding.name=p0"
                )
                .items
            )
        )
        assert events[0].reporting_controller == "default-scheduler"
        assert events[0].note.startswith("Successfully assigned default/p0")
        assert read("other").spec.node_name is None


def test_an_unschedulable_pod_has_a_reason_and_is_bound_when_a_node_has_room(cluster, clean):
    with running(cluster):
        create(pod("huge", cpu="1000"), pod("fits"))
        eventually(lambda: read("fits").spec.node_name)
        (condition,) = eventually(lambda: read("huge").status.conditions)
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert condition.message.startswith("0/5 nodes are available: 5 Insufficient cpu.")
        room = {"status": {"allocatable": {"cpu": "2000"}, "capacity": {"cpu": "2000"}}}
        client.CoreV1Api().patch_node_status("node-1", room)
        eventually(lambda: read("huge").spec.node_name)


def test_a_second_replica_takes_over_when_the_first_ends(cluster, clean):
    with running(cluster) as first:
        command = [sys.executable, "-m", "fairlead.cli", "run", "--kubeconfig", cluster]
        second = subprocess.Popen([*command, "--listen", "none"], stderr=subprocess.PIPE, text=True)
        try:
            assert "waiting for it" in second.stderr.readline()
            create(pod("before"))
            eventually(lambda: read("before").spec.node_name)
            first.send_signal(signal.SIGTERM)
            assert "running in" in second.stderr.readline()
            create(pod("after"))
            eventually(lambda: read("after").spec.node_name)
        finally:
            second.send_signal(signal.SIGTERM)
            assert second.wait(timeout=60) == 0
            second.stderr.close()


def get(url, token=""):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, ""


def test_probes_need_no_token_and_metrics_need_one(cluster, clean, tmp_path):
    user = yaml.safe_load(Path(cluster).read_text())["users"][0]["user"]
    attempts = re.compile(r'scheduler_schedule_attempts_total{.*result="scheduled"} [1-9]')
    with serving(cluster) as url:
        create(pod("counted"))
        assert get(f"{url}/healthz") == (200, "ok")
        assert get(f"{url}/readyz") == (200, "ok")
        assert get(f"{url}/metrics")[0] == 401
        assert get(f"{url}/metrics", "wrong")[0] == 401
        # The attempt is counted after the response to the binding.
        eventually(lambda: attempts.search(get(f"{url}/metrics", user["token"])[1]))
        status, text = get(f"{url}/metrics", user["token"])
    assert status == 200
    assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in text


def test_explain_queries_the_running_scheduler(cluster, clean, tmp_path):
    user = yaml.safe_load(Path(cluster).read_text())["users"][0]["user"]
    token = tmp_path / "token"
    token.write_text(user["token"])

    def explain(name, *more):
        options = ("--process", url, "--insecure-skip-tls-verify")
        command = [sys.executable, "-m", "fairlead.cli", "explain", name, *options, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, " ".join(done.stdout.split()), done.stderr

    trusted = ("--token-file", str(token))
    with serving(cluster) as url:
        # The scheduler receives them in this order, so it knows the gated pod first.
        create(pod("gated", schedulingGates=[{"name": "x"}]), pod("huge", cpu="9000"), pod("fits"))
        eventually(lambda: read("huge").status.conditions)
        eventually(lambda: read("fits").spec.node_name)
        status, text, _ = explain("pod/huge", *trusted)
        assert status == 0
        assert "last rejected by NodeResourcesFit" in text
        assert "default/huge: priority 0, pending" in text
        assert "Insufficient cpu" in text
        _, text, _ = explain("pod/default/gated", *trusted)
        assert "Held back by SchedulingGates since" in text
        node = read("fits").spec.node_name
        # The scheduler may still wait for the response to the binding.
        eventually(lambda: explain("pod/fits", *trusted)[1] == f"default/fits: on node {node}")
        value = json.loads(explain("pod/huge", "-o", "json", *trusted)[1])
        assert value["queue"]["rejectedBy"] == ["NodeResourcesFit"]
        assert len(value["verdicts"]) == 5
        assert explain("pod/absent", *trusted)[0] == 2
        refused = explain("pod/huge")
    assert (refused[0], "--token-file names one" in refused[2]) == (2, True)


def test_a_shadow_agrees_with_the_scheduler_that_runs_and_writes_nothing(cluster, clean, tmp_path):
    file = tmp_path / "decisions.jsonl"
    page = tmp_path / "shadow.html"
    files = ("--decisions", str(file), "--report", str(page))
    options = ("--shadow", "--listen", "none", *files)
    command = [sys.executable, "-m", "fairlead.cli", "run", "--kubeconfig", cluster, *options]
    shadow = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "comparing" in shadow.stderr.readline()
    with running(cluster):
        # One after another, because bindings may be observed in another order than decided.
        for number in range(10):
            create(pod(f"p{number}"))
            eventually(lambda count=number + 1: file.read_text().count("\n") == count)
    shadow.send_signal(signal.SIGTERM)
    text, _ = shadow.communicate(timeout=60)
    assert shadow.returncode == 0
    assert json.loads(text)["present"]["decisions"]["equal"] == 10
    assert "present: 100.0% of 10 placements agree" in page.read_text()


@pytest.mark.parametrize(
    ("option", "line"),
    [
        (
            "--decisions",
            "fairlead: --decisions: /dev/full: No space left on device: lines are missing\n",
        ),
        ("--report", "fairlead: /dev/full: No space left on device\n"),
    ],
)
def test_a_shadow_names_the_file_that_a_full_disk_leaves_incomplete(
    cluster, clean, tmp_path, option, line
):
    """The comparison continues, and the summary is printed."""
    file = tmp_path / "decisions.jsonl"
    options = ["--kubeconfig", cluster, "--shadow", "--listen", "none", option, "/dev/full"]
    if option != "--decisions":
        options += ["--decisions", str(file)]
    shadow = subprocess.Popen(
        [sys.executable, "-m", "fairlead.cli", "run", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "comparing" in shadow.stderr.readline()
    with running(cluster):
        create(pod("p", cpu="10m"))
        if option == "--decisions":
            said = shadow.stderr.readline()  # when the first decision cannot be written
        else:
            eventually(lambda: file.read_text().count("\n") == 1)
            said = ""
    shadow.send_signal(signal.SIGTERM)
    text, error = shadow.communicate(timeout=60)
    assert (shadow.returncode, said + error) == (74, line)
    assert json.loads(text)["present"]["decisions"]["equal"] == 1
