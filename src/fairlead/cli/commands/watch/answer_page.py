"""AnswerPage: serves answers as a page, as JSON and as metrics, to clients that send the token."""

from __future__ import annotations

import hmac
import shlex
from collections.abc import Awaitable, Callable, Iterable
from html import escape
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.cli.commands.watch.inquiry import Answer, Inquiry
from fairlead.whatif.report.write import render_static_page

REFRESH_S: Final = 15
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_BEARER: Final = "Bearer "
_SEVERITIES: Final = {"good": 0, "warning": 1, "bad": 2}
_PODS: Final = ("evicted", "preempted", "moved", "pending", "gone", "undrained", "pdb_breaches")
_STYLE: Final = """
td { vertical-align: top; overflow-wrap: anywhere; }
td time { white-space: nowrap; }
td code { color: var(--ink-2); }
td:first-child { width: 30%; }
.facts { margin: 4px 0 14px; }
.bad { color: var(--bad); font-weight: 600; }
.warning { color: var(--warn); }
.good { color: var(--good); }
/* In a narrow window, the parts of a row are below each other. */
@media (max-width: 760px) {
  table, tbody, tr, td { display: block; }
  tr:first-child { display: none; }
  tr { padding-block: 8px; border-bottom: 1px solid var(--line); }
  td, td:first-child { width: auto; padding-block: 2px; border: 0; }
  td time::before { content: "asked at "; }
  td time { color: var(--ink-2); font-size: 12px; }
}
"""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AnswerPage:
    """Serves the answers of an Inquiry over HTTP; only /healthz needs no token."""

    def __init__(self, inquiry: Inquiry, token: str) -> None:
        """`inquiry` has the answers to serve; `token` is the token that clients must send."""
        self._inquiry = inquiry
        self._token = token
        self._registry = CollectorRegistry()
        self._registry.register(_AnswerCollector(inquiry))

    def app(self) -> web.Application:
        """Return the aiohttp application that serves the answers."""
        app = web.Application(middlewares=[self._authenticate])
        app.router.add_get("/healthz", _health)
        app.router.add_get("/", self._page)
        app.router.add_get("/answers", self._json)
        app.router.add_get("/metrics", self._metrics)
        return app

    @web.middleware
    async def _authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        header = request.headers.get("Authorization", "")
        given = header.removeprefix(_BEARER) if header else request.query.get("token", "")
        is_known = hmac.compare_digest(given.encode(errors="replace"), self._token.encode())
        if request.path != "/healthz" and not is_known:
            return web.Response(status=401, text="Unauthorized")
        return await handler(request)

    async def _json(self, _request: web.Request) -> web.Response:
        return web.json_response(self._inquiry.as_json())

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": _TEXT})

    async def _page(self, _request: web.Request) -> web.Response:
        inquiry = self._inquiry
        rows = "".join(map(_row, inquiry.answers.values()))
        problem = f'<p class="bad">{escape(inquiry.problem)}</p>' if inquiry.problem else ""
        problem += "".join(f"<p>{_span('warning', line)}</p>" for line in inquiry.unreadable)
        objects = counted(inquiry.objects, "object")
        read = f"read {inquiry.read_at}, {objects}" if inquiry.read_at else "not read yet"
        head = "<tr><th>question<th>answer<th>asked at</tr>"
        table = f"<table>{head}{rows}</table>" if rows else "<p>No question is answered yet.</p>"
        body = (f'<p class="facts">{escape(read)}</p>', problem, table)
        text = render_static_page(inquiry.cluster, _STYLE, body)
        again = {"Refresh": str(REFRESH_S)}
        return web.Response(text=text, content_type="text/html", headers=again)


async def _health(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


def _row(answer: Answer) -> str:
    """Return the HTML table row of one answer."""
    conditions = (
        _span("bad", f"--fail-on {one['condition']}: {listed(one['evidence'])}")
        for one in answer.conditions
        if one["holds"]
    )
    findings = (
        _span(str(one.get("severity", "")), str(one["sentence"])) for one in answer.findings
    )
    shown = _span("bad", answer.error) if answer.error else "<br>".join((*conditions, *findings))
    words = escape(shlex.join(answer.question.words))
    name = escape(answer.question.name)
    at = f"<time>{escape(answer.read_at)}</time>"
    return f"<tr><td>{name}<br><code>{words}</code><td>{shown}<td>{at}</tr>"


def _span(severity: str, text: str) -> str:
    return f'<span class="{escape(severity)}">{escape(text)}</span>'


class _AnswerCollector(Collector):
    """A Prometheus collector that reads an Inquiry on each scrape."""

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry

    def collect(self) -> Iterable[Metric]:
        """Yield the Prometheus metric families about the newest answers."""
        severity = GaugeMetricFamily(
            "fairlead_question_severity",
            "How bad the answer is: 0 good, 1 warning, 2 bad.",
            labels=["question"],
        )
        outcome = GaugeMetricFamily(
            "fairlead_question_outcome",
            "1 for each outcome among the findings of the answer.",
            labels=["question", "outcome"],
        )
        pods = GaugeMetricFamily(
            "fairlead_question_pods",
            "Pods that the change would affect, by effect.",
            labels=["question", "effect"],
        )
        failed = GaugeMetricFamily(
            "fairlead_question_failed",
            "1 if the question could not be answered.",
            labels=["question"],
        )
        holds = GaugeMetricFamily(
            "fairlead_question_condition_holds",
            "1 if the condition of --fail-on holds, otherwise 0.",
            labels=["question", "condition"],
        )
        for name, answer in self._inquiry.answers.items():
            failed.add_metric([name], float(bool(answer.error)))
            if answer.result is None:
                continue
            verdict: dict[str, Any] = answer.result["verdict"]
            severity.add_metric([name], _SEVERITIES.get(verdict["severity"], 2))
            for one in sorted({str(found["outcome"]) for found in answer.findings}):
                outcome.add_metric([name, one], 1)
            # A question can state a condition twice, but a page must not repeat a series.
            by_text = {one["condition"]: one["holds"] for one in answer.conditions}
            for condition, is_true in by_text.items():
                holds.add_metric([name, condition], float(is_true))
            for effect in _PODS:
                pods.add_metric([name, effect], len(answer.result.get(effect) or ()))
        yield from (severity, outcome, pods, holds, failed)
        yield CounterMetricFamily(
            "fairlead_watch_reads", "Times that the cluster was read.", value=self._inquiry.reads
        )
        yield CounterMetricFamily(
            "fairlead_watch_failed_reads",
            "Times that the cluster could not be read.",
            value=self._inquiry.failed_reads,
        )
        yield GaugeMetricFamily(
            "fairlead_watch_unreadable",
            "Ways in which answers are inexact because resources could not be read.",
            value=len(self._inquiry.unreadable),
        )
