"""GpuFragmentation: single devices are tracked, and pods are placed for the least fragmentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.engine.scheduling.compose import PluginHandle, ProfileError
from fairlead.testing import PluginScene, make_node, make_pod
from fairlead.whatif.configuration.plugin_source import find_class

GPU = "example.com/gpu-milli"
SOURCE = str(Path(__file__).parents[2] / "examples" / "plugins" / "gpu_fragmentation.py")
HALVES_AND_WHOLES = (
    {"pods": 3, "cpuMilli": 1000, "gpuMilli": 500},
    {"pods": 1, "cpuMilli": 1000, "gpuMilli": 1000},
)


def gpu_pod(name, milli, *, cpu="1", node=""):
    return make_pod(name, node=node, requests={"cpu": cpu, GPU: milli})


def make_scene(*, workload=HALVES_AND_WHOLES, cpu="8", **gpus):
    """Return a scene with nodes by name, with these numbers of GPUs."""
    nodes = [make_node(name, cpu=cpu, **{GPU: n * 1000}) for name, n in gpus.items()]
    args = {"GpuFragmentation": {"workload": list(workload), "resource": GPU}}
    return PluginScene(find_class(f"{SOURCE}:GpuFragmentation"), nodes=nodes, args=args)


def fits(scene, milli):
    """Return the nodes on which a pod fits."""
    verdicts = scene.evaluate(gpu_pod("asked", milli)).verdicts
    return [name for name, status in verdicts.items() if status is None]


def scores(scene, milli, **more):
    return scene.evaluate(gpu_pod("asked", milli, **more)).scores["GpuFragmentation"]


@pytest.mark.parametrize(
    ("there", "requested", "fit"),
    [
        pytest.param(
            (600, 600), 800, False, id="two remaining shares do not add up to a larger share"
        ),
        pytest.param((600, 600), 400, True, id="a share fits beside another"),
        pytest.param((600,), 1000, True, id="the other GPU is unused"),
        pytest.param((600, 600), 1000, False, id="no GPU is unused"),
        pytest.param((300, 300), 1000, True, id="shares are packed on one GPU"),
        pytest.param((1000,), 2000, False, id="two unused GPUs are needed"),
    ],
)
def test_devices_are_distinguished(there, requested, fit) -> None:
    scene = make_scene(a=2, b=1)
    scene.add(*(gpu_pod(f"p{i}", milli, node="a") for i, milli in enumerate(there)))
    assert ("a" in fits(scene, requested)) is fit


def test_pods_without_gpus_fit_everywhere() -> None:
    assert fits(make_scene(a=0, b=1), 0) == ["a", "b"]


def test_a_gpu_share_is_placed_on_a_gpu_that_is_already_shared() -> None:
    scene = make_scene(a=1, b=1)
    scene.add(gpu_pod("there", 500, node="a"))
    assert scores(scene, 500) == {"a": 55, "b": 44}


def test_a_pod_without_gpus_is_placed_where_gpu_pods_do_not_need_the_cpu() -> None:
    found = make_scene(a=2, b=0)
    assert scores(found, 0, cpu="7") == {"a": 50, "b": 50}
    assert scores(found, 0, cpu="8") == {"a": 16, "b": 50}


def test_a_changed_node_is_scored_again() -> None:
    scene = make_scene(a=1, b=1)
    assert scores(scene, 500) == {"a": 44, "b": 44}
    assert scene.schedule(gpu_pod("first", 500)) in "ab"
    assert sorted(scores(scene, 500).values()) == [44, 55]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "args.workload: is required"),
        ({"workload": []}, "args.workload: every class needs at least one pod"),
        ({"workload": [{"pods": 1}]}, r"args.workload\[0\].cpuMilli: is required"),
        ({"workload": [], "gpus": 4}, "args.gpus: unknown; known: workload, resource"),
    ],
)
def test_arguments_are_validated(args, problem) -> None:
    with pytest.raises(ProfileError, match=problem):
        PluginScene(find_class(f"{SOURCE}:GpuFragmentation"), args={"GpuFragmentation": args})


# --- the paper's definition, worked out the slow way -------------------------------------------


def waste(devices, cpu, workload):
    """Return the mean over all pods of the milli-GPUs on `devices` that a pod cannot use."""
    total = 0
    for one in workload:
        gpu = one["gpuMilli"]
        whole = sum(left == 1000 for left in devices) >= gpu // 1000
        fits = gpu > 0 and cpu >= one["cpuMilli"] and whole and max(devices) >= min(gpu, 1000)
        wasted = [left for left in devices if not fits or left < min(gpu, 1000)]
        total += one["pods"] * sum(wasted)
    return total // sum(one["pods"] for one in workload)


classes = st.fixed_dictionaries(
    {
        "pods": st.integers(1, 9),
        "cpuMilli": st.integers(0, 8000),
        "gpuMilli": st.sampled_from([0, 100, 250, 500, 810, 1000, 2000, 4000]),
    }
)


@given(
    workload=st.lists(classes, min_size=1, max_size=6),
    nodes=st.lists(st.lists(st.integers(0, 1000), min_size=4, max_size=4), min_size=1, max_size=5),
    cpu=st.integers(0, 8000),
)
def test_fragmentation_over_columns_equals_its_definition(workload, nodes, cpu) -> None:
    module = find_class(f"{SOURCE}:Waste")
    of_class = find_class(f"{SOURCE}:PodClass")
    counted = module([of_class(one["pods"], one["cpuMilli"], one["gpuMilli"]) for one in workload])
    found = counted.of(np.array(nodes, np.int64), np.full(len(nodes), cpu))
    assert found.tolist() == [waste(devices, cpu, workload) for devices in nodes]


@settings(max_examples=25)
@given(
    there=st.lists(st.sampled_from([0, 200, 300, 500, 810, 1000, 2000]), max_size=8),
    milli=st.sampled_from([0, 200, 500, 810, 1000, 2000]),
)
def test_scores_of_columns_and_of_single_nodes_agree(there, milli) -> None:
    scene = make_scene(a=4, b=2, c=0, d=1)
    for number, gpu in enumerate(there):
        scene.schedule(gpu_pod(f"p{number}", gpu))
    plugin: Any = find_class(f"{SOURCE}:GpuFragmentation")
    incoming, table = scene.info(gpu_pod("asked", milli)), scene.cluster.table
    one = plugin(PluginHandle(scene.cluster, scene.nominator), plugin.Args(HALVES, GPU))
    rows = np.array([node.row for node in table.nodes()])
    codes = one.filter_columns(None, incoming, table, rows).codes.tolist()
    single = [one.filter(None, incoming, node) is not None for node in table.nodes()]
    assert [bool(code) for code in codes] == single
    open_rows = rows[np.array(codes) == 0]
    found = one.score_columns(None, incoming, table, open_rows).tolist()
    assert found == [one.score(None, incoming, table.at(row)) for row in open_rows.tolist()]


HALVES = tuple(
    find_class(f"{SOURCE}:PodClass")(one["pods"], one["cpuMilli"], one["gpuMilli"])
    for one in HALVES_AND_WHOLES
)
