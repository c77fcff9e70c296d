"""A scripted extender on a local port, and its TLS certificates."""

from __future__ import annotations

import json
import ssl
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from fairlead.engine.core.command import CallExtender, ExtenderVerb, ObjectRef
from fairlead.engine.scheduling.extender.extender import Extender

POD = ObjectRef("Pod", "default", "p", "u1")


class Handler(BaseHTTPRequestHandler):
    """Responds with the result of `server.respond(self)`: (status, body, headers).

    None closes the connection.
    """

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        """Record the request and respond."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
        self.server.connections.add(self.client_address)
        answer = self.server.respond(self)
        if answer is None:
            self.close_connection = True
            return
        status, text, *headers = answer
        body = text if isinstance(text, bytes) else json.dumps(text).encode()
        self.send_response(status)
        for name, value in {**dict(*headers), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_what):
        """Do not log."""


class Server(ThreadingHTTPServer):
    """`requests` are (path, headers, body); `over` is set when the test ends.

    Connections are closed when `may_hang_up` is set; `hung_up` is set then.
    """

    daemon_threads = True

    def __init__(self, respond, context):
        super().__init__(("127.0.0.1", 0), Handler)
        self.respond = respond
        self.requests, self.connections = [], set()
        self.over, self.may_hang_up, self.hung_up = Event(), Event(), Event()
        self.may_hang_up.set()
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def port(self):
        return self.server_address[1]

    def shutdown_request(self, request):
        """Close the connection."""
        self.may_hang_up.wait()
        super().shutdown_request(request)
        self.hung_up.set()

    def handle_error(self, *_of):
        """Ignore errors, because some tests close connections early."""


@pytest.fixture
def extender_at():
    """Runs an extender: `with extender_at(respond) as server`."""

    @contextmanager
    def run(respond, context=None):
        with Server(respond, context) as server:
            thread = Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield server
            finally:
                server.over.set()
                server.shutdown()
                thread.join()

    return run


@pytest.fixture
def reach():
    """Return the configuration of the extender at a port."""

    def configured(port, scheme="http", **more):
        return Extender(url_prefix=f"{scheme}://127.0.0.1:{port}/base/", **more)

    return configured


@pytest.fixture
def question():
    """A CallExtender to the first extender."""

    def make(extender, verb=ExtenderVerb.FILTER, nodes=("a",), **more):
        return CallExtender(0, verb, extender.address(verb.value), POD, nodes, **more)

    return make


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder with ca, server and client, `.pem` and `.key` each, made by openssl."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments):
        command = ["openssl", *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    def make(name, *more):
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        subject = ("-subj", f"/CN={name}", "-days", "2")
        openssl("req", "-x509", *key, *subject, "-keyout", f"{name}.key", "-out", f"{name}.pem",
                *more)  # fmt: skip

    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE")
    make("ca", "-addext", "keyUsage=critical,keyCertSign")
    make("server", *signed, "-addext", "subjectAltName=DNS:extender.test")
    make("client", *signed)
    return folder


@pytest.fixture
def secured(certificates):
    """Makes the TLS context of the test extender; `asks` requires a client certificate."""

    def make(*, asks=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        if asks:
            context.load_verify_locations(certificates / "ca.pem")
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    return make
