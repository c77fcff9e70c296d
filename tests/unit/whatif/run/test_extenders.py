"""Whole runs whose scheduler calls extenders over real connections, including faulty extenders."""

from __future__ import annotations

import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import msgspec
import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.explain.pod import explain_pod, explanation_json
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
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
extenders: [{urlPrefix: "%s", nodeCacheCapable: true, httpTimeout: %s, weight: 1, %s}]
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
def extender(write):
    """Runs this extender, and writes a configuration for it; returns (path, URL)."""

    @contextmanager
    def serve(options="", **answers):
        verbs = [f"{verb}Verb: {verb}" for verb in answers]
        with Server(answers) as server:
            thread = Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            url = f"http://127.0.0.1:{server.server_address[1]}"
            try:
                settings = ", ".join([*verbs, *filter(None, [options])])
                timeout = "100ms" if slow in answers.values() else "60s"
                yield write("scheduler.yaml", CONFIG % (url, timeout, settings)), url
            finally:
                server.over.set()
                server.shutdown()
                thread.join()

    return serve


@pytest.fixture
def outcome(extender, write):
    """Returns the node of the pod, or the reason without a node, of a run with this extender.

    `outcome.errors` are the errors of the last run, and `outcome.notes` its notes.
    """

    def finish(options="", **answers):
        path = write("s.yaml", SCENARIO)
        with extender(options, **answers) as (_, url):
            experiment = experiment_of(path, read_scenario(path), allow_extenders=True)
            finished = run_experiment(experiment, "test", NoProgress())
        [pod] = finished.outcome.pods.values()
        finish.errors = finished.outcome.errors
        finish.notes = [one.replace(url, "URL") for one in finished.outcome.notes]
        return pod.node or pod.reason.replace(url, "URL")

    return finish


def last(_server, arguments):
    return {"NodeNames": [max(arguments["NodeNames"])]}


def first_is_best(_server, arguments):
    return [{"Host": min(arguments["NodeNames"]), "Score": 10}]


def test_filters_scores_and_bindings_of_an_extender_count(outcome):
    assert outcome(filter=last) == "node-2"
    assert outcome(prioritize=first_is_best) == "node-0"
    assert outcome(filter=last, prioritize=first_is_best) == "node-2"
    assert outcome(prioritize=first_is_best, bind=lambda *_: {}) == "node-0"


def slow(server, _arguments):
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


def ignored(verb, reason):
    """Returns the note that one call of this verb failed for this reason."""
    return (
        f"The call to the extender at URL/{verb} failed: {reason}. The scheduler ignores this "
        "failure."
    )


@pytest.mark.parametrize(("bad", "reason"), BAD)
def test_an_extender_that_fails_leaves_the_pod_pending_unless_it_is_ignorable(outcome, bad, reason):
    """upstream: schedule_one.go: findNodesThatPassExtenders."""
    assert outcome(filter=bad) == reason
    assert not outcome.errors
    assert outcome("ignorable: true", filter=bad).startswith("node-")
    assert outcome.notes == [ignored("filter", reason)]
    assert not outcome.errors


@pytest.mark.parametrize("bad", [bad for bad, _ in BAD])
def test_a_note_names_a_failed_scoring_call_of_an_extender(outcome, bad):
    """upstream: schedule_one.go: prioritizeNodes."""
    assert outcome(prioritize=bad).startswith("node-")
    [note] = outcome.notes
    assert note.startswith("The call to the extender at URL/prioritize failed: ")
    assert not outcome.errors


def test_a_note_names_a_failed_bind_call_of_an_ignorable_extender(outcome):
    assert outcome("ignorable: true", bind=lambda *_: {"Error": "busy"}).startswith("node-")
    assert outcome.notes == [ignored("bind", "busy")]
    assert not outcome.errors


def test_a_what_if_goes_on_without_an_ignorable_extender_that_fails(extender, snapshot, make):
    """The note says how many calls failed; the failures do not make the verdict worse."""
    nodes = [make.node(name) for name in "ab"]
    pods = [make.pod(f"web-{number}", node_name="a", owner="web") for number in range(2)]
    with extender("ignorable: true", filter=lambda *_: 503) as (path, url):
        conditions = Conditions(config=path, allow_extenders=True)
        answer = what_if(snapshot(*nodes, *pods), ClusterChange(drain=("a",)), conditions)
    assert answer.verdict.first.kind is not OutcomeKind.ERROR
    assert not answer.effect.changed.errors
    notes = [one.replace(url, "URL") for one in answer.effect.changed.notes]
    assert (
        "2 calls to the extender at URL/filter failed. The scheduler ignores these failures. The "
        "first error: failed filter with extender at URL URL/filter, code 503." in notes
    )


