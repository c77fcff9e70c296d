"""HttpServer: probes, metrics, explanations and dashboard links of a running replica.

/healthz, /livez and /readyz need no authentication. All other paths need a bearer token: GET
/metrics, single checks such as GET /livez/ping, GET /fairlead/explain, POST /fairlead/dashboard.
The user of the token must have the permission for the method and path. The API server decides
whether the user has this permission (TokenReview, then SubjectAccessReview). If the API server does
not decide, the answer is 503, and the reason is logged.

upstream: cmd/kube-scheduler/app/server.go, apiserver/pkg/server/options/authorization.go
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from fairlead.apiserver.auth.certificate_authority import new_authority, new_server
from fairlead.client.connection import refuse_encrypted_key
from fairlead.client.error import UNDECODABLE, ConnectionConfigError
from fairlead.client.rest_client import ApiRequest, RestClient
from fairlead.engine.core.instant import Instant, seconds

# upstream: apiserver/pkg/server/options/authentication.go: CacheTTL
REMEMBERED: Final = seconds(10)
TOKENS_MAX: Final = 1_000
REVIEW_SECONDS_MAX: Final = 10.0
_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_METRICS: Final = "/metrics"
_LINK: Final = "/fairlead/dashboard"
EXPLAIN: Final = "/fairlead/explain"
WIDTH_DEFAULT: Final = 120
_WIDTHS: Final = range(40, 1_001)
# Each probe has one check. upstream: cmd/kube-scheduler/app/server.go: Run, newEndpointsHandler
_SYNC: Final = "sched-handler-sync"
_CHECKS: Final = {"healthz": "ping", "livez": "ping", "readyz": _SYNC}
_NOT_SYNCED: Final = "handlers are not fully synchronized"
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_BEARER: Final = "bearer "


class _User(Struct):
    username: str = ""
    groups: list[str] | None = None


class _ReviewStatus(Struct):
    """The fields that are read from the status of a TokenReview or a SubjectAccessReview."""

    authenticated: bool = False
    allowed: bool = False
    user: _User | None = None


class _Review(Struct):
    status: _ReviewStatus | None = None


class _ReviewError(Exception):
    """The API server did not review a token or its user's permission; the message says why."""


class HttpOptions(Struct, frozen=True):
    """The listening socket, and the files of a certificate and its key.

    If `certificate_file` is empty, a self-signed certificate is created, as kube-scheduler does.
    """

    listening: socket
    certificate_file: str = ""
    key_file: str = ""


class PodQuery(Struct, frozen=True):
    """A question about the pod `key` (NAMESPACE/NAME).

    `output` is `text` or `json`; `width` is the line length of text. If `all_nodes` is True, the
    response has a row for every node.
    """

    key: str
    output: str = "text"
    width: int = WIDTH_DEFAULT
    all_nodes: bool = False


class PodAnswer(Struct, frozen=True):
    """The HTTP status and the body of the response to a PodQuery."""

    status: int
    body: bytes


