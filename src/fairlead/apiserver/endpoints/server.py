"""ApiServer: takes a request and the time; returns a response or a watch.

First, `http.app` authenticates the user. Before `http.app` reads the body of a request, it
authorizes the request by its head. Then `handle` does the following, for every request:

    1. parse the path               a path without a resource: discovery, health, or 404
    2. impersonate and authorize    403, before the response can show whether the object exists
    3. find the kind and handler    404, 405, 406
    4. run the handler              negotiate, decode, store, encode (see `handlers`)

Every refusal is an ApiError, and is sent as a Status.

upstream: apiserver/pkg/server/config.go:DefaultBuildHandlerChain, endpoints/installer.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.auth.authorizer import (
    AuthorizationAttributes,
    Authorize,
    Identity,
    allow_all,
)
from fairlead.apiserver.auth.impersonation import impersonated
from fairlead.apiserver.endpoints.collection.watch import Watch, Watches
from fairlead.apiserver.endpoints.component_status import ONE_PROCESS, Components
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.endpoints.post_start_hook.definition_controller import DefinitionController
from fairlead.apiserver.endpoints.post_start_hook.ip_address_reconciler import IpAddressReconciler
from fairlead.apiserver.endpoints.post_start_hook.reconcile_delay import NO_DELAY, ReconcileDelay
from fairlead.apiserver.endpoints.post_start_hook.status_reconcilers import StatusReconcilers
from fairlead.apiserver.endpoints.request.body import (
    DecodeProtobuf,
    media_type_of,
    require_few_values,
    values_max,
)
from fairlead.apiserver.endpoints.request.options import is_true, require_timeout
from fairlead.apiserver.endpoints.request.request_info import (
    RequestInfo,
    ends_without_resource,
    request_info_of,
    verb_of,
    without_namespace,
)
from fairlead.apiserver.endpoints.request.selector import pinned_name
from fairlead.apiserver.endpoints.request_metrics import BY_METHOD, OTHER, RequestCounts, labels_of
from fairlead.apiserver.endpoints.request_scope import ComputedObjects, RequestScope, ServerDeps
from fairlead.apiserver.endpoints.response.encoded_objects import EncodedObjects
from fairlead.apiserver.endpoints.response.renderer import Renderer, TableOf
from fairlead.apiserver.endpoints.routes import Answer, Handler, handler_for, has_wrong_scope
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import COMPONENT_STATUS, CUSTOM_RESOURCE_DEFINITION, Kind
from fairlead.apiserver.negotiation.media_type import error_media_type
from fairlead.apiserver.negotiation.request_error import no_resource
from fairlead.apiserver.negotiation.serializer import text_of
from fairlead.apiserver.negotiation.status import failure
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.strategies.table import strategy_of
from fairlead.apiserver.request import Headers, Request, Response
from fairlead.apiserver.suspension import (
    ATTEMPTS_MAX,
    LARGE_BYTES,
    PAUSE,
    SupersededError,
    SuspendableMethod,
    WebhookCalls,
)

# Responds to requests for some paths without a resource (discovery, health); None for other paths.
Document = Callable[[Request, int], Response | None]

NOT_FOUND: Final = Response(
    404,
    (b"404 page not found\n",),
    "text/plain; charset=utf-8",
    (("X-Content-Type-Options", "nosniff"),),
)
_COLLECTION_VERBS: Final = ("list", "watch", "deletecollection")
_OWN_NAME: Final = "kube-apiserver"
_WATCH_STATUS: Final = 200
_COMPONENTS: Final[Mapping[Kind, ComputedObjects]] = {COMPONENT_STATUS: Components(ONE_PROCESS)}


class PostStartHook(Protocol):
    """A controller that runs inside the server (see `post_start_hook`)."""

    @property
    def waits(self) -> bool:
        """True if this hook has recorded changes that `reconcile` has not handled yet."""
        ...

    def reconcile(self, now: int) -> None:
        """Handle the changes in the store that this hook has recorded.

        `now` is in ns since 1970. A change whose delay ends after `now` stays recorded.
        """
        ...


class ApiServer:
    """The Kubernetes API for the objects in `store`.

    Requests are handled one at a time, with two exceptions. Other requests run while a request
    waits for a webhook, and while a request with a large body pauses (see `handle`).
    """

    def __init__(  # noqa: PLR0913 - the dependencies of a server
        self,
        store: Store,
        *,
        clock: Callable[[], int],
        registry: ServedKinds | None = None,
        authorize: Authorize = allow_all,
        documents: Sequence[Document] = (),
        table_of: TableOf | None = None,
        protobuf: DecodeProtobuf | None = None,
        computed: Mapping[Kind, ComputedObjects] = _COMPONENTS,
        identity: Identity | None = None,
        delays: ReconcileDelay = NO_DELAY,
    ) -> None:
        """Prepare to serve the objects in `store`.

        `clock` returns the time in ns since 1970; watches of Tables use it to compute ages.
        `registry` contains the served kinds; None means the built-in kinds. `authorize` allows or
        refuses requests. `documents` respond to requests whose path has no resource. `table_of`
        renders Tables; if it is None, Tables are not supported. `protobuf` decodes protobuf bodies;
        if it is None, they are rejected. `identity` issues and checks tokens, and decides reviews.
        `computed` serves kinds that are not stored. `delays` contains the delays of the post-start
        hooks.
        """
        self.counts = RequestCounts()
        self._authorize = authorize
        self._storage = store.storage
        self._documents = tuple(documents)
        registry = registry or ServedKinds()
        watches = Watches(store.storage)
        definitions = DefinitionController(
            store, registry, _with_tracked_status, delays, watches.close
        )
        self._post_start_hooks: tuple[PostStartHook, ...] = (
            definitions,
            StatusReconcilers(store, delays),
            IpAddressReconciler(store),
        )
        definitions.reconcile(clock())
        self._deps = ServerDeps(
            store=store,
            registry=registry,
            renderer=Renderer(EncodedObjects(store.storage), table_of),
            watches=watches,
            protobuf=protobuf,
            computed=computed,
            clock=clock,
            identity=identity,
        )

    @property
    def watches(self) -> Watches:
        """The open watches."""
        return self._deps.watches

    @property
    def registry(self) -> ServedKinds:
        """The served kinds."""
        return self._deps.registry

    @SuspendableMethod
    def handle(self, request: Request, now: int) -> WebhookCalls[Answer]:
        """Return the response or watch for one request that arrived at `now` (ns since 1970).

        `handle.steps(...)` returns a generator, which yields each webhook call and receives the
        answer. If the body is larger than LARGE_BYTES, the generator also yields PAUSE, so that
        other requests can run. `handle(...)` runs the generator to its end, and raises RuntimeError
        if a webhook must be called.
        """
        self._storage.look_for_room()
        self.run_post_start_hooks(now)
        labels = BY_METHOD.get(request.method, OTHER)
        warnings: list[str] = []
        try:
            found = self._find_scope(request, now)
            if isinstance(found, RequestScope):
                warnings = found.warnings
                handler = handler_for(found)
                labels = labels_of(found)
                answer = handler(found)
                if not isinstance(answer, Response | Watch):
                    answer = yield from _written(handler, found, answer)
            else:
                answer = found
            if len(request.body) > LARGE_BYTES:
                yield PAUSE
        except ApiError as refusal:
            answer = refused(refusal, request, tuple(warnings))
        finally:
            self.run_post_start_hooks(now)
        status = answer.status if isinstance(answer, Response) else _WATCH_STATUS
        self.counts.add(labels, status)
        return answer

    def run_post_start_hooks(self, now: int) -> None:
        """Let each post-start hook handle its recorded changes, unless the storage is full."""
        for hook in self._post_start_hooks:
            if hook.waits and not self._storage.is_full:
                with suppress(ApiError):
                    hook.reconcile(now)

    def authorize(self, request: Request) -> None:
        """Authorize a request by its head, before its body is read. Raises ApiError 400, 403."""
        require_timeout(request)
        info = request_info_of(request.path)
        if info is not None:
            self._authorized(request, _attributes(request, info, _verb(request, info)))
        elif not ends_without_resource(request.path):
            self._authorized_path(request)

    def _authorized_path(self, request: Request) -> Request:
        """Authorize a request whose path names no resource.

        Return the request. If the request impersonates a user, the returned request has this user.
        Raises ApiError 403.
        """
        attributes = AuthorizationAttributes(request.user, request.method.lower(), request.path)
        return self._authorized(request, attributes)

    def _authorized(self, request: Request, attributes: AuthorizationAttributes) -> Request:
        """Authorize a request, and return it.

        If the request impersonates a user, the returned request has this user. Raises ApiError 403.
        """
        user = impersonated(attributes, request.headers, self._authorize)
        if user is not request.user:
            request, attributes = replace(request, user=user), replace(attributes, user=user)
        self._authorize(attributes)
        return request

    def _find_scope(self, request: Request, now: int) -> RequestScope | Response:
        """Authorize a request and return its RequestScope.

        If the path names no served resource, return the response to the request instead, such as a
        discovery document or error 404. Raises ApiError.
        """
        require_timeout(request)
        # 1. parse the path
        info = request_info_of(request.path)
        if ends_without_resource(request.path):
            return _no_request_info(request.path)
        if info is None:
            return self._document(request, now)
        # 2. impersonate and authorize
        verb = _verb(request, info)
        request = self._authorized(request, _attributes(request, info, verb))
        # 3. find the kind
        kind = self._deps.registry.find(info.group, info.version, info.resource)
        if kind is None:
            return self._unserved(info)
        # 4. refuse a body that would take too long
        media_type = media_type_of(request.headers.get("content-type", ""))
        if request.body and not _is_bounded_later(media_type):
            require_few_values(request.body, values_max(kind.kind, media_type))
        info = without_namespace(info)
        if has_wrong_scope(kind, info, verb):
            return NOT_FOUND
        scope = RequestScope(self._deps, request, info, kind, verb, now)
        _warn_of_deprecation(scope)
        return scope

    def _document(self, request: Request, now: int) -> Response:
        """Return the response to a request whose path names no resource."""
        self._authorized_path(request)
        if request.path.startswith(("//", "*")):
            return NOT_FOUND
        for document in self._documents:
            answer = document(request, now)
            if answer is not None:
                return answer
        if request.path.startswith("/api/"):
            raise no_resource()
        return NOT_FOUND

    def _unserved(self, info: RequestInfo) -> Response:
        if self._deps.registry.is_built_in(info.group):
            raise no_resource()
        return NOT_FOUND


def _written(
    handler: Handler, scope: RequestScope, attempt: WebhookCalls[Response]
) -> WebhookCalls[Answer]:
    """Return the response to a write. A write that raises SupersededError is repeated.

    Raises ApiError.
    """
    warnings = tuple(scope.warnings)
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            return (yield from attempt)
        except SupersededError:
            scope.warnings[:] = warnings
            again = handler(scope)
            assert not isinstance(again, Response | Watch)
            attempt = again
    return (yield from attempt)


def refused(refusal: ApiError, request: Request, warnings: tuple[str, ...] = ()) -> Response:
    """Return the response with the Status of a refusal, in a media type that the client accepts.

    `warnings` are sent as Warning headers.
    """
    media_type = error_media_type(request.headers.get("accept", ""))
    headers: Headers = ()
    if refusal.retry_after_s:
        headers = (("Retry-After", str(refusal.retry_after_s)),)
    body = (text_of(media_type, failure(refusal)),)
    return Response(refusal.code, body, media_type, headers, warnings)


def _no_request_info(path: str) -> Response:
    """Return the error 500 for a path that ends in `watch` or `proxy` without a resource."""
    # upstream: endpoints/filters/requestinfo.go, endpoints/handlers/responsewriters/errors.go
    why = f"unable to determine kind and namespace from url, {path}"
    text = f"Internal Server Error: {quoted(path)}: failed to create RequestInfo: {why}\n"
    for mark, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(mark, escaped)
    return Response(500, (text.encode(),), NOT_FOUND.content_type, NOT_FOUND.headers)


def _with_tracked_status(old: Json, new: Json, now: int) -> Json:
    """Return the CustomResourceDefinition `new`, whose status this server writes.

    The managedFields of the result include this write.
    """
    return track(CUSTOM_RESOURCE_DEFINITION, _OWN_NAME, "Update", "status", now)(old, new)


def _warn_of_deprecation(scope: RequestScope) -> None:
    custom = scope.kind.custom
    warning = custom.deprecation if custom else strategy_of(scope.kind).deprecation
    if warning:
        scope.warnings.append(warning)


def _is_bounded_later(media_type: str) -> bool:
    """Return whether `media_type` is YAML or protobuf.

    The values in a YAML or protobuf body are counted while the body is parsed, not before.
    """
    return "yaml" in media_type or "protobuf" in media_type


def _verb(request: Request, info: RequestInfo) -> str:
    return verb_of(request.method, info, is_watch=is_true(request, "watch"))


def _attributes(request: Request, info: RequestInfo, verb: str) -> AuthorizationAttributes:
    name = info.name
    is_collection = verb in _COLLECTION_VERBS and request.query
    selector = request.parameter("fieldSelector") if is_collection else ""
    if not name and selector and verb != "deletecollection":
        # upstream: requestinfo.go:NewRequestInfo. RBAC rules with a name in resourceNames therefore
        # allow a list or watch of this name.
        name = pinned_name(selector)
    return AuthorizationAttributes(
        request.user,
        verb or request.method.lower(),
        request.path,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        name,
        selector,
    )
