"""ApiServer: a request and the time go in, a response or a watch comes out.

    1. what does the path name?            nothing of ours: documents (discovery, health), or 404
    2. may the user do that?               403, before anybody learns whether it exists
    3. is that served, and that way?       404, 405
    4. which verb of which kind, or which of its subresources?
    5. do it; every refusal on the way is an ApiError and becomes a Status

upstream: apiserver/pkg/server/config.go:DefaultBuildHandlerChain, endpoints/installer.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.field_problem import quoted
from fairlead.api.json import Json
from fairlead.apiserver.admission.webhooks.plugin import WebhookNeeded
from fairlead.apiserver.apiextensions.definition.controller import Definitions
from fairlead.apiserver.auth.authentication.impersonation import impersonated
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.endpoints.collection.selector import pinned_name
from fairlead.apiserver.endpoints.collection.watch import Watches
from fairlead.apiserver.endpoints.component_status import ONE_PROCESS, Components
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.endpoints.ip_address_reconciler import IpAddresses
from fairlead.apiserver.endpoints.request.body import DecodeProtobuf
from fairlead.apiserver.endpoints.request.options import is_true
from fairlead.apiserver.endpoints.request.request_info import (
    Target,
    is_cut_short,
    target_of,
    verb_of,
    without_namespace,
)
from fairlead.apiserver.endpoints.request.timeout import require_timeout
from fairlead.apiserver.endpoints.request_metrics import BY_METHOD, OTHER, RequestCounts, asked_by
from fairlead.apiserver.endpoints.request_scope import (
    Attributes,
    Authorize,
    Call,
    Observed,
    Parts,
    allow_all,
)
from fairlead.apiserver.endpoints.response.encoded_objects import EncodedObjects
from fairlead.apiserver.endpoints.response.renderer import Renderer, TableOf, text_of
from fairlead.apiserver.endpoints.routes import Answer, act_of, leads_nowhere
from fairlead.apiserver.endpoints.status_reconcilers import Upkeep
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import COMPONENT_STATUS, CUSTOM_RESOURCE_DEFINITION, Kind
from fairlead.apiserver.negotiation.media_type import error_media_type
from fairlead.apiserver.negotiation.request_error import no_resource
from fairlead.apiserver.negotiation.status import failure
from fairlead.apiserver.registry.reconcile_delay import NO_DELAY, ReconcileDelay
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Headers, Request, Response

# Answers a path that is no resource; None leaves it to the next.
Document = Callable[[Request, int], Response | None]

NOT_FOUND: Final = Response(
    404,
    (b"404 page not found\n",),
    "text/plain; charset=utf-8",
    (("X-Content-Type-Options", "nosniff"),),
)
# upstream: APILifecycleDeprecated of the types, apiserver/pkg/endpoints/deprecation
_DEPRECATED: Final[Mapping[str, str]] = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}
_MANY: Final = ("list", "watch", "deletecollection")
_OWN_NAME: Final = "kube-apiserver"
_WATCHED: Final = 200
_COMPONENTS: Final[Mapping[Kind, Observed]] = {COMPONENT_STATUS: Components(ONE_PROCESS)}


class ApiServer:
    """The Kubernetes API over `store`. Single writer: one call after the other."""

    def __init__(  # noqa: PLR0913 - the parts it is made of
        self,
        store: Store,
        *,
        clock: Callable[[], int],
        registry: ServedKinds | None = None,
        authorize: Authorize = allow_all,
        documents: Sequence[Document] = (),
        table_of: TableOf | None = None,
        protobuf: DecodeProtobuf | None = None,
        found: Mapping[Kind, Observed] = _COMPONENTS,
        identity: Identity | None = None,
        late: ReconcileDelay = NO_DELAY,
    ) -> None:
        """`clock` tells the time (ns) for what happens between requests, ages in a watch.

        `identity` answers questions about users; `found` knows what is not stored; `late` is how
        late the server acts by itself.
        """
        self.counts = RequestCounts()
        self._asked = OTHER
        self._authorize = authorize
        self._ids = store.ids
        self._storage = store.storage
        self._documents = tuple(documents)
        registry = registry or ServedKinds()
        self._definitions = Definitions(store, registry, _noted, late)
        self._upkeep = Upkeep(store, late)
        self._addresses = IpAddresses(store)
        self._definitions.settle(clock())
        self._parts = Parts(
            store=store,
            registry=registry,
            renderer=Renderer(EncodedObjects(store.storage), table_of),
            watches=Watches(store.storage),
            protobuf=protobuf,
            observed=found,
            clock=clock,
            identity=identity,
        )

    @property
    def watches(self) -> Watches:
        """The watches that are open."""
        return self._parts.watches

    @property
    def registry(self) -> ServedKinds:
        """The kinds that are served."""
        return self._parts.registry

    def handle(self, request: Request, now: int) -> Answer:
        """Answer one request at `now` (ns since 1970). Raises WebhookNeeded."""
        self._storage.look_for_room()
        if self._definitions.waits or self._upkeep.waits or self._addresses.waits:
            self.follow_up(now)
        self._ids.begin(request.drawn)
        self._asked = BY_METHOD.get(request.method, OTHER)
        try:
            answer = self._answer(request, now)
        except ApiError as refusal:
            answer = refused(refusal, request)
        except WebhookNeeded as needed:
            needed.drawn = self._ids.end()
            raise
        finally:
            self._ids.end()
            self.follow_up(now)
        self.counts.add(self._asked, answer.status if isinstance(answer, Response) else _WATCHED)
        return answer

    def follow_up(self, now: int) -> None:
        """Write what the server itself has to write by `now` (ns since 1970), if it can."""
        if self._storage.is_full:
            return
        self._definitions.settle(now)
        self._upkeep.settle(now)
        self._addresses.settle(now)

    def authorize(self, request: Request) -> None:
        """Refuse a request for a path that is no resource, if it must be. Raises ApiError 403."""
        asked = Attributes(request.user, request.method.lower(), request.path)
        user = impersonated(asked, request.headers, self._authorize)
        self._authorize(replace(asked, user=user))

    def _answer(self, request: Request, now: int) -> Answer:
        require_timeout(request)
        target = target_of(request.path)
        if is_cut_short(request.path):
            return cut_short(request.path)
        if target is None:
            return self._document(request, now)
        verb = verb_of(request.method, target, is_watch=is_true(request, "watch"))
        asked = _attributes(request, target, verb)
        user = impersonated(asked, request.headers, self._authorize)
        if user is not request.user:
            request, asked = replace(request, user=user), replace(asked, user=user)
        self._authorize(asked)
        kind = self._parts.registry.find(target.group, target.version, target.resource)
        if kind is None:
            return self._unserved(target)
        if leads_nowhere(kind, without_namespace(target), verb):
            return NOT_FOUND
        call = Call(self._parts, request, without_namespace(target), kind, verb, now)
        _warn(call)
        try:
            act = act_of(call)
            self._asked = asked_by(call)
            return act(call)
        except ApiError as refusal:
            return refused(refusal, request, tuple(call.warnings))

    def _document(self, request: Request, now: int) -> Answer:
        self.authorize(request)
        if request.path.startswith(("//", "*")):
            return NOT_FOUND
        for document in self._documents:
            answer = document(request, now)
            if answer is not None:
                return answer
        if request.path.startswith("/api/"):
            raise no_resource()
        return NOT_FOUND

    def _unserved(self, target: Target) -> Answer:
        if self._parts.registry.is_built_in(target.group):
            raise no_resource()
        return NOT_FOUND


def cut_short(path: str) -> Response:
    """500: the path says how to look, and not at what."""
    # upstream: endpoints/filters/requestinfo.go, endpoints/handlers/responsewriters/errors.go
    why = f"unable to determine kind and namespace from url, {path}"
    text = f"Internal Server Error: {quoted(path)}: failed to create RequestInfo: {why}\n"
    for mark, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(mark, shown)
    return Response(500, (text.encode(),), NOT_FOUND.content_type, NOT_FOUND.headers)


def _noted(old: Json, new: Json, now: int) -> Json:
    """The status of a definition, as this server writes it itself."""
    return track(CUSTOM_RESOURCE_DEFINITION, _OWN_NAME, "Update", "status", now)(old, new)


def refused(refusal: ApiError, request: Request, warnings: tuple[str, ...] = ()) -> Response:
    """The Status of a refusal, in the media type that the client reads."""
    media_type = error_media_type(request.headers.get("accept", ""))
    headers: Headers = ()
    if refusal.retry_after_s:
        headers = (("Retry-After", str(refusal.retry_after_s)),)
    body = (text_of(media_type, failure(refusal)),)
    return Response(refusal.code, body, media_type, headers, warnings)


def _warn(call: Call) -> None:
    """Say that a kind is on its way out."""
    custom = call.kind.custom
    warning = custom.deprecation if custom else _DEPRECATED.get(call.kind.resource)
    if warning:
        call.warnings.append(warning)


def _attributes(request: Request, target: Target, verb: str) -> Attributes:
    name = target.name
    is_many = verb in _MANY and request.query
    selector = request.parameter("fieldSelector") if is_many else ""
    if not name and selector and verb != "deletecollection":
        # upstream: requestinfo.go:NewRequestInfo, so that rules about names may be about lists
        name = pinned_name(selector)
    return Attributes(
        request.user,
        verb or request.method.lower(),
        request.path,
        target.group,
        target.version,
        target.resource,
        target.subresource,
        target.namespace,
        name,
        selector,
    )