class HttpServer:
    """Serves probes, metrics, explanations of pods, and URLs that open the dashboard."""

    def __init__(
        self,
        client: RestClient,
        clock: Callable[[], Instant],
        *,
        is_ready: Callable[[], bool],
        exposition: Callable[[], bytes],
        explain: Callable[[PodQuery], PodAnswer],
        new_link: Callable[[], str] | None = None,
    ) -> None:
        """Prepare to serve; `client` sends token and access reviews to the API server.

        `exposition` returns the metrics. `new_link` returns a URL of the dashboard that works once.
        If there is no dashboard, `new_link` is None. The attribute `log` is called with one line
        when tokens cannot be reviewed.
        """
        self._client = client
        self._clock = clock
        self._is_ready = is_ready
        self._exposition = exposition
        self._explain = explain
        self._new_link = new_link
        self.log: Callable[[str], None] = lambda _: None
        self._problem = ""
        self._known: dict[tuple[str, str], tuple[Instant, int]] = {}

    def app(self) -> web.Application:
        """Return the aiohttp application with its routes."""
        app = web.Application()
        for name, check in _CHECKS.items():
            app.router.add_get(f"/{name}", self._health)
            app.router.add_get(f"/{name}/{check}", self._check)
        app.router.add_get(_METRICS, self._metrics)
        app.router.add_get(EXPLAIN, self._explanation)
        if self._new_link is not None:
            app.router.add_post(_LINK, self._link)
        return app

    async def _health(self, request: web.Request) -> web.Response:
        """Answer a probe. upstream: apiserver/pkg/server/healthz/healthz.go: handleRootHealth."""
        name = request.path.strip("/")
        check = _CHECKS[name]
        if check in request.query.getall("exclude", ()):
            line = f"[+]{check} excluded: ok"
        elif self._passes(check):
            line = f"[+]{check} ok"
        else:
            line = f"[-]{check} failed: reason withheld"
            return web.Response(status=500, text=f"{line}\n{name} check failed\n")
        is_verbose = "verbose" in request.query
        return web.Response(text=f"{line}\n{name} check passed\n" if is_verbose else "ok")

    async def _check(self, request: web.Request) -> web.Response:
        """Answer a probe of one health check: the check CHECK for the path `/readyz/CHECK`.

        upstream: healthz.go: adaptCheckToHandler
        """
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        if self._passes(request.path.rpartition("/")[2]):
            return web.Response(text="ok")
        return web.Response(status=500, text=f"internal server error: {_NOT_SYNCED}\n")

    def _passes(self, check: str) -> bool:
        return check != _SYNC or self._is_ready()

    async def _metrics(self, request: web.Request) -> web.Response:
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        return web.Response(body=self._exposition(), headers={"Content-Type": _TEXT})

    async def _explanation(self, request: web.Request) -> web.Response:
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        query, width = request.query, request.query.get("width", str(WIDTH_DEFAULT))
        if not (width.isdecimal() and len(width) < 5 and int(width) in _WIDTHS):
            return web.Response(status=400, text="width is not a number from 40 to 1000")
        pod_query = PodQuery(
            query.get("pod", ""),
            query.get("output", "text"),
            int(width),
            all_nodes=query.get("all-nodes") == "true",
        )
        answer = self._explain(pod_query)
        is_json = pod_query.output == "json" and answer.status == 200
        form = "application/json" if is_json else "text/plain"
        return web.Response(
            status=answer.status, body=answer.body, content_type=form, charset="utf-8"
        )

    async def _link(self, request: web.Request) -> web.Response:
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        assert self._new_link is not None
        return web.json_response({"url": self._new_link()})

    async def _refusal(self, request: web.Request) -> web.Response | None:
        """Return the error response to `request`, or None if `request` is authorized."""
        header = request.headers.get("Authorization", "")
        status = 401
        if header.lower().startswith(_BEARER):
            attributes = {"path": request.path, "verb": request.method.lower()}
            try:
                status = await self._status_of(header[len(_BEARER) :].strip(), attributes)
            except (_ReviewError, ConnectionConfigError) as cause:
                self._report(str(cause))
                return web.Response(status=503, text="the API server did not review the token")
            self._problem = ""
        if status == 200:
            return None
        return web.Response(status=status, text="Unauthorized" if status == 401 else "Forbidden")

    def _report(self, problem: str) -> None:
        """Log `problem`, the reason why tokens cannot be reviewed.

        If the previous request with a token had the same problem, the problem is not logged again.
        """
        if problem != self._problem:
            self.log(f"tokens cannot be reviewed: {problem}")
        self._problem = problem

    async def _status_of(self, token: str, attributes: dict[str, str]) -> int:
        """Return the HTTP status (200, 401 or 403) for a request with the bearer token `token`.

        `attributes` are the path and the verb of the request. The status is cached for 10 seconds
        for each token and path. Raises _ReviewError and ConnectionConfigError.
        """
        now, key = self._clock(), (token, attributes["path"])
        known = self._known.get(key)
        if known is not None and now < known[0]:
            return known[1]
        status = await self._review(token, attributes)
        if len(self._known) >= TOKENS_MAX:
            self._known.clear()
        self._known[key] = (now + REMEMBERED, status)
        return status

    async def _review(self, token: str, attributes: dict[str, str]) -> int:
        found = await self._post(
            _TOKEN_REVIEWS,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "spec": {"token": token},
            },
        )
        if not found.authenticated:
            return 401
        user = found.user or _User()
        spec = {
            "user": user.username,
            "groups": user.groups or [],
            "nonResourceAttributes": attributes,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        return 200 if (await self._post(_ACCESS_REVIEWS, review)).allowed else 403

    async def _post(self, path: str, body: dict[str, Any]) -> _ReviewStatus:
        """POST the review `body` to `path`; return the status of the review in the response.

        Raises _ReviewError if the request fails or the response is not a review.
        """
        request = ApiRequest("POST", path, msgspec.json.encode(body))
        answer = await self._client.exchange(request, REVIEW_SECONDS_MAX)
        if not answer.is_success:
            raise _ReviewError(f"{path}: {answer.message}")
        try:
            return msgspec.json.decode(answer.body, type=_Review).status or _ReviewStatus()
        except UNDECODABLE:
            raise _ReviewError(f"{path}: the answer is not a review") from None


@asynccontextmanager
async def served(server: HttpServer, options: HttpOptions) -> AsyncIterator[None]:
    """Serve over TLS during the context. Raises OSError or ValueError for unusable TLS files."""
    context = tls_context(options)
    runner = web.AppRunner(server.app(), access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, options.listening, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()


def tls_context(options: HttpOptions) -> ssl.SSLContext:
    """Return the server's TLS settings. Raises OSError or ValueError for unusable TLS files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if options.certificate_file:
        key = options.key_file or None
        context.load_cert_chain(options.certificate_file, key, refuse_encrypted_key)
        return context
    # Certificates are valid in real time, in every world.
    now = datetime.now(UTC)  # noqa: TID251
    pair = new_server(new_authority(now), (), now)
    with TemporaryDirectory(prefix="fairlead-") as folder:
        file = Path(folder) / "server.pem"
        file.touch(mode=0o600)
        file.write_text(pair.certificate + pair.key, encoding="ascii")
        context.load_cert_chain(file)
    return context
