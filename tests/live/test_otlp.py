"""The spans of `fairlead run` reach a collector over OTLP/HTTP; needs the extra `otel`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from tests.live.cluster_client import Direct, pod
from tests.live.event_loop import run_until_closed
from tests.up_process import up

from fairlead.cli.commands.run.otlp_exporter import OtlpExporter
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.client.rest_client import RestClient
from fairlead.worlds.cluster.telemetry.tracer import Span, SpanEvent

pytestmark = pytest.mark.long


class Collector(ThreadingHTTPServer):
    """Records the requests of exporters, and responds with `status`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Receiving)
        self.status = 200
        self.received = []
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Receiving(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    server = Collector()
    yield server
    server.shutdown()
    server.server_close()


def decoded(body):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 - of the extra
        ExportTraceServiceRequest,
    )

    return ExportTraceServiceRequest.FromString(body)


def test_spans_arrive_with_parents_events_and_problems(collector, monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "scheduler-of-prod")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop")
    lines = []
    cycle = Span(
        name="Scheduling",
        began=1_000,
        ended=9_000,
        attributes={"k8s.pod.name": "web-0", "attempts": 2},
        events=(SpanEvent("slow plugin", {"plugin": "Price"}),),
    )
    request = Span(name="HTTP POST", began=10_000, ended=12_000, problem="409", is_request=True)
    with OtlpExporter(collector.url, lines.append) as exporter:
        exporter.add(request, exporter.add(cycle, None))
    ((path, headers, body),) = collector.received
    assert path == "/v1/traces"
    assert headers["x-tenant"] == "shop"
    (resource,) = decoded(body).resource_spans
    named = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert named["service.name"] == "scheduler-of-prod"
    first, second = resource.scope_spans[0].spans
    assert (first.name, first.start_time_unix_nano, first.end_time_unix_nano) == (
        *("Scheduling", 1_000, 9_000),
    )
    assert {one.key for one in first.attributes} == {"k8s.pod.name", "attempts"}
    assert [(one.name, one.time_unix_nano) for one in first.events] == [("slow plugin", 9_000)]
    assert (second.trace_id, second.parent_span_id) == (first.trace_id, first.span_id)
    assert (second.status.code, second.status.message) == (2, "409")
    assert second.kind == second.SPAN_KIND_CLIENT
    assert lines == []


def test_a_collector_that_refuses_spans_is_reported_once(collector, capfd):
    collector.status = 400
    lines = []
    with OtlpExporter(collector.url, lines.append) as exporter:
        for number in range(2):
            exporter.add(Span(name="Scheduling", began=number, ended=number), None)
            exporter._provider.force_flush()
        collector.status = 200
        exporter.add(Span(name="Scheduling", began=3, ended=3), None)
    url = f"{collector.url}/v1/traces"
    assert lines == [
        f"spans for {url} cannot be sent, and are dropped",
        f"spans for {url} can be sent again",
    ]
    assert capfd.readouterr().err == ""


async def bind_a_pod(kubeconfig):
    async with RestClient(Kubeconfig((kubeconfig,)).connection("")) as client:
        direct = Direct(client)
        await direct.create([pod("web-0", "1")])
        await direct.eventually(lambda pods: pods[0]["spec"].get("nodeName"), 60)


def spans_of(collector):
    return [
        span
        for _, _, body in list(collector.received)
        for resource in decoded(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def await_child_of_cycle(collector):
    end = time.monotonic() + 60  # noqa: TID251 - another process works in real time
    while True:
        spans = spans_of(collector)
        cycles = {one.span_id for one in spans if one.name == "Scheduling"}
        if any(one.parent_span_id in cycles for one in spans):
            return
        assert time.monotonic() < end, "waited in vain"  # noqa: TID251
        time.sleep(0.05)  # noqa: TID251


def test_a_binding_is_a_child_of_its_cycle(collector, tmp_path):
    path = str(tmp_path / "kubeconfig")
    options = ["--listen", "none", "--otlp-endpoint", collector.url, "--no-leader-election"]
    command = [sys.executable, "-m", "fairlead.cli", "run", "--kubeconfig", path, *options]
    with up("--nodes", "2", "--without", "scheduler", "--kubeconfig", path, paused=False):
        env = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        with subprocess.Popen(command, env=env) as process:
            try:
                run_until_closed(bind_a_pod(path))
                # The span of the binding ends with its response, after the pod is bound.
                await_child_of_cycle(collector)
            finally:
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=60) == 0
    spans = spans_of(collector)
    (cycle,) = [one for one in spans if one.name == "Scheduling"]
    values = {one.key: one.value for one in cycle.attributes}
    assert values["k8s.pod.name"].string_value == "web-0"
    assert values["result"].string_value == "scheduled"
    assert 0 < cycle.end_time_unix_nano - cycle.start_time_unix_nano < 10_000_000_000
    caused = [one for one in spans if one.parent_span_id == cycle.span_id]
    assert [one.name for one in caused] == ["HTTP POST"]
    assert cycle.start_time_unix_nano <= caused[0].start_time_unix_nano
