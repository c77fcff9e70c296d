"""Credentials: the headers and client certificate of a user, renewed when they expire.

upstream: client-go/plugin/pkg/client/auth/exec/exec.go, client-go/transport/token_source.go
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from fairlead.client.connection import ConnectionConfig, ExecPlugin, Impersonation, read_text
from fairlead.client.error import ConnectionConfigError
from fairlead.client.exec_plugin import Credential, run_exec_plugin

TOKEN_FILE_SECONDS: Final = 60.0  # upstream: token_source.go:NewCachedFileTokenSource


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

        If the file cannot be read or is empty, return the last token, or "" if there is none.
        Raises ConnectionConfigError if the configuration has no other token either.
        """
        now = self._clock()
        if now - self._file_read_at >= TOKEN_FILE_SECONDS:
            self._file_read_at = now
            known = self._file_token or self._config.token
            try:
                found = read_text(self._config.name, "tokenFile", path).strip()
            except ConnectionConfigError:
                if not known:
                    raise
                found = ""
            if not found and not known:
                # upstream: client-go/transport/token_source.go: fileTokenSource.Token
                raise ConnectionConfigError(self._config.name, f"{path} is empty", "tokenFile")
            self._file_token = found or self._file_token
        return self._file_token

    def _exec_credential(self, plugin: ExecPlugin) -> Credential:
        kept = self._credential
        if kept is None or (kept.expires_at is not None and self._clock() >= kept.expires_at):
            kept = self._credential = run_exec_plugin(self._config.name, plugin)
        return kept


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
