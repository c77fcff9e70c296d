"""Call: one request to a resource, with everything that verbs share to answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import Attributes, Authorize, Identity, allow_all
from fairlead.apiserver.endpoints.collection.watch import Watches
from fairlead.apiserver.endpoints.request.body import DecodeProtobuf
from fairlead.apiserver.endpoints.request.options import MANAGER_BYTES_MAX, WriteOptions
from fairlead.apiserver.endpoints.request.request_info import Target
from fairlead.apiserver.endpoints.response.renderer import Renderer, text_of
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import Form, error_media_type, negotiated
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.storage.storage import Kept

__all__ = ["Attributes", "Authorize", "Call", "Observed", "Parts", "allow_all"]


class Observed(Protocol):
    """Knows the objects of a kind that is not stored."""

    def objects(self, namespace: str, now: int) -> list[Json]:
        """Those of one namespace, or all (""), by namespace and name, as they are at `now`."""
        ...

    def absent(self, namespace: str, name: str) -> ApiError:
        """What is said of one that is not among them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a server is made of."""

    store: Store
    registry: ServedKinds
    renderer: Renderer
    watches: Watches
    protobuf: DecodeProtobuf | None = None
    observed: Mapping[Kind, Observed]
    clock: Callable[[], int]
    identity: Identity | None = None


class Call(Struct, frozen=True):
    """One request: `verb` is RBAC's word, `kind` is what is served at the path."""

    parts: Parts
    request: Request
    target: Target
    kind: Kind
    verb: str
    now: int
    warnings: list[str] = field(default_factory=list)

    def form(self, *, streams: bool = False, is_list: bool = False) -> Form:
        """The form of an answer; see `negotiated`. Raises ApiError 406."""
        accept = self.request.headers.get("accept", "")
        # A route to a log has let in before who takes plain text.
        is_routed = not self.kind.is_custom and self.target.subresource != "log"
        return negotiated(accept, streams=streams, is_list=is_list, is_routed=is_routed)

    def shown(self, obj: Kept, code: int = 200, kind: Kind | None = None) -> Response:
        """`obj` as the answer. Raises ApiError 406."""
        form, include = self.form(), self.request.parameter("includeObject")
        kind = kind or self.kind
        body = self.parts.renderer.object(form, kind, obj, self.now, include)
        return Response(code, body, form.media_type, warnings=tuple(self.warnings))

    def told(self, status: Json, code: int = 200) -> Response:
        """A Status as the answer, or anything else that has no kind of its own."""
        media_type = error_media_type(self.request.headers.get("accept", ""))
        body = (text_of(media_type, status),)
        return Response(code, body, media_type, warnings=tuple(self.warnings))

    def manager(self, options: WriteOptions) -> str:
        """Who writes: as it says itself, or what its User-Agent begins with."""
        # upstream: apiserver/pkg/endpoints/handlers/create.go:managerOrUserAgent
        agent = self.request.headers.get("user-agent", "").partition("/")[0]
        printable = agent if agent.isprintable() else "".join(filter(str.isprintable, agent))
        cut = printable.encode()[:MANAGER_BYTES_MAX].decode(errors="ignore")
        return options.manager or cut or "unknown"
