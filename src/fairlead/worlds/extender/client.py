"""HttpExtenders: calls extenders over HTTP, one call at a time.

A call ends after `httpTimeout`, even if the extender is still sending. A response that exceeds the
maximum size is not read to its end. A redirect is not followed and counts as a failure, like every
status except 200. The calling thread is blocked during a call.

upstream: pkg/scheduler/extender.go: makeTransport, send
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

import aiohttp

from fairlead.api.client_tls import client_tls_context
from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.instant import to_seconds
from fairlead.engine.core.stimulus import (
    CallOutcome,
    CommandFailed,
    ExtenderAnswered,
    FailureReason,
)
from fairlead.engine.scheduling.extender.extender import Extender, ExtenderTls

ANSWER_BYTES_MAX: Final = 64 << 20
# The message of Go's client, which users of extenders know.
TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
TOO_LONG: Final = f"the answer is longer than {ANSWER_BYTES_MAX} bytes"
_ITERATIONS_UNTIL_CLOSED: Final = 3  # read the EOF, close the transport, drop the connection
_JSON: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


class TlsError(ValueError):
    """An extender's certificate or key cannot be used; `field` is a field name of tlsConfig."""

    def __init__(self, field: str, problem: str) -> None:
        """`field` is the field of tlsConfig that has the `problem`."""
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class HttpExtenders:
    """Calls extenders over HTTP; a context manager that keeps connections between calls."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        """Read the TLS files, but open no connections yet. Raises TlsError."""
        self._extenders = tuple(extenders)
        self._contexts = tuple(map(tls_context, extenders))
        self._runner = asyncio.Runner()
        self._session: aiohttp.ClientSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        if self._session is not None:
            self._runner.run(self._session.close())
        self._runner.close()

    def call(self, call: CallExtender, body: bytes) -> CallOutcome:
        """Call an extender; return its response, or CommandFailed if there is no response.

        Must not be called in a running event loop.
        """
        return self._runner.run(self._call(call, body))

    async def _call(self, call: CallExtender, body: bytes) -> CallOutcome:
        try:
            return await self._post(call, body)
        except TimeoutError:
            problem = TIMED_OUT
        except aiohttp.ClientConnectorError as cause:
            problem = f"dial tcp {cause.host}:{cause.port}: connect: {_reason_of(cause.os_error)}"
        except (aiohttp.ClientError, OSError, ValueError) as cause:
            problem = f"{type(cause).__name__}: {cause}"
        return CommandFailed(call, FailureReason.INTERNAL_ERROR, f'Post "{call.url}": {problem}')

    async def _post(self, call: CallExtender, body: bytes) -> CallOutcome:
        extender = self._extenders[call.extender]
        async with (await self._connections()).post(
            call.url,
            data=body,
            ssl=self._contexts[call.extender],
            server_hostname=_server_name(extender),
            timeout=aiohttp.ClientTimeout(total=to_seconds(extender.timeout)),
            allow_redirects=False,  # pods go to the configured address only
        ) as response:
            answer = await response.content.read(0)
            while chunk := await response.content.readany():
                answer += chunk
                if len(answer) > ANSWER_BYTES_MAX:
                    raise ValueError(TOO_LONG)
            return ExtenderAnswered(call, response.status, answer)

    async def _connections(self) -> aiohttp.ClientSession:
        """Return the client session, without connections that the extender has closed.

        The event loop does not run between calls. Therefore aiohttp has not yet noticed connections
        that were closed since the last call. This method lets the loop run for a few iterations
        first.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=_JSON)
        for _ in range(_ITERATIONS_UNTIL_CLOSED):
            await asyncio.sleep(0)
        return self._session


def _reason_of(cause: OSError) -> str:
    if cause.errno is not None and cause.errno > 0 and not isinstance(cause, ssl.SSLError):
        return os.strerror(cause.errno).lower()
    return (cause.strerror or str(cause)).lower()


def _server_name(extender: Extender) -> str | None:
    return extender.tls.server_name or None if extender.tls is not None else None


def tls_context(extender: Extender) -> ssl.SSLContext:
    """Return the TLS context for connections to `extender`. Raises TlsError.

    If `extender` has enableHTTPS but no CA, its certificate is not verified, as in upstream.
    """
    tls = extender.tls or ExtenderTls()
    context = _trusting(tls)
    trusts_given = bool(tls.ca_file or tls.ca_data)
    if tls.insecure or (extender.enable_https and not trusts_given):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_data or tls.cert_file:
        _prove(context, tls)
    return context


def _trusting(tls: ExtenderTls) -> ssl.SSLContext:
    """Return a TLS context that trusts the CA of `tls`; `ca_data` overrides `ca_file`."""
    try:
        if tls.ca_data:
            return client_tls_context(authority=tls.ca_data.decode("ascii", "replace"))
        return client_tls_context(authority_file=tls.ca_file or None)
    except (OSError, ValueError) as cause:
        field = "caData" if tls.ca_data else "caFile"
        raise TlsError(field, _reason(cause)) from None


def _prove(context: ssl.SSLContext, tls: ExtenderTls) -> None:
    """Load the client certificate of `tls` into `context`.

    Inline data is written to temporary files, because `load_cert_chain` accepts only files.
    """
    with TemporaryDirectory(prefix="fairlead-") as folder:
        cert = _as_file(Path(folder) / "cert", tls.cert_data) or tls.cert_file
        key = _as_file(Path(folder) / "key", tls.key_data) or tls.key_file
        try:
            context.load_cert_chain(cert, key or None)
        except (OSError, ValueError) as cause:
            field = "certData" if tls.cert_data else "certFile"
            raise TlsError(field, _reason(cause)) from None


def _as_file(path: Path, data: bytes) -> str:
    if not data:
        return ""
    path.touch(mode=0o600)
    path.write_bytes(data)
    return str(path)


def _reason(cause: Exception) -> str:
    if isinstance(cause, ssl.SSLError) or not isinstance(cause, OSError):
        return f"cannot be used: {cause}"
    return f"cannot be read: {cause.strerror or cause}"
