"""status, and approval of a CertificateSigningRequest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.endpoints.handlers.rest import existing_object, require_same_uid
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import requested_update, whole_object
from fairlead.apiserver.kind import PERSISTENT_VOLUME
from fairlead.apiserver.registry.strategies.certificates import decided, reported
from fairlead.apiserver.request import Response

# (old, new, timestamp) -> new, adjusted to the kind
PrepareStatus = Callable[[Json, Json, str], Json]


def status(scope: RequestScope) -> Response:
    """Returns the object; PUT and PATCH change its status and some of its metadata."""
    if scope.verb == "get":
        scope.negotiate()
        return scope.respond(existing_object(scope))
    change = requested_update(scope, scope.kind, whole_object)
    old, view, part = change.old, change.view, scope.info.subresource
    if scope.verb == "patch":
        require_same_uid(scope.kind, old, view)
    prepare = _PREPARED.get((scope.kind.resource, part))
    if prepare is not None:
        view = prepare(old, view, format_timestamp(scope.now))
    store = scope.deps.store
    return scope.respond(store.replace_status(scope.kind, old, view, write=change.write, part=part))


def _with_transition(old: Json, new: Json, timestamp: str) -> Json:
    """Sets lastPhaseTransitionTime of a PersistentVolume when its phase changes."""
    # upstream: persistentvolume/strategy.go:persistentvolumeStatusStrategy
    before, after = old.get("status") or {}, new.get("status") or {}
    key = "lastPhaseTransitionTime"
    had, has = before.get(key), after.get(key)
    if before.get("phase") == after.get("phase"):
        since = had if has is None else has
    else:
        since = timestamp if has in (None, had) else has
    return new if since == has else {**new, "status": {**after, key: since}}


_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"
_PREPARED: Final[Mapping[tuple[str, str], PrepareStatus]] = {
    (PERSISTENT_VOLUME.resource, "status"): _with_transition,
    (_REQUESTS, "status"): reported,
    (_REQUESTS, "approval"): decided,
}
