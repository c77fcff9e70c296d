"""The commands, arguments and files in examples/plugins/README.md have the documented results."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec
import pytest
import yaml

from fairlead.cli import main
from fairlead.whatif.configuration.plugin_source import find_class
from fairlead.whatif.scenario.trace import Trace, read_trace

ROOT: Final = Path(__file__).parents[2]
PLUGINS: Final = ROOT / "examples" / "plugins"
PAGE: Final = PLUGINS / "README.md"
COMMANDS: Final = re.findall(r"^    fairlead (.+)$", PAGE.read_text(), re.MULTILINE)
FILES: Final = {
    "Node price": "node_price.py:NodePrice",
    "Checkpoint age": "checkpoint_age.py:CheckpointAge",
    "Cross-node preemption": "cross_node_preemption.py:CrossNodePreemption",
    "GPU fragmentation": "gpu_fragmentation.py:GpuFragmentation",
}
SLOW: Final = "openb_packed"


def section(title):
    """Return the text under a heading."""
    return re.split(r"^## ", PAGE.read_text().partition(f"## {title}\n")[2], flags=re.MULTILINE)[0]


@pytest.fixture
def output(monkeypatch, capsys):
    """Returns the output of a command with `-o json`, as data."""
    monkeypatch.chdir(ROOT)

    def output(command):
        assert main.run([*shlex.split(command), "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return output


@pytest.mark.parametrize("command", [one for one in COMMANDS if SLOW not in one])
def test_every_command_can_be_run(output, command) -> None:
    assert output(command)


@pytest.mark.long
@pytest.mark.parametrize("command", [one for one in COMMANDS if SLOW in one])
def test_gpus_are_packed_on_the_whole_trace(output, command) -> None:
    found = output(command)
    [gpus] = [one for one in found["allocation"] if one["resource"] == "openb/gpu-milli"]
    assert gpus["requested"] > 0.9 * gpus["allocatable"]


def both(output, scenario):
    """Return the outcomes of a scenario without and with its plugin."""
    return [output(one) for one in COMMANDS if scenario in one]


def test_the_job_with_the_most_recent_checkpoint_is_preempted(output) -> None:
    without, with_plugin = both(output, "checkpoints.yaml")
    assert [one["pod"] for one in without["preempted"]] == ["default/train-2"]
    assert [one["pod"] for one in with_plugin["preempted"]] == ["default/train-1"]
    assert with_plugin["preempted"][0]["rule"] == "least work lost since a checkpoint"


def test_the_pod_on_the_other_node_is_preempted(output) -> None:
    without, with_plugin = both(output, "cross_node.yaml")
    assert [one["pod"] for one in without["pending"]] == ["default/trading"]
    assert with_plugin["pending"] == []
    [preempted] = with_plugin["preempted"]
    assert (preempted["pod"], preempted["node"]) == ("default/nightly", "a-0")
    assert [one["to"] for one in with_plugin["moved"]] == ["b-0"]


@pytest.mark.parametrize(("title", "source"), FILES.items(), ids=FILES)
def test_the_arguments_are_those_of_the_plugin(title, source) -> None:
    form = vars(find_class(str(PLUGINS / source)))["Args"]
    stated = re.findall(r"^\| `(\w+)` \| (.+?) \|", section(title), re.MULTILINE)
    assert [name for name, _ in stated] == list(form.__struct_encode_fields__)
    for (_, default), field in zip(stated, msgspec.structs.fields(form), strict=True):
        required = field.default is msgspec.NODEFAULT
        assert default.strip("`") == ("required" if required else str(field.default))


def test_the_workload_of_the_configuration_equals_that_of_the_trace() -> None:
    """The workload is the trace's thirty most frequent combinations of CPUs and GPUs."""
    trace = Trace(nodes="node_shapes.csv", pods="pod_shapes.csv")
    found = read_trace(trace, scenario="", folder=ROOT / "examples" / "openb", seed=0, start=0)
    requests = (pod.pod["spec"]["containers"][0]["resources"]["requests"] for pod in found.arrivals)
    counts = Counter((int(one["cpu"][:-1]), int(one.get("openb/gpu-milli", 0))) for one in requests)
    expected = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:30]
    profile = yaml.safe_load((PLUGINS / "gpu_fragmentation.yaml").read_text())["profiles"][0]
    stated = profile["pluginConfig"][0]["args"]["workload"]
    assert [((w["cpuMilli"], w.get("gpuMilli", 0)), w["pods"]) for w in stated] == expected
