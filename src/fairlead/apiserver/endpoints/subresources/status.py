"""status: what a controller has found out about an object; approval: what somebody decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.endpoints.handlers.get import found
from fairlead.apiserver.endpoints.handlers.rest import require_same
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.update import written
from fairlead.apiserver.kind import PERSISTENT_VOLUME
from fairlead.apiserver.registry.strategies.certificates import decided, reported
from fairlead.apiserver.request import Response

# What is made of an object and what was sent in its place, at that time.
Prepare = Callable[[Json, Json, str], Json]


def status(call: Call) -> Response:
    """The object; a write changes its status, and what of its metadata goes along with it."""
    if call.verb == "get":
        return call.shown(found(call))
    change = written(call, call.kind, found)
    old = found(call)
    if call.verb == "patch":
        require_same(call.kind, old, change.view)
    view, part = change.view, call.target.subresource
    prepare = _PREPARED.get((call.kind.resource, part))
    if prepare is not None:
        view = prepare(old, view, format_timestamp(call.now))
    store = call.parts.store
    return call.shown(store.replace_status(call.kind, old, view, write=change.write, part=part))


def _with_transition(old: Json, new: Json, timestamp: str) -> Json:
    """A volume that says since when it is in its phase."""
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
_PREPARED: Final[Mapping[tuple[str, str], Prepare]] = {
    (PERSISTENT_VOLUME.resource, "status"): _with_transition,
    (_REQUESTS, "status"): reported,
    (_REQUESTS, "approval"): decided,
}
