"""Spans of decisions and requests; requests about a pod are children of its last cycle."""

from __future__ import annotations

from itertools import count

import pytest

from fairlead.client.rest_client import ApiAnswer, ApiRequest
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.reporter import PodEvicted, PodPlaced, PodUnschedulable
from fairlead.engine.framework.user_plugin.meter import FILTERED, Meter
from fairlead.worlds.cluster.telemetry.slow_cycles import SlowCycles
from fairlead.worlds.cluster.telemetry.tracer import PODS_MAX, PluginStep, Span, SpanEvent, Tracer

MS = 1_000_000
NOW = 1_000 * MS
POD = ObjectRef("Pod", "shop", "web-0", "u-0")
OF_POD = {
    "k8s.namespace.name": "shop",
    "k8s.pod.name": "web-0",
    "k8s.pod.uid": "u-0",
    "profile": "default-scheduler",
}


class Recorded:
    """A SpanExporter and Reporter that records spans and records."""

    def __init__(self):
        self.spans = []
        self.records = []
        self._numbers = count(1)

    def add(self, span, parent):
        self.spans.append((span, parent))
        return next(self._numbers)

    def report(self, record):
        self.records.append(record)


def placed(pod=POD, started=NOW, at=NOW):
    return PodPlaced(pod, "n-1", at, "score", 5, 2, started, 3, "default-scheduler")


def unschedulable(*, is_error=False, is_binding=False, started=NOW, nominated=None):
    return PodUnschedulable(
        POD,
        NOW,
        "0/2 nodes are available: 2 Insufficient cpu.",
        ("NodeResourcesFit",),
        nominated,
        is_error,
        is_binding,
        started,
        1,
        "default-scheduler",
    )


@pytest.fixture
def recorded():
    return Recorded()


@pytest.fixture
def tracer(recorded):
    return Tracer(recorded, recorded, lambda: NOW)


def decide(tracer, *records, taken=4 * MS, steps=()):
    tracer.begin_unit()
    for record in records:
        tracer.report(record)
    tracer.end_unit(taken, steps)


def exchange(tracer, method, path, answer=ApiAnswer(200)):  # noqa: B008 - frozen
    tracer.observe(ApiRequest(method, path))(answer)


def test_a_cycle_is_a_span_with_its_decision_and_slow_plugins(tracer, recorded):
    steps = [PluginStep(3 * MS, 5, "Price", "Score"), PluginStep(MS - 1, 9, "Fit", "Filter")]
    decide(tracer, placed(), steps=steps)
    slow = {"plugin": "Price", "extension_point": "Score", "calls": 5, "duration_ms": 3.0}
    span = Span(
        name="Scheduling",
        began=NOW - 4 * MS,
        ended=NOW,
        attributes={
            **OF_POD,
            "attempts": 3,
            "result": "scheduled",
            "k8s.node.name": "n-1",
            "feasible_nodes": 5,
        },
        events=(SpanEvent("slow plugin", slow),),
    )
    assert recorded.spans == [(span, None)]
    assert recorded.records == [placed()]


@pytest.mark.parametrize(
    ("record", "result", "problem"),
    [
        (unschedulable(), "unschedulable", False),
        (unschedulable(is_error=True), "error", True),
    ],
    ids=["unschedulable", "error"],
)
def test_the_span_of_an_unschedulable_pod_has_the_message(
    tracer, recorded, record, result, problem
):
    decide(tracer, record)
    ((span, _),) = recorded.spans
    assert span.attributes["result"] == result
    assert span.attributes["message"] == record.message
    assert span.attributes["plugins"] == "NodeResourcesFit"
    assert "nominated_node" not in span.attributes
    assert span.problem == (record.message if problem else "")


def test_the_span_of_a_preemptor_has_the_nominated_node(tracer, recorded):
    decide(tracer, unschedulable(nominated="n-2"))
    assert recorded.spans[0][0].attributes["nominated_node"] == "n-2"


def test_a_unit_with_several_pods_has_a_child_span_for_each_pod(tracer, recorded):
    other = ObjectRef("Pod", "shop", "web-1", "u-1")
    decide(tracer, placed(), placed(other))
    (session, above), *children = recorded.spans
    assert (session.name, session.attributes, above) == ("Scheduling", {"pods": 2}, None)
    assert [(one.attributes["k8s.pod.name"], parent) for one, parent in children] == [
        ("web-0", 1),
        ("web-1", 1),
    ]


