"""The options of `fairlead size`: the failures to survive, and the share to keep free."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_size.survival import Survival

EFFORT_MAX: Final = 100_000
_NODES_MAX: Final = 100
_NODES_OF_ANY_CLUSTER: Final = 10  # so many may fail in a plan that has one node of each pool
_SHARE_MAX: Final = 0.9


def parse_survival(texts: Iterable[str]) -> Survival:
    """Return the failures that --survive names: zone, node, nodes=N.

    Raises InputError for any other text.
    """
    zones, nodes = False, 0
    for text in texts:
        kind, equals, number = text.partition("=")
        if text == "zone":
            zones = True
        elif text == "node":
            nodes = max(nodes, 1)
        elif kind == "nodes" and equals and number.isdigit() and 1 <= int(number) <= _NODES_MAX:
            nodes = max(nodes, int(number))
        else:
            problem = f"{text!r} is not zone, node or nodes=N with N from 1 to {_NODES_MAX}"
            raise InputError("--survive", problem)
    return Survival(zones, nodes)


def check_survival(survival: Survival, nodes: int) -> None:
    """Raise InputError if more nodes than the `nodes` of today are to fail at a time.

    Up to 10 may always fail, so that a file can have one node of each pool.
    """
    if survival.nodes > max(nodes, _NODES_OF_ANY_CLUSTER):
        have = "the only node" if nodes == 1 else f"the {nodes:,} nodes"
        problem = f"nodes={survival.nodes} is more than {have} of the cluster"
        raise InputError("--survive", f"{problem} (and than {_NODES_OF_ANY_CLUSTER})")


def parse_headroom(text: str) -> float:
    """Return the share in --headroom, written as 20% or 0.2; "" means 0.

    Raises InputError for text that is not a share from 0 to 90%.
    """
    if not text:
        return 0.0
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= _SHARE_MAX:
        raise InputError("--headroom", f"{text!r} is not a share from 0 to 90%, such as 20%")
    return share
