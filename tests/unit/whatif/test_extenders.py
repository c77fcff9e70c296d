"""Runs whose scheduler has extenders: whole, over real connections, good ones and bad ones."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import msgspec
import pytest

from fairlead.whatif.progress import NoProgress
from fairlead.whatif.run import run
from fairlead.whatif.scenario import experiment_of, read_scenario
from fairlead.worlds.extender.client import TIMED_OUT

SCENARIO = """\
cluster: {generated: {nodes: 3, allocatable: {cpu: 2}}}
settings: {scheduler: scheduler.yaml}
duration: 1m
events: [{at: 10s, create: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers:
  [{name: c, image: i}]}}}]
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "%s", nodeCacheCapable: true, httpTimeout: 100ms, weight: 1, %s}]
"""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.strip("/")
        self.server.verbs.append(verb)
        answer = self.server.answers[verb](self.server, body)
        if isinstance(answer, int):
            status, answer = answer, b""
        else:
            status = 200
        if not isinstance(answer, bytes):
            answer = msgspec.json.encode(answer)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_what):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.verbs, self.over = answers, [], Event()

    def handle_error(self, *_of):
        pass


@pytest.fixture
def outcome(write):
    """The node, or the reason why there is none, of a run with such an extender."""

    def finish(options="", **answers):
        verbs = ", ".join(f"{verb}Verb: {verb}" for verb in answers)
        with Server(answers) as server:
            thread = Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            settings = ", ".join(filter(None, (verbs, options)))
            url = f"http://127.0.0.1:{server.server_address[1]}"
            write("scheduler.yaml", CONFIG % (url, settings))
            path = write("s.yaml", SCENARIO)
            try:
                finished = run(experiment_of(path, read_scenario(path)), "test", NoProgress())
            finally:
                server.over.set()
                server.shutdown()
                thread.join()
        [pod] = finished.outcome.pods.values()
        return pod.node or pod.reason.replace(url, "URL")

    return finish


def last(_server, asked):
    return {"NodeNames": [max(asked["NodeNames"])]}


def first_is_best(_server, asked):
    return [{"Host": min(asked["NodeNames"]), "Score": 10}]


def test_filters_scores_and_bindings_of_an_extender_count(outcome):
    assert outcome(filter=last) == "node-2"
    assert outcome(prioritize=first_is_best) == "node-0"
    assert outcome(filter=last, prioritize=first_is_best) == "node-2"
    assert outcome(prioritize=first_is_best, bind=lambda *_: {}) == "node-0"


def slow(server, _asked):
    server.over.wait()
    return {}


BAD = [
    (slow, f'Post "URL/filter": {TIMED_OUT}'),
    (lambda *_: 500, "failed filter with extender at URL URL/filter, code 500"),
    (lambda *_: b"garbage", "invalid character 'g' looking for beginning of value"),
    (lambda *_: b"\xff\x00", "invalid character '\xff' looking for beginning of value"),
    (lambda *_: [1], "json: Expected object, got array"),
    (lambda *_: {"NodeNames": ["node-9"]},
     'extender "URL" claims a filtered node "node-9" which is not found in the input node list'),
    (lambda *_: {"NodeNames": None, "Error": "out of order"}, "out of order"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "reason"), BAD)
def test_an_extender_that_fails_leaves_the_pod_pending_unless_it_is_ignorable(outcome, bad, reason):
    """upstream: schedule_one.go: findNodesThatPassExtenders."""
    assert outcome(filter=bad) == reason
    assert outcome("ignorable: true", filter=bad).startswith("node-")


@pytest.mark.parametrize("bad", [bad for bad, _ in BAD])
def test_an_extender_that_cannot_score_is_not_missed(outcome, bad):
    assert outcome(prioritize=bad).startswith("node-")


def test_an_extender_that_rejects_every_node_says_why(outcome):
    def refuse(_server, asked):
        return {"FailedNodes": {name: f"no room on {name[:4]}" for name in asked["NodeNames"]}}

    assert outcome(filter=refuse).startswith("0/3 nodes are available: 3 no room on node. ")
