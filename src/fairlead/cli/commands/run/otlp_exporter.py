"""OtlpExporter: sends spans with OpenTelemetry's SDK over OTLP/HTTP; needs the extra `otel`.

The SDK sends spans in batches, from its own thread. If the collector does not answer, spans are
dropped, so the scheduler is never delayed. The SDK also reads the OTEL_* environment variables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Self
from urllib.parse import urlsplit

from fairlead import __version__
from fairlead.whatif.input.error import InputError
from fairlead.worlds.cluster.telemetry.tracer import Span

OPTION: Final = "--otlp-endpoint"
TRACES: Final = "/v1/traces"  # the path for spans in OTLP over HTTP
SERVICE: Final = "fairlead"


class OtlpExporter:
    """A SpanExporter; at the end of its `with` block, the remaining spans are sent."""

    def __init__(self, endpoint: str, log: Callable[[str], None]) -> None:
        """Send spans to the collector at `endpoint`, a base URL without the path /v1/traces.

        `log` receives a line when spans can no longer be sent, and when they can be sent again.
        Raises InputError.
        """
        url = traces_url(endpoint)
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            packages = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
            problem = f"needs OpenTelemetry's SDK: pip install {packages}"
            raise InputError(OPTION, problem) from None
        own = Resource({"service.name": SERVICE, "service.version": __version__})
        self._provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()))
        exporter = _FailureLog(OTLPSpanExporter(endpoint=url), url, log)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(SERVICE, __version__)
        self._api = trace

    def __enter__(self) -> Self:
        """Return the exporter."""
        return self

    def __exit__(self, *_: object) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()

    def add(self, span: Span, parent: Any) -> Any:
        """Send a span; see `SpanExporter.add`.

        `parent` and the result are SpanContexts of the SDK.
        """
        api = self._api
        above = None if parent is None else api.set_span_in_context(api.NonRecordingSpan(parent))
        begun = self._tracer.start_span(
            span.name,
            above,
            kind=api.SpanKind.CLIENT if span.is_request else api.SpanKind.INTERNAL,
            attributes=span.attributes,
            start_time=span.began,
        )
        for event in span.events:
            begun.add_event(event.name, event.attributes, timestamp=span.ended)
        if span.problem:
            begun.set_status(api.StatusCode.ERROR, span.problem)
        begun.end(end_time=span.ended)
        return begun.get_span_context()


class _FailureLog:
    """Wraps the SDK's exporter; logs a line when exports begin to fail, or succeed again."""

    def __init__(self, exporter: Any, url: str, log: Callable[[str], None]) -> None:
        # The SDK's own log lines, several for each attempt, are suppressed.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._exporter = exporter
        self._url = url
        self._log = log
        self._is_failing = False

    def export(self, spans: Sequence[Any]) -> Any:
        """Send `spans` and return the result; called in the SDK's thread."""
        result = self._exporter.export(spans)
        is_failure = result.name != "SUCCESS"
        if is_failure != self._is_failing:
            self._is_failing = is_failure
            state = "cannot be sent, and are dropped" if is_failure else "can be sent again"
            self._log(f"spans for {self._url} {state}")
        return result

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send all waiting spans; see the SDK's SpanExporter."""
        flushed: bool = self._exporter.force_flush(timeout_millis)
        return flushed

    def shutdown(self) -> None:
        """Shut down the SDK's exporter."""
        self._exporter.shutdown()


def traces_url(endpoint: str) -> str:
    """Return the URL at which the collector `endpoint` receives spans. Raises InputError."""
    try:
        parts = urlsplit(endpoint)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        problem = "must be the URL of an OTLP/HTTP collector, such as http://localhost:4318"
        raise InputError(OPTION, problem, object_name=endpoint)
    return endpoint if parts.path.endswith(TRACES) else endpoint.rstrip("/") + TRACES
