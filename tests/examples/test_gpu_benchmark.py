"""benchmarks/gpu_fragmentation.py has the documented result on a small part of the cluster."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_fragmentation.py"


@pytest.fixture(scope="module")
def benchmark():
    """The script as a module."""
    specification = importlib.util.spec_from_file_location("gpu_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["gpu_benchmark"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["gpu_benchmark"]


@pytest.fixture(scope="module")
def openb(benchmark):
    """A hundredth of the nodes, and all pods."""
    nodes, pods = benchmark.openb()
    return nodes[::60], pods


def test_packing_places_more_pods_than_spreading(benchmark, openb) -> None:
    policies = {policy.title: policy for policy in benchmark.POLICIES}
    packed, spread = (
        benchmark.measure(policies[title], *openb, seed=1)
        for title in ("GpuFragmentation", "LeastAllocated")
    )
    for trial in (packed, spread):
        assert 0 < trial.at_first_failure <= trial.at_the_end <= 1
        assert trial.failed > 0
    assert packed.at_first_failure > 2 * spread.at_first_failure


def test_equal_seeds_give_equal_results(benchmark, openb) -> None:
    policy = benchmark.POLICIES[-1]
    first, again = (benchmark.measure(policy, *openb, seed=7) for _ in range(2))
    assert first == again
    assert benchmark.measure(policy, *openb, seed=8) != first
