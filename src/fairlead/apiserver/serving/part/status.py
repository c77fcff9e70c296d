"""status: what a controller has found out about an object."""

from __future__ import annotations

from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.part.view import written
from fairlead.apiserver.serving.reading import found
from fairlead.apiserver.serving.writing import require_same


def status(call: Call) -> Response:
    """The object; a write changes its status, and what of its metadata goes along with it."""
    if call.verb == "get":
        return call.shown(found(call))
    change = written(call, call.kind, found)
    old = found(call)
    if call.verb == "patch":
        require_same(call.kind, old, change.view)
    store = call.parts.store
    return call.shown(store.replace_status(call.kind, old, change.view, write=change.write))
