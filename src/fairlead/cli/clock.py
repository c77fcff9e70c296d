"""`fairlead clock`: the clock of a cluster that `fairlead up` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead.cli.options import named


def clock(
    act: Annotated[
        Literal["show", "advance", "speed", "pause", "resume"],
        Parameter(name="ACT", help="What to do with it."),
    ] = "show",
    amount: Annotated[
        str, Parameter(name="AMOUNT", help="How far to advance (5m), or the new speed (60).")
    ] = "",
    *,
    kubeconfig: Annotated[
        Path | None, named("FILE", "The cluster's kubeconfig (default: KUBECONFIG).")
    ] = None,
) -> int:
    """Show or steer the time in a cluster that `fairlead up` runs.

    `advance` lets the time pass at once, and everything happens that falls due in it: pods start
    and end, tolerations expire, leases run out. It comes back when all has happened.

    Try:

        fairlead clock advance 5m

        fairlead clock speed 60
    """
    from fairlead.cli.clocking import steer

    return steer(act, amount, kubeconfig)
