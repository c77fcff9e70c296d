"""The subresources exec, attach, portforward and proxy.

They always fail, because containers are simulated.

upstream: pkg/registry/core/pod/rest/subresources.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.rest import existing_object
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.request import Response

NOTHING_INSIDE: Final = "containers are simulated: there is no process to {}"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_NEEDS_CONTAINER: Final = ("attach", "exec")
_ACTS: Final = {
    "attach": "attach to",
    "exec": "execute a command in",
    "portforward": "forward a port to",
    "proxy": "connect to",
}


def refuse_connection(scope: RequestScope) -> Response:
    """Raise ApiError, because a simulated container accepts no connections.

    The code is 404 if the object does not exist, 400 if the container does not exist or the pod has
    no node, and 501 otherwise.
    """
    scope.negotiate()
    obj, act = existing_object(scope), scope.info.subresource
    if act in _NEEDS_CONTAINER:
        chosen_container(scope, obj)
    if act in _NEEDS_CONTAINER or act == "portforward":
        _require_node(obj)
    raise ApiError("NotImplemented", 501, NOTHING_INSIDE.format(_ACTS[act]), has_details=True)


def _require_node(pod: Json) -> None:
    # upstream: pkg/registry/core/pod/strategy.go:streamLocation, PortForwardLocation
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")


def chosen_container(scope: RequestScope, pod: Json) -> str:
    """Return the container that the request names; by default, the pod's only container.

    Raises ApiError 400 if the container does not exist, or if the request names no container and
    the pod has several containers.
    """
    spec, requested = pod["spec"], scope.request.parameter("container")
    name = pod["metadata"]["name"]
    names = [row["name"] for rows in _LISTS for row in spec.get(rows) or ()]
    if requested:
        if requested not in names:
            raise bad_request(f"container {requested} is not valid for pod {name}")
        return requested
    main = [row["name"] for row in spec["containers"]]
    if len(main) > 1:
        chosen = f"a container name must be specified for pod {name}, choose one of: "
        raise bad_request(f"{chosen}[{' '.join(names)}]")
    return str(main[0])
