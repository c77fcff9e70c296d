"""Actions: sends requests to the cluster's API server when a dashboard button is pressed.

The requests are sent as the cluster's administrator. The API server authorizes and audits them like
the requests of any other client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from fairlead.api.codec import decode_stored
from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_daemon_pod, is_static, is_terminal, is_terminating
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request, Response
from fairlead.worlds.local.server import clock_control

_PATCHES: Final[dict[str, Json]] = {
    "cordon": {"spec": {"unschedulable": True}},
    "uncordon": {"spec": {"unschedulable": None}},
    "stop": {"metadata": {"annotations": {KUBELET: "stopped"}}},
    "start": {"metadata": {"annotations": {KUBELET: None}}},
    "drain": {"spec": {"unschedulable": True}},
}
_DONE: Final = {
    "cordon": "is cordoned",
    "uncordon": "is no longer cordoned",
    "stop": "has stopped: its kubelet no longer reports",
    "start": "has started: its kubelet reports again",
}
_MERGE_PATCH: Final = {"content-type": "application/merge-patch+json"}
_JSON: Final = {"content-type": "application/json"}
_FAILURE: Final = 400

# Handles a request to the API server; see `ApiApp.handle`.
Api = Callable[[Request], Awaitable[Any]]


class _NodeChange(msgspec.Struct, forbid_unknown_fields=True):
    node: str
    action: Literal["cordon", "uncordon", "stop", "start", "drain"]


class Actions:
    """Changes a local cluster through requests to its API server."""

    def __init__(self, api: Api, store: Store) -> None:
        """The actions send their requests to `api`, and look up pods in `store`."""
        self._api = api
        self._store = store

    async def control_clock(self, body: Any) -> Json:
        """Advance, pause or resume the clock, or set its speed; see ClockControl.

        Raises ApiError if the server refuses the request.
        """
        await self._request("POST", clock_control.PATH, body, _JSON)
        return {"message": ""}

    async def change_node(self, body: Any) -> Json:
        """Cordon, uncordon, drain, stop or start a node.

        Raises ValidationError for a bad body or a refused request, and ApiError if the change
        cannot be stored.
        """
        change = msgspec.convert(body, _NodeChange)
        path = f"/api/v1/nodes/{quote(change.node, safe='')}"
        await self._request("PATCH", path, _PATCHES[change.action], _MERGE_PATCH)
        if change.action != "drain":
            return {"message": f"{change.node} {_DONE[change.action]}."}
        return {"message": await self._evict_pods(change.node)}

    async def _evict_pods(self, node: str) -> str:
        """Try once to evict the pods in `_evictable(node)`; return a sentence about the result."""
        evicted, refused = 0, []
        for pod in self._evictable(node):
            namespace, name = pod.metadata.namespace, pod.metadata.name
            path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(name)}/eviction"
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": namespace},
            }
            request = Request("POST", path, headers=_JSON, body=msgspec.json.encode(eviction))
            answer = await self._api(request)
            if answer.status < _FAILURE:
                evicted += 1
            else:
                refused.append(f"{namespace}/{name}: {_message(answer)}")
        head = f"{node} is cordoned, {counted(evicted, 'pod')} evicted."
        return head if not refused else f"{head} Refused: {'; '.join(refused)}"

    def _evictable(self, node: str) -> list[Pod]:
        """Return the pods of `node` that a drain evicts.

        A drain evicts all pods except static pods, terminating pods, and DaemonSet pods that have
        not completed. upstream: staging/src/k8s.io/kubectl/pkg/drain/filters.go: daemonSetFilter,
        mirrorPodFilter
        """
        on_node = (pod for pod in self._store.list(POD) if pod["spec"].get("nodeName") == node)
        pods = [view for view in map(decode_stored, on_node) if isinstance(view, Pod)]
        return [
            pod
            for pod in pods
            if not (
                is_static(pod)
                or is_terminating(pod)
                or (is_daemon_pod(pod) and not is_terminal(pod))
            )
        ]

    async def _request(self, method: str, path: str, body: Any, headers: dict[str, str]) -> None:
        """Send a request to the API server.

        Raises ValidationError if the response is an error. Raises ApiError as `ApiApp.handle` does,
        for example if the change cannot be stored.
        """
        request = Request(method, path, headers=headers, body=msgspec.json.encode(body))
        answer = await self._api(request)
        if answer.status >= _FAILURE:
            raise msgspec.ValidationError(_message(answer))


def _message(answer: Response) -> str:
    """Return the message in `answer`, a response whose body is a Status."""
    status = msgspec.json.decode(b"".join(answer.body))
    return str(status.get("message", answer.status))
