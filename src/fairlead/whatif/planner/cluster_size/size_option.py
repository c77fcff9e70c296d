"""Reads and checks the options of `fairlead size`: failures to survive, share to keep free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.api.quantity import milli_value
from fairlead.api.text.count import counted
from fairlead.api.text.integer import parse_int64
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.kind import NODE
from fairlead.engine.state.node_info import NodeInfo
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_size.survival import Survival
from fairlead.whatif.snapshot.manifest import Manifest

_EFFORT_MAX: Final = 100_000
_NODES_MAX: Final = 100
# N in `--survive nodes=N` may always be as high as this, even if the file contains fewer nodes. The
# file may contain only one node of each pool, for example.
_NODES_OF_ANY_CLUSTER: Final = 10
_SHARE_MAX: Final = 0.9


def parse_survival(texts: Iterable[str]) -> Survival:
    """Return the failures that --survive names: zone, node, nodes=N.

    Raises InputError for any other text, and for a second `zone`. Also raises InputError if more
    than one of the texts is `node` or `nodes=N`.
    """
    zones, nodes = False, 0
    for text in texts:
        kind, _, number = text.partition("=")
        count = parse_int64(number) if kind == "nodes" and number.isdecimal() else None
        if (text == "zone" and zones) or (nodes and (text == "node" or count is not None)):
            raise InputError("--survive", f"names {'zone' if text == 'zone' else 'nodes'} twice")
        if text == "zone":
            zones = True
        elif text == "node":
            nodes = 1
        elif count is not None and 1 <= count <= _NODES_MAX:
            nodes = count
        else:
            problem = f"{text!r} is not zone, node or nodes=N with N from 1 to {_NODES_MAX}"
            raise InputError("--survive", problem)
    return Survival(zones, nodes)


def check_survival(survival: Survival, zones: Sequence[str]) -> None:
    """Raise InputError if the failures in `survival` are impossible in the cluster.

    `zones` has the zone of each node, or "" for a node without a zone. If `survival` includes the
    loss of a zone, some node must have a zone. The number of nodes that fail may be at most the
    number of nodes of the cluster. A number up to 10 is always accepted, because, for example, a
    hand-written cluster may have only one node of each pool.
    """
    nodes = len(zones)
    if survival.zones and not any(zones):
        raise InputError("--survive", f"zone: no node has a zone (label {ZONE})")
    most = max(nodes, _NODES_OF_ANY_CLUSTER)
    if survival.nodes > most:
        size = counted(nodes, "node")
        problem = f"nodes={survival.nodes} is more than {most:,}, the most for a cluster of {size}"
        raise InputError("--survive", problem)


def check_effort(effort: int) -> None:
    """Raise InputError if `effort`, the value of --effort, is too small or too large."""
    if not 1 <= effort <= _EFFORT_MAX:
        raise InputError("--effort", f"{effort} is not from 1 to {_EFFORT_MAX:,}")


def check_allocatable(infos: Iterable[NodeInfo], manifests: Iterable[Manifest]) -> None:
    """Raise InputError for the first node of `infos` that has no cpu or no memory to allocate.

    The error names the file that contains the node, according to `manifests`.
    """
    for info in infos:
        allocatable = info.node.status.allocatable
        for resource in ("cpu", "memory"):
            if milli_value(allocatable.get(resource, 0)) > 0:
                continue
            missing = f"{resource} is absent or 0" if allocatable else "is absent or empty"
            name = info.name
            source = next(
                (one.source for one in manifests if one.kind is NODE and one.ref.name == name), ""
            )
            raise InputError(
                source,
                f"{missing}, so the size of the node is unknown; --keep {name} leaves it as it is",
                object_name=f"Node {name}",
                field="status.allocatable",
            )


def parse_headroom(text: str) -> float:
    """Return the share of each node to keep free, from the text of --headroom; "" means 0.

    The text is a percentage or a number, such as 20% or 0.2.

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
