"""Socket options of a listener."""

from __future__ import annotations

import socket

from fairlead.apiserver.auth.authentication.token import TokenAuthenticator
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.http.listener import Listener


def test_accepted_connections_have_tcp_nodelay(store, now):
    """Otherwise, a body would wait about 40 ms for the acknowledgement of its head."""
    app = ApiApp(ApiServer(store, clock=lambda: now), TokenAuthenticator({}), lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Listener(app, listening, None)
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
