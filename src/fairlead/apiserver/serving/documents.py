"""Documents: what a server tells about itself, under the paths that are no resources.

    /                       the paths there are
    /api, /apis             discovery in one document, or group by group
    /api/v1, /apis/GROUP, /apis/GROUP/VERSION
    /version, /healthz, /livez, /readyz

upstream: apiserver/pkg/endpoints/discovery, apiserver/pkg/server/{healthz,routes}
"""

from __future__ import annotations

import hashlib
from typing import Final

from fairlead.apiserver.discovery import aggregated, health, legacy
from fairlead.apiserver.discovery.paths import paths
from fairlead.apiserver.registry import Registry
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.serving.encoding import encode
from fairlead.apiserver.serving.negotiation import (
    ACCEPTED,
    Clause,
    clauses,
    known_media_type,
    negotiated,
)
from fairlead.apiserver.serving.refusal import no_method, no_resource, not_a_view
from fairlead.apiserver.serving.rendering import text_of
from fairlead.apiserver.storage import Json

_PLAIN: Final = "text/plain; charset=utf-8"
_NO_SNIFF: Final = (("X-Content-Type-Options", "nosniff"),)


class Documents:
    """Answers for everything that `registry` serves; `address` is host and port."""

    def __init__(self, registry: Registry, version: Json, address: str) -> None:
        """`version` is the answer of /version."""
        self._registry = registry
        self._version = version
        self._address = address
        self._texts: dict[tuple[str, int], tuple[bytes, str]] = {}

    def __call__(self, request: Request, _: int) -> Response | None:
        """The answer, None for a path of another. Raises ApiError: 404, 405, 406."""
        parts = request.path.strip("/").split("/")
        match parts:
            case [""]:
                return _json(request, paths(self._registry))
            case ["api" | "apis" as root]:
                return self._root(request, root)
            case ["api", version]:
                return self._resources(request, "", version)
            case ["apis", group]:
                return self._group(request, group)
            case ["apis", group, version] if self._registry.versions(group):
                return self._resources(request, group, version)
            case ["version"]:
                return _json(_got(request), self._version)
            case [endpoint, *check] if endpoint in health.CHECKS:
                return _health(request, endpoint, check)
            case _:
                return None

    def _root(self, request: Request, root: str) -> Response:
        wanted = _wanted(_got(request).headers.get("accept", ""))
        if wanted.parameter("as"):
            return self._aggregated(request, root)
        if root == "api":
            return _json(request, legacy.api_versions(self._address))
        return _json(request, legacy.api_group_list(self._registry))

    def _aggregated(self, request: Request, root: str) -> Response:
        key = (root, self._registry.revision)
        if key not in self._texts:
            document = aggregated.api_group_discovery_list(self._registry, is_core=root == "api")
            text = encode(document)
            self._texts = {
                **{known: self._texts[known] for known in self._texts if known[1] == key[1]},
                key: (text, f'"{hashlib.sha512(text).hexdigest().upper()}"'),
            }
        text, tag = self._texts[key]
        headers = (("Cache-Control", "public"), ("ETag", tag), ("Vary", "Accept"))
        if request.headers.get("if-none-match") == tag:
            return Response(304, (), "", headers)
        media_type = f"application/json;{aggregated.MEDIA_TYPE_PARAMETERS}"
        return Response(200, (text,), media_type, headers)

    def _group(self, request: Request, group: str) -> Response | None:
        document = legacy.api_group(self._registry, group)
        return None if document is None else _json(_got(request), document)

    def _resources(self, request: Request, group: str, version: str) -> Response:
        document = legacy.api_resource_list(self._registry, group, version)
        if document is None:
            raise no_resource()
        return _json(_got(request), document)


def _got(request: Request) -> Request:
    """`request`, if it only asks. Raises ApiError 405."""
    if request.method != "GET":
        raise no_method()
    return request


def _json(request: Request, document: Json) -> Response:
    """`document` as JSON or YAML, whatever view of objects is asked for."""
    accept = request.headers.get("accept", "")
    media_type = _wanted(accept).media_type
    if "as=" in accept or media_type not in ACCEPTED:
        media_type = ACCEPTED[0]
    else:
        media_type = negotiated(accept).media_type
    return Response(200, (text_of(media_type, document),), media_type)


def _wanted(accept: str) -> Clause:
    """The first clause that discovery can serve. Raises ApiError 406."""
    known = [clause for clause in clauses(accept) or clauses("*/*") if known_media_type(clause)]
    for clause in known:
        view = tuple(clause.parameter(name) for name in ("g", "v", "as"))
        if not view[2] or view == ("apidiscovery.k8s.io", "v2", aggregated.LIST):
            return clause
    if known:
        raise not_a_view(ACCEPTED)
    negotiated(accept)
    raise not_a_view(ACCEPTED)


def _health(request: Request, endpoint: str, check: list[str]) -> Response | None:
    """Any method will do; a check by its own path has a short answer."""
    if check:
        known = "/".join(check) in health.CHECKS[endpoint]
        return Response(200, (b"ok",), _PLAIN) if known else None
    excluded = [value for name, value in request.query if name == "exclude"]
    text = health.health_report(endpoint, verbose=request.has("verbose"), excluded=excluded)
    return Response(200, (text.encode(),), _PLAIN, _NO_SNIFF)
