"""How full a cluster gets before pods begin to fail, by the policy that places them.

The measurement of Weng et al. (USENIX ATC 2023): pods are drawn at random from the openb trace,
with replacement, and placed one after the other on its cluster of 1,523 nodes and 6,212 GPUs, until
they have asked for 130 % of its GPUs. Nobody leaves. For each policy and seed:

    at first failure    the share of all GPUs that is allocated when a pod first finds none
    at the end          the share allocated when everybody has asked

Under every policy devices are told apart (two half GPUs are no whole one), which is what the Filter
of examples/plugins/gpu_fragmentation.py does. Preemption is off, and each policy is the only one
that scores, except that "default profile" is the default one as it is.

    python benchmarks/gpu_fragmentation.py [SEEDS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

import msgspec

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.requests import pod_requests
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.testing import PluginScene
from fairlead.whatif.configuration.plugin_source import find_class
from fairlead.whatif.input.seeded_choice import draws
from fairlead.whatif.scenario.trace import GPU_RESOURCE, Trace, read_trace

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
SOURCE: Final = str(EXAMPLES / "plugins" / "gpu_fragmentation.py:GpuFragmentation")
NAME: Final = "GpuFragmentation"
FIT: Final = "NodeResourcesFit"
ASKED_PERCENT: Final = 130


@dataclass(frozen=True)
class Policy:
    """`scores` is the plugin that scores alone, "" for the default profile's own."""

    title: str
    scores: str
    args: Json


def strategy(kind: str) -> Json:
    """NodeResourcesFit's arguments: CPU, memory and GPUs count alike."""
    resources = [{"name": name, "weight": 1} for name in ("cpu", "memory", GPU_RESOURCE)]
    return {"scoringStrategy": {"type": kind, "resources": resources}}


POLICIES: Final = (
    Policy("default profile", "", {}),
    Policy("LeastAllocated", FIT, strategy("LeastAllocated")),
    Policy("MostAllocated", FIT, strategy("MostAllocated")),
    Policy("GpuFragmentation", NAME, {}),
)


@dataclass(frozen=True)
class Trial:
    """Shares of all GPUs, and how many pods that asked for some got none."""

    at_first_failure: float
    at_the_end: float
    failed: int


def openb() -> tuple[list[Node], list[Pod]]:
    """The nodes and pods of the trace."""
    trace = Trace(nodes="node_shapes.csv", pods="pod_shapes.csv")
    found = read_trace(trace, scenario="openb", folder=EXAMPLES / "openb", seed=0, start=0)
    nodes = [decode_as(Node, one) for one in found.objects if one["kind"] == "Node"]
    return nodes, [decode_as(Pod, arrival.pod) for arrival in found.arrivals]


def workload(pods: list[Pod]) -> list[Json]:
    """How often each combination of CPUs and GPUs is asked for."""
    counts: dict[tuple[int, int], int] = {}
    for pod in pods:
        asked = pod_requests(pod)
        key = asked["cpu"], asked.get(GPU_RESOURCE, 0)
        counts[key] = counts.get(key, 0) + 1
    return [
        {"pods": count, "cpuMilli": cpu, "gpuMilli": gpu}
        for (cpu, gpu), count in sorted(counts.items())
    ]


def profile_of(policy: Policy, classes: list[Json]) -> Profile:
    """The default profile without preemption, where `policy` alone scores if it names a plugin."""
    weights = {name: weight for name, weight in DEFAULT_PLUGINS if name != "DefaultPreemption"}
    weights[NAME] = 0
    if policy.scores:
        weights = dict.fromkeys(weights, 0) | {policy.scores: 1}
    args: dict[str, Json] = {NAME: {"workload": classes, "resource": GPU_RESOURCE}}
    if policy.args:
        args[FIT] = policy.args
    return Profile(plugins=tuple(weights.items()), args=args)


def arrivals(pods: list[Pod], seed: int) -> Iterator[Pod]:
    """Pods drawn with replacement, for ever."""
    for number, draw in enumerate(draws(seed)):
        pod = pods[draw % len(pods)]
        meta = msgspec.structs.replace(pod.metadata, name=f"pod-{number}", uid=f"uid-{number}")
        yield msgspec.structs.replace(pod, metadata=meta)


def measure(policy: Policy, nodes: list[Node], pods: list[Pod], seed: int) -> Trial:
    """Fill an empty cluster until everybody has asked."""
    profile = profile_of(policy, workload(pods))
    scene = PluginScene(find_class(SOURCE), nodes=nodes, profile=profile, seed=seed)
    offered = sum(int(node.status.allocatable.get(GPU_RESOURCE, "0")) for node in nodes)
    asked = allocated = failed = 0
    first = -1
    for pod in arrivals(pods, seed):
        wanted = pod_requests(pod).get(GPU_RESOURCE, 0)
        asked += wanted
        if asked * 100 > offered * ASKED_PERCENT:
            break
        if scene.schedule(pod):
            allocated += wanted
        elif wanted:
            failed += 1
            first = allocated if first < 0 else first
    return Trial(first / offered, allocated / offered, failed)


def main() -> None:
    """Measure every policy and print a table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    nodes, pods = openb()
    print(f"GPUs allocated, mean of {seeds} seeds (lowest to highest)\n")
    print("| policy | when the first pod fails | at the end | pods that got none |")
    print("|---|---|---|---|")
    for policy in POLICIES:
        trials = [measure(policy, nodes, pods, seed) for seed in range(seeds)]
        first = shares([trial.at_first_failure for trial in trials])
        end = shares([trial.at_the_end for trial in trials])
        lost = mean(trial.failed for trial in trials)
        print(f"| {policy.title} | {first} | {end} | {lost:,.0f} |", flush=True)


def shares(values: list[float]) -> str:
    """`94.1 % (93.8 to 94.4)`."""
    return f"{mean(values):.1%} ({min(values):.1%} to {max(values):.1%})".replace("%", " %")


if __name__ == "__main__":
    main()
