"""What a test asks of the API server, from inside: objects read, and requests as administrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import ADMIN, Request, Response
from fairlead.testing.cluster.cluster_thread import ClusterThread
from fairlead.testing.refusal import RefusedError, speaks_for_itself
from fairlead.worlds.local.server.runner import Runner

DONE: Final = range(200, 300)
_NONE: Final[Mapping[str, str]] = {}

__tracebackhide__ = speaks_for_itself


class Asking:
    """Asks the cluster that lives in `thread`."""

    def __init__(self, thread: ClusterThread) -> None:
        """Nothing is asked yet."""
        self._thread = thread
        self._cluster = thread.cluster

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """An object, None when there is none."""

        async def finding(_: Runner) -> Json | None:
            return self._cluster.store.find(kind, namespace if kind.namespaced else "", name)

        return self._thread.call(finding)

    def objects(self, kind: Kind, namespace: str | None) -> list[Json]:
        """The objects of a kind in one namespace, or in all."""

        async def listing(_: Runner) -> list[Json]:
            return self._cluster.store.list(kind, namespace if kind.namespaced else None)

        return self._thread.call(listing)

    def kind(self, name: str) -> Kind:
        """A kind by any of its names. Raises LookupError."""
        wanted = name.lower()
        for kind in self._cluster.server.registry.all_kinds():
            names = (kind.kind.lower(), kind.plural, kind.singular, *kind.short_names)
            if wanted in names or wanted == f"{kind.plural}.{kind.group}":
                return kind
        raise LookupError(f"no kind is called {name!r}")

    def kind_of(self, manifest: Json) -> Kind:
        """The kind of an object. Raises LookupError when it is not served or not said."""
        api_version, kind = manifest.get("apiVersion", ""), manifest.get("kind", "")
        if not (api_version and kind):
            shown = ", ".join(map(str, manifest)) or "nothing"
            raise LookupError(f"an object has apiVersion and kind; this one has {shown}")
        found = self._cluster.server.registry.of_type(api_version, kind)
        if found is None:
            raise LookupError(f"{api_version} {kind} is not served".strip())
        return found

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str] = _NONE,
    ) -> Json:
        """The JSON of the answer. Raises RefusedError."""
        headers = {"content-type": content_type, "accept": "application/json"}
        sent = b"" if body is None else msgspec.json.encode(body)
        request = Request(method, path, tuple(query.items()), headers, sent, ADMIN)
        answer = self._thread.call(lambda _: self._answered(request))
        found: Json = msgspec.json.decode(b"".join(answer.body))
        if answer.status not in DONE:
            raise RefusedError(found)
        return found

    async def _answered(self, request: Request) -> Response:
        answer = self._cluster.server.handle(request, self._cluster.clock.now())
        if not isinstance(answer, Response):
            answer.close()
            raise TypeError("a watch needs a client: see kubeconfig")
        return answer


def path_of(kind: Kind, namespace: str, name: str) -> str:
    """Where an object is found."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    place = f"/namespaces/{namespace}" if kind.namespaced else ""
    return f"{root}{place}/{kind.plural}/{name}"
