"""Finds the handler of a request.

Built-in kinds have one route for each method of each path. An unknown path leads to 404, and an
unknown method to 405.

Custom resources have no routes. Their handler depends only on the subresource and the RBAC verb.
For example, HEAD on a collection is allowed, because its verb is `list`. POST on the path of an
object is allowed, because its verb is `create`.

upstream: apiserver/pkg/endpoints/installer.go,
apiextensions-apiserver/pkg/apiserver/customresource_handler.go:ServeHTTP
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.handlers import computed
from fairlead.apiserver.endpoints.handlers.create import create
from fairlead.apiserver.endpoints.handlers.delete import delete, delete_collection
from fairlead.apiserver.endpoints.handlers.get import get, list_objects
from fairlead.apiserver.endpoints.handlers.patch import patch
from fairlead.apiserver.endpoints.handlers.update import update
from fairlead.apiserver.endpoints.handlers.watch import watch
from fairlead.apiserver.endpoints.request.request_info import RequestInfo
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.access_review import (
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from fairlead.apiserver.endpoints.subresources.binding import binding
from fairlead.apiserver.endpoints.subresources.connect import refuse_connection
from fairlead.apiserver.endpoints.subresources.eviction import eviction
from fairlead.apiserver.endpoints.subresources.log import log
from fairlead.apiserver.endpoints.subresources.pod_spec import ephemeral_containers, resize
from fairlead.apiserver.endpoints.subresources.scale import scale
from fairlead.apiserver.endpoints.subresources.status import finalize, status
from fairlead.apiserver.endpoints.subresources.token_request import token
from fairlead.apiserver.error import bad_request, not_found
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import ACCEPTED, require_produced
from fairlead.apiserver.negotiation.request_error import (
    no_method,
    no_resource,
    not_allowed_while_terminating,
    not_supported,
)
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls

# --- subresources --------------------------------------------------------------------------------

SubresourceHandler = Callable[[RequestScope], Response | Watch | WebhookCalls[Response]]

# The handlers of subresources, and of kinds that can only be posted (by their plural).
SUBRESOURCE_HANDLERS: Final[Mapping[str, SubresourceHandler]] = {
    "approval": status,
    "attach": refuse_connection,
    "binding": binding,
    "bindings": binding,
    "exec": refuse_connection,
    "ephemeralcontainers": ephemeral_containers,
    "eviction": eviction,
    "finalize": finalize,
    "localsubjectaccessreviews": subject_access_review,
    "log": log,
    "portforward": refuse_connection,
    "proxy": refuse_connection,
    "resize": resize,
    "scale": scale,
    "selfsubjectaccessreviews": self_subject_access_review,
    "selfsubjectreviews": self_subject_review,
    "selfsubjectrulesreviews": self_subject_rules_review,
    "status": status,
    "subjectaccessreviews": subject_access_review,
    "token": token,
    "tokenreviews": token_review,
}


Answer = Response | Watch
# A handler that writes is a generator, because webhooks may suspend it. Handlers raise ApiError.
Handler = Callable[[RequestScope], Answer | WebhookCalls[Response]]

_HANDLERS: Final[Mapping[str, Handler]] = {
    "get": get,
    "list": list_objects,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
_COMPUTED_HANDLERS: Final[Mapping[str, Handler]] = {
    "get": computed.get,
    "list": computed.list_objects,
}
# These subresources ignore the Accept header.
_CONNECT: Final = ("attach", "exec", "portforward", "proxy")
# upstream: pkg/registry/core/pod/rest/log.go:ProducesMIMETypes
_LOG_MEDIA_TYPES: Final = ("text/plain", *ACCEPTED)
# Verbs that also work across all namespaces.
_ALL_NAMESPACES: Final = ("list", "watch")


def has_wrong_scope(kind: Kind, info: RequestInfo, verb: str) -> bool:
    """Return whether the path of a custom resource is wrong for the scope of its kind.

    Lists and watches of a namespaced kind may omit the namespace. All other verbs need it.
    """
    if not kind.is_custom or kind.namespaced == info.is_namespaced:
        return False
    return not kind.namespaced or verb not in _ALL_NAMESPACES


def handler_for(scope: RequestScope) -> Handler:
    """Return the handler of a request. Raises ApiError 400, 404, 405, 406."""
    return _custom_handler(scope) if scope.kind.is_custom else _routed_handler(scope)


def _custom_handler(scope: RequestScope) -> Handler:
    kind, info = scope.kind, scope.info
    if info.subresource:
        subresource = kind.part(info.subresource)
        if subresource is None:
            raise not_found(kind, "", info.name)
        if scope.verb not in subresource.verbs:
            raise not_supported(kind, scope.verb)
        return SUBRESOURCE_HANDLERS[subresource.name]
    handler = _HANDLERS.get(scope.verb)
    if handler is None:
        raise not_supported(kind, scope.verb)
    if scope.verb == "create" and scope.verb not in kind.verbs:
        raise not_allowed_while_terminating(kind, scope.verb)
    if scope.verb in ("update", "patch") and not info.name:
        raise bad_request("name must be provided")
    return handler


def _routed_handler(scope: RequestScope) -> Handler:
    info, kind = scope.info, scope.kind
    if not _has_path(kind, info):
        raise no_resource()
    if scope.request.method == "HEAD" or (info.is_watch and scope.request.method != "GET"):
        raise no_method()
    accept = scope.request.headers.get("accept", "")
    if info.subresource:
        handler = _subresource_handler(scope)
        if info.subresource not in _CONNECT:
            require_produced(accept, _LOG_MEDIA_TYPES if info.subresource == "log" else ACCEPTED)
        return handler
    if scope.verb not in kind.verbs or not _has_method(scope):
        raise no_method()
    if scope.verb == "create" and kind.plural in SUBRESOURCE_HANDLERS:
        require_produced(accept, ACCEPTED)
        return SUBRESOURCE_HANDLERS[kind.plural]  # reviews and bindings, which are not stored
    handlers = _COMPUTED_HANDLERS if kind in scope.deps.computed else _HANDLERS
    return handlers[scope.verb]


def _has_path(kind: Kind, info: RequestInfo) -> bool:
    """Return whether the path exists for `kind`, regardless of the request's method."""
    if info.is_namespaced != kind.namespaced and (info.is_namespaced or info.name):
        return False
    if info.is_watch:
        return "watch" in kind.verbs and not info.subresource
    if not info.subresource:
        return True
    subresource = kind.part(info.subresource)
    if subresource is None or subresource.name not in SUBRESOURCE_HANDLERS:
        return False
    return subresource.name == "proxy" or not info.rest


def _has_method(scope: RequestScope) -> bool:
    """Return whether the path allows the verb; for example, POST is allowed on a collection."""
    kind, info = scope.kind, scope.info
    if kind.namespaced and not info.namespace and scope.verb not in _ALL_NAMESPACES:
        return False
    if scope.verb == "create":
        return not info.name
    return bool(info.name) or scope.verb not in ("update", "patch")


def _subresource_handler(scope: RequestScope) -> Handler:
    subresource = scope.kind.part(scope.info.subresource)
    if subresource is None:
        raise no_resource()
    if scope.verb not in subresource.verbs:
        raise no_method()
    return SUBRESOURCE_HANDLERS[subresource.name]
