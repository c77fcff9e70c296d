"""log, exec, attach and portforward: what is inside a container that only says that it runs.

upstream: pkg/registry/core/pod/rest/{log,subresources}.go, pkg/registry/core/pod/strategy.go:
LogLocation
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.reading import found
from fairlead.apiserver.storage import Json

NOTHING_INSIDE: Final = (
    "containers are simulated here: they say that they run, and there is nothing inside to {}"
)
_ACTS: Final = {
    "attach": "attach to",
    "exec": "execute a command in",
    "portforward": "forward a port to",
    "proxy": "connect to",
}


def log(call: Call) -> Response:
    """The life of a simulated container, a line for each thing that is known of it."""
    pod = found(call)
    name = _container(call, pod)
    lines = "".join(f"{line}\n" for line in _life(pod, name))
    return Response(200, (lines.encode(),), "text/plain")


def inside(call: Call) -> Response:
    """A refusal that says why. Raises ApiError: 404 no such object, 501 otherwise."""
    found(call)
    why = NOTHING_INSIDE.format(_ACTS[call.target.subresource])
    raise ApiError("NotImplemented", 501, why, has_details=True)


def _container(call: Call, pod: Json) -> str:
    """The name of the container that is asked about. Raises ApiError 400."""
    spec, asked = pod["spec"], call.request.parameter("container")
    name = pod["metadata"]["name"]
    fields = ("containers", "initContainers", "ephemeralContainers")
    names = [row["name"] for field in fields for row in spec.get(field, ())]
    if asked:
        if asked not in names:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    main = [row["name"] for row in spec["containers"]]
    if len(names) > 1:
        chosen = f"a container name must be specified for pod {name}, choose one of: "
        raise bad_request(f"{chosen}[{' '.join(main)}]")
    return str(main[0])


def _life(pod: Json, name: str) -> list[str]:
    status = pod.get("status", {})
    fields = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    rows = [row for field in fields for row in status.get(field, ()) if row["name"] == name]
    if not rows:
        return []
    state = rows[0].get("state", {})
    running, ended = state.get("running", {}), state.get("terminated", {})
    node = pod["spec"].get("nodeName", "")
    lines = []
    started = running.get("startedAt") or ended.get("startedAt")
    if started:
        lines.append(f"{started} {name} started on {node} (simulated: nothing is executed)")
    if ended:
        code, reason = ended.get("exitCode", 0), ended.get("reason", "")
        lines.append(f"{ended.get('finishedAt')} {name} ended with exit code {code} ({reason})")
    return lines
