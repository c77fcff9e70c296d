"""componentstatuses: how the parts of the control plane are, as they were found when asked.

Nothing is stored, so nothing has a version.

upstream: pkg/registry/core/componentstatus/rest.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.error import not_found
from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.listing import Listed
from fairlead.apiserver.serving.negotiation import negotiated
from fairlead.apiserver.serving.options import list_options
from fairlead.apiserver.serving.selection import selection

Json = dict[str, Any]

RESOURCE: Final = "componentstatuses"
NO_VERSION: Final = -1


def component(name: str, message: str = "ok", *, is_healthy: bool = True) -> Json:
    """A part of the control plane."""
    condition = {"type": "Healthy", "status": str(is_healthy), "message": message}
    return {"metadata": {"name": name}, "conditions": [condition]}


# All parts in the server's own process: what answers at all is well.
ONE_PROCESS: Final = (component("controller-manager"), component("scheduler"), component("etcd-0"))


def get(call: Call) -> Response:
    """One part. Raises ApiError 404."""
    for part in call.parts.components:
        if part["metadata"]["name"] == call.target.name:
            return call.shown(part)
    raise not_found(call.kind, "", call.target.name)


def list_parts(call: Call) -> Response:
    """All parts."""
    form = negotiated(call.request.headers.get("accept", ""), is_list=True)
    options = list_options(call.request, is_watch=False)
    wanted = selection(call.kind, options.label_selector, options.field_selector)
    found = Listed([part for part in call.parts.components if wanted.matches(part)], NO_VERSION)
    include = call.request.parameter("includeObject")
    body = call.parts.renderer.list(form, call.kind, found, call.now, include)
    return Response(200, body, form.media_type, warnings=tuple(call.warnings))
