"""Measures, for several policies, the share of allocated GPUs when the first pod does not fit.

This is the measurement of Weng et al. (USENIX ATC 2023). Pods are drawn at random from the openb
trace, with replacement, and placed one after another on the trace's cluster of 1,523 nodes and
6,212 GPUs, until their requests add up to 130 % of the GPUs. Pods are never deleted. For each
policy and seed, two shares are measured:

    at first failure    the share of all GPUs that is allocated when the first pod finds no GPU
    at the end          the share that is allocated after the last pod

With every policy, the Filter of examples/plugins/gpu_fragmentation.py distinguishes devices, so two
half GPUs are not a whole GPU. Preemption is off. Each policy has only one score plugin, except
"default profile", which has the default score plugins.

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
REQUESTED_PERCENT: Final = 130


@dataclass(frozen=True)
class Policy:
    """A policy: `scores` is its only score plugin; "" means those of the default profile.

    `args` are the arguments of NodeResourcesFit; {} means the defaults.
    """

    title: str
    scores: str
    args: Json


def strategy(kind: str) -> Json:
    """Return NodeResourcesFit's arguments with equal weights for CPU, memory and GPUs."""
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
    """Two shares of all GPUs, and the number of pods that requested GPUs but did not fit.

    `at_first_failure` is None if every pod that requested GPUs got them.
    """

    at_first_failure: float | None
    at_the_end: float
    failed: int


def openb() -> tuple[list[Node], list[Pod]]:
    """Return the nodes and pods of the trace."""
    trace = Trace(nodes="node_shapes.csv", pods="pod_shapes.csv")
    found = read_trace(trace, scenario="openb", folder=EXAMPLES / "openb", seed=0, start=0)
    nodes = [decode_as(Node, one) for one in found.objects if one["kind"] == "Node"]
    return nodes, [decode_as(Pod, arrival.pod) for arrival in found.arrivals]


def workload(pods: list[Pod]) -> list[Json]:
    """Return the number of pods with each combination of requested CPUs and GPUs."""
    counts: dict[tuple[int, int], int] = {}
    for pod in pods:
        requests = pod_requests(pod)
        key = requests["cpu"], requests.get(GPU_RESOURCE, 0)
        counts[key] = counts.get(key, 0) + 1
    return [
        {"pods": count, "cpuMilli": cpu, "gpuMilli": gpu}
        for (cpu, gpu), count in sorted(counts.items())
    ]


def profile_of(policy: Policy, classes: list[Json]) -> Profile:
    """Return the default profile without preemption, with the score plugins of `policy`.

    `classes` is the result of `workload`.
    """
    weights = {name: weight for name, weight in DEFAULT_PLUGINS if name != "DefaultPreemption"}
    weights[NAME] = 0
    if policy.scores:
        weights = dict.fromkeys(weights, 0) | {policy.scores: 1}
    args: dict[str, Json] = {NAME: {"workload": classes, "resource": GPU_RESOURCE}}
    if policy.args:
        args[FIT] = policy.args
    return Profile(plugins=tuple(weights.items()), args=args)


def arrivals(pods: list[Pod], seed: int) -> Iterator[Pod]:
    """Yield an endless sequence of pods, drawn from `pods` with replacement."""
    for number, draw in enumerate(draws(seed)):
        pod = pods[draw % len(pods)]
        meta = msgspec.structs.replace(pod.metadata, name=f"pod-{number}", uid=f"uid-{number}")
        yield msgspec.structs.replace(pod, metadata=meta)


def measure(policy: Policy, nodes: list[Node], pods: list[Pod], seed: int) -> Trial:
    """Return the result of one trial, which fills an empty cluster of `nodes`.

    The trial ends when the requests of all pods add up to 130 % of the GPUs.
    """
    profile = profile_of(policy, workload(pods))
    scene = PluginScene(find_class(SOURCE), nodes=nodes, profile=profile, seed=seed)
    offered = sum(int(node.status.allocatable.get(GPU_RESOURCE, "0")) for node in nodes)
    requested = allocated = failed = 0
    first: int | None = None
    for pod in arrivals(pods, seed):
        wanted = pod_requests(pod).get(GPU_RESOURCE, 0)
        requested += wanted
        if requested * 100 > offered * REQUESTED_PERCENT:
            break
        if scene.schedule(pod):
            allocated += wanted
        elif wanted:
            failed += 1
            first = allocated if first is None else first
    at_first_failure = None if first is None else first / offered
    return Trial(at_first_failure, allocated / offered, failed)


def main() -> None:
    """Measure every policy and print a table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    nodes, pods = openb()
    print(f"GPUs allocated, mean of {seeds} seeds (lowest to highest)\n")
    print("| policy | when the first pod does not fit | at the end | pods that got no GPU |")
    print("|---|---|---|---|")
    for policy in POLICIES:
        trials = [measure(policy, nodes, pods, seed) for seed in range(seeds)]
        first = shares([trial.at_first_failure for trial in trials])
        end = shares([trial.at_the_end for trial in trials])
        lost = mean(trial.failed for trial in trials)
        print(f"| {policy.title} | {first} | {end} | {lost:,.0f} |", flush=True)


def shares(measured: list[float | None]) -> str:
    """Return the mean and the range of the shares, such as `94.1 % (93.8 % to 94.4 %)`.

    Trials without a value (None) are left out; without any value, the text is `-`.
    """
    values = [value for value in measured if value is not None]
    if not values:
        return "-"
    return f"{mean(values):.1%} ({min(values):.1%} to {max(values):.1%})".replace("%", " %")


if __name__ == "__main__":
    main()
