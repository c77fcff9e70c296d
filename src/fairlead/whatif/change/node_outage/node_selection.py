"""Selects the nodes of a failure: a zone, or a random fraction of nodes.

    eu-1a              a zone by its label topology.kubernetes.io/zone; eu/eu-1a if several
                       regions have a zone of that name
    0.6@eu-1a, 60%     a fraction of a zone's nodes, or of all nodes; the seed selects the nodes

A fraction is rounded to the nearest number of nodes, but is at least one node.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import partial
from typing import Final

from fairlead.api.well_known_label import BETA_REGION, BETA_ZONE, REGION, ZONE, region_and_zone
from fairlead.apiserver.kind import NODE
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.input.seeded_choice import shuffled
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

# The number of this purpose (the selection of nodes) in `seeded_choice`. The events of scenarios
# use other numbers.
_PURPOSE: Final = 1 << 40
_NO_ZONES: Final = f"the nodes have no zones (label {ZONE})"


def zone_nodes(source: str, zone: str, inventory: Inventory) -> list[str]:
    """Return the nodes of `zone`, sorted by name.

    Raises InputError if there is no such zone; the message names the option or file `source`.
    """
    by_zone: dict[tuple[str, str], list[str]] = {}
    for node in inventory.of_kind(NODE):
        by_zone.setdefault(_region_and_zone(node), []).append(node.ref.name)
    found = [key for key in sorted(by_zone) if zone and zone in (key[1], "/".join(key))]
    if len(found) == 1:
        return sorted(by_zone[found[0]])
    if found:
        which = ", ".join(f"{region}/{name}" for region, name in found)
        raise InputError(source, f"{zone} is in several regions; say which: {which}")
    names = {name for _, name in by_zone if name}
    known = known_names(zone, names) if names else _NO_ZONES
    problem = f"there is no zone {zone}" if zone.strip() else "the name of the zone is missing"
    raise InputError(source, f"{problem}; {known}")


def labels_of_zone(nodes: Iterable[str], inventory: Inventory) -> dict[str, str]:
    """Return the labels that put new nodes into the zone to which all `nodes` belong.

    If another region has a zone of the same name, the label of the region is included. Returns {}
    if `nodes` is empty.
    """
    found = [one for one in map(partial(inventory.get, NODE, ""), nodes) if one is not None]
    if not found:
        return {}
    region, zone = _region_and_zone(found[0])
    in_zone = (one for one in inventory.of_kind(NODE) if _region_and_zone(one)[1] == zone)
    is_ambiguous = any(_region_and_zone(one)[0] != region for one in in_zone)
    marks = [(zone, (ZONE, BETA_ZONE))]
    if is_ambiguous:
        marks.append((region, (REGION, BETA_REGION)))
    labels = found[0].labels
    # New nodes have the beta label only if the present nodes do not have the current label.
    chosen = {
        next((key for key in keys if labels.get(key) == value), ""): value for value, keys in marks
    }
    return {key: value for key, value in chosen.items() if key}


def fraction_of_nodes(source: str, text: str, inventory: Inventory, seed: int) -> list[str]:
    """Return the nodes that `text` (`0.6@zone`, `60%`) selects, sorted by name.

    Raises InputError; the message names the option or file `source`.
    """
    amount, sign, zone = text.partition("@")
    fraction = _fraction(source, amount)
    if sign:
        names = zone_nodes(source, zone, inventory)
    else:
        names = sorted(node.ref.name for node in inventory.of_kind(NODE))
    if not names:
        raise InputError(source, "there are no nodes")
    count = int((fraction * len(names)).to_integral_value(ROUND_HALF_UP))
    return sorted(shuffled(names, seed, _PURPOSE)[: max(count, 1)])


def _fraction(source: str, text: str) -> Decimal:
    try:
        fraction = Decimal(text[:-1]) / 100 if text.endswith("%") else Decimal(text)
    except InvalidOperation:
        fraction = Decimal(0)
    if fraction.is_nan() or not 0 < fraction <= 1:
        problem = f"{text!r} is not a fraction above 0 and up to 1, such as 0.6@zone-a or 25%"
        raise InputError(source, problem)
    return fraction


def _region_and_zone(node: Manifest) -> tuple[str, str]:
    """Return (region, zone) of `node`; a part is "" if the node lacks the label."""
    return region_and_zone(node.labels)
