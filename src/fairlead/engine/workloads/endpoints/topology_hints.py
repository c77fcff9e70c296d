"""TopologyHints: for each endpoint of a Service in mode Auto, the zone whose clients use it.

Each zone gets a share of the endpoints in proportion to the CPU of its ready nodes. Each endpoint
first gets a hint for its own zone. Then zones with more endpoints than their share give some
endpoints to zones with fewer endpoints than their share. If a zone's clients would overload its
endpoints by more than 20 %, the Service gets no hints.

Example: zones a and b with equal CPU, 3 endpoints in a and 1 in b. The share of each zone is 2, so
one endpoint in a gets a hint for b.

If no zone would get more hints than its share allows, an unchanged slice keeps its hints.

upstream: staging/src/k8s.io/endpointslice/topologycache/{topologycache,utils,sliceinfo}.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import Node
from fairlead.api.pods.facts import condition
from fairlead.api.quantity import milli_value
from fairlead.api.well_known_label import ZONE
from fairlead.engine.workloads.work_queue import Key

OVERLOAD: Final = 0.2
# A zone gives (receives) an endpoint only if it has at least half an endpoint too many (too few).
_GIVEN_MIN: Final = 0.5
ENABLED: Final = "Topology Aware Hints has been enabled"
DISABLED: Final = "Topology Aware Hints has been disabled"
_NO_ZONE: Final = "One or more endpoints do not have a zone specified"
_NO_NODES: Final = (
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
)
_TOO_FEW: Final = "Insufficient number of endpoints"
_OVERLOADED: Final = (
    "Unable to allocate minimum required endpoints to each zone without exceeding overload "
    "threshold"
)
_EXCLUDED: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

Entries = list[Json]


class NodeShare(Struct, frozen=True):
    """The zone and the allocatable CPU (in millicores) of a node; "" and 0 if unknown."""

    zone: str
    milli_cpu: int


class HintsError(ValueError):
    """Raised if a Service cannot have hints; the message is in upstream's words."""


class _Share(Struct):
    """The minimum, maximum and desired number of endpoints with a hint for a zone."""

    minimum: int
    desired: float
    maximum: int = 0


class HintedSlices(Struct):
    """The slices of a Service in one sync.

    `written` contains the endpoints of slices that the sync creates or updates, new slices first.
    `unchanged` contains the endpoints of the other slices, by slice name. If the hints of an
    unchanged slice must change, `rewrite` moves its endpoints to `written`. `rewritten` contains
    the moved endpoints, by slice name. Hints are added to the endpoints in `written` themselves,
    not to copies.
    """

    written: list[Entries]
    unchanged: dict[str, Entries]
    rewritten: dict[str, Entries] = field(default_factory=dict)

    def rewrite(self, name: str) -> None:
        """Remove the hints of the slice `name`, and move it from `unchanged` to `written`."""
        entries = [_without_hints(one) for one in self.unchanged.pop(name)]
        self.rewritten[name] = entries
        self.written.append(entries)

    def remove_hints(self) -> None:
        """Remove all hints."""
        for name in [*self.unchanged]:
            if any("hints" in one for one in self.unchanged[name]):
                self.rewrite(name)
        for entries in self.written:
            for one in entries:
                one.pop("hints", None)

    def ready(self) -> int:
        """Return the number of ready endpoints."""
        lists = (*self.written, *self.unchanged.values())
        return sum(_is_ready(one) for entries in lists for one in entries)


