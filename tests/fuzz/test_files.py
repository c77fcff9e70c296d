"""Users' files with one or two invalid details are read, or refused in one line.

Each file starts as a valid one, in which `mutated` changes a few places.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.strategies import damaged, texts
from tests.fuzz.test_mutations import NOTHING, mutated
from tests.unit.whatif.configuration.autoscaling import test_instance_type_file as types
from tests.unit.whatif.configuration.test_kwok_stage import pod, stage

from fairlead.api.text.yaml_documents import documents
from fairlead.engine.core.instant import seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    instance_types,
    new_node_templates,
    read_instance_types,
)
from fairlead.whatif.configuration.autoscaling.karpenter.config import karpenter_config
from fairlead.whatif.configuration.autoscaling.node_group_file import groups_of_file
from fairlead.whatif.configuration.kwok_stage import with_stages
from fairlead.whatif.descheduler.policy import read_policy
from fairlead.whatif.input.document import read
from fairlead.whatif.input.error import InputError
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.sweep.variation import parse_variation

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
CENTURY: Final = seconds(100 * 366 * 86_400)
STAGES: Final = [
    stage("create", "", {"key": ".status.podIP", "operator": "DoesNotExist"}),
    stage(
        "ready",
        "Running",
        {"key": '.status.conditions.[] | select( .type == "Ready" ) | .status', "values": ["True"]},
        weight=1,
        delay={"durationMilliseconds": 1000, "jitterDurationMilliseconds": 5000},
    ),
    stage("delete", "", {"key": ".metadata.deletionTimestamp", "operator": "Exists"}),
]
SCENARIO: Final[Any] = {
    "cluster": {"generated": {"nodes": 3, "zones": 3, "cpu": "4", "memory": "8Gi"}},
    "duration": "1h",
    "seed": 3,
    "settings": {"node-lifecycle": {"node-eviction-rate": 0.1}, "provision-time": "1m"},
    "events": [
        {"at": "1m", "fail-node": "node-1", "for": "10m"},
        {"at": "5m", "fail-zone": "zone-a"},
        {"at": "10m", "scale": "deploy/default/web", "to": 3},
    ],
}
POLICY: Final[Any] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "maxNoOfPodsToEvictPerNode": 2,
    "profiles": [
        {
            "name": "p",
            "pluginConfig": [
                {
                    "name": "LowNodeUtilization",
                    "args": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
                },
                {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 86400}},
            ],
            "plugins": {
                "balance": {"enabled": ["LowNodeUtilization"]},
                "deschedule": {"enabled": ["PodLifeTime"]},
            },
        }
    ],
}


def example(*names: str) -> Any:
    """The documents of an example; the only one, if it has one."""
    found = list(documents(EXAMPLES.joinpath(*names).read_text()))
    return found[0] if len(found) == 1 else found


def read_stages(path: str) -> None:
    """Read the file; check that every delay is a time in the future."""
    found = with_stages(KubeletConfig(), manifests(read(path)), seed=1)
    for delays in (found.start_delays, found.run_durations, found.removal_delays):
        delay = delays(pod("p", labels={"a": "b"})) if delays is not None else None
        assert delay is None or 0 <= delay <= CENTURY


def read_types(path: str) -> None:
    """Read the file; check that every type has a node and a comparable price."""
    for one in instance_types(found := read_instance_types(path, ()), ("a", "b")):
        assert all(0 <= offering.price < 1e10 for offering in one.offerings)
        assert all(amount >= 0 for amount in one.capacity.values())
    new_node_templates(found[0], {"a": {"topology.kubernetes.io/zone": "a"}}, {})


def read_pools(path: str) -> None:
    karpenter_config("dump.yaml", (), str(EXAMPLES / "elastic/instance-types.csv"), path)


READERS: Final[dict[str, tuple[Any, Callable[[str], object]]]] = {
    "node groups": (example("elastic", "node-groups.yaml"), lambda path: groups_of_file(path, ())),
    "stages": (STAGES, read_stages),
    "types of aws": (types.AWS, read_types),
    "types of gcloud": (types.GCLOUD, read_types),
    "types of azure": (types.AZURE, read_types),
    "types of kwok": (types.KWOK, read_types),
    "node pools": (example("elastic", "node-pool.yaml"), read_pools),
    "scenario": (SCENARIO, lambda path: experiment_of(path, read_scenario(path))),
    "policy": (POLICY, read_policy),
}


@st.composite
def variants(draw: st.DrawFn, valid: Any) -> Any:
    found = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 2))):
        changed = draw(mutated(found))
        found = found if changed is NOTHING else changed
    return found


def refusal_of(reader: Callable[[str], object], data: bytes) -> str:
    """Return the one-line refusal of the file `data`, "" if it is read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.yaml"
        path.write_bytes(data)
        try:
            reader(str(path))
        except InputError as refusal:
            return str(refusal)
    return ""


@pytest.mark.parametrize("name", READERS)
def test_an_almost_valid_file_is_read_or_refused(name: str) -> None:
    valid, reader = READERS[name]

    @settings(max_examples=settings().max_examples // 4)
    @given(variants(valid))
    def check(value: Any) -> None:
        assert "\n" not in refusal_of(reader, json.dumps(value).encode())

    check()


@settings(max_examples=settings().max_examples // 4)
@given(damaged((EXAMPLES / "elastic/instance-types.csv").read_bytes()))
def test_an_almost_valid_table_is_read_or_refused(data: bytes) -> None:
    assert "\n" not in refusal_of(read_types, data)


@given(texts())
def test_a_variation_is_parsed_or_refused(text: str) -> None:
    with suppress(InputError):
        assert parse_variation(text).values
