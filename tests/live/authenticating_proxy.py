"""AuthenticatingProxy: an API server behind TLS, with certificates and users that can change."""

from __future__ import annotations

import ssl
from collections import Counter

from aiohttp import web
from tests.live.fault_proxy import FaultProxy

from fairlead.apiserver.auth.certificate_authority import new_server

ADDRESS = "127.0.0.1"


class AuthenticatingProxy(FaultProxy):
    """Passes on the requests of `accepted` users; other requests get status 401.

    A user is a bearer token or the common name of a client certificate.
    """

    def __init__(self, connection):
        super().__init__(connection, 1, share=0)
        self.accepted = set()
        self.seen = Counter()  # requests by user
        self.refused = Counter()
        self._transports = set()
        self._site = None
        self._port = 0

    async def listen(self, context):
        """Serve new connections at the same address with `context` from now on."""
        if self._site is None:
            await self.open()
        else:
            await self._site.stop()
        self._site = web.TCPSite(self.runner, ADDRESS, self._port, ssl_context=context)
        await self._site.start()
        self._port = self._site._server.sockets[0].getsockname()[1]
        return f"https://{ADDRESS}:{self._port}"

    def disconnect(self):
        """Close all connections."""
        for transport in self._transports:
            transport.abort()
        self._transports.clear()

    async def handle(self, request):
        self._transports.add(request.transport)
        user = user_of(request)
        if user not in self.accepted:
            self.refused[user] += 1
            status = {"kind": "Status", "code": 401, "reason": "Unauthorized"}
            return web.json_response({**status, "message": "Unauthorized"}, status=401)
        self.seen[user] += 1
        return await super().handle(request)


def user_of(request):
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token:
        return token
    certificate = request.transport.get_extra_info("peercert") or {"subject": ()}
    return dict(one[0] for one in certificate["subject"]).get("commonName", "")


def server_context(folder, authority, now, client_authority=None, *, is_required=False):
    """The TLS settings of a server with a new certificate of `authority`.

    Clients with a certificate of `client_authority` are known by it; if `is_required`, a client
    without one is refused in the handshake.
    """
    pair = new_server(authority, (ADDRESS,), now)
    file = folder / "server.pem"
    file.write_text(pair.certificate + pair.key)
    known = (client_authority or authority).certificate
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=known)
    context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
    context.load_cert_chain(file)
    return context
