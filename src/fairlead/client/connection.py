"""ConnectionConfig: the address and credentials for an API server.

upstream: client-go/rest/config.go
"""

from __future__ import annotations

import errno
import os
import select
import ssl
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field

from fairlead.api.client_tls import client_tls_context
from fairlead.client.error import ConnectionConfigError

FILE_BYTES_MAX: Final = 8 << 20
_WRITER_AWAITED_MS: Final = 5_000
# upstream: tools/clientcmd/client_config.go:parseProxyURL
_PROXY_SCHEMES: Final = ("http", "https", "socks5")
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ExecPlugin(Struct, frozen=True):
    """A command that prints an ExecCredential.

    `cluster` is passed to the command in KUBERNETES_EXEC_INFO; None if provideClusterInfo is not
    set.
    """

    command: str
    api_version: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Mapping[str, object] | None = None


class Impersonation(Struct, frozen=True):
    """The user to impersonate; an empty field adds no Impersonate-* header."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class ConnectionConfig(Struct, frozen=True, kw_only=True):
    """The URL of an API server, and the credentials for it.

    The fields `authority`, `certificate` and `key` are PEM texts, "" if absent. The fields
    `authority_file`, `certificate_file` and `key_file` are the paths of the files from which these
    texts were read, or "". Every connection presents the client certificate; if none is configured,
    `exec_plugin` may supply one. The Authorization header uses the first of these credentials that
    is set: `token_file`, `token`, `username` with `password`, `exec_plugin`.
    """

    name: str  # identifies the connection in messages ("context prod")
    server: str
    authority: str = ""
    is_insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    namespace: str = ""
    certificate: str = ""
    key: str = ""
    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    exec_plugin: ExecPlugin | None = None
    impersonation: Impersonation = Impersonation()


def in_cluster() -> ConnectionConfig:
    """Return the connection of the service account of the pod in which this process runs.

    Raises ConnectionConfigError outside of a pod, and if the files of the service account cannot
    be read.
    """
    # upstream: client-go/rest/config.go:InClusterConfig
    source = "--in-cluster"
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        problem = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; is this a pod?"
        raise ConnectionConfigError(source, problem)
    address = f"[{host}]" if ":" in host else host
    return ConnectionConfig(
        name="the cluster of this pod",
        server=f"https://{address}:{port}",
        authority=read_text(source, "", str(SERVICE_ACCOUNT / "ca.crt")),
        authority_file=str(SERVICE_ACCOUNT / "ca.crt"),
        token=read_text(source, "", str(SERVICE_ACCOUNT / "token")).strip(),
        token_file=str(SERVICE_ACCOUNT / "token"),
        namespace=read_text(source, "", str(SERVICE_ACCOUNT / "namespace")).strip(),
    )


def read_text(source: str, field_path: str, path: str) -> str:
    """Return the text of the file `path`.

    Raises ConnectionConfigError if the file cannot be read, is not UTF-8, is longer than
    FILE_BYTES_MAX, or is a pipe that no program writes to. The error reports `source` and
    `field_path` as the place of the problem.
    """
    unread = "cannot be read" if path == source else f"cannot read {path}"
    try:
        content = _content(path, FILE_BYTES_MAX + 1)
        text = content.decode("utf-8")
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or "is not text"
        raise ConnectionConfigError(source, f"{unread}: {reason}", field_path) from None
    if len(content) > FILE_BYTES_MAX:
        problem = f"{unread}: longer than {FILE_BYTES_MAX >> 20} MiB"
        raise ConnectionConfigError(source, problem, field_path)
    return text


def _content(path: str, bytes_max: int) -> bytes:
    """Return the first `bytes_max` bytes of a file.

    Raises OSError, also for a pipe that no program writes to.
    """
    # Without O_NONBLOCK, opening such a pipe would never return.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:
        start = b""
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            # None means that a program has opened the pipe, but has not written yet.
            start = file.read(bytes_max)
            if start == b"" and not _is_opened(file.fileno()):
                raise OSError(errno.EAGAIN, "it is a pipe that no program writes to")
        os.set_blocking(file.fileno(), True)
        parts = [start or b""]
        while (size := sum(map(len, parts))) < bytes_max and (part := file.read(bytes_max - size)):
            parts.append(part)
    return b"".join(parts)


def _is_opened(descriptor: int) -> bool:
    """Return whether a program opens the pipe within 5 seconds.

    The program must also write to the pipe, or close the pipe, within this time.
    """
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(_WRITER_AWAITED_MS))


def host_of(url: str, schemes: Sequence[str]) -> str:
    """Return the host of `url`; "" if `url` has no host or its scheme is not one of `schemes`."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in schemes and parts.port != 0
    except ValueError:  # such as a port over 65535
        return ""
    # White space and control characters would corrupt the request line.
    has_space = any(character.isspace() or not character.isprintable() for character in url)
    return (parts.hostname or "") if is_valid and not has_space else ""


def require_proxy(source: str, field_path: str, url: str) -> None:
    """Raise ConnectionConfigError if `url` is not an http, https or socks5 URL.

    `url` is the value of the field `field_path` of `source`.
    """
    if not host_of(url, _PROXY_SCHEMES):
        problem = f"{url!r} is not an http, https or socks5 URL"
        raise ConnectionConfigError(source, problem, field_path)


def tls_context(
    config: ConnectionConfig, authority: str = "", certificate: str = "", key: str = ""
) -> ssl.SSLContext | None:
    """Return the TLS settings of a connection; None if its URL is plain HTTP.

    If the argument `authority`, `certificate` or `key` is not "", it replaces the field of the
    same name in `config`. Raises ConnectionConfigError if a PEM text cannot be used.
    """
    if not config.server.startswith("https:"):
        return None
    try:
        context = client_tls_context(authority=authority or config.authority or None)
    except (ssl.SSLError, ValueError) as cause:
        problem = f"the certificate authority is not a PEM certificate ({cause})"
        raise ConnectionConfigError(config.name, problem) from None
    if config.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = certificate or config.certificate, key or config.key
    if certificate and key:
        _load_certificate(config.name, context, f"{certificate}\n{key}")
    return context


def refuse_encrypted_key() -> str:
    """Raise ValueError; OpenSSL calls this function instead of asking for a key's password."""
    raise ValueError("the key is encrypted")


def _load_certificate(source: str, context: ssl.SSLContext, pem: str) -> None:
    """Load the client certificate and key from the text `pem` into `context`.

    OpenSSL reads them only from files, so `pem` is written to a temporary file. Raises
    ConnectionConfigError, which names `source`, if OpenSSL cannot use the certificate and key.
    """
    try:
        with NamedTemporaryFile("w", suffix=".pem", encoding="ascii", errors="replace") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name, password=refuse_encrypted_key)
    except (OSError, ValueError) as cause:  # SSLError is an OSError
        problem = f"the client certificate and key cannot be used ({cause})"
        raise ConnectionConfigError(source, problem) from None
