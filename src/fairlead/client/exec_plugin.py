"""Exec credential plugins: commands that print an ExecCredential.

upstream: client-go/plugin/pkg/client/auth/exec/exec.go
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from threading import Thread
from typing import Any, Final

from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp
from fairlead.client.connection import FILE_BYTES_MAX, ExecPlugin
from fairlead.client.error import ConnectionConfigError

EXEC_SECONDS_MAX: Final = 60
# How long to wait for the end of the output after the plugin has ended. A process that the plugin
# leaves behind may keep the output open.
_OUTPUT_AWAITED_S: Final = 1.0
_RUNNING: Final[set[subprocess.Popen[bytes]]] = set()


@atexit.register
def _kill_plugins() -> None:
    """Kill the plugins that still run; called when this process ends."""
    for process in tuple(_RUNNING):
        process.kill()


class Credential(Struct, frozen=True):
    """The output of an exec plugin.

    `expires_at` is in seconds since 1970; it is None if the credential never expires.
    """

    token: str = ""
    certificate: str = ""
    key: str = ""
    expires_at: float | None = None


def run_exec_plugin(source: str, plugin: ExecPlugin) -> Credential:
    """Run a credential plugin and return its credential.

    `source` is the name of the connection, for error messages. Raises ConnectionConfigError if the
    plugin fails, does not print a valid ExecCredential, or runs for more than EXEC_SECONDS_MAX
    seconds. A plugin that can prompt the user has no time limit.
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
        code, output = _run(plugin, environment, is_interactive=is_interactive)
    except FileNotFoundError:
        hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
        problem = f"the credential plugin {plugin.command} was not found{hint}"
        raise ConnectionConfigError(source, " ".join(problem.split())) from None
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or cause
        problem = f"the credential plugin {plugin.command} cannot be run: {reason}"
        raise ConnectionConfigError(source, problem) from None
    except subprocess.TimeoutExpired:
        problem = f"the credential plugin {plugin.command} took over {EXEC_SECONDS_MAX} seconds"
        raise ConnectionConfigError(source, problem) from None
    if len(output) > FILE_BYTES_MAX:
        size_max = f"{FILE_BYTES_MAX >> 20} MiB"
        problem = f"the credential plugin {plugin.command} printed more than {size_max}"
        raise ConnectionConfigError(source, problem)
    if code:
        problem = f"the credential plugin {plugin.command} failed with exit code {code}"
        raise ConnectionConfigError(source, problem)
    return _read_credential(source, plugin, output)


def _run(
    plugin: ExecPlugin, environment: Mapping[str, str], *, is_interactive: bool
) -> tuple[int, bytes]:
    """Return the exit code and the output of `plugin`, which is killed if it prints too much.

    Raises OSError or ValueError if the plugin cannot be started. Raises TimeoutExpired if the
    plugin runs for more than EXEC_SECONDS_MAX seconds and `is_interactive` is False.
    """
    process = subprocess.Popen(  # noqa: S603 - the user's kubeconfig contains the command
        [plugin.command, *plugin.arguments],
        env=environment,
        stdin=None if is_interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    output = bytearray()

    def read() -> None:
        assert process.stdout is not None
        with process.stdout:
            while len(output) <= FILE_BYTES_MAX and (chunk := process.stdout.read(1 << 16)):
                output.extend(chunk)
        if len(output) > FILE_BYTES_MAX:
            process.kill()

    _RUNNING.add(process)
    reader = Thread(target=read, daemon=True)
    reader.start()
    try:
        code = process.wait(None if is_interactive else EXEC_SECONDS_MAX)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        _RUNNING.discard(process)
    reader.join(_OUTPUT_AWAITED_S)
    return code, bytes(output)


def _read_credential(source: str, plugin: ExecPlugin, output: bytes) -> Credential:
    def refuse(problem: str) -> ConnectionConfigError:
        return ConnectionConfigError(source, f"the credential plugin {plugin.command} {problem}")

    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        # The output is not shown, because it may be a bare token.
        what = f"{len(output)} bytes of other text" if output.strip() else "nothing"
        raise refuse(f"printed {what} instead of JSON") from None
    match value:
        case {"kind": "ExecCredential", "apiVersion": plugin.api_version, "status": dict(status)}:
            pass
        case _:
            raise refuse(f"did not print an ExecCredential of {plugin.api_version} with a status")
    texts = {}
    for name in ("token", "clientCertificateData", "clientKeyData"):
        texts[name] = status.get(name) or ""
        if not isinstance(texts[name], str):
            raise refuse(f"printed a {name} that is not text")
    token, certificate, key = texts.values()
    if not (token.isascii() and token.isprintable()):
        raise refuse("printed a token with characters that are not printable ASCII")
    if not token and not (certificate and key):
        raise refuse("printed neither a token nor a client certificate with its key")
    expires = status.get("expirationTimestamp")
    try:
        expires_at = parse_timestamp(expires) / NANOSECONDS_PER_SECOND if expires else None
    except (ValueError, AttributeError, TypeError):
        raise refuse(f"printed a malformed expirationTimestamp: {expires!r}") from None
    return Credential(token, certificate, key, expires_at)
