"""Outage: some nodes' kubelets misbehave from an instant on, for a while or for good.

All that ever happens to a node is that its annotation `fairlead.dev/kubelet` says something else
for a while (fairlead.api.kubelet_behaviour); what a cluster makes of it is the cluster's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from fairlead.api.kubelet_behaviour import Mode, parse_kubelet_behaviour
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif import command_making
from fairlead.whatif.experiment import Step
from fairlead.whatif.input_error import InputError
from fairlead.whatif.inventory import Inventory

STOPPED: Final = str(Mode.STOPPED)
FLAP_TIMES: Final = "60s/120s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """`nodes` behave as `behaviour` says from `at` on; `lasts` None means for good.

    `source` and `what` say where a refusal comes from.
    """

    source: str
    what: str
    nodes: tuple[str, ...]
    at: DurationNs = 0
    lasts: DurationNs | None = None
    behaviour: str = STOPPED

    def steps(self) -> Iterator[Step]:
        """How it begins and, unless it is for good, ends."""
        begin = tuple(command_making.steer_kubelet(node, self.behaviour) for node in self.nodes)
        yield Step(self.at, begin, self.source, self.what)
        if self.lasts is not None:
            end = tuple(command_making.return_node(node) for node in self.nodes)
            yield Step(self.at + self.lasts, end, self.source, self.what)


def read_behaviour(source: str, text: str) -> str:
    """`text` if it is a behaviour of kubelets that differs from the usual. Raises InputError."""
    try:
        behaviour = parse_kubelet_behaviour(text)
    except ValueError as cause:
        raise InputError(source, str(cause)) from None
    if behaviour == parse_kubelet_behaviour(""):
        raise InputError(source, f"{text!r} is how kubelets are anyway")
    return text


def flapping(source: str, text: str, inventory: Inventory) -> tuple[list[str], str]:
    """The nodes that `text` (`NODE`, `NODE@DARK/UP`) means, and how they behave.

    Raises InputError in the name of `source`.
    """
    nodes, sign, times = text.partition("@")
    behaviour = read_behaviour(source, f"flap {times if sign else FLAP_TIMES}")
    return inventory.nodes(source, nodes), behaviour


def without_twice(outages: Iterable[Outage]) -> list[Outage]:
    """`outages` with every node in the first one that names it only; empty ones left out."""
    seen: set[str] = set()
    once: list[Outage] = []
    for one in outages:
        nodes = tuple(dict.fromkeys(node for node in one.nodes if node not in seen))
        seen.update(nodes)
        if nodes:
            once.append(replace(one, nodes=nodes))
    return once
