"""Tracer: turns scheduling cycles and API requests into spans, for an OpenTelemetry exporter.

    Scheduling  namespace, pod, node, result, attempts        from the cycle's start to its decision
      ├─ Computing predicates done, Prioritizing done (events)   duration_ms
      ├─ slow plugin (event)   plugin, extension_point, calls, duration_ms
      ├─ HTTP POST  …/pods/web-0/binding                       201
      └─ HTTP PATCH …/pods/web-0/status
    HTTP GET /api/v1/nodes                                     a request outside of any cycle

A cycle that decides about several pods, such as a session of the batch scheduler, is a span with
one child for each pod. The span of a request that binds or patches a pod is a child of the span of
the pod's last cycle. This module makes plain values; `SpanExporter` passes them to an SDK.

upstream: schedule_one.go: schedulePod (the trace "Scheduling"), metrics.go (results),
component-base/tracing (the names of requests)
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct, field

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.client.rest_client import ApiAnswer, ApiRequest
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.reporter import PodPlaced, PodUnschedulable, Record, Reporter

SLOW_PLUGIN_NS: Final[DurationNs] = NANOSECONDS_PER_MILLISECOND
PODS_MAX: Final = 10_000  # pods with a known last cycle
SCHEDULING: Final = "Scheduling"
BINDING: Final = "Binding"
SLOW_PLUGIN: Final = "slow plugin"
# Requests that a cycle causes for its own pod. Evictions and deletions are about other pods.
_OF_CYCLE: Final = re.compile(r"/namespaces/([^/]+)/pods/([^/]+)(?:/binding|/status)?$")
_CAUSED: Final = ("POST", "PATCH")

Value = str | int | float | bool


class PluginStep(NamedTuple):
    """The time (ns) and number of calls of a plugin at an extension point, in one unit of work."""

    taken: DurationNs
    calls: int
    plugin: str
    point: str


class SpanEvent(Struct, frozen=True):
    """A named event within a span."""

    name: str
    attributes: Mapping[str, Value]


class Span(Struct, frozen=True, kw_only=True):
    """A period of work.

    `began` and `ended` are ns since 1970; `problem` is "" if the work succeeded. `is_request` marks
    a request to a server.
    """

    name: str
    began: Instant
    ended: Instant
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    problem: str = ""
    is_request: bool = False


class SpanExporter(Protocol):
    """Passes spans to a tracing library, which sends them to a collector."""

    def add(self, span: Span, parent: Any) -> Any:
        """Send `span` as a child of `parent`, or as a root if `parent` is None.

        Returns the value to pass as `parent` for the children of `span`.
        """
        ...


class Tracer:
    """A Reporter that creates trace spans for decisions about pods and for API requests."""

    def __init__(
        self, reporter: Reporter, exporter: SpanExporter, clock: Callable[[], Instant]
    ) -> None:
        """`reporter` receives every record; `clock` returns the time in ns."""
        self._reporter = reporter
        self._exporter = exporter
        self._clock = clock
        self._cycles: OrderedDict[str, Any] = OrderedDict()
        self._decided: list[PodPlaced | PodUnschedulable] = []
        self._is_in_unit = False

    # --- cycles ----------------------------------------------------------------------------

    def report(self, record: Record) -> None:
        """Forward `record`; if it is the decision about a pod, also create a trace span from it."""
        self._reporter.report(record)
        if not isinstance(record, PodPlaced | PodUnschedulable):
            return
        if self._is_in_unit and record.started == record.at:
            self._decided.append(record)
        else:  # a response of an extender or of the API server caused the decision
            self._add_cycle(record, record.started, record.at)

    def begin_unit(self) -> None:
        """Mark the beginning of a unit of work; `end_unit` marks its end."""
        self._is_in_unit = True

    def end_unit(
        self,
        taken: DurationNs,
        plugins: Sequence[PluginStep],
        steps: Mapping[str, DurationNs] | None = None,
    ) -> None:
        """Make trace spans from the decisions of the unit of work that ends now.

        `taken` is the duration of the unit in ns, and `plugins` contains the times of its plugins.
        `steps` maps names of steps, as in upstream's trace, to their times in ns.
        """
        self._is_in_unit = False
        decided, self._decided = self._decided, []
        if not decided:
            return
        ended = self._clock()
        began = ended - taken
        named = (SpanEvent(name, _duration(time)) for name, time in (steps or {}).items())
        slow = (_event(one) for one in plugins if one.taken >= SLOW_PLUGIN_NS)
        events = (*named, *slow)
        if len(decided) == 1:
            self._add_cycle(decided[0], began, ended, events)
            return
        attributes = {"pods": len(decided)}
        cycle = Span(
            name=SCHEDULING, began=began, ended=ended, attributes=attributes, events=events
        )
        parent = self._exporter.add(cycle, None)
        for record in decided:
            self._add_cycle(record, began, ended, parent=parent)

    def _add_cycle(
        self,
        record: PodPlaced | PodUnschedulable,
        began: Instant,
        ended: Instant,
        events: tuple[SpanEvent, ...] = (),
        parent: Any = None,
    ) -> None:
        key = record.pod.key
        failure = record if isinstance(record, PodUnschedulable) else None
        is_binding = failure is not None and failure.is_binding
        span = Span(
            name=BINDING if is_binding else SCHEDULING,
            began=began,
            ended=ended,
            attributes=_attributes(record),
            events=events,
            problem=failure.message if failure is not None and failure.is_error else "",
        )
        context = self._exporter.add(span, self._cycles.get(key) if is_binding else parent)
        if not is_binding:
            self._cycles[key] = context
            self._cycles.move_to_end(key)
            if len(self._cycles) > PODS_MAX:
                self._cycles.popitem(last=False)

    # --- requests --------------------------------------------------------------------------

    def observe(self, request: ApiRequest) -> Callable[[ApiAnswer], None]:
        """Mark the beginning of `request`; return the function to call with its response."""
        began = self._clock()

        def end(answer: ApiAnswer) -> None:
            attributes: dict[str, Value] = {
                "http.request.method": request.method,
                "url.path": request.path,
            }
            if answer.status:
                attributes["http.response.status_code"] = answer.status
            span = Span(
                name=f"HTTP {request.method}",
                began=began,
                ended=self._clock(),
                attributes=attributes,
                problem="" if answer.is_success else answer.message or str(answer.status),
                is_request=True,
            )
            self._exporter.add(span, self._cause(request))

        return end

    def _cause(self, request: ApiRequest) -> Any:
        """Return the span of the cycle that caused `request`; None if no cycle caused it."""
        if request.method not in _CAUSED:
            return None
        found = _OF_CYCLE.search(request.path)
        return None if found is None else self._cycles.get(f"{found[1]}/{found[2]}")


def _attributes(record: PodPlaced | PodUnschedulable) -> dict[str, Value]:
    """Return the decision of a cycle as span attributes.

    The attribute `result` has the same values as in upstream's metrics.
    """
    attributes: dict[str, Value] = {
        "k8s.namespace.name": record.pod.namespace,
        "k8s.pod.name": record.pod.name,
        "k8s.pod.uid": record.pod.uid,
        "profile": record.profile,
        "attempts": record.attempt,
    }
    if isinstance(record, PodPlaced):
        attributes["result"] = "scheduled"
        attributes["k8s.node.name"] = record.node
        attributes["feasible_nodes"] = record.feasible
        return attributes
    attributes["result"] = "error" if record.is_error else "unschedulable"
    attributes["message"] = record.message
    attributes["plugins"] = ", ".join(record.plugins)
    if record.nominated_node:
        attributes["nominated_node"] = record.nominated_node
    return attributes


def _event(step: PluginStep) -> SpanEvent:
    return SpanEvent(
        SLOW_PLUGIN,
        {
            "plugin": step.plugin,
            "extension_point": step.point,
            "calls": step.calls,
            **_duration(step.taken),
        },
    )


def _duration(taken: DurationNs) -> dict[str, Value]:
    return {"duration_ms": taken / NANOSECONDS_PER_MILLISECOND}
