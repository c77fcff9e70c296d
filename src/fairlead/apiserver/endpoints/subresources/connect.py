"""exec, attach and portforward: what is inside a container that only says that it runs.

upstream: pkg/registry/core/pod/rest/subresources.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.get import found
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.request import Response

NOTHING_INSIDE: Final = (
    "containers are simulated here: they say that they run, and there is nothing inside to {}"
)
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_OF_A_CONTAINER: Final = ("attach", "exec")
_ACTS: Final = {
    "attach": "attach to",
    "exec": "execute a command in",
    "portforward": "forward a port to",
    "proxy": "connect to",
}


def inside(call: Call) -> Response:
    """A refusal that says why.

    Raises ApiError: 404 no such object, 400 no such container or no node yet, 501 otherwise.
    """
    obj, act = found(call), call.target.subresource
    if act in _OF_A_CONTAINER:
        chosen_container(call, obj)
    if act in _OF_A_CONTAINER or act == "portforward":
        _require_node(obj)
    raise ApiError("NotImplemented", 501, NOTHING_INSIDE.format(_ACTS[act]), has_details=True)


def _require_node(pod: Json) -> None:
    # upstream: pkg/registry/core/pod/strategy.go:streamLocation, PortForwardLocation
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")


def chosen_container(call: Call, pod: Json) -> str:
    """The name of the container that is asked about. Raises ApiError 400."""
    spec, asked = pod["spec"], call.request.parameter("container")
    name = pod["metadata"]["name"]
    names = [row["name"] for rows in _LISTS for row in spec.get(rows) or ()]
    if asked:
        if asked not in names:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    main = [row["name"] for row in spec["containers"]]
    if len(main) > 1:
        chosen = f"a container name must be specified for pod {name}, choose one of: "
        raise bad_request(f"{chosen}[{' '.join(names)}]")
    return str(main[0])
