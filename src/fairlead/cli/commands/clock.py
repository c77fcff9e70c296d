"""`fairlead clock`: shows or controls the clock of a cluster that `fairlead up` runs."""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from math import isfinite, nan
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
import yaml
from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.options.parameter import named
from fairlead.whatif.input.error import InputError

PATH: Final = "/fairlead/clock"
TIMEOUT_S: Final = 600
VARIABLE: Final = "KUBECONFIG"
_EXAMPLES: Final = {"advance": "5m", "speed": "60"}


def clock(
    action: Annotated[
        Literal["show", "advance", "speed", "pause", "resume"],
        Parameter(help="What to do with the clock."),
    ] = "show",
    amount: Annotated[
        str, Parameter(help="How far to advance (5m), or the new speed (60).", show_default=False)
    ] = "",
    /,
    *,
    kubeconfig: Annotated[
        Path | None, named("FILE", "The cluster's kubeconfig (default: KUBECONFIG).")
    ] = None,
) -> int:
    """Show or control the clock of a cluster that `fairlead up` runs.

    `advance` moves the clock forward at once. Everything due in that time happens: pods start and
    finish, tolerations and leases expire. The command returns when all of that is done.

    Try:

        fairlead clock advance 5m

        fairlead clock speed 60
    """
    change = _change(action, amount)
    state = _request(_cluster(_path(kubeconfig)), change)
    pace = "paused" if state.paused else f"speed {state.speed:g}"
    print(f"{state.now}  {pace}")
    return exit_code.SUCCESS


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A cluster and the credentials for it: a token, or a certificate with its key (PEM)."""

    source: str
    server: str
    token: str
    authority: str
    pair: str


class _State(msgspec.Struct, frozen=True):
    """The state of the clock, as the cluster reports it."""

    now: str
    speed: float
    paused: bool


def _change(action: str, amount: str) -> dict[str, Any] | None:
    """The body of the request, None to only show the clock. Raises InputError."""
    if action in _EXAMPLES and not amount:
        raise InputError("clock", f"{action} needs an amount, such as {_EXAMPLES[action]}")
    if action not in _EXAMPLES and amount:
        raise InputError("clock", f"{action} takes no amount, but {amount!r} was given")
    match action:
        case "advance":
            return {"advance": amount}
        case "speed":
            return {"speed": _speed(amount)}
        case "pause" | "resume":
            return {"paused": action == "pause"}
        case _:
            return None


def _speed(amount: str) -> float:
    try:
        speed = float(amount)
    except ValueError:
        speed = nan
    if not isfinite(speed):
        raise InputError("clock", f"{amount!r} is not a speed such as 60")
    return speed


def _path(kubeconfig: Path | None) -> Path:
    if kubeconfig is not None:
        return kubeconfig
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    if not named:
        raise InputError("--kubeconfig", f"is missing, and {VARIABLE} is not set")
    # Missing files are skipped, as kubectl does.
    return next((path for path in named if path.exists()), named[0])


def _cluster(path: Path) -> _Cluster:
    """The current context's cluster and user. Raises InputError."""
    source = str(path)
    try:
        config = yaml.safe_load(path.read_text())
        context = _named(config, "contexts", config["current-context"])["context"]
        cluster = _named(config, "clusters", context["cluster"])["cluster"]
        user = _named(config, "users", context["user"])["user"]
        authority = _decoded(cluster, "certificate-authority-data")
        pair = "".join(_decoded(user, f"client-{part}-data") for part in ("certificate", "key"))
        token = user.get("token", "")
        _check(cluster["server"], token)
        return _Cluster(source, cluster["server"], token, authority, pair)
    except OSError as cause:
        raise InputError(source, cause.strerror or str(cause)) from None
    except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError):
        raise InputError(source, "is not a kubeconfig written by fairlead up") from None


def _decoded(fields: dict[str, str], name: str) -> str:
    return base64.b64decode(fields.get(name, "")).decode()


def _named(config: Any, field: str, name: str) -> Any:
    rows = {row["name"]: row for row in config[field]}
    return rows[name]


def _check(server: str, token: str) -> None:
    """Raise ValueError or TypeError for an unusable address or token."""
    place = urlsplit(server)
    if place.scheme not in ("http", "https") or not place.hostname or place.port == 0:
        raise ValueError(server)
    if not (token.isascii() and token.isprintable()):
        raise ValueError("token")


def _request(cluster: _Cluster, change: dict[str, Any] | None) -> _State:
    """The response of the cluster. Raises InputError if it refuses or does not answer."""
    headers = {"Accept": "application/json"}
    if cluster.token:
        headers["Authorization"] = f"Bearer {cluster.token}"
    body = None if change is None else msgspec.json.encode(change)
    connection = _connection(cluster)
    try:
        connection.request("GET" if change is None else "POST", PATH, body, headers)
        response = connection.getresponse()
        answer = response.read()
        state = msgspec.json.decode(answer, type=_State) if response.status == 200 else None
    except (OSError, HTTPException, msgspec.DecodeError) as cause:
        raise InputError(cluster.source, f"{cluster.server} does not answer: {cause}") from None
    finally:
        connection.close()
    if state is None:
        raise InputError(cluster.source, _refusal(answer))
    return state


def _refusal(answer: bytes) -> str:
    """The message of the Status in `answer`; "refused" if it is not a Status."""
    try:
        return str(msgspec.json.decode(answer, type=dict[str, Any]).get("message", "refused"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "refused"


def _connection(cluster: _Cluster) -> HTTPConnection:
    place = urlsplit(cluster.server)
    if place.scheme == "https":
        try:
            context = ssl.create_default_context(cadata=cluster.authority or None)
        except ssl.SSLError:
            problem = "certificate-authority-data is not a certificate"
            raise InputError(cluster.source, problem) from None
        _load_certificate(context, cluster)
        return HTTPSConnection(place.hostname or "", place.port, timeout=TIMEOUT_S, context=context)
    return HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT_S)


def _load_certificate(context: ssl.SSLContext, cluster: _Cluster) -> None:
    """Load the user's client certificate, if there is one. Raises InputError."""
    if not cluster.pair:
        return
    with NamedTemporaryFile("w") as file:  # readable by this user only
        file.write(cluster.pair)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError:
            problem = (
                "client-certificate-data and client-key-data are not a certificate and its key"
            )
            raise InputError(cluster.source, problem) from None
