"""ApiBinding: binds pods for a scheduler extender, through the Binding API of an API server.

ApiBinding connects over plain HTTP to a `kubectl proxy`, which adds the credentials.

upstream: pkg/registry/core/pod/storage/storage.go: BindingREST
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final, Self

import aiohttp
import msgspec

from fairlead.api.extender import BindingResult, ExtenderBindingArgs, ProtocolError, decode, encode

SECONDS_MAX: Final = 10.0
_BYTES_MAX: Final = 1 << 20
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
UNBOUND: Final = "this extender does not bind: it was started without --api-server"


async def refuse_to_bind(body: bytes) -> bytes:
    """Return a BindingResult that rejects the request, because there is no API server.

    Raises ProtocolError for a malformed request.
    """
    decode(body, ExtenderBindingArgs)
    return encode(BindingResult(UNBOUND))


class ApiBinding:
    """Binds pods through an API server; an async context manager that owns the connections."""

    def __init__(self, url: str) -> None:
        """`url` is the URL of the API server, such as http://127.0.0.1:8001."""
        self._url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
        self._session = aiohttp.ClientSession(timeout=timeout)
        return self

    async def __aexit__(self, *_failure: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def bind(self, body: bytes) -> bytes:
        """Bind the pod and return a BindingResult.

        Raises ProtocolError if the pod name, the namespace or the node name is missing or invalid.
        """
        binding = decode(body, ExtenderBindingArgs)
        for field, name in _names(binding):
            if not _NAME.fullmatch(name):
                raise ProtocolError(f"{field}: {name!r} is not a name")
        try:
            problem = await self._post(binding)
        except TimeoutError:
            problem = f"the API server did not answer within {SECONDS_MAX:g} seconds"
        except (aiohttp.ClientError, OSError) as cause:
            problem = f"the API server cannot be reached: {cause}"
        return encode(BindingResult(problem))

    async def _post(self, binding: ExtenderBindingArgs) -> str:
        """POST the Binding; return the API server's error text, "" if the request succeeded."""
        pod, namespace = binding.pod_name, binding.pod_namespace
        url = f"{self._url}/api/v1/namespaces/{namespace}/pods/{pod}/binding"
        assert self._session is not None, "used outside of its context"
        async with self._session.post(url, json=_manifest(binding)) as response:
            content = await response.content.read(_BYTES_MAX)
            if response.status < HTTPStatus.MULTIPLE_CHOICES:
                return ""
            return _message(content) or f"the API server answers {response.status}"


def _names(binding: ExtenderBindingArgs) -> tuple[tuple[str, str], ...]:
    return (
        ("PodName", binding.pod_name),
        ("PodNamespace", binding.pod_namespace),
        ("Node", binding.node),
    )


def _manifest(binding: ExtenderBindingArgs) -> dict[str, Any]:
    metadata = {"name": binding.pod_name, "namespace": binding.pod_namespace}
    if binding.pod_uid:
        metadata["uid"] = binding.pod_uid
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
    }


def _message(content: bytes) -> str:
    """Return the message of the Status in `content`; "" if there is none."""
    try:
        status = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return ""
    message = status.get("message") if isinstance(status, dict) else None
    return message if isinstance(message, str) else ""
