"""Every command that reads a dump accepts a scheduler configuration in a ConfigMap of the dump."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.cli.main import run

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "scheduler", "namespace": "kube-system"},
    "data": {
        "config": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulername: mistyped}]\n"
    },
}
SCENARIO = "cluster: {files: [dump.json]}\nsettings: {scheduler: %s}\n"
LOG = Path(__file__).parents[4] / "examples" / "replay" / "audit.log"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a dump and a scenario."""
    items = [NODE, POD, CONFIG_MAP]
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    (tmp_path / "s.yaml").write_text(SCENARIO % "configmap/kube-system/scheduler")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "whatif dump.json --drain n1 --config",
        "whatif dump.json --drain n1 --new-config",
        "whatif dump.json --drain n1 --against-config",
        "explain dump.json pod/default/p --config",
        "fit dump.json --like pod/default/p --config",
        "size dump.json --config",
        "consolidate dump.json --config",
        "rebalance dump.json --config",
        "drain-plan dump.json --nodes n1 --config",
        "upgrade-check dump.json --config",
        f"replay {LOG} --snapshot dump.json --config",
        "extender --listen 127.0.0.1:0 --snapshot dump.json --config",
    ],
)
def test_a_configuration_in_a_config_map_is_read(folder, command, capsys):
    """The error about a mistyped field shows that the command has read the configuration."""
    assert run([*command.split(), "configmap/kube-system/scheduler"]) == 2
    assert "ConfigMap kube-system/scheduler: config: profiles[0]" in capsys.readouterr().err


def test_a_scenario_can_name_a_config_map_of_its_cluster(folder, capsys):
    assert run(["simulate", "s.yaml"]) == 2
    assert "ConfigMap kube-system/scheduler: config: profiles[0]" in capsys.readouterr().err
    (folder / "s.yaml").write_text(SCENARIO % "configmap/kube-system/other")
    assert run(["simulate", "s.yaml"]) == 2
    assert capsys.readouterr().err.startswith(
        "fairlead: s.yaml: line 2: settings.scheduler: there is no KubeSchedulerConfiguration in "
        "configmap/kube-system/other; "
    )