def test_units_without_a_decision_have_no_span(tracer, recorded):
    decide(tracer)
    decide(tracer, PodEvicted(POD, "n-1", "taint", NOW))
    assert recorded.spans == []


def test_a_decision_after_a_response_starts_with_its_cycle(tracer, recorded):
    tracer.report(placed(started=NOW - 70 * MS, at=NOW - MS))
    decide(tracer, placed(started=NOW - 50 * MS))
    assert [(one.began, one.ended) for one, _ in recorded.spans] == [
        (NOW - 70 * MS, NOW - MS),
        (NOW - 50 * MS, NOW),
    ]


def test_a_failed_binding_is_a_child_of_the_cycle(tracer, recorded):
    decide(tracer, placed())
    tracer.report(unschedulable(is_error=True, is_binding=True))
    exchange(tracer, "PATCH", "/api/v1/namespaces/shop/pods/web-0/status")
    assert [(one.name, parent) for one, parent in recorded.spans[1:]] == [
        ("Binding", 1),
        ("HTTP PATCH", 1),
    ]


@pytest.mark.parametrize(
    ("method", "path", "parent"),
    [
        ("POST", "/api/v1/namespaces/shop/pods/web-0/binding", 1),
        ("PATCH", "/api/v1/namespaces/shop/pods/web-0/status", 1),
        ("PATCH", "/api/v1/namespaces/shop/pods/web-0", 1),
        ("POST", "/api/v1/namespaces/shop/pods/web-1/binding", None),
        ("POST", "/api/v1/namespaces/shop/pods/web-0/eviction", None),
        ("DELETE", "/api/v1/namespaces/shop/pods/web-0", None),
        ("GET", "/api/v1/namespaces/shop/pods/web-0", None),
        ("POST", "/api/v1/namespaces/shop/events", None),
    ],
)
def test_requests_that_a_cycle_caused_are_its_children(tracer, recorded, method, path, parent):
    decide(tracer, placed())
    exchange(tracer, method, path)
    span, above = recorded.spans[1]
    assert above == parent
    assert span.name == f"HTTP {method}"
    assert span.is_request
    assert span.attributes == {
        "http.request.method": method,
        "url.path": path,
        "http.response.status_code": 200,
    }


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ApiAnswer(409, message="pod web-0 is already assigned"), "pod web-0 is already assigned"),
        (ApiAnswer(500), "500"),
        (ApiAnswer(0, message="cannot connect"), "cannot connect"),
    ],
    ids=["refused", "without a message", "no answer"],
)
def test_a_failed_request_has_the_problem(tracer, recorded, answer, problem):
    exchange(tracer, "POST", "/api/v1/namespaces/shop/pods/web-0/binding", answer)
    span, _ = recorded.spans[0]
    assert span.problem == problem
    assert ("http.response.status_code" in span.attributes) == bool(answer.status)


def test_the_oldest_cycles_are_dropped(tracer, recorded):
    decide(tracer, placed())
    for number in range(PODS_MAX):
        tracer.report(placed(ObjectRef("Pod", "other", f"p{number}", "u")))
    exchange(tracer, "POST", "/api/v1/namespaces/shop/pods/web-0/binding")
    exchange(tracer, "POST", "/api/v1/namespaces/other/pods/p0/binding")
    assert [parent for _, parent in recorded.spans[-2:]] == [None, 2]


def test_a_unit_of_an_engine_is_measured_with_its_plugins(tracer, recorded):
    clock = [0]
    meter = Meter(lambda: clock[0])

    class Price:
        name = "Price"

        def score(self, state, pod, node):
            clock[0] += 8 * MS
            return 0

    price = meter.measured(Price())

    class Working:
        def handle_deadline(self, _now):
            price.score(None, None, None)
            meter.begin_steps(placed().pod)
            meter.end_step(FILTERED)
            tracer.report(placed())
            return []

    times = iter([0, 10 * MS])
    lines = []
    SlowCycles(Working(), meter, lambda: next(times), lines.append, tracer).handle_deadline(NOW)
    ((span, _),) = recorded.spans
    assert span.ended - span.began == 10 * MS
    assert [one.attributes.get("plugin", one.name) for one in span.events] == [FILTERED, "Price"]
    assert span.events[0].attributes == {"duration_ms": 0.0}
    assert lines == []
