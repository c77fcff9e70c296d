"""Random clusters and pods, for property tests of plugins and policies. Needs hypothesis.

The worlds are small and crowded on purpose: few labels, few zones, little room, so that most rules
have something to say about most pods. Names are drawn from fixed pools, so what is drawn twice
replaces what was there.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from fairlead.api.objects import Node, Pod, PodDisruptionBudget
from fairlead.testing.builders import make_budget, make_node, make_pod

Json = dict[str, Any]
Draw = st.DrawFn

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
GPU: Final = "nvidia.com/gpu"
NODE_NAMES: Final = ("n1", "n2", "n3", "n4", "n5", "n6")
POD_NAMES: Final = tuple(f"p{i}" for i in range(12))
IMAGES: Final = {"app": 900 << 20, "db": 300 << 20, "tiny": 1 << 20}
_APPS: Final = ("web", "db")
_MEBIBYTE: Final = 1 << 20

node_names = st.sampled_from(NODE_NAMES)
pod_names = st.sampled_from(POD_NAMES)
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(_APPS))
_zones = st.sampled_from(["z1", "z2"])
_taints = st.sampled_from(["k=v:NoSchedule", "k:NoExecute", "soft:PreferNoSchedule"])


def _expressions(draw: Draw) -> list[Json]:
    operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    operator = draw(operators)
    expression: Json = {"key": draw(st.sampled_from(["disk", "cores", ZONE])), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = draw(st.lists(st.sampled_from(["ssd", "z1", "4"]), min_size=1))
    elif operator in ("Gt", "Lt"):
        expression["values"] = [str(draw(st.integers(0, 8)))]
    return [expression]


@st.composite
def _node_terms(draw: Draw) -> Json:
    if draw(st.integers(0, 4)) == 0:
        names = draw(st.lists(node_names, min_size=1, max_size=1))
        field = {"key": "metadata.name", "operator": "In", "values": names}
        return {"matchFields": [field]}
    return {"matchExpressions": _expressions(draw)}


@st.composite
def _node_affinity(draw: Draw) -> Json:
    affinity: Json = {}
    if draw(st.booleans()):
        terms = draw(st.lists(_node_terms(), min_size=1, max_size=2))
        required = {"nodeSelectorTerms": terms}
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if draw(st.booleans()):
        preferred = {"weight": draw(st.integers(1, 100)), "preference": draw(_node_terms())}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    return affinity


def _selector(draw: Draw) -> Json:
    return {"matchLabels": {"app": draw(st.sampled_from(_APPS))}}


@st.composite
def _pod_affinity(draw: Draw) -> Json:
    key = draw(st.sampled_from([ZONE, HOSTNAME]))
    term = {"labelSelector": _selector(draw), "topologyKey": key}
    if draw(st.booleans()):
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    weighted = {"weight": draw(st.integers(1, 100)), "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}


@st.composite
def _spread(draw: Draw) -> Json:
    return {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from([ZONE, HOSTNAME])),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
        "labelSelector": _selector(draw),
    }


@st.composite
def _specs(draw: Draw, beyond_the_node: bool) -> Json:  # noqa: FBT001 - one knob of a strategy
    """What a pod demands beside resources; mostly nothing, so that pods share shapes."""
    spec: Json = {}
    choice = draw(st.integers(0, 9 if beyond_the_node else 5))
    match choice:
        case 1:
            spec["nodeSelector"] = {"disk": "ssd"}
        case 2:
            spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        case 3:
            spec["affinity"] = {"nodeAffinity": draw(_node_affinity())}
        case 4:
            container = {"name": "init", "resources": {"requests": {"cpu": "1500m"}}}
            spec["initContainers"] = [container]
        case 6:
            spec["affinity"] = {"podAffinity": draw(_pod_affinity())}
        case 7:
            spec["affinity"] = {"podAntiAffinity": draw(_pod_affinity())}
        case 8 | 9:
            spec["topologySpreadConstraints"] = draw(st.lists(_spread(), min_size=1, max_size=2))
        case _:
            pass
    return spec


@st.composite
def nodes(draw: Draw, names: st.SearchStrategy[str] = node_names) -> Node:
    """A node with little room, maybe in a zone, maybe tainted or cordoned."""
    name = draw(names)
    own = {HOSTNAME: name, "cores": draw(st.sampled_from(["2", "4", "many"]))}
    if draw(st.integers(0, 5)):
        own[ZONE] = draw(_zones)
    if draw(st.booleans()):
        own["disk"] = draw(st.sampled_from(["ssd", "hdd"]))
    room: dict[str, str | int] = {
        "cpu": draw(st.integers(0, 4)),
        "memory": draw(st.integers(0, 4)) * 512 * _MEBIBYTE,
        "pods": draw(st.integers(0, 5)),
    }
    if draw(st.booleans()):
        room[GPU] = draw(st.integers(0, 2))
    images = draw(st.lists(st.sampled_from(sorted(IMAGES)), max_size=2, unique=True))
    return make_node(
        name,
        labels=own,
        taints=draw(st.lists(_taints, max_size=2, unique=True)) if draw(st.booleans()) else (),
        unschedulable=draw(st.integers(0, 6)) == 0,
        images={image: IMAGES[image] for image in images},
        **room,
    )


@st.composite
def requests(draw: Draw) -> dict[str, str | int]:
    """What a container asks for; nothing, zero, and more than any node has among it."""
    amounts: dict[str, str | int] = {}
    if draw(st.integers(0, 3)):
        amounts["cpu"] = draw(st.sampled_from(["0", "500m", "1", "2", "5"]))
    if draw(st.booleans()):
        amounts["memory"] = draw(st.integers(0, 3)) * 256 * _MEBIBYTE
    if draw(st.integers(0, 3)) == 0:
        amounts[GPU] = draw(st.integers(1, 2))
    return amounts


@st.composite
def pods(
    draw: Draw,
    names: st.SearchStrategy[str] = pod_names,
    node: str = "",
    *,
    beyond_the_node: bool = True,
) -> Pod:
    """A pod, on `node` if that is given; one in three waits for others or keeps away from them.

    A placed pod's host port is its own, so that no two on a node ever share one.
    `beyond_the_node` False leaves out what makes pods look at other nodes.
    """
    name = draw(names)
    port = 8000 + POD_NAMES.index(name) if node and name in POD_NAMES else 8000
    has_port = draw(st.integers(0, 4)) == 0
    status: Json = {}
    if node and draw(st.booleans()):
        status["startTime"] = f"2026-01-01T00:00:0{draw(st.integers(0, 9))}Z"
    spec = draw(_specs(beyond_the_node))
    if draw(st.integers(0, 5)) == 0:
        spec["preemptionPolicy"] = "Never"
    return make_pod(
        name,
        uid=f"uid-{name}-{draw(st.integers(1, 2))}",
        node=node,
        priority=draw(st.sampled_from([None, -5, 10, 100, 1000])),
        labels=draw(labels),
        requests=draw(requests()),
        host_ports=[port] if has_port else (),
        terminating=bool(node) and draw(st.integers(0, 7)) == 0,
        spec=spec,
        status=status,
    )


@st.composite
def budgets(draw: Draw) -> PodDisruptionBudget:
    """A budget over some of the pods, maybe with nothing left."""
    selector = {"app": draw(st.sampled_from(_APPS))}
    name = draw(st.sampled_from(["b1", "b2"]))
    return make_budget(name, selector, allowed=draw(st.integers(0, 2)))
