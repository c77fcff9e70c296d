"""Objects that are not stored but found out when somebody asks: get and list of them.

Nothing is stored, so nothing has a version, and nothing can be watched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.collection.page import Listed
from fairlead.apiserver.endpoints.collection.selector import selection
from fairlead.apiserver.endpoints.request.options import list_options
from fairlead.apiserver.endpoints.request_scope import Call, Observed
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import Response

NO_VERSION: Final = -1
NOTHING_OBSERVED: Final[Mapping[Kind, Observed]] = {}


def get(call: Call) -> Response:
    """One object. Raises ApiError 404."""
    call.form()
    namespace, name = call.target.namespace, call.target.name
    for obj in _objects(call):
        if obj["metadata"]["name"] == name:
            return call.shown(obj)
    raise call.parts.observed[call.kind].absent(namespace, name)


def list_objects(call: Call) -> Response:
    """All objects that are asked for."""
    form = call.form(is_list=True)
    options = list_options(call.request, is_watch=False)
    wanted = selection(call.kind, options.label_selector, options.field_selector)
    found = Listed([obj for obj in _objects(call) if wanted.matches(obj)], NO_VERSION)
    include = call.request.parameter("includeObject")
    body = call.parts.renderer.list(form, call.kind, found, call.now, include)
    return Response(200, body, form.media_type, warnings=tuple(call.warnings))


def _objects(call: Call) -> list[Json]:
    return call.parts.observed[call.kind].objects(call.target.namespace, call.now)