class TopologyHints(Struct):
    """Computes hints from the CPU of each zone."""

    _nodes: dict[str, NodeShare] = field(default_factory=dict)
    _hints: dict[Key, dict[str, int]] = field(default_factory=dict)
    # Each zone's share of the CPU; {} if a node's zone or CPU is unknown or there is one zone.
    _ratios: dict[str, float] = field(default_factory=dict)

    def observe_node(self, node: Node) -> list[Key]:
        """Store a node; return the Services whose hints must be computed again."""
        name, share = node.metadata.name, _share_of(node)
        if share == self._nodes.get(name):
            return []
        if share is None:
            del self._nodes[name]
        else:
            self._nodes[name] = share
        return self._weigh()

    def forget_node(self, name: str) -> list[Key]:
        """Remove a node; return the Services whose hints must be computed again."""
        return self._weigh() if self._nodes.pop(name, None) is not None else []

    def forget(self, service: Key) -> bool:
        """Drop the hints of `service`; return whether it had hints."""
        return self._hints.pop(service, None) is not None

    def add(self, service: Key, slices: HintedSlices) -> None:
        """Add hints to the `slices` of `service`.

        If hints are not possible, remove the hints of `slices` and raise HintsError.
        """
        try:
            hints = _distributed(slices, self._shares(slices.ready()))
        except HintsError:
            self.forget(service)
            slices.remove_hints()
            raise
        self._hints[service] = hints

    def _weigh(self) -> list[Key]:
        """Compute each zone's share of the CPU; return the Services with an overloaded zone."""
        cpu: dict[str, int] = {}
        for share in self._nodes.values():
            cpu[share.zone] = cpu.get(share.zone, 0) + share.milli_cpu
        is_known = all(one.zone and one.milli_cpu for one in self._nodes.values())
        total = sum(cpu.values())
        has_several = is_known and len(cpu) > 1
        self._ratios = {zone: cpu[zone] / total for zone in sorted(cpu)} if has_several else {}
        return [key for key, hints in self._hints.items() if _is_overloaded(hints, self._ratios)]

    def _shares(self, endpoints: int) -> dict[str, _Share]:
        """Return each zone's share of the ready endpoints, whose number is `endpoints`.

        Raises HintsError if hints are not possible.
        """
        if not self._ratios:
            raise HintsError(_NO_NODES)
        counts = f"({endpoints} endpoints, {len(self._ratios)} zones)"
        if len(self._ratios) > endpoints:
            raise HintsError(f"{_TOO_FEW} {counts}")
        shares = {}
        for zone, ratio in self._ratios.items():
            desired = ratio * endpoints
            minimum = ceil(desired * (1 / (1 + OVERLOAD)))
            shares[zone] = _Share(minimum, max(desired, float(minimum)))
        left = endpoints - sum(one.minimum for one in shares.values())
        if left < 0:
            raise HintsError(f"{_OVERLOADED} {counts}")
        for one in shares.values():
            one.maximum = one.minimum + left
        return shares


def _share_of(node: Node) -> NodeShare | None:
    """Return the zone and CPU of `node`; None for an unready node or a control plane node."""
    labels, ready = node.metadata.labels, condition(node, "Ready")
    if any(label in labels for label in _EXCLUDED) or ready is None or ready.status != "True":
        return None
    return NodeShare(labels.get(ZONE, ""), milli_value(node.status.allocatable.get("cpu", 0)))


def _is_overloaded(hints: Mapping[str, int], ratios: Mapping[str, float]) -> bool:
    """Return whether a Service's hints must be computed again because a zone is overloaded.

    `hints` maps each zone to the number of hints for this zone. `ratios` maps each zone to its
    share of the CPU. A zone is overloaded if it has too few hints for its share.
    """
    total = sum(hints.values())
    return bool(hints) and (
        not ratios
        or any(
            hints.get(zone, -1) < ceil(total * ratio * (1 / (1 + OVERLOAD)))
            for zone, ratio in ratios.items()
        )
    )


