"""What `fairlead clock` does: find the cluster, ask it, say what time it is there."""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from math import isfinite, nan
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import yaml

from fairlead.cli import exit_code
from fairlead.whatif.input_error import InputError

PATH: Final = "/fairlead/clock"
TIMEOUT_S: Final = 600
VARIABLE: Final = "KUBECONFIG"


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Where a cluster is, and how to come in: by a token, or a certificate and its key (PEM)."""

    source: str
    server: str
    token: str
    authority: str
    pair: str


class _State(msgspec.Struct, frozen=True):
    """What the clock says of itself."""

    now: str
    speed: float
    paused: bool


def steer(act: str, amount: str, kubeconfig: Path | None) -> int:
    """Do it and print the time; the exit code. Raises InputError."""
    wish = _wish(act, amount)
    state = _asked(_cluster(_path(kubeconfig)), wish)
    pace = "paused" if state.paused else f"speed {state.speed:g}"
    print(f"{state.now}  {pace}")
    return exit_code.SUCCESS


def _wish(act: str, amount: str) -> dict[str, Any] | None:
    """What to ask for, None to look only. Raises InputError."""
    if act in _EXAMPLES and not amount:
        raise InputError("clock", f"{act} needs an amount, such as {_EXAMPLES[act]}")
    if act not in _EXAMPLES and amount:
        raise InputError("clock", f"{act} takes no amount such as {amount!r}")
    match act:
        case "advance":
            return {"advance": amount}
        case "speed":
            return {"speed": _speed(amount)}
        case "pause" | "resume":
            return {"paused": act == "pause"}
        case _:
            return None


def _speed(amount: str) -> float:
    try:
        speed = float(amount)
    except ValueError:
        speed = nan
    if not isfinite(speed):
        raise InputError("clock", f"{amount!r} is no speed such as 60")
    return speed


_EXAMPLES: Final = {"advance": "5m", "speed": "60"}


def _path(kubeconfig: Path | None) -> Path:
    if kubeconfig is not None:
        return kubeconfig
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    if not named:
        raise InputError("--kubeconfig", f"is missing, and {VARIABLE} names none")
    # As kubectl does, files that are not there are passed over.
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
        raise InputError(source, "is no kubeconfig of a cluster that fairlead up runs") from None


def _decoded(fields: dict[str, str], name: str) -> str:
    return base64.b64decode(fields.get(name, "")).decode()


def _named(config: Any, field: str, name: str) -> Any:
    rows = {row["name"]: row for row in config[field]}
    return rows[name]


def _check(server: str, token: str) -> None:
    """Raise ValueError or TypeError for what nobody could be asked with."""
    place = urlsplit(server)
    if place.scheme not in ("http", "https") or not place.hostname or place.port == 0:
        raise ValueError(server)
    if not (token.isascii() and token.isprintable()):
        raise ValueError("token")


def _asked(cluster: _Cluster, wish: dict[str, Any] | None) -> _State:
    """The answer of the cluster. Raises InputError for a refusal, or for nobody there."""
    headers = {"Accept": "application/json"}
    if cluster.token:
        headers["Authorization"] = f"Bearer {cluster.token}"
    body = None if wish is None else msgspec.json.encode(wish)
    connection = _connection(cluster)
    try:
        connection.request("GET" if wish is None else "POST", PATH, body, headers)
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
    """The message of a Status, if `answer` is one."""
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
            problem = "certificate-authority-data is no certificate"
            raise InputError(cluster.source, problem) from None
        _show(context, cluster)
        return HTTPSConnection(place.hostname or "", place.port, timeout=TIMEOUT_S, context=context)
    return HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT_S)


def _show(context: ssl.SSLContext, cluster: _Cluster) -> None:
    """Let connections show the user's certificate, if there is one. Raises InputError."""
    if not cluster.pair:
        return
    with NamedTemporaryFile("w") as file:  # which nobody else can read
        file.write(cluster.pair)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError:
            problem = "client-certificate-data and client-key-data are no certificate and its key"
            raise InputError(cluster.source, problem) from None
