"""The statements of docs/outages.md are true; test_readme runs its console blocks."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fairlead.cli import main
from fairlead.cli.commands.whatif.options import ChangeOptions, RunOptions
from fairlead.cli.options.controller import ControllerOptions
from fairlead.cli.options.failure import FailureOptions
from fairlead.cli.options.output import OutputOptions
from fairlead.cli.options.release import ReleaseOptions
from fairlead.whatif.outcome.outage import LossCause

PAGE: Final = Path(__file__).parent.parent / "docs" / "outages.md"
YAML: Final = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLUSTER: Final = {
    "generated": {"nodes": 3, "zones": ["zone-a", "zone-b", "zone-c"], "labels": {"pool": "old"}}
}


def blocks() -> dict[str, Any]:
    """Return the YAML blocks by their first key."""
    found = [yaml.safe_load(text) for text in YAML.findall(PAGE.read_text())]
    return {next(iter(block)): block for block in found}


def test_every_yaml_block_is_tested() -> None:
    """The following tests use exactly these blocks."""
    assert sorted(blocks()) == ["events", "tolerations"]


def test_the_events_are_a_valid_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zone fails, and its nodes are drained one after another."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(yaml.safe_dump({"cluster": CLUSTER, **blocks()["events"]}))
    assert main.run(["simulate", "s.yaml", "--no-report"]) == 0
    printed = capsys.readouterr().out
    assert "1 node failed" in printed
    assert "ROLLING DRAIN (3 of 3 nodes are back)" in printed


def test_pods_with_the_shown_tolerations_are_evicted_earlier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are evicted after 80 seconds instead of 350."""
    monkeypatch.chdir(tmp_path)
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "nodeName": "node-0",
        "tolerations": blocks()["tolerations"]["tolerations"],
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    meta = {"name": "web-1", "ownerReferences": [{**owner, "controller": True}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    running = {**pod, "status": {"phase": "Running"}}
    event = {"at": 0, "fail-node": "node-0"}
    scenario = {"cluster": CLUSTER, "objects": [running], "events": [event]}
    Path("s.yaml").write_text(yaml.safe_dump(scenario))
    assert main.run(["simulate", "s.yaml", "--no-report"]) == 0
    assert "Evicted at 1m20s." in capsys.readouterr().out


def test_every_cause_is_explained() -> None:
    """The table names every cause except `starting`, which is temporary."""
    text = PAGE.read_text()
    missing = [cause for cause in LossCause if cause.words not in text]
    assert missing == [LossCause.STARTING]


def test_every_option_that_is_named_exists() -> None:
    """`fairlead whatif` has all options that the page names."""
    shared = (RunOptions, OutputOptions, ReleaseOptions)
    options = (ChangeOptions, FailureOptions, ControllerOptions, *shared)
    fields = [field.name for one in options for field in dataclasses.fields(one)]
    known = {f"--{name.replace('_', '-')}" for name in (*fields, "for", "help")}
    named = set(re.findall(r"--[a-z][a-z0-9-]+", PAGE.read_text()))
    assert sorted(named - known) == []
