"""The answers of planning commands say whether extenders were called."""

from __future__ import annotations

import json

import pytest
from tests.unit.cli.commands.test_planning_exit_codes import node, pod

from fairlead.cli.main import run

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://127.0.0.1:9", filterVerb: filter, ignorable: true}]
"""
NEVER = "Extenders are not called, so their rules are missing here."
IN_DRAINS = (
    "Only the simulated drains call extenders; the rest of this answer, such as what blocks nodes "
    "and where pods go, ignores their rules."
)


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("consolidate", IN_DRAINS),
        ("drain-plan", NEVER),
        ("drain-plan --nodes a", IN_DRAINS),
        ("fit --like pod/p-0", NEVER),
        ("rebalance", NEVER),
        ("size", NEVER),
        ("upgrade-check", IN_DRAINS),
    ],
)
def test_a_plan_says_which_of_its_parts_call_extenders(tmp_path, capsys, command, note):
    """Nothing listens at the address of the extender, which may be ignored."""
    config, dump = tmp_path / "scheduler.yaml", tmp_path / "dump.json"
    config.write_text(CONFIG)
    objects = [node("a", "a"), node("b", "b"), pod("p-0", "2", nodeName="a")]
    dump.write_text(json.dumps({"items": objects, "kind": "List"}))
    name, *options = command.split()
    run(
        [name, str(dump), *options, "--config", str(config), "--allow-extenders", "-o", "json"],
    )
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [one for one in notes if one in (NEVER, IN_DRAINS)] == [note]
    failed = "to the extender at http://127.0.0.1:9/filter failed"
    # The plan of consolidate drains only an empty node, so no pod is scheduled.
    is_called = note == IN_DRAINS and name != "consolidate"
    assert sum(failed in one for one in notes) == is_called


@pytest.mark.parametrize("command", ["consolidate", "drain-plan", "rebalance", "upgrade-check"])
def test_the_text_of_a_plan_has_the_note_about_extenders(tmp_path, capsys, command):
    """A text shows only some notes; this one is more important than those about the dump."""
    config, dump = tmp_path / "scheduler.yaml", tmp_path / "dump.json"
    config.write_text(CONFIG)
    objects = [node("a", "a"), node("b", "b"), pod("p-0", "2", nodeName="a")]
    dump.write_text(json.dumps({"items": objects, "kind": "List"}))
    run([command, str(dump), "--config", str(config), "--allow-extenders"])
    text = " ".join(capsys.readouterr().out.split())
    assert "call extenders" in text or "Extenders are not called" in text
