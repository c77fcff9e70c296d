"""Random nodes, pods and budgets from a seed, for property tests of plugins and policies.

The clusters are deliberately small and crowded, so that most rules affect most pods. Tests take
names from the short lists NODE_NAMES and POD_NAMES. So a new object often replaces an earlier
object of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod, PodDisruptionBudget
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.core.tie_break import TieBreak
from fairlead.testing.builders import make_budget, make_node, make_pod

Choice = TypeVar("Choice")

GPU: Final = "nvidia.com/gpu"
NODE_NAMES: Final = tuple(f"n{i}" for i in range(1, 7))
POD_NAMES: Final = tuple(f"p{i}" for i in range(1, 17))
_IMAGES: Final = {"app:latest": 900 << 20, "db:1": 300 << 20}
_APPS: Final = ("web", "db")
_MEBIBYTE: Final = 1 << 20
_PORT: Final = 8000


class Chance:
    """A source of random choices; equal seeds give equal choices."""

    def __init__(self, seed: int) -> None:
        """Start the sequence of random choices for `seed`, which is any integer."""
        self._tie_break = TieBreak(seed)

    def below(self, count: int) -> int:
        """Return an integer in [0, count)."""
        return self._tie_break.pick(count)

    def one_in(self, count: int) -> bool:
        """Return True with probability 1 / `count`."""
        return self.below(count) == 0

    def of(self, choices: Sequence[Choice]) -> Choice:
        """Return one of `choices`."""
        return choices[self.below(len(choices))]

    def some(self, choices: Sequence[Choice], at_most: int) -> list[Choice]:
        """Return up to `at_most` different elements of `choices`, in random order.

        `at_most` must not exceed the number of `choices`.
        """
        left = list(choices)
        return [left.pop(self.below(len(left))) for _ in range(self.below(at_most + 1))]


def any_node(chance: Chance, name: str) -> Node:
    """Return a small node that may be in a zone, tainted or cordoned."""
    labels = {HOSTNAME: name, "cores": chance.of(("2", "4", "many"))}
    if not chance.one_in(6):
        labels[ZONE] = chance.of(("z1", "z2"))
    if chance.one_in(2):
        labels["disk"] = chance.of(("ssd", "hdd"))
    cpu = chance.of((0, 2, 3, 4, 4, 6))
    memory = chance.of((0, 2, 3, 4, 4)) * 512 * _MEBIBYTE
    pods = chance.of((0, 2, 4, 6, 8))
    devices = {GPU: chance.below(3)} if chance.one_in(2) else {}
    taints = ("k=v:NoSchedule", "k:NoExecute", "soft:PreferNoSchedule")
    images = chance.some(sorted(_IMAGES), 2)
    return make_node(
        name,
        labels=labels,
        taints=chance.some(taints, 2) if chance.one_in(3) else (),
        unschedulable=chance.one_in(10),
        images={image: _IMAGES[image] for image in images},
        cpu=cpu,
        memory=memory,
        pods=pods,
        devices=devices,
    )


def any_pod(chance: Chance, name: str, node: str = "", *, beyond_the_node: bool = True) -> Pod:
    """Return a pod; if `node` is given, the pod is on this node.

    The pod may have a host port. If `node` is given and POD_NAMES contains `name`, the port depends
    on the index of `name` in POD_NAMES. So two of these pods with different names never have the
    same host port. If `beyond_the_node` is False, the pod has only scheduling rules that can be
    checked on one node without looking at other nodes.
    """
    is_numbered = node and name in POD_NAMES
    port = _PORT + (POD_NAMES.index(name) if is_numbered else chance.below(2))
    spec = _any_spec(chance, beyond_the_node=beyond_the_node)
    if chance.one_in(6):
        spec["preemptionPolicy"] = "Never"
    has_started = node and not chance.one_in(3)
    start = f"2026-01-01T00:00:0{chance.below(10)}Z"
    return make_pod(
        name,
        uid=f"uid-{name}-{chance.below(2)}",
        node=node,
        priority=chance.of((None, None, -5, 10, 100, 100, 1000)),
        labels={"app": chance.of(_APPS)} if chance.below(4) else {},
        requests=any_requests(chance),
        host_ports=[port] if chance.one_in(5) else (),
        terminating=bool(node) and chance.one_in(8),
        spec=spec,
        status={"startTime": start} if has_started else {},
    )


def any_requests(chance: Chance) -> dict[str, str | int]:
    """Return random resource requests; some may be missing, 0, or more than most nodes have."""
    amounts: dict[str, str | int] = {}
    if not chance.one_in(4):
        amounts["cpu"] = chance.of(("0", "500m", "1", "1", "2", "5"))
    if chance.one_in(2):
        amounts["memory"] = chance.below(4) * 256 * _MEBIBYTE
    if chance.one_in(5):
        amounts[GPU] = 1 + chance.below(2)
    return amounts


def any_budget(chance: Chance) -> PodDisruptionBudget:
    """Return a budget that selects some of the pods, and allows 0, 1 or 2 disruptions."""
    selector = {"app": chance.of(_APPS)}
    return make_budget(chance.of(("b1", "b2")), selector, allowed=chance.below(3))


def _any_spec(chance: Chance, *, beyond_the_node: bool) -> Json:
    """Return random scheduling rules, as fields of a pod's spec.

    The result is often {}, so that several pods have the same rules.
    """
    match chance.below(20 if beyond_the_node else 12):
        case 0 | 1:
            return {"nodeSelector": {"disk": "ssd"}}
        case 2 | 3:
            return {"tolerations": [{"key": "k", "operator": "Exists"}]}
        case 4 | 5:
            return {"affinity": {"nodeAffinity": _node_affinity(chance)}}
        case 6:
            container = {"name": "init", "resources": {"requests": {"cpu": "1500m"}}}
            return {"initContainers": [container]}
        case 12 | 13:
            return {"affinity": {"podAffinity": _pod_affinity(chance)}}
        case 14 | 15:
            return {"affinity": {"podAntiAffinity": _pod_affinity(chance)}}
        case 16 | 17 | 18:
            keys = chance.some((ZONE, HOSTNAME), 2) or [ZONE]
            return {"topologySpreadConstraints": [_spread(chance, key) for key in keys]}
        case _:
            return {}


def _node_affinity(chance: Chance) -> Json:
    affinity: Json = {}
    if chance.one_in(2):
        terms = [_node_term(chance) for _ in range(1 + chance.below(2))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if chance.one_in(2):
        preferred = {"weight": 1 + chance.below(100), "preference": _node_term(chance)}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    return affinity


def _node_term(chance: Chance) -> Json:
    if chance.one_in(5):
        names = [chance.of(NODE_NAMES)]
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]}
    operator = chance.of(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    expression: Json = {"key": chance.of(("disk", "cores", ZONE)), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = [chance.of(("ssd", "z1", "4"))]
    elif operator in ("Gt", "Lt"):
        expression["values"] = [str(chance.below(8))]
    return {"matchExpressions": [expression]}


def _selector(chance: Chance) -> Json:
    return {"matchLabels": {"app": chance.of(_APPS)}}


def _pod_affinity(chance: Chance) -> Json:
    term = {"labelSelector": _selector(chance), "topologyKey": chance.of((ZONE, HOSTNAME))}
    if chance.one_in(2):
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    weighted = {"weight": 1 + chance.below(100), "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}


def _spread(chance: Chance, topology_key: str) -> Json:
    return {
        "maxSkew": 1 + chance.below(2),
        "topologyKey": topology_key,
        "whenUnsatisfiable": chance.of(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selector(chance),
    }
