"""status: what a controller has found out about an object."""

from __future__ import annotations

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import PERSISTENT_VOLUME
from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.part.view import written
from fairlead.apiserver.serving.reading import found
from fairlead.apiserver.serving.writing import require_same
from fairlead.apiserver.storage import Json


def status(call: Call) -> Response:
    """The object; a write changes its status, and what of its metadata goes along with it."""
    if call.verb == "get":
        return call.shown(found(call))
    change = written(call, call.kind, found)
    old = found(call)
    if call.verb == "patch":
        require_same(call.kind, old, change.view)
    view = change.view
    if call.kind is PERSISTENT_VOLUME:
        view = _with_transition(old, view, call.now)
    store = call.parts.store
    return call.shown(store.replace_status(call.kind, old, view, write=change.write))


def _with_transition(old: Json, new: Json, now: int) -> Json:
    """A volume that says since when it is in its phase."""
    # upstream: persistentvolume/strategy.go:persistentvolumeStatusStrategy
    before, after = old.get("status") or {}, new.get("status") or {}
    key = "lastPhaseTransitionTime"
    if before.get("phase") == after.get("phase") or after.get(key) not in (None, before.get(key)):
        return new
    return {**new, "status": {**after, key: format_timestamp(now)}}
