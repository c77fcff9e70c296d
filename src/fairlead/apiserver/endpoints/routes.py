"""Which act answers a call: routes of web services for what is built in, verbs alone for the rest.

A route is for one method of one path: where no path fits the answer is 404, where no method does
405. Custom resources have no routes. What they are asked for follows from the verb, so that the
head of a list may be had, and an object be posted to the path of another one.

upstream: apiserver/pkg/endpoints/installer.go,
apiextensions-apiserver/pkg/apiserver/customresource_handler.go:ServeHTTP
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.handlers import computed, delete, get, rest
from fairlead.apiserver.endpoints.request.request_info import Target
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.table import PARTS
from fairlead.apiserver.error import bad_request, not_found
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import ACCEPTED, require_produced
from fairlead.apiserver.negotiation.request_error import (
    no_method,
    no_resource,
    not_any_more,
    not_supported,
)
from fairlead.apiserver.request import Response

Answer = Response | Watch
Act = Callable[[Call], Answer]

_OBSERVED: Final[Mapping[str, Act]] = {
    "get": computed.get,
    "list": computed.list_objects,
}
_VERBS: Final[Mapping[str, Act]] = {
    "get": get.get,
    "list": get.list_objects,
    "watch": get.watch,
    "create": rest.create,
    "update": rest.update,
    "patch": rest.patch,
    "delete": delete.delete,
    "deletecollection": delete.delete_collection,
}
# Parts that answer with whatever there is.
_STREAMED: Final = ("attach", "exec", "portforward", "proxy")
# upstream: pkg/registry/core/pod/rest/log.go:ProducesMIMETypes
_LOG: Final = ("text/plain", *ACCEPTED)
_EVERYWHERE: Final = ("list", "watch")


def leads_nowhere(kind: Kind, target: Target, verb: str) -> bool:
    """Whether a path of a custom resource is of the other scope than its objects."""
    if not kind.is_custom or kind.namespaced == target.is_namespaced:
        return False
    return not kind.namespaced or verb not in _EVERYWHERE


def act_of(call: Call) -> Act:
    """What carries out the call. Raises ApiError 400, 404, 405."""
    return _verb_act(call) if call.kind.is_custom else _routed_act(call)


def _verb_act(call: Call) -> Act:
    kind, target = call.kind, call.target
    if target.subresource:
        part = kind.part(target.subresource)
        if part is None:
            raise not_found(kind, "", target.name)
        if call.verb not in part.verbs:
            raise not_supported(kind, call.verb)
        return PARTS[part.name]
    act = _VERBS.get(call.verb)
    if act is None:
        raise not_supported(kind, call.verb)
    if call.verb == "create" and call.verb not in kind.verbs:
        raise not_any_more(kind, call.verb)
    if call.verb in ("update", "patch") and not target.name:
        raise bad_request("name must be provided")
    return act


def _routed_act(call: Call) -> Act:
    target, kind = call.target, call.kind
    if not _has_path(kind, target):
        raise no_resource()
    if call.request.method == "HEAD" or (target.is_watch and call.request.method != "GET"):
        raise no_method()
    if target.subresource:
        act = _part_act(call)
        if target.subresource not in _STREAMED:
            produced = _LOG if target.subresource == "log" else ACCEPTED
            require_produced(call.request.headers.get("accept", ""), produced)
        return act
    if call.verb not in kind.verbs or _is_for_another_path(call):
        raise no_method()
    if call.verb == "create" and kind.plural in PARTS:
        require_produced(call.request.headers.get("accept", ""), ACCEPTED)
        return PARTS[kind.plural]  # what is posted, answered and forgotten
    acts = _OBSERVED if kind in call.parts.observed else _VERBS
    return acts[call.verb]


def _has_path(kind: Kind, target: Target) -> bool:
    if target.is_namespaced != kind.namespaced and (target.is_namespaced or target.name):
        return False
    if target.is_watch:
        return "watch" in kind.verbs and not target.subresource
    if not target.subresource:
        return True
    part = kind.part(target.subresource)
    return part is not None and part.name in PARTS and (part.name == "proxy" or not target.rest)


def _is_for_another_path(call: Call) -> bool:
    kind, target = call.kind, call.target
    if kind.namespaced and not target.namespace and call.verb not in _EVERYWHERE:
        return True
    if call.verb == "create":
        return bool(target.name)
    return call.verb in ("update", "patch") and not target.name


def _part_act(call: Call) -> Act:
    part = call.kind.part(call.target.subresource)
    if part is None:
        raise no_resource()
    if call.verb not in part.verbs:
        raise no_method()
    return PARTS[part.name]
