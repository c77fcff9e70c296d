"""Calls webhooks over HTTP.

upstream: apiserver/pkg/util/webhook/client.go
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp

from fairlead.api.client_tls import client_tls_context
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.suspension import WebhookAnswer, WebhookCall

ANSWER_BYTES_MAX: Final = 3 << 20
TEXT_BYTES_MAX: Final = 2_048
AUTHORITY_CHARACTERS_MAX: Final = 16_384
CONTEXTS_MAX: Final = 32  # loading the trusted authorities of the system takes 20 ms
_REFUSALS: Final[Mapping[int, str]] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
}


async def call_webhook(call: WebhookCall) -> WebhookAnswer:
    """Call a webhook; return its response, or the error in the words of upstream's client."""
    timeout = aiohttp.ClientTimeout(total=call.timeout_s)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(
                call.url,
                params={"timeout": f"{call.timeout_s}s"} if call.sends_timeout else {},
                data=call.body,
                headers=headers,
                ssl=_ssl_context_for(call.ca) if call.url.startswith("https:") else True,
                allow_redirects=False,
            ) as response,
        ):
            body = await _body(response)
            if not 200 <= response.status < 300:
                return WebhookAnswer(failure=_refused(response, body), is_reached=True)
            return WebhookAnswer(body=body)
    except aiohttp.ClientConnectorCertificateError as cause:
        return WebhookAnswer(failure=_certificate_error(cause))
    except aiohttp.ClientConnectorError as cause:
        return WebhookAnswer(failure=_dial_error(cause))
    except TimeoutError:
        return WebhookAnswer(failure="context deadline exceeded")
    except (aiohttp.ClientError, ssl.SSLError, ValueError) as cause:
        return WebhookAnswer(failure=str(cause))


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Return the whole body of the response. Raises ValueError if it is too long."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise ValueError(f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
    return bytes(body)


def _refused(response: aiohttp.ClientResponse, body: bytes) -> str:
    """Return the error text for an HTTP status that is not 2xx."""
    # upstream: client-go/rest/request.go:newUnstructuredResponseError,
    # apimachinery/pkg/api/errors/errors.go:NewGenericServerResponse
    is_text = response.content_type.startswith("text/")
    text = body[:TEXT_BYTES_MAX].decode(errors="replace").strip() if is_text else "unknown"
    if response.status == 403:
        return text
    known = _REFUSALS.get(response.status)
    if known is not None:
        return known
    if response.status >= 500:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'an error on the server ("{quoted}") has prevented the request from succeeding'
    return (
        f"the server responded with the status code {response.status} but did not return more "
        "information"
    )


def _certificate_error(cause: aiohttp.ClientConnectorCertificateError) -> str:
    found = cause.certificate_error
    why = "certificate signed by unknown authority"
    if isinstance(found, ssl.SSLCertVerificationError) and "mismatch" in found.verify_message:
        why = f"certificate is not valid for any names, but wanted to match {cause.host}"
    return f"tls: failed to verify certificate: x509: {why}"


@text_cache(maxsize=CONTEXTS_MAX, characters_max=AUTHORITY_CHARACTERS_MAX)
def _ssl_context_for(authority: str) -> ssl.SSLContext:
    """Return a TLS context that trusts `authority`, or the system's authorities if it is ""."""
    try:
        return client_tls_context(authority=authority or None)
    except ssl.SSLError:
        # upstream: client-go/transport/transport.go:rootCertPool
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        raise ValueError(why) from None


def _dial_error(cause: aiohttp.ClientConnectorError) -> str:
    if isinstance(cause.os_error, ConnectionRefusedError):
        return f"dial tcp {cause.host}:{cause.port}: connect: connection refused"
    return f"dial tcp {cause.host}:{cause.port}: {cause.os_error.strerror or cause.os_error}"
