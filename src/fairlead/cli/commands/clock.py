"""`fairlead clock`: shows or controls the clock of a cluster that `fairlead up` runs."""

from __future__ import annotations

from math import isfinite, nan
from typing import Annotated, Any, Final, Literal

import msgspec
from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.local_cluster import CURRENT_CLUSTER, LocalConnection, request_local_cluster
from fairlead.whatif.input.error import InputError

PATH: Final = "/fairlead/clock"
_EXAMPLES: Final = {"advance": "5m", "speed": "60"}


def clock(
    action: Annotated[
        Literal["show", "advance", "speed", "pause", "resume"],
        Parameter(help="What to do with the clock."),
    ] = "show",
    amount: Annotated[
        str,
        Parameter(
            help="For advance: a duration, such as 5m. For speed: simulated seconds per real "
            "second, such as 60.",
            show_default=False,
            allow_leading_hyphen=True,  # the cluster refuses negative durations
        ),
    ] = "",
    /,
    *,
    connection: LocalConnection = CURRENT_CLUSTER,
) -> int:
    """Show or control the clock of a cluster that `fairlead up` runs.

    The action 'show' prints the time and the speed. 'advance' moves the clock forward by AMOUNT.
    Pods start and finish, and tolerations and leases expire, as if this time had passed. The
    command returns when all this has happened. 'speed' sets how fast the clock runs. 'pause' stops
    the clock, and 'resume' starts it again.

    Try:

        fairlead clock advance 5m
        fairlead clock speed 60
    """
    change = _change(action, amount)
    state = request_local_cluster(connection, PATH, change, _State)
    pace = "paused" if state.paused else f"speed {state.speed:g}"
    print(f"{state.now}  {pace}")
    return exit_code.SUCCESS


class _State(msgspec.Struct, frozen=True):
    """The state of the clock, as the cluster returns it."""

    now: str
    speed: float
    paused: bool


def _change(action: str, amount: str) -> dict[str, Any] | None:
    """Return the body of the request for `action`; None if the clock is only shown.

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
