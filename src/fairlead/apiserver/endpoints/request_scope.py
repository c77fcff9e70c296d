"""RequestScope: one request to a resource, with all dependencies of its handler.

upstream: apiserver/pkg/endpoints/handlers/rest.go:RequestScope
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.endpoints.collection.list_page import ListPage
from fairlead.apiserver.endpoints.collection.watch import Watches
from fairlead.apiserver.endpoints.request.body import DecodeProtobuf
from fairlead.apiserver.endpoints.request.options import MANAGER_BYTES_MAX, WriteOptions
from fairlead.apiserver.endpoints.request.request_info import RequestInfo
from fairlead.apiserver.endpoints.response.renderer import Renderer
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import (
    MediaTypeOptions,
    error_media_type,
    negotiated_media_type,
)
from fairlead.apiserver.negotiation.serializer import text_of
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.storage.storage import StoredObject


class ComputedObjects(Protocol):
    """Computes the objects of a kind that is not stored."""

    def objects(self, namespace: str, now: int) -> list[Json]:
        """Return the objects in `namespace` at `now` (ns since 1970), sorted by namespace and name.

        A `namespace` of "" means all namespaces.
        """
        ...

    def absent(self, namespace: str, name: str) -> ApiError:
        """Return the error for an object that does not exist."""
        ...


class ServerDeps(Struct, frozen=True, kw_only=True):
    """The dependencies that all requests to one server share.

    `computed` serves kinds that are not stored. If `protobuf` is None, protobuf bodies are
    rejected. If `identity` is None, TokenRequests and reviews such as SubjectAccessReviews are
    rejected.
    """

    store: Store
    registry: ServedKinds
    renderer: Renderer
    watches: Watches
    protobuf: DecodeProtobuf | None = None
    computed: Mapping[Kind, ComputedObjects]
    clock: Callable[[], int]
    identity: Identity | None = None


class RequestScope(Struct, frozen=True):
    """One request to a resource.

    `verb` is the RBAC verb, `kind` is the served kind, and `now` is the time in ns since 1970.
    `warnings` collects the texts of the response's Warning headers.
    """

    deps: ServerDeps
    request: Request
    info: RequestInfo
    kind: Kind
    verb: str
    now: int
    warnings: list[str] = field(default_factory=list)

    def negotiate(self, *, streams: bool = False, is_list: bool = False) -> MediaTypeOptions:
        """Return the media type and view of the response. Raises ApiError 406.

        `streams` means that the response is a watch; `is_list` means that it is a list or a watch.
        """
        accept = self.request.headers.get("accept", "")
        # The route of a pod's log has already accepted text/plain.
        is_routed = not self.kind.is_custom and self.info.subresource != "log"
        return negotiated_media_type(accept, streams=streams, is_list=is_list, is_routed=is_routed)

    def respond(self, obj: StoredObject, code: int = 200, kind: Kind | None = None) -> Response:
        """Return a response with the HTTP status `code` and the object `obj`.

        `kind` is the kind of `obj`; None means the kind of the path. Raises ApiError 406 if the
        client accepts none of the media types of the response.
        """
        media_type, include = self.negotiate(), self.request.parameter("includeObject")
        renderer = self.deps.renderer
        body = renderer.object(media_type, kind or self.kind, obj, self.now, include)
        return Response(code, body, media_type.media_type, warnings=tuple(self.warnings))

    def respond_list(
        self, media_type: MediaTypeOptions, page: ListPage, include: str = ""
    ) -> Response:
        """Return a response with a list. Raises ApiError 406.

        `include` is the parameter includeObject, which applies to Tables.
        """
        body = self.deps.renderer.list(media_type, self.kind, page, self.now, include)
        return Response(200, body, media_type.media_type, warnings=tuple(self.warnings))

    def respond_json(self, value: Json, code: int = 200) -> Response:
        """Return a response with the HTTP status `code` and the body `value`.

        `value` is never converted to a Table, even if the client asks for one.
        """
        media_type = error_media_type(self.request.headers.get("accept", ""))
        body = (text_of(media_type, value),)
        return Response(code, body, media_type, warnings=tuple(self.warnings))

    def manager(self, options: WriteOptions) -> str:
        """Return the field manager in `options`.

        If the options name no manager, return the User-Agent header up to the first slash.
        Characters that are not printable are left out, and the result is cut to MANAGER_BYTES_MAX
        bytes. If it is empty, return "unknown".
        """
        # upstream: apiserver/pkg/endpoints/handlers/create.go:managerOrUserAgent
        agent = self.request.headers.get("user-agent", "").partition("/")[0]
        printable = agent if agent.isprintable() else "".join(filter(str.isprintable, agent))
        cut = printable.encode()[:MANAGER_BYTES_MAX].decode(errors="ignore")
        return options.manager or cut or "unknown"
