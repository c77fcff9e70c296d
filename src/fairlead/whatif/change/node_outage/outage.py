"""Outage: the kubelets of some nodes misbehave, temporarily or permanently.

The only direct effect is a change of the annotation `fairlead.dev/kubelet` of each node
(fairlead.api.nodes.kubelet_behaviour). Everything else follows from the simulated controllers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET, Mode, Report, parse_kubelet_behaviour
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.change import commands
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.capacity_outage import CapacityOutage

STOPPED: Final = str(Mode.STOPPED)
READY: Final = str(Report.READY)
# In a zone whose nodes fail in one of these ways, the cloud cannot start machines either.
_WITHOUT_CAPACITY: Final = (Mode.STOPPED, Mode.PAUSED)
FLAP_TIMES: Final = "60s/120s"


class Outage(Struct, frozen=True, kw_only=True):
    """An outage: the kubelets of `nodes` have `behaviour` for the time `lasts`, starting at `at`.

    In error messages, `source` and `what` name the option or scenario field.
    """

    source: str
    what: str
    nodes: tuple[str, ...]
    at: DurationNs = 0  # in ns, from the change of a what-if, or from the start of a scenario's run
    lasts: DurationNs | None = None  # in ns; None for a permanent outage
    behaviour: str = STOPPED  # READY returns failed nodes to service
    # If a whole zone fails, the labels of the zone's nodes.
    zone: Mapping[str, str] = field(default_factory=dict)

    def steps(self) -> Iterator[ScriptedStep]:
        """Yield the step that starts the outage and, if `lasts` is set, the step that ends it.

        If a whole zone fails, the outage also affects the nodes that an autoscaler has added to the
        zone before the failure.
        """
        begin, ends = self.begin(), ends_of([self])
        yield replace(begin, commands_for=self._begin_for) if self.zone else begin
        for end in ends:
            yield replace(end, commands_for=self._end_for) if self.zone else end

    def _begin_for(self, present: Sequence[Json]) -> tuple[Command, ...]:
        later = (one["metadata"]["name"] for one in self._later(present))
        return tuple(self.affecting(node) for node in (*self.nodes, *later))

    def _end_for(self, present: Sequence[Json]) -> tuple[Command, ...]:
        failed = (
            one["metadata"]["name"]
            for one in self._later(present)
            if one["metadata"].get("annotations", {}).get(KUBELET) == self.behaviour
        )
        return tuple(commands.return_node(node) for node in (*self.nodes, *failed))

    def _later(self, present: Sequence[Json]) -> list[Json]:
        """Return the nodes in `present` that are in the failing zone, but not among `nodes`."""
        stated = set(self.nodes)
        return [
            one
            for one in present
            if one["metadata"]["name"] not in stated
            and self.zone.items() <= one["metadata"].get("labels", {}).items()
        ]

    def begin(self) -> ScriptedStep:
        """Return the step that starts the outage."""
        begin = tuple(self.affecting(node) for node in self.nodes)
        return ScriptedStep(
            self.at, begin, self.source, self.what, capacity_outage=self._capacity_outage()
        )

    def _capacity_outage(self) -> CapacityOutage | None:
        """Return the period in which the cloud delivers no machines because a whole zone is down.

        Return None if no whole zone fails, or if the kubelets are neither stopped nor paused.
        """
        if not self.zone or parse_kubelet_behaviour(self.behaviour).mode not in _WITHOUT_CAPACITY:
            return None
        # Imported only if it is needed: most outages are outages of single nodes.
        from fairlead.engine.autoscaling.capacity_outage import CapacityOutage  # noqa: PLC0415

        return CapacityOutage(end=self.lasts, labels=self.zone, stops_machines=True)

    def affecting(self, node: str) -> Command:
        """Return the command that gives the kubelet of `node` the behaviour of the outage."""
        return commands.set_kubelet_behaviour(node, self.behaviour)

    def is_under_way(self, after: DurationNs) -> bool:
        """Return whether the outage has begun and not ended at the time `after`."""
        return self.at <= after and (self.lasts is None or after < self.at + self.lasts)


def ends_of(outages: Sequence[Outage]) -> Iterator[ScriptedStep]:
    """Yield one step for each outage that is not permanent: the step that ends it.

    `outages` are in the order in which they begin. While several outages of a node are under way,
    the outage that began last determines how the node behaves. Example: one outage stops a node
    from 1m to 21m, and another makes it flap from 2m to 6m. The node is down until 2m, flaps until
    6m, and is down again until 21m.
    """
    of_node: dict[str, list[int]] = defaultdict(list)
    for number, outage in enumerate(outages):
        for node in outage.nodes:
            of_node[node].append(number)
    for number, outage in enumerate(outages):
        if outage.lasts is None:
            continue
        end, made = outage.at + outage.lasts, []
        for node in outage.nodes:
            others = [one for one in of_node[node] if outages[one].is_under_way(end)]
            if not others:
                made.append(commands.return_node(node))
            elif others[-1] < number:
                made.append(outages[others[-1]].affecting(node))
        yield ScriptedStep(end, tuple(made), outage.source, outage.what)


def read_behaviour(source: str, text: str) -> str:
    """Return `text`, the kubelet behaviour of a failure. Raises InputError."""
    try:
        behaviour = parse_kubelet_behaviour(text)
    except ValueError as cause:
        raise InputError(source, str(cause)) from None
    if behaviour == parse_kubelet_behaviour(""):
        raise InputError(source, f"{text!r} is the default behaviour")
    if Report.READY in behaviour.reports:
        raise InputError(source, f"{text!r} is not a failure")
    return text


def flapping(source: str, text: str, inventory: Inventory) -> tuple[list[str], str]:
    """Return (nodes, kubelet behaviour) for nodes that fail and return again and again.

    `text` is `NODE` or `NODE@DOWN/UP`; DOWN is the duration of each failure, and UP is the time
    between failures. Raises InputError; the message names the option or file `source`.
    """
    nodes, sign, times = text.partition("@")
    if len(times.split()) != 1 and sign:
        raise InputError(source, f"{times!r} is not DOWN/UP, such as {FLAP_TIMES}")
    behaviour = read_behaviour(source, f"flap {times if sign else FLAP_TIMES}")
    return inventory.nodes(source, nodes), behaviour


def without_duplicates(outages: Iterable[Outage]) -> list[Outage]:
    """Return `outages` with each node only in the first outage that contains it.

    Outages without nodes are dropped. Raises InputError if a node fails in two different ways.
    """
    seen: dict[str, Outage] = {}
    once: list[Outage] = []
    for one in outages:
        for first in (seen[node] for node in one.nodes if node in seen):
            if first.behaviour != one.behaviour:
                _refuse_contradiction(first, one)
        nodes = tuple(dict.fromkeys(node for node in one.nodes if node not in seen))
        seen |= dict.fromkeys(nodes, one)
        if nodes:
            once.append(replace(one, nodes=nodes))
    return once


def _refuse_contradiction(first: Outage, second: Outage) -> NoReturn:
    """Raise InputError for a node of both outages, whose behaviours differ."""
    name = next(node for node in second.nodes if node in first.nodes)
    problem = f"Node {name} already fails in another way, with {first.source} {first.what}"
    raise InputError(second.source, problem, object_name=second.what)