def _distributed(slices: HintedSlices, shares: Mapping[str, _Share]) -> dict[str, int]:
    """Set the hints of `slices`; return the number of hints for each zone.

    Raises HintsError if a ready endpoint has no zone.
    """
    hints: dict[str, int] = {}
    for name in [*slices.unchanged]:
        found = _hints_of(slices.unchanged[name], hints, shares)
        if found is None:
            slices.rewrite(name)
        else:
            for zone, count in found.items():
                hints[zone] = hints.get(zone, 0) + count
    ready = [one for entries in slices.written for one in entries if _is_ready(one)]
    for one in ready:
        zone = one.get("zone", "")
        if not zone:
            raise HintsError(_NO_ZONE)
        hints[zone] = hints.get(zone, 0) + 1
        _hint(one, zone)
    _exchange(ready, hints, *_givers_and_receivers(shares, hints))
    return hints


def _hints_of(
    entries: Sequence[Json], hints: Mapping[str, int], shares: Mapping[str, _Share]
) -> dict[str, int] | None:
    """Return the number of hints by zone in the slice with the endpoints `entries`.

    `hints` has the number of hints for each zone in all slices that have already been examined.
    Returns None if the slice cannot keep its hints, for one of three reasons: a ready endpoint has
    no hint, a ready endpoint has a hint for a zone without a share, or a zone would get more hints
    than its share allows.
    """
    found: dict[str, int] = {}
    for one in entries:
        if not _is_ready(one):
            continue
        zones = [zone["name"] for zone in (one.get("hints") or {}).get("forZones") or ()]
        if not zones or any(zone not in shares for zone in zones):
            return None
        for zone in zones:
            found[zone] = found.get(zone, 0) + 1
    fits = all(count + hints.get(zone, 0) <= shares[zone].maximum for zone, count in found.items())
    return found if fits else None


def _givers_and_receivers(
    shares: Mapping[str, _Share], hints: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many endpoints each zone gives to others, and how many each zone receives.

    `hints` has the current number of hints for each zone.
    """
    differences = {zone: hints.get(zone, 0) - one.desired for zone, one in shares.items()}
    surplus = {zone: difference for zone, difference in differences.items() if difference > 0}
    lack = {zone: -difference for zone, difference in differences.items() if difference < 0}
    givers: dict[str, int] = {}
    receivers: dict[str, int] = {}
    while surplus and lack:
        giver, receiver = max(surplus, key=surplus.__getitem__), max(lack, key=lack.__getitem__)
        amounts = surplus[giver], lack[receiver]
        # Each step takes 1 from a surplus and 1 from a lack, so this loop ends.
        if min(amounts) < _GIVEN_MIN or max(amounts) < 1:
            break
        givers[giver] = givers.get(giver, 0) + 1
        receivers[receiver] = receivers.get(receiver, 0) + 1
        surplus[giver] -= 1
        lack[receiver] -= 1
    return givers, receivers


def _exchange(
    ready: Iterable[Json], hints: dict[str, int], givers: dict[str, int], receivers: dict[str, int]
) -> None:
    """Change hints so that clients in the zones `receivers` use endpoints in the zones `givers`.

    `ready` are the ready endpoints; their hints are set in place. `givers` and `receivers` map a
    zone to the number of endpoints that the zone must still give or receive. `hints` maps a zone to
    the number of endpoints whose hint names this zone. These three mappings are updated.
    """
    for one in ready:
        zone = one["zone"]
        if not receivers:
            return
        if givers.get(zone, 0) > 0:
            to = min(receivers)
            _hint(one, to)
            givers[zone] -= 1
            receivers[to] -= 1
            if not receivers[to]:
                del receivers[to]
            hints[to] = hints.get(to, 0) + 1
            hints[zone] -= 1


def _hint(entry: Json, zone: str) -> None:
    entry["hints"] = {"forZones": [{"name": zone}]}


def _is_ready(entry: Json) -> bool:
    return bool((entry.get("conditions") or {}).get("ready"))


def _without_hints(entry: Json) -> Json:
    return {key: part for key, part in entry.items() if key != "hints"}


def without_hints(entries: Collection[Json]) -> Entries:
    """Return `entries` without their hints."""
    return [_without_hints(one) for one in entries]
