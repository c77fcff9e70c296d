"""Which nodes fall ill: those of a zone, some by name or label, or a share of them by lot.

    eu-1a              a zone, by what its nodes' label topology.kubernetes.io/zone says; where
                       several regions have a zone of that name, eu/eu-1a
    worker-3, pool=a   a node's name, or a selector
    0.6@eu-1a, 60%     that share of a zone's nodes, or of all; which ones, the seed decides

A share is rounded to the nearest number of nodes, and is at least one.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Final

from fairlead.apiserver.kind import NODE
from fairlead.engine.nodelifecycle.profile import BETA_REGION, BETA_ZONE, REGION, ZONE
from fairlead.whatif.chance import shuffled
from fairlead.whatif.input_error import InputError, known_names
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.manifest import Manifest

_PURPOSE: Final = 1 << 40  # of the draw; far from those of a scenario's events
_NO_ZONES: Final = f"the nodes have no zones (label {ZONE})"


def zone_nodes(source: str, zone: str, inventory: Inventory) -> list[str]:
    """The nodes of `zone`, by name. Raises InputError in the name of `source`."""
    by_place: dict[tuple[str, str], list[str]] = {}
    for node in inventory.of_kind(NODE):
        by_place.setdefault(_place(node), []).append(node.ref.name)
    found = [place for place in sorted(by_place) if zone and zone in _names(place)]
    if len(found) == 1:
        return sorted(by_place[found[0]])
    if found:
        which = ", ".join(f"{region}/{name}" for region, name in found)
        raise InputError(source, f"{zone} is in several regions; say which: {which}")
    names = {name for _, name in by_place if name}
    known = known_names(zone, names) if names else _NO_ZONES
    raise InputError(source, f"there is no zone {zone}; {known}")


def share_of_nodes(source: str, text: str, inventory: Inventory, seed: int) -> list[str]:
    """The nodes that `text` (`0.6@zone`, `60%`) chooses, by name; equal seeds choose alike.

    Raises InputError in the name of `source`.
    """
    amount, sign, zone = text.partition("@")
    share = _share(source, amount)
    if sign:
        names = zone_nodes(source, zone, inventory)
    else:
        names = sorted(node.ref.name for node in inventory.of_kind(NODE))
    if not names:
        raise InputError(source, "there are no nodes")
    count = int((share * len(names)).to_integral_value(ROUND_HALF_UP))
    return sorted(shuffled(names, seed, _PURPOSE)[: max(count, 1)])


def _share(source: str, text: str) -> Decimal:
    try:
        share = Decimal(text[:-1]) / 100 if text.endswith("%") else Decimal(text)
    except InvalidOperation:
        share = Decimal(0)
    if share.is_nan() or not 0 < share <= 1:
        problem = f"{text!r} is no share above 0 and up to 1, such as 0.6@zone-a or 25%"
        raise InputError(source, problem)
    return share


def _place(node: Manifest) -> tuple[str, str]:
    """Region and zone, "" where a node has none; the older labels count first, as upstream."""
    labels = node.value["metadata"].get("labels")
    if not isinstance(labels, dict):
        return ("", "")  # nothing, or nonsense that is refused when the node is loaded
    region = labels.get(BETA_REGION, labels.get(REGION, ""))
    return (str(region), str(labels.get(BETA_ZONE, labels.get(ZONE, ""))))


def _names(place: tuple[str, str]) -> tuple[str, ...]:
    region, zone = place
    return (zone, f"{region}/{zone}")
