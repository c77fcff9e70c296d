"""The subresources exec, attach, portforward and proxy.

Requests to these subresources always fail, because containers are simulated. Webhooks and policies
for the operation CONNECT apply first, as they would to a real connection.

upstream: pkg/registry/core/pod/rest/subresources.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.text.integer import parse_int64
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.handlers.rest import existing_object
from fairlead.apiserver.endpoints.request.options import is_true
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls

NOTHING_INSIDE: Final = "containers are simulated: there is no process to {}"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_NEEDS_CONTAINER: Final = ("attach", "exec")
_STREAMS: Final = ("stdin", "stdout", "stderr", "tty")
_ACTS: Final = {
    "attach": "attach to",
    "exec": "execute a command in",
    "portforward": "forward a port to",
    "proxy": "connect to",
}


def refuse_connection(scope: RequestScope) -> WebhookCalls[Response]:
    """Raise ApiError, because a simulated container accepts no connections.

    If a webhook or policy denies the connection, raise its error. Otherwise, the code of the error
    is:

    - 404 if the object does not exist
    - 400 if `chosen_container` finds no container, or if the pod has no node
    - 501 in all other cases
    """
    scope.negotiate()
    yield from _admit(scope)
    obj, act = existing_object(scope), scope.info.subresource
    if act in _NEEDS_CONTAINER:
        chosen_container(scope, obj)
    # upstream: pkg/registry/core/pod/strategy.go:streamLocation, PortForwardLocation
    needs_node = act in _NEEDS_CONTAINER or act == "portforward"
    if needs_node and not obj["spec"].get("nodeName"):
        raise bad_request(f"pod {obj['metadata']['name']} does not have a host assigned")
    raise ApiError("NotImplemented", 501, NOTHING_INSIDE.format(_ACTS[act]), has_details=True)


def _admit(scope: RequestScope) -> WebhookCalls[None]:
    """Run admission for the connection. Raises ApiError if it is refused."""
    info, part = scope.info, scope.kind.part(scope.info.subresource)
    api_version = scope.kind.api_version
    options = {"kind": part.kind if part else "", "apiVersion": api_version, **_options(scope)}
    write = Write(
        user=scope.request.user,
        warn=scope.warnings.append,
        annotate=scope.request.notes.__setitem__,
        rights=scope.deps.identity.rights if scope.deps.identity else None,
        # Plugins find the name and namespace of the request in the metadata of an object. Webhooks
        # and policies see options without metadata.
        view=lambda _: options,
    )
    named = {**options, "metadata": {"name": info.name, "namespace": info.namespace}}
    admission = scope.deps.store.admission
    yield from admission.admit_connection(scope.kind, named, info.subresource, write)


def _options(scope: RequestScope) -> Json:
    """Return the options of the connection, such as PodExecOptions, from the query and the path.

    Raises ApiError 400 for a port that is not a number.
    """
    # upstream: apiserver/pkg/endpoints/handlers/rest.go:getRequestOptions
    request, act = scope.request, scope.info.subresource
    if act == "portforward":
        ports = [_port(value) for key, value in request.query if key == "ports"]
        return {"ports": ports} if ports else {}
    if act == "proxy":
        path = f"/{scope.info.rest}" if scope.info.rest or request.path.endswith("/") else ""
        return {"path": path} if path else {}
    options: Json = {name: True for name in _STREAMS if is_true(request, name)}
    if container := request.parameter("container"):
        options["container"] = container
    if act == "exec":
        command = [value for key, value in request.query if key == "command"]
        options["command"] = command or None
    return options


def _port(text: str) -> int:
    number = parse_int64(text)
    if number is None:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return number


def chosen_container(scope: RequestScope, pod: Json) -> str:
    """Return the container that the request names; by default, the pod's only container.

    Raises ApiError 400 if the container does not exist. Also raises ApiError 400 if the request
    names no container and the pod has several.
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
