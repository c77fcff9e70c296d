"""Credentials: the headers and client certificate of a user, renewed before they expire.

An exec plugin may take a minute. Therefore the plugin runs in a thread, before the current
credential expires. While the plugin runs, requests use the current credential.

upstream: client-go/plugin/pkg/client/auth/exec/exec.go, client-go/transport/token_source.go,
client-go/transport/cert_rotation.go
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from fairlead.client.connection import ConnectionConfig, ExecPlugin, Impersonation, read_text
from fairlead.client.daemon_thread import in_daemon_thread
from fairlead.client.error import ConnectionConfigError
from fairlead.client.exec_plugin import Credential, run_exec_plugin

TOKEN_FILE_SECONDS: Final = 60.0  # upstream: token_source.go:NewCachedFileTokenSource
TLS_FILE_SECONDS: Final = 60.0
# TLS files are also read again after a failed connection, but not within this time of the last
# read.
# upstream: client-go/transport/transport.go: cachingCertificateLoader
FAILED_TLS_SECONDS: Final = 1.0
# An exec plugin runs again before its credential expires, at the later of two times. One is
# AHEAD_SECONDS_MAX before the end, the other when AHEAD_SHARE of the validity is left.
AHEAD_SECONDS_MAX: Final = 90.0
AHEAD_SHARE: Final = 0.2
# While its credential is valid, an exec plugin runs at most once in this time. A run may fail, or
# return the same credential again.
EXEC_PAUSE_SECONDS: Final = 10.0
# If the server refuses a credential, the plugin runs again immediately. If the server refuses the
# new credential too, the plugin runs again only after this pause. The pause doubles with each
# refusal, up to EXEC_PAUSE_SECONDS. It is short again if no credential was refused for
# REFUSALS_END_SECONDS. A leader therefore keeps its Lease if two of its credentials are refused,
# for example because the plugin has cached the old one.
FIRST_REFUSAL_SECONDS: Final = 1.0
REFUSALS_END_SECONDS: Final = 60.0
# If an exec plugin fails when no credential is valid, it does not run again within this time.
FAILED_EXEC_SECONDS: Final = 1.0
_LONG_AGO: Final = float("-inf")


class TlsTexts(Struct, frozen=True):
    """The PEM texts of a connection: certificate authority, client certificate and its key.

    A text is "" if it is absent.
    """

    authority: str = ""
    certificate: str = ""
    key: str = ""


class Credentials:
    """The credentials of one connection, renewed before they expire.

    Several clients may share one Credentials object, if they use the same event loop.
    """

    def __init__(self, config: ConnectionConfig, clock: Callable[[], float]) -> None:
        """Start with the credentials in `config`; `clock` returns seconds since 1970."""
        self._config = config
        self._clock = clock
        self._file_token = ""
        self._file_read_at = _LONG_AGO
        self._tls_texts = TlsTexts(config.authority, config.certificate, config.key)
        self._has_tls_files = bool(config.authority_file or config.certificate_file)
        self._tls_files_read_at = _LONG_AGO
        has_token = bool(config.token_file or config.token or config.username)
        is_complete = has_token and bool(config.certificate)
        self._plugin = None if is_complete else config.exec_plugin
        self._credential: Credential | None = None
        self._valid_until = self._renew_at = self._refused_at = _LONG_AGO
        self._refusal_pause_s = FIRST_REFUSAL_SECONDS
        self._execution: asyncio.Task[Credential] | None = None
        # whether the exec plugin has ever returned a credential, and its last failure
        self.has_worked = False
        self._failed_at, self._failure = _LONG_AGO, ""
        self._headers: tuple[str, list[tuple[str, str]]] | None = None  # (token, its headers)

    def prepare(self) -> bool:
        """Return whether requests can be sent now; False if the exec plugin must run first.

        If the exec plugin's credential expires soon, also start the plugin in a thread. Must be
        called while an event loop is running.
        """
        if self._plugin is None:
            return True
        now = self._clock()
        if self._credential is None or now >= self._valid_until:
            return False
        if now >= self._renew_at:
            self._renew_at = now + EXEC_PAUSE_SECONDS
            self._execute(self._plugin)
        return True

    async def wait(self) -> None:
        """If the exec plugin's credential is missing or expired, run the plugin and wait for it.

        Raises ConnectionConfigError if the exec plugin fails, or failed less than
        FAILED_EXEC_SECONDS ago.
        """
        if self.prepare():
            return
        assert self._plugin is not None
        if self._is_recent(self._failed_at, FAILED_EXEC_SECONDS):
            raise ConnectionConfigError(self._config.name, self._failure)
        try:
            await asyncio.shield(self._execute(self._plugin))
        except ConnectionConfigError as cause:
            self._failed_at, self._failure = self._clock(), cause.problem
            raise

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that authenticate the next request; callers must not change the list.

        The list is the same Python object until the token changes. Call `wait` first; otherwise
        this method may have to run the exec plugin and block. Raises ConnectionConfigError if
        there is no usable token.
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

    def tls_texts(self) -> TlsTexts:
        """Return the certificate authority, and the client certificate with its key.

        Files are read again every minute, and after a call of `connection_failed` or `renew`. If a
        file cannot be read, the text that was read last is used. The result is the same Python
        object until a text changes. Raises ConnectionConfigError if the exec plugin fails.
        """
        if self._has_tls_files and not self._is_recent(self._tls_files_read_at, TLS_FILE_SECONDS):
            self._read_tls_files()
        if self._config.certificate or self._plugin is None:
            return self._tls_texts
        found, known = self._exec_credential(self._plugin), self._tls_texts
        if (found.certificate, found.key) != (known.certificate, known.key):
            self._tls_texts = TlsTexts(known.authority, found.certificate, found.key)
        return self._tls_texts

    def _read_tls_files(self) -> None:
        self._tls_files_read_at = self._clock()
        config, known = self._config, self._tls_texts

        def read(path: str, before: str) -> str:
            try:
                return (read_text(config.name, "", path) or before) if path else before
            except ConnectionConfigError:  # the file is being replaced
                return before

        found = TlsTexts(
            read(config.authority_file, known.authority),
            read(config.certificate_file, known.certificate),
            read(config.key_file, known.key),
        )
        if found != known:
            self._tls_texts = found

    def connection_failed(self) -> None:
        """Cause the next request to read the TLS files again.

        The connection may have failed because the server requires new certificates. This call has
        no effect if the files were read less than FAILED_TLS_SECONDS ago.
        """
        if not self._is_recent(self._tls_files_read_at, FAILED_TLS_SECONDS):
            self._tls_files_read_at = _LONG_AGO

    def renew(self, refused: list[tuple[str, str]]) -> bool:
        """Discard credentials that the server refused; return whether to send the request again.

        `refused` is the list that `headers` returned for the request. Files with credentials are
        always read again. If the headers have changed since the request was sent, the credential of
        the exec plugin is kept. Otherwise this method discards the credential, so that the plugin
        runs again. A pause then begins. During the pause, the plugin's new credential is kept even
        if the server refuses this credential too. The first pause lasts FIRST_REFUSAL_SECONDS.
        While refusals repeat, each pause is twice as long as the previous one, up to
        EXEC_PAUSE_SECONDS.

        Returns False if there are no files with credentials, and no plugin can run: there is no
        plugin, or the pause prevents another run.
        """
        config = self._config
        self._file_read_at = self._tls_files_read_at = _LONG_AGO
        has_files = bool(config.token_file or config.certificate_file)
        if self._plugin is None:
            return has_files
        is_replaced = self._headers is None or refused is not self._headers[1]
        if is_replaced or self._credential is None:
            return True
        if self._is_recent(self._refused_at, self._refusal_pause_s):
            return has_files
        pause_s = 2 * self._refusal_pause_s
        if not self._is_recent(self._refused_at, REFUSALS_END_SECONDS):
            pause_s = FIRST_REFUSAL_SECONDS
        self._refusal_pause_s = min(pause_s, EXEC_PAUSE_SECONDS)
        self._refused_at, self._credential = self._clock(), None
        return True

    def _is_recent(self, instant: float, seconds: float) -> bool:
        """Return whether less than `seconds` seconds have passed since `instant`.

        Returns False if `instant` is in the future, which happens after the clock was set back.
        """
        return 0 <= self._clock() - instant < seconds

    def _token(self) -> str:
        config = self._config
        if config.token_file:
            return self._token_of_file(config.token_file) or config.token
        if config.token or config.username or self._plugin is None:
            return config.token
        return self._exec_credential(self._plugin).token

    def _token_of_file(self, path: str) -> str:
        """Return the token in the file `path`.

        The file is read again after TOKEN_FILE_SECONDS, or after a call of `renew`. If the file
        cannot be read or is empty, the token that was read last is returned. If no token was ever
        read, the result is "". The caller then uses the token in the configuration. Raises
        ConnectionConfigError if the configuration contains no token either.
        """
        if not self._is_recent(self._file_read_at, TOKEN_FILE_SECONDS):
            self._file_read_at = self._clock()
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

    # --- exec plugins ----------------------------------------------------------------------

    def _exec_credential(self, plugin: ExecPlugin) -> Credential:
        """Return the stored credential, or a new one that `plugin` returns.

        `plugin` runs in this thread, and only if no credential is stored or if the stored one has
        expired. Raises ConnectionConfigError if `plugin` fails.
        """
        if self._credential is None or self._clock() >= self._valid_until:
            return self._keep(run_exec_plugin(self._config.name, plugin))
        return self._credential

    def _keep(self, credential: Credential) -> Credential:
        """Use `credential` until it expires, but at least for EXEC_PAUSE_SECONDS; return it.

        The minimum is needed for machines with a wrong clock, on which even a new credential seems
        to have expired.
        """
        self._credential, self._headers, self.has_worked = credential, None, True
        self._valid_until = self._renew_at = float("inf")
        if credential.expires_at is not None:
            now = self._clock()
            self._valid_until = max(credential.expires_at, now + EXEC_PAUSE_SECONDS)
            ahead = min(AHEAD_SECONDS_MAX, AHEAD_SHARE * (self._valid_until - now))
            self._renew_at = max(self._valid_until - ahead, now + EXEC_PAUSE_SECONDS)
        return credential

    def _execute(self, plugin: ExecPlugin) -> asyncio.Task[Credential]:
        """Return the task that runs `plugin` in a thread; start the task if there is none."""
        if self._execution is None:
            run = in_daemon_thread(partial(run_exec_plugin, self._config.name, plugin))
            self._execution = asyncio.get_running_loop().create_task(run)
            self._execution.add_done_callback(self._end_execution)
        return self._execution

    def _end_execution(self, task: asyncio.Task[Credential]) -> None:
        self._execution = None
        # A failure is reported only by `wait`. Before the credential expires, another run follows.
        if not task.cancelled() and task.exception() is None:
            self._keep(task.result())


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
