"""Asking admission webhooks, over HTTP.

upstream: apiserver/pkg/util/webhook/client.go
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

import aiohttp

from fairlead.apiserver.admission.webhook import WebhookCall
from fairlead.apiserver.request import WebhookAnswer

ANSWER_BYTES_MAX: Final = 3 << 20


async def ask_webhook(call: WebhookCall) -> WebhookAnswer:
    """The answer, or why there is none, as upstream's HTTP client words it where it can."""
    timeout = aiohttp.ClientTimeout(total=call.timeout_s)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(
                call.url,
                params={"timeout": f"{call.timeout_s}s"},
                data=call.body,
                headers=headers,
                ssl=_context(call),
                allow_redirects=False,
            ) as response,
        ):
            body = await response.content.read(ANSWER_BYTES_MAX)
            if response.status != 200:
                text = body[:200].decode(errors="replace").strip()
                return WebhookAnswer(failure=f"status {response.status}: {text}")
            return WebhookAnswer(body=body)
    except aiohttp.ClientConnectorError as cause:
        return WebhookAnswer(failure=_worded(cause))
    except TimeoutError:
        return WebhookAnswer(failure="context deadline exceeded")
    except (aiohttp.ClientError, asyncio.IncompleteReadError, ValueError) as cause:
        return WebhookAnswer(failure=str(cause))


def _context(call: WebhookCall) -> ssl.SSLContext | bool:
    if not call.url.startswith("https:"):
        return True
    return ssl.create_default_context(cadata=call.ca) if call.ca else ssl.create_default_context()


def _worded(cause: aiohttp.ClientConnectorError) -> str:
    if isinstance(cause.os_error, ConnectionRefusedError):
        return f"dial tcp {cause.host}:{cause.port}: connect: connection refused"
    return f"dial tcp {cause.host}:{cause.port}: {cause.os_error.strerror or cause.os_error}"
