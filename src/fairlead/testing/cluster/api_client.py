"""ApiClient: reads objects of a test's cluster and sends requests as its administrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.http.suspended_steps import run_steps
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import ADMIN, Request, Response
from fairlead.testing.cluster.cluster_thread import ClusterThread
from fairlead.testing.refusal import RefusedError, hides_traceback
from fairlead.worlds.local.server.runner import Runner

DONE: Final = range(200, 300)
_NONE: Final[Mapping[str, str]] = {}

Body = Mapping[str, Any] | list[Any]

__tracebackhide__ = hides_traceback


class ApiClient:
    """A client of the cluster in `thread`, without HTTP."""

    def __init__(self, thread: ClusterThread) -> None:
        self._thread = thread
        self._cluster = thread.cluster

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object of `kind` with this name, or None if it does not exist."""

        async def finding(_: Runner) -> Json | None:
            return self._cluster.store.find(kind, namespace if kind.namespaced else "", name)

        return self._thread.call(finding)

    def objects(self, kind: Kind, namespace: str | None) -> list[Json]:
        """Return the objects of `kind` in `namespace`; None means all namespaces."""

        async def listing(_: Runner) -> list[Json]:
            return self._cluster.store.list(kind, namespace if kind.namespaced else None)

        return self._thread.call(listing)

    def kind(self, name: str) -> Kind:
        """Return the first kind named `name` (`_kinds`) that has objects.

        If no kind of this name has objects, return the first kind of this name. Raises LookupError
        if the cluster serves no kind of this name.
        """
        first, *more = self._kinds(name)
        found = (kind for kind in (first, *more) if more and self.objects(kind, None))
        return next(found, first)

    def kind_of_object(self, name: str, namespace: str, key: str) -> Kind:
        """Return the first kind named `name` (`_kinds`) that has an object with the name `key`.

        If no kind has an object of this name, return the first kind. Raises LookupError if the
        cluster serves no kind named `name`.
        """
        first, *more = self._kinds(name)
        found = (kind for kind in (first, *more) if more and self.find(kind, namespace, key))
        return next(found, first)

    def _kinds(self, name: str) -> list[Kind]:
        """Return the kinds whose name, plural, singular or short name is `name`.

        `.group` may follow each of these names. Raises LookupError if there is no such kind.
        """
        wanted, _, group = name.lower().partition(".")
        found = [
            kind
            for kind in self._cluster.server.registry.all_kinds()
            if wanted in (kind.kind.lower(), kind.plural, kind.singular, *kind.short_names)
            and group in ("", kind.group)
        ]
        if not found:
            raise LookupError(f"there is no kind {name!r}")
        return found

    def kind_of(self, manifest: Json) -> Kind:
        """Return the kind of the object `manifest`.

        Raises LookupError if its apiVersion or kind is missing or not served.
        """
        api_version, kind = manifest.get("apiVersion", ""), manifest.get("kind", "")
        if not (api_version and kind):
            shown = ", ".join(map(str, manifest)) or "nothing"
            raise LookupError(f"an object needs apiVersion and kind; found {shown}")
        found = self._cluster.server.registry.of_type(api_version, kind)
        if found is None:
            raise LookupError(f"{api_version} {kind} is not served".strip())
        return found

    def request(
        self,
        method: str,
        path: str,
        body: Body | None = None,
        content_type: str = "",
        query: Mapping[str, str] = _NONE,
    ) -> Json:
        """Send a request; return the JSON of the response.

        If `content_type` is "", `body` determines the type of a PATCH: a list is a JSON patch, and
        an object is a JSON merge patch. Raises RefusedError if the server refuses the request.
        Raises TypeError if the request is a watch, or if the response is not a JSON object.
        """
        content_type = content_type or _content_type(method, body)
        headers = {"content-type": content_type, "accept": "application/json"}
        sent = b"" if body is None else msgspec.json.encode(body)
        request = Request(method, path, tuple(query.items()), headers, sent, ADMIN)
        answer = self._thread.call(lambda _: self._response(request))
        content = b"".join(answer.body)
        try:
            found = msgspec.json.decode(content)
        except msgspec.DecodeError:
            found = None  # plain text, such as "404 page not found" or the metrics
        if answer.status not in DONE:
            text = content.decode(errors="replace").strip()
            status = {"code": answer.status, "message": f"{method} {path}: {text}"}
            raise RefusedError(found or status)
        if not isinstance(found, dict):
            raise TypeError(f"the response to {method} {path} is not a JSON object")
        return found

    async def _response(self, request: Request) -> Response:
        steps = self._cluster.server.handle.steps(request, self._cluster.clock.now())
        answer = await run_steps(steps)  # calls admission webhooks
        if not isinstance(answer, Response):
            answer.close()
            raise TypeError("watches need a real client: use the kubeconfig")
        return answer


def _content_type(method: str, body: Body | None) -> str:
    if method != "PATCH":
        return "application/json"
    return f"application/{'json-patch' if isinstance(body, list) else 'merge-patch'}+json"


def path_of(kind: Kind, namespace: str, name: str) -> str:
    """Return the URL path of the object of `kind` with this name."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    place = f"/namespaces/{namespace}" if kind.namespaced else ""
    return f"{root}{place}/{kind.plural}/{name}"
