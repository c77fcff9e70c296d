"""The dashboard of `fairlead run` shows a real cluster and cannot change it."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config
from tests.up_process import up


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The kubeconfig of a cluster with three nodes, a pod and no scheduler."""
    path = tmp_path_factory.mktemp("run") / "kubeconfig"
    options = ("--nodes", "3", "--without", "scheduler", "--kubeconfig", str(path))
    with up(*options, paused=False):
        config.load_kube_config(str(path))
        container = {"name": "c", "image": "i"}
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [container]}}
        client.CoreV1Api().create_namespaced_pod("default", pod)
        yield str(path)


class Visitor:
    """A client with cookies that follows redirects."""

    def __init__(self, link):
        self.origin = link.partition("/login")[0]
        self.opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(CookieJar()),
        )
        self.page = self.opener.open(link).read().decode()

    def states(self):
        """The states of a stream, until the server ends it."""
        with self.opener.open(f"{self.origin}/live") as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

    def post(self, path, body):
        headers = {"Content-Type": "application/json", "Origin": self.origin}
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.origin + path, data, headers)
        try:
            with self.opener.open(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()


@contextmanager
def running(kubeconfig):
    """The output of `fairlead run --dashboard`: the URL of its API, and the link."""
    command = [sys.executable, "-m", "fairlead.cli", "run", "--kubeconfig", kubeconfig]
    command += ["--dashboard", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        serving = re.search(r"\bserving on (https://127\.0\.0\.1:\d+)$", process.stderr.readline())
        link = re.search(
            r"\bdashboard: (http://127\.0\.0\.1:\d+/login\S+)$", process.stderr.readline()
        )
        assert serving
        assert link
        yield serving[1], link[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        process.stderr.close()


@pytest.mark.long
def test_the_dashboard_shows_the_cluster_and_what_ifs_and_changes_nothing(cluster):
    with running(cluster) as (_, link):
        visitor = Visitor(link)
        assert '"has_controls":false' in visitor.page
        assert '"title":"Context' in visitor.page
        placed = (state for state in visitor.states() if state["page"]["summary"]["placed"] == 1)
        assert next(placed)["page"]["nodes"]["name"] == ["node-1", "node-2", "node-3"]
        status, explained = visitor.post("/explain", {"pod": "default/web"})
        assert (status, "node-1" in explained["text"]) == (200, True)
        status, answer = visitor.post("/ask", {"change": "--drain node-1"})
        assert (status, bool(answer["findings"])) == (200, True)
        for path, body in (
            ("/clock", {"advance": "5m"}),
            ("/node", {"node": "node-1", "action": "cordon"}),
        ):
            assert visitor.post(path, body)[0] == 404


def test_a_further_link_requires_a_token_with_the_permission(cluster):
    token = yaml.safe_load(Path(cluster).read_text())["users"][0]["user"]["token"]
    with running(cluster) as (url, link):
        assert ask_for_link(url, "") == (401, "")
        assert ask_for_link(url, "wrong") == (401, "")
        status, text = ask_for_link(url, token)
        assert status == 200
        assert json.loads(text)["url"] != link
        assert "has_controls" in Visitor(json.loads(text)["url"]).page


def ask_for_link(url, token):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{url}/fairlead/dashboard", b"", headers)
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, ""
