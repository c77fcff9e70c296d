"""ExtenderThread: calls extenders in a separate thread, so that watches are read during a call.

For each call except bind, ExtenderThread first reads the pod from the API server. An extender with
`nodeCacheCapable` receives the names of nodes. For every other extender, ExtenderThread also reads
the nodes from the API server, and sends whole nodes.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.client.error import UNDECODABLE, RequestError, may_be_temporary
from fairlead.client.list_objects import list_objects
from fairlead.client.rest_client import ApiAnswer, ApiRequest, RestClient
from fairlead.engine.core.command import CallExtender, ExtenderVerb, ObjectRef
from fairlead.engine.core.stimulus import CallOutcome, CommandFailed, FailureReason
from fairlead.worlds.cluster.perform import Resources
from fairlead.worlds.extender.extender_caller import ExtenderCaller
from fairlead.worlds.extender.request import request_body

READ_SECONDS_MAX: Final = 10.0
# The pauses after failed reads of a pod; after one more failure, the call of the extender fails.
READ_PAUSES_S: Final = (0.1, 0.4)
_NOT_FOUND: Final = 404


class ExtenderThread:
    """Calls extenders in one thread.

    Calls never overlap, because a scheduling cycle waits for the responses of its extenders.
    """

    def __init__(self, caller: ExtenderCaller, resources: Resources) -> None:
        """`resources` are keyed by kind."""
        self._caller = caller
        self._resources = resources
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="extender")

    def close(self) -> None:
        """End the thread after its current call; later calls are not possible."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def call(self, call: CallExtender, client: RestClient) -> CallOutcome:
        """Call an extender and return its response.

        Returns CommandFailed if the extender does not respond, or if a pod or the nodes cannot be
        read.
        """
        try:
            objects = await self._objects(call, client)
        except RequestError as refusal:
            return CommandFailed(call, FailureReason.INTERNAL_ERROR, str(refusal))
        body = request_body(call, objects.get)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._caller.call, call, body)

    async def _objects(self, call: CallExtender, client: RestClient) -> dict[ObjectRef, Json]:
        """Return the pods and nodes for the body of `call`, read from the API server.

        The result is empty for the verb bind. A pod is left out if it no longer exists, or if its
        uid differs from the uid in `call`. Raises RequestError if a pod or the nodes cannot be
        read.
        """
        if call.verb is ExtenderVerb.BIND:
            return {}
        refs = [call.pod]
        if not call.by_name:
            refs += [pod for victims in call.victims for pod in victims.pods]
        found = await asyncio.gather(*(self._read(ref, client) for ref in refs))
        objects = {ref: obj for ref, obj in zip(refs, found, strict=True) if obj is not None}
        if call.nodes and not call.by_name:
            for item in await list_objects(client, self._resources["Node"].collection()):
                node: dict[str, Any] = msgspec.json.decode(item)
                objects[ObjectRef("Node", "", node["metadata"]["name"])] = node
        return objects

    async def _read(self, ref: ObjectRef, client: RestClient) -> Json | None:
        """Return the pod `ref`; None if it no longer exists or has another uid.

        Raises RequestError if the pod cannot be read. If this method returned None instead, the
        extender would decide about a pod without containers, and could accept every node.
        """
        path, server = self._resources[ref.kind].path(ref.namespace, ref.name), client.config.server
        for pause_s in READ_PAUSES_S:
            answer, found = await _read_once(path, client)
            if not may_be_temporary(answer.status):
                break
            await asyncio.sleep(max(pause_s, answer.retry_after_s))
        else:
            answer, found = await _read_once(path, client)
        if found is not None:
            return found if found["metadata"].get("uid") == ref.uid else None
        if answer.status == _NOT_FOUND:
            return None
        raise RequestError(server, answer.status, answer.reason, answer.message)


async def _read_once(path: str, client: RestClient) -> tuple[ApiAnswer, Json | None]:
    """GET the object at `path`; return the response and the object (None if there is no object).

    The status is 0 if the response is successful, but without an object.
    """
    answer = await client.exchange(ApiRequest("GET", path), READ_SECONDS_MAX)
    if not answer.is_success:
        return answer, None
    found = _decoded(answer.body)
    if found is None:
        answer = ApiAnswer(0, message=f"{path}: the answer is not a Kubernetes object")
    return answer, found


def _decoded(body: bytes) -> Json | None:
    """Return the object in `body`; None if `body` is no object, such as a proxy's error page."""
    try:
        found = msgspec.json.decode(body)
    except UNDECODABLE:
        return None
    is_object = isinstance(found, dict) and isinstance(found.get("metadata"), dict)
    return found if is_object else None
