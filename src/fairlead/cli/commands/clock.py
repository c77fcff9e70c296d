"""`fairlead clock`: shows or controls the clock of a cluster that `fairlead up` runs."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.options.connection import ConnectionOptions, connection_of
from fairlead.cli.options.parameter import named
from fairlead.whatif.input.error import InputError

if TYPE_CHECKING:
    from fairlead.client.connection import ConnectionConfig

PATH: Final = "/fairlead/clock"
# A response to an advance may take long: it is sent when everything due in that time has happened.
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

    `advance` moves the clock forward and runs everything that is due until then: pods start and
    finish, tolerations and leases expire. It returns when this is done.

    Try:

        fairlead clock advance 5m

        fairlead clock speed 60
    """
    change = _change(action, amount)
    source, config = _connection(kubeconfig)
    state = asyncio.run(_request(source, config, change))
    pace = "paused" if state.paused else f"speed {state.speed:g}"
    print(f"{state.now}  {pace}")
    return exit_code.SUCCESS


class _State(msgspec.Struct, frozen=True):
    """The state of the clock, as the cluster reports it."""

    now: str
    speed: float
    paused: bool


def _change(action: str, amount: str) -> dict[str, Any] | None:
    """Return the body of the request; None shows the clock without changing it.

    Raises InputError.
    """
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


def _connection(kubeconfig: Path | None) -> tuple[str, ConnectionConfig]:
    """Return the name of the kubeconfig and its current context's connection. Raises InputError.

    ~/.kube/config is not read: it usually names a real cluster, which has no clock.
    """
    source = os.environ.get(VARIABLE, "") if kubeconfig is None else str(kubeconfig)
    if not source:
        raise InputError("--kubeconfig", f"is missing, and {VARIABLE} is not set")
    options = ConnectionOptions(kubeconfig=None if kubeconfig is None else source)
    return source, replace(connection_of(options), name=source)


async def _request(source: str, config: ConnectionConfig, change: dict[str, Any] | None) -> _State:
    """Return the response of the cluster. Raises InputError if it refuses or does not answer."""
    from fairlead.client.error import ConnectionConfigError, RequestError
    from fairlead.client.rest_client import RestClient

    try:
        async with RestClient(config, read_seconds_max=TIMEOUT_S) as client:
            if change is None:
                answer = await client.get(PATH)
            else:
                answer = await client.post(PATH, msgspec.json.encode(change))
        return msgspec.json.decode(answer, type=_State)
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem, field=cause.field) from None
    except RequestError as cause:
        problem = (
            cause.message if cause.code else f"{cause.server} does not answer: {cause.message}"
        )
        raise InputError(source, problem) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = f"{config.server} does not answer with a clock; is it a cluster of fairlead up?"
        raise InputError(source, problem) from None
