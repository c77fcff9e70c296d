"""Documents at paths without a resource.

    /api  /apis                    aggregated discovery or a list of groups, depending on Accept
    /api/v1  /apis/G  /apis/G/V    one group, or one version of it
    /version                       the version of the server
    /                              the list of all served paths
    /healthz  /livez  /readyz      health

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/discovery,
staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go,
staging/src/k8s.io/apiserver/pkg/server/routes/index.go
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.discovery.health import CHECKS, STORAGE, health_report
from fairlead.apiserver.discovery.legacy import (
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
)
from fairlead.apiserver.discovery.version import version_info
from fairlead.apiserver.kind import Kind, Subresource
from fairlead.apiserver.negotiation.media_type import (
    ACCEPTED,
    JSON,
    PROTOBUF,
    Clause,
    clauses,
    negotiated_media_type,
    require_produced,
)
from fairlead.apiserver.negotiation.request_error import no_method, no_resource, unknown_media_type
from fairlead.apiserver.negotiation.serializer import text_of
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Request, Response

Path = tuple[str, ...]

_TEXT: Final = "text/plain; charset=utf-8"
_NO_SNIFF: Final = ("X-Content-Type-Options", "nosniff")
_PUBLIC: Final = (("Cache-Control", "public"), ("Vary", "Accept"))


class _Kept(Struct, frozen=True):
    """An encoded document with its ETag."""

    body: bytes
    etag: str


class Documents:
    """An `endpoints.server.Document` that serves the documents of this module."""

    def __init__(
        self,
        registry: ServedKinds,
        server_address: str,
        fairlead_version: str,
        storage_problem: Callable[[], str] = str,
    ) -> None:
        """`server_address` is the host and port that the documents contain.

        `storage_problem` returns the error text of a storage problem, or "" if the storage works.
        """
        self._storage_problem = storage_problem
        self._registry = registry
        self._server_address = server_address
        self._version = version_info(fairlead_version)
        self._kept: dict[tuple[Path, str], _Kept] = {}
        self._revision = registry.revision

    def __call__(self, request: Request, now: int) -> Response | None:
        """Return the document at the request's path; None if there is no document.

        `now` is ignored. Raises ApiError 404 for an unknown version of a built-in group and for
        paths below `/version`. Raises ApiError 405 for a method other than GET if the path allows
        only GET. Raises ApiError 406 if the client accepts none of the media types.
        """
        path = tuple(part for part in request.path.split("/") if part)
        if path and path[0] in CHECKS:
            return None if request.path.endswith("/") else self._health(path, request)
        if path and path[0] not in ("api", "apis", "version", "index.html"):
            return None
        accept = request.headers.get("accept", "")
        document = self._document(path)
        if document is None:
            return None
        if request.method != "GET" and self._allows_only_get(path):
            raise no_method()
        if path in (("api",), ("apis",)):
            clause = _aggregated_clause(accept)
            if clause is not None:
                return self._aggregated(path, clause, request)
        media_type = self._media_type(path, accept)
        return Response(200, (self._written(path, media_type, document).body,), media_type)

    def _document(self, path: Path) -> Callable[[], Json | None] | None:
        """Return a function that builds the document at `path`; None if there is no document."""
        registry = self._registry
        match path:
            case () | ("index.html",):
                return lambda: paths(registry)
            case ("version", *more):
                if more:
                    raise no_resource()
                return lambda: self._version
            case ("api",):
                return lambda: api_versions(self._server_address)
            case ("apis",):
                return lambda: api_group_list(registry)
            case ("apis", group) if registry.versions(group):
                return lambda: api_group(registry, group)
            case ("api", version) if registry.kinds("", version):
                return lambda: api_resource_list(registry, "", version)
            case ("apis", group, version) if registry.kinds(group, version):
                return lambda: api_resource_list(registry, group, version)
            case ("apis", group, _) if registry.is_built_in(group):
                raise no_resource()
            case _:
                return None

    def _media_type(self, path: Path, accept: str) -> str:
        """Return the media type of the document at `path`, chosen by the Accept header.

        Raises ApiError 406.
        """
        if path[:1] not in (("api",), ("apis",)):
            if path == ("version",):
                require_produced(accept, (JSON,))
            return JSON
        is_routed = self._allows_only_get(path)
        return negotiated_media_type(accept, is_routed=is_routed, has_views=False).media_type

    def _allows_only_get(self, path: Path) -> bool:
        """Return whether the path allows only GET; documents at other paths ignore the method."""
        # upstream: apiserver/pkg/server/handler.go:director. Other paths are served by
        # kube-aggregator/pkg/apiserver/handler_apis.go and
        # apiextensions-apiserver/pkg/apiserver/customresource_handler.go, which ignore the method.
        match path:
            case ("api" | "version", *_):
                return True
            case ("apis", group, version):
                return any(not kind.is_custom for kind in self._registry.kinds(group, version))
            case _:
                return False

    def _aggregated(self, path: Path, clause: Clause, request: Request) -> Response:
        registry, is_core = self._registry, path == ("api",)
        media_type = f"{clause.media_type};{MEDIA_TYPE_PARAMETERS}"
        kept = self._written(
            path, media_type, lambda: api_group_discovery_list(registry, is_core=is_core)
        )
        headers = (*_PUBLIC, ("ETag", kept.etag))
        if request.headers.get("if-none-match") == kept.etag:
            return Response(304, (), "", headers)
        return Response(200, (kept.body,), media_type, headers)

    def _health(self, path: Path, request: Request) -> Response | None:
        """Return the report of a health endpoint: all checks, or the check that the path names.

        Return None if the endpoint has no check of this name.
        """
        endpoint, check = path[0], "/".join(path[1:])
        problem = self._storage_problem()
        if check:
            if check == STORAGE and endpoint != "livez" and problem:
                return Response(500, (f"internal server error: {problem}\n".encode(),), _TEXT)
            return Response(200, (b"ok",), _TEXT) if check in CHECKS[endpoint] else None
        excluded = [value for key, value in request.query if key == "exclude"]
        status, report = health_report(
            endpoint, verbose=request.has("verbose"), excluded=excluded, problem=problem
        )
        return Response(status, (report.encode(),), _TEXT, (_NO_SNIFF,))

    def _written(self, path: Path, media_type: str, document: Callable[[], Any]) -> _Kept:
        if self._revision != self._registry.revision:
            self._kept.clear()
            self._revision = self._registry.revision
        kept = self._kept.get((path, media_type))
        if kept is None:
            body = text_of(media_type.partition(";")[0], document())
            digest = hashlib.sha512(body).hexdigest().upper()
            kept = self._kept[path, media_type] = _Kept(body, f'"{digest}"')
        return kept


def _aggregated_clause(accept: str) -> Clause | None:
    """Return the Accept clause that requests aggregated discovery; None for unaggregated discovery.

    JSON and YAML clauses are tried in the client's order of preference. The search ends at a clause
    without the parameter `as`, because such a clause requests unaggregated discovery. Raises
    ApiError 406 if all clauses have the parameter `as`, at least one of them has a known media
    type, and none of them requests aggregated discovery.
    """
    wanted = clauses(accept)
    for clause in wanted:
        if clause.media_type not in ACCEPTED or clause.media_type == PROTOBUF:
            continue
        if not clause.parameter("as"):
            return None
        if _asks_for_list(clause):
            return clause
    if any(clause.media_type in ACCEPTED for clause in wanted) and all(
        clause.parameter("as") for clause in wanted
    ):
        raise unknown_media_type(ACCEPTED)
    return None


def _asks_for_list(clause: Clause) -> bool:
    group, _, version = API_VERSION.partition("/")
    requested = (clause.parameter("as"), clause.parameter("g"), clause.parameter("v"))
    return requested == (LIST, group, version)


# --- aggregated discovery ------------------------------------------------------------------------


API_VERSION: Final = "apidiscovery.k8s.io/v2"
LIST: Final = "APIGroupDiscoveryList"
MEDIA_TYPE_PARAMETERS: Final = f"g=apidiscovery.k8s.io;v=v2;as={LIST}"


def api_group_discovery_list(registry: ServedKinds, *, is_core: bool) -> Json:
    """Return the aggregated discovery document at `/api` (if `is_core`) or at `/apis`."""
    groups = [group for group in registry.groups() if is_core != bool(group)]
    return {
        "kind": LIST,
        "apiVersion": API_VERSION,
        "metadata": {},
        "items": [_group(registry, group) for group in groups],
    }


def _group(registry: ServedKinds, group: str) -> Json:
    versions = [
        {
            "version": version,
            "resources": [_resource(kind) for kind in registry.kinds(group, version)],
            "freshness": "Current",
        }
        for version in registry.versions(group)
    ]
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _resource(kind: Kind) -> Json:
    row: Json = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, "", "", kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if kind.subresources:
        row["subresources"] = [_subresource(kind, part) for part in kind.subresources]
    return row


def _subresource(kind: Kind, part: Subresource) -> Json:
    return {
        "subresource": part.name,
        "responseKind": _response_kind(kind, part.group, part.version, part.kind),
        "verbs": list(part.verbs),
    }


def _response_kind(kind: Kind, group: str, version: str, name: str) -> Json:
    """Return the responseKind of `kind` or of a subresource of `kind`.

    `group`, `version` and `name` are the group, version and kind in the result. If the group and
    version are "", clients assume the group and version of the discovery document. For a custom
    resource, the group and version of `kind` are returned in place of "".
    """
    if kind.is_custom and not group:
        group, version = kind.group, kind.version
    return {"group": group, "version": version, "kind": name}


# --- paths ---------------------------------------------------------------------------------------


_FIXED: Final = (
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/statusz",
    "/version",
)


def paths(registry: ServedKinds) -> dict[str, list[str]]:
    """Return the document at `/`, which contains all served paths in byte order."""
    groups = [group for group in registry.groups() if group]
    versions = [
        f"/apis/{group}/{version}" for group in groups for version in registry.versions(group)
    ]
    health = [f"/{endpoint}/{check}" for endpoint, checks in CHECKS.items() for check in checks]
    roots = [f"/{endpoint}" for endpoint in CHECKS]
    served = (*_FIXED, *(f"/apis/{group}" for group in groups), *versions, *roots, *health)
    return {"paths": sorted(served)}
