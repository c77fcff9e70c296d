"""Credentials: the headers and client certificate of a user, renewed when they expire.

upstream: client-go/plugin/pkg/client/auth/exec/exec.go, client-go/transport/token_source.go
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp
from fairlead.client.connection import ConnectionConfig, ExecPlugin, Impersonation
from fairlead.client.error import ConnectionConfigError

EXEC_SECONDS_MAX: Final = 60
TOKEN_FILE_SECONDS: Final = 60.0  # upstream: token_source.go:NewCachedFileTokenSource
_OUTPUT_CHARACTERS_MAX: Final = 300


class Credential(Struct, frozen=True):
    """The output of an exec plugin.

    `expires_at` is in seconds since 1970, None if it never expires.
    """

    token: str = ""
    certificate: str = ""
    key: str = ""
    expires_at: float | None = None


class Credentials:
    """The credentials of one connection, renewed when they expire."""

    def __init__(self, config: ConnectionConfig, clock: Callable[[], float]) -> None:
        """`clock` returns seconds since 1970."""
        self._config = config
        self._clock = clock
        self._file_token = ""
        self._file_read_at = -TOKEN_FILE_SECONDS
        self._credential: Credential | None = None
        self._headers: tuple[str, list[tuple[str, str]]] | None = None  # with their token

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that authenticate the next request; callers must not change the list.

        The list is the same until the token changes. Raises ConnectionConfigError.
        """
        token = self._token()
        if self._headers is None or token != self._headers[0]:
            self._headers = token, self._headers_with(token)
        return self._headers[1]

    def _headers_with(self, token: str) -> list[tuple[str, str]]:
        config, headers = self._config, _impersonate(self._config.impersonation)
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        elif config.username:
            pair = f"{config.username}:{config.password}".encode()
            headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        for name, text in headers:
            if not (text.isascii() and text.isprintable()):
                problem = f"the {name} header would contain characters that are not printable ASCII"
                raise ConnectionConfigError(config.name, problem)
        return headers

    def certificate(self) -> tuple[str, str]:
        """Return (client certificate, its key) as PEM texts; both are "" without a certificate.

        Raises ConnectionConfigError if the exec plugin fails.
        """
        if self._config.certificate or self._config.exec_plugin is None:
            return self._config.certificate, self._config.key
        credential = self._exec_credential(self._config.exec_plugin)
        return credential.certificate, credential.key

    def renew(self) -> bool:
        """Discard credentials that the server rejected; return whether new ones can be obtained."""
        self._file_read_at = -TOKEN_FILE_SECONDS
        had_credential, self._credential = self._credential is not None, None
        return had_credential or bool(self._config.token_file)

    def _token(self) -> str:
        config = self._config
        if config.token_file:
            return self._token_of_file(config.token_file) or config.token
        if config.token or config.username or config.exec_plugin is None:
            return config.token
        return self._exec_credential(config.exec_plugin).token

    def _token_of_file(self, path: str) -> str:
        """Return the token in the file `path`, which is read every minute.

        If the file cannot be read, return the last token, or "" if there is none. Raises
        ConnectionConfigError if the configuration has no other token either.
        """
        now = self._clock()
        if now - self._file_read_at >= TOKEN_FILE_SECONDS:
            self._file_read_at = now
            try:
                self._file_token = Path(path).read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as cause:
                if not self._file_token and not self._config.token:
                    problem = f"cannot read the token file {path}: {cause}"
                    raise ConnectionConfigError(self._config.name, problem) from None
        return self._file_token

    def _exec_credential(self, plugin: ExecPlugin) -> Credential:
        kept = self._credential
        if kept is None or (kept.expires_at is not None and self._clock() >= kept.expires_at):
            kept = self._credential = run_exec_plugin(self._config.name, plugin)
        return kept


def run_exec_plugin(source: str, plugin: ExecPlugin) -> Credential:
    """Run a credential plugin and return its credential.

    Raises ConnectionConfigError with the given `source`.
    """
    is_interactive = plugin.interactive_mode != "Never" and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not is_interactive:
        problem = f"{plugin.command} needs a terminal (interactiveMode: Always)"
        raise ConnectionConfigError(source, problem)
    spec: dict[str, Any] = {"interactive": is_interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    environment = {
        **os.environ,
        **plugin.environment,
        "KUBERNETES_EXEC_INFO": json.dumps(info),
    }
    try:
        done = subprocess.run(  # noqa: S603 - the user's kubeconfig names it, as for kubectl
            [plugin.command, *plugin.arguments],
            env=environment,
            stdin=None if is_interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=None if is_interactive else EXEC_SECONDS_MAX,
            check=False,
        )
    except FileNotFoundError:
        hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
        problem = f"the credential plugin {plugin.command} was not found{hint}"
        raise ConnectionConfigError(source, " ".join(problem.split())) from None
    except (OSError, ValueError) as cause:
        problem = f"the credential plugin {plugin.command} cannot be run: {cause}"
        raise ConnectionConfigError(source, problem) from None
    except subprocess.TimeoutExpired:
        problem = f"the credential plugin {plugin.command} took over {EXEC_SECONDS_MAX} seconds"
        raise ConnectionConfigError(source, problem) from None
    if done.returncode:
        problem = f"the credential plugin {plugin.command} failed with exit code {done.returncode}"
        raise ConnectionConfigError(source, problem)
    return _read_credential(source, plugin, done.stdout)


def _read_credential(source: str, plugin: ExecPlugin, output: bytes) -> Credential:
    def refuse(problem: str) -> ConnectionConfigError:
        return ConnectionConfigError(source, f"the credential plugin {plugin.command} {problem}")

    try:
        value = json.loads(output)
    except ValueError:
        shown = output[:_OUTPUT_CHARACTERS_MAX].decode(errors="replace").split()
        raise refuse(f"did not print JSON: {' '.join(shown) or 'nothing'}") from None
    match value:
        case {"kind": "ExecCredential", "apiVersion": plugin.api_version, "status": dict(status)}:
            pass
        case _:
            raise refuse(f"did not print an ExecCredential of {plugin.api_version} with a status")
    token = status.get("token") or ""
    certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
    if not token and not (certificate and key):
        raise refuse("printed neither a token nor a client certificate with its key")
    expires = status.get("expirationTimestamp")
    try:
        expires_at = parse_timestamp(expires) / NANOSECONDS_PER_SECOND if expires else None
    except (ValueError, AttributeError, TypeError):
        raise refuse(f"printed a malformed expirationTimestamp: {expires!r}") from None
    return Credential(str(token), str(certificate), str(key), expires_at)


def _impersonate(user: Impersonation) -> list[tuple[str, str]]:
    # upstream: client-go/transport/round_trippers.go:impersonatingRoundTripper
    headers = [("Impersonate-User", user.user)] if user.user else []
    if user.uid:
        headers.append(("Impersonate-Uid", user.uid))
    headers += [("Impersonate-Group", group) for group in user.groups]
    for key, texts in user.extra.items():
        name = f"Impersonate-Extra-{quote(key.lower(), safe='')}"
        headers += [(name, text) for text in texts]
    return headers
