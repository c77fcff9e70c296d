"""`fairlead watch`: what-ifs that run again when a cluster changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

from kubernetes import client, config
from tests.up_process import up

QUESTIONS = """\
every: 1s
questions:
  - name: drain
    ask: --drain node-1
  - name: wrong
    ask: --drain node-99
"""
TOKEN = "a-token-of-some-length"


@contextmanager
def watching(kubeconfig, folder):
    """The address of a watch."""
    questions, token = folder / "questions.yaml", folder / "token"
    questions.write_text(QUESTIONS)
    token.write_text(TOKEN)
    options = ("--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--token-file", str(token))
    command = [sys.executable, "-m", "fairlead.cli", "watch", "--ask", str(questions), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("answers to 2 questions"), line
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        process.stdout.close()


def get(address, token=TOKEN):
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, ""


def eventually(found, seconds=60):
    end = time.monotonic() + seconds  # noqa: TID251 - other processes work in real time
    while not (value := found()):
        assert time.monotonic() < end, "waited in vain"  # noqa: TID251
        time.sleep(0.1)  # noqa: TID251
    return value


def answers(address):
    return {one["question"]: one for one in json.loads(get(f"{address}answers")[1])["answers"]}


def test_what_ifs_run_again_when_the_cluster_changes(tmp_path):
    kubeconfig = str(tmp_path / "kubeconfig")
    with (
        up("--nodes", "1", "--kubeconfig", kubeconfig, paused=False),
        watching(kubeconfig, tmp_path) as address,
    ):
        first = eventually(lambda: len(answers(address)) == 2 and answers(address))
        assert first["drain"]["verdict"]["outcome"] == "unchanged"
        assert "there is no Node node-99" in first["wrong"]["error"]
        config.load_kube_config(kubeconfig)
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        web = {"metadata": {"name": "web"}, "spec": spec}
        client.AppsV1Api().create_namespaced_deployment("default", web)
        # A read of the cluster may come between the creations of the two pods.
        pending = 'fairlead_question_pods{effect="pending",question="drain"} 2.0'
        eventually(lambda: pending in get(f"{address}metrics")[1])
        assert answers(address)["drain"]["verdict"]["outcome"] != "unchanged"
        _, text = get(f"{address}metrics")
        assert 'fairlead_question_failed{question="wrong"} 1.0' in text
        assert "there is no Node node-99" in get(address)[1]
        assert get(address, "another-token-than-that")[0] == 401
        assert get(f"{address}healthz", "")[0] == 200


def test_other_machines_can_connect_only_with_the_option(tmp_path):
    file = tmp_path / "questions.yaml"
    file.write_text(QUESTIONS)
    command = [sys.executable, "-m", "fairlead.cli", "watch", "--ask", str(file)]
    command += ["--listen", "0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "add --beyond-loopback" in done.stderr