def test_an_extender_that_rejects_every_node_says_why(outcome):
    def refuse(_server, arguments):
        return {"FailedNodes": {name: f"no room on {name[:4]}" for name in arguments["NodeNames"]}}

    assert outcome(filter=refuse).startswith("0/3 nodes are available: 3 no room on node. ")


@pytest.fixture
def explained(extender, snapshot, make):
    """Explains a pod that requests `cpu`, on the nodes a, b and c of four CPUs, with pods."""

    def explanation(*pods, cpu="1", options="", **answers):
        nodes = [make.node(name) for name in "abc"]
        target = make.pod("web", cpu=cpu, priority=100)
        with extender(options, **answers) as (path, url):
            config = read_scheduler_config(path, allow_extenders=True)
            found = explain_pod(snapshot(*nodes, *pods, target), "pod/web", config)
        return explanation_json(found), url

    return explanation


def test_explain_calls_extenders(explained):
    def not_b(_server, arguments):
        names = arguments["NodeNames"]
        left = [name for name in names if name not in "bc"]
        return {"NodeNames": left, "FailedNodes": {"b": "is b"}}

    found, _ = explained(filter=not_b)
    assert found["verdicts"] == {
        "a": None,
        "b": {"plugin": "Extender", "code": "Unschedulable", "reasons": ["is b"]},
        "c": {"plugin": "Extender", "code": "Unschedulable",
              "reasons": ["the extender gave no reason"]},
    }  # fmt: skip
    assert (found["via"], found["choices"]) == ("single", ["a"])


def test_explain_shows_what_extenders_score(explained):
    found, url = explained(prioritize=lambda *_: [{"Host": "b", "Score": 7}])
    assert found["scores"][f"{url}/prioritize"] == {"b": 70}
    assert found["weights"][f"{url}/prioritize"] == 1
    assert found["totals"]["b"] == found["totals"]["a"] + 70
    assert found["choices"] == ["b"]


def test_explain_shows_which_candidates_extenders_leave(explained, make):
    def only_c(_server, arguments):
        return {"NodeNameToMetaVictims": {"c": arguments["NodeNameToMetaVictims"]["c"]}}

    pods = [make.pod(f"v{name}", cpu="4", node_name=name) for name in "abc"]
    found, _ = explained(*pods, cpu="4", preempt=only_c)
    assert list(found["preemption"]["candidates"]) == ["c"]
    assert found["preemption"]["nominated"] == ["c"]


def test_explain_reports_a_failing_extender(explained):
    found, url = explained(filter=lambda *_: 500)
    text = f"failed filter with extender at URL {url}/filter, code 500"
    assert (found["message"], found["choices"]) == (text, [])
    found, url = explained(preempt=lambda *_: 500, filter=lambda *_: {})
    assert "0/3 nodes are available" in found["message"]


def test_explain_notes_a_failed_call_that_is_ignored(explained):
    found, url = explained(prioritize=lambda *_: 500)
    assert found["choices"] == ["a", "b", "c"]
    problem = f"failed prioritize with extender at URL {url}/prioritize, code 500"
    called, ignored = "The call to the extender at", "The scheduler ignores this failure."
    assert found["notes"] == [f"{called} {url}/prioritize failed: {problem}. {ignored}"]
    found, url = explained(options="ignorable: true", filter=lambda *_: {"Error": "busy"})
    assert found["notes"] == [f"{called} {url}/filter failed: busy. {ignored}"]


def test_extenders_are_called_only_if_allowed(extender, write, snapshot, make):
    """Commands that read a configuration refuse extenders in one line that names the option."""
    path = write("s.yaml", SCENARIO)
    with extender(filter=lambda _server, arguments: {"NodeNames": arguments["NodeNames"]}) as (
        file,
        url,
    ):
        line = f"extenders: pods would be sent to {url}; --allow-extenders lets extenders be called"
        for refused in (
            lambda: read_scheduler_config(file),
            lambda: experiment_of(path, read_scenario(path)),
            lambda: what_if(snapshot(make.node("a")), ClusterChange(new_config=file)),
            lambda: what_if(snapshot(make.node("a")), ClusterChange(), Conditions(config=file)),
        ):
            with pytest.raises(InputError, match=re.escape(line)):
                refused()
        allowed = Conditions(config=file, allow_extenders=True)
        pod = make.pod("p")
        assert what_if(snapshot(make.node("a"), pod), ClusterChange(), allowed).changed.placed
