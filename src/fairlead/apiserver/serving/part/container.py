"""exec, attach and portforward: what is inside a container that only says that it runs.

upstream: pkg/registry/core/pod/rest/subresources.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.reading import found

NOTHING_INSIDE: Final = (
    "containers are simulated here: they say that they run, and there is nothing inside to {}"
)
_ACTS: Final = {
    "attach": "attach to",
    "exec": "execute a command in",
    "portforward": "forward a port to",
    "proxy": "connect to",
}


def inside(call: Call) -> Response:
    """A refusal that says why. Raises ApiError: 404 no such object, 501 otherwise."""
    found(call)
    why = NOTHING_INSIDE.format(_ACTS[call.target.subresource])
    raise ApiError("NotImplemented", 501, why, has_details=True)
