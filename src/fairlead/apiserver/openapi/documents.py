"""OpenAPI documents by path.

    /openapi/v3                 the index: each document with a hash
    /openapi/v3/apis/GROUP/V    one document; if the query has its hash, the response never expires
    /openapi/v2                 everything in one document

A hash is computed from the inputs of a document, so the index can be made without the documents.

upstream: k8s.io/kube-openapi/pkg/handler3/handler.go, pkg/handler/handler.go
"""

from __future__ import annotations

import hashlib
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.discovery.legacy import api_resource_list
from fairlead.apiserver.negotiation.media_type import JSON, clauses
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.openapi.v2 import swagger
from fairlead.apiserver.openapi.v2_protobuf import swagger_message
from fairlead.apiserver.openapi.v3 import document, group_document, plain_document
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Headers, Request, Response
from fairlead.apiserver.schema.model import VERSION

_TEXT: Final = "text/plain; charset=utf-8"
_VARY: Final = ("Vary", "Accept")
_FOREVER: Final = ("Cache-Control", "public, immutable")
_NOTHING: Final = Response(404, (), "")
_INDEX: Final = ("openapi", "v3")
_V2: Final = "v2"
_V2_PROTOBUF: Final = "v2 in protobuf"
_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_FORMS: Final = {_V2: JSON, _V2_PROTOBUF: _PROTOBUF}
_FORM_BY_TYPE: Final = {
    JSON: _V2,
    "application/*": _V2,
    "*/*": _V2,
    _PROTOBUF: _V2_PROTOBUF,
    _PROTOBUF.replace("v2.v1", "v2@v1"): _V2_PROTOBUF,
}
_PLAIN: Final = (".well-known/openid-configuration", "openid/v1/jwks", "version")


class OpenApi:
    """Responds to requests for /openapi/v2 and for paths under /openapi/v3."""

    def __init__(self, registry: ServedKinds, fairlead_version: str) -> None:
        """The documents describe the kinds in `registry`."""
        self._registry = registry
        self._fairlead_version = fairlead_version
        self._cache: dict[str, tuple[str, bytes]] = {}

    def __call__(self, request: Request, now: int) -> Response | None:
        """Return the document at an OpenAPI path; None for other paths.

        The HTTP method and `now` are ignored.
        """
        parts = tuple(request.path.split("/")[1:])
        if parts[0] != "openapi":
            return None
        if parts == _INDEX:
            return Response(200, (encode({"paths": self._index()}),), _TEXT)
        if parts == ("openapi", "v2"):
            return self._everything(request)
        if parts[:2] == _INDEX:
            return self._one("/".join(parts[2:]), request)
        return None

    def _index(self) -> Json:
        names = sorted((*self._names(), *_PLAIN))
        return {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={self._hash(name)}"}
            for name in names
        }

    def _names(self) -> list[str]:
        registry = self._registry
        groups = [group for group in registry.groups() if group]
        versions = [
            f"apis/{group}/{version}" for group in groups for version in registry.versions(group)
        ]
        return ["api", "api/v1", "apis", *(f"apis/{group}" for group in groups), *versions]

    def _one(self, name: str, request: Request) -> Response:
        if name not in (*self._names(), *_PLAIN):
            return _NOTHING
        wanted, current = request.parameter("hash"), self._hash(name)
        headers: Headers = (("ETag", f'"{current}"'), _VARY)
        if wanted and wanted != current:
            place = ("Location", f"/openapi/v3/{name}?hash={current}")
            return Response(301, (), JSON, (*headers, place))
        if request.headers.get("if-none-match") == f'"{current}"':
            return Response(304, (), "", headers)
        if wanted:
            headers = (*headers, _FOREVER)
        return Response(200, (self._written(name, current),), JSON, headers)

    def _everything(self, request: Request) -> Response:
        headers: Headers = (("Vary", "Accept-Encoding"), _VARY)
        name = _v2_form(request.headers.get("accept", ""))
        if not name:
            return Response(406, (), "", headers)
        current = self._hash(name)
        headers = (*headers, ("ETag", f'"{current}"'))
        if request.headers.get("if-none-match") == f'"{current}"':
            return Response(304, (), "", headers)
        return Response(200, (self._written(name, current),), _V2_FORMS[name], headers)

    def _written(self, name: str, current: str) -> bytes:
        """Return the encoded document `name`, from the cache if the cached hash is `current`."""
        cached = self._cache.get(name)
        if cached is None or cached[0] != current:
            cached = self._cache[name] = (current, self._text(name))
        return cached[1]

    def _text(self, name: str) -> bytes:
        if name == _V2_PROTOBUF:
            return swagger_message(swagger(self._registry))
        return encode(self._document(name))

    def _document(self, name: str) -> Json:
        match name.split("/"):
            case ["v2"]:
                return swagger(self._registry)
            case ["api"]:
                return group_document("")
            case ["apis"]:
                return group_document("*")
            case ["api", version]:
                return document(self._registry, "", version)
            case ["apis", group]:
                return group_document(group)
            case ["apis", group, version]:
                return document(self._registry, group, version)
            case _:
                return plain_document(name)

    def _hash(self, name: str) -> str:
        """Return the hash of the document `name` in upper-case hex, as upstream writes it."""
        made_of = [VERSION, self._fairlead_version, name]
        match name.split("/"):
            case ["api", version]:
                made_of.append(self._content("", version))
            case ["apis", group, version]:
                made_of.append(self._content(group, version))
            case [one] if one in _V2_FORMS:
                made_of += [self._hash(one) for one in self._names()]
            case _:
                pass
        return hashlib.sha512(encode(made_of)).hexdigest().upper()

    def _content(self, group: str, version: str) -> str:
        kinds = self._registry.kinds(group, version)
        types = [kind.custom.raw for kind in kinds if kind.custom is not None]
        return encode([api_resource_list(self._registry, group, version), types]).decode()


def _v2_form(accept: str) -> str:
    """Return the key of `_V2_FORMS` for the Accept header `accept`; "" if no form is acceptable."""
    wanted = [clause.media_type for clause in clauses(accept)] or [JSON]
    return next((_FORM_BY_TYPE[one] for one in wanted if one in _FORM_BY_TYPE), "")
