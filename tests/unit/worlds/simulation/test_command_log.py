"""The JSON lines of commands."""

from __future__ import annotations

import json

import pytest

from fairlead.engine.core.command import (
    Bind,
    Condition,
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.worlds.simulation.world import command_line

POD = ObjectRef("Pod", "ns", "a", "u1")
REF = '{"kind":"Pod","namespace":"ns","name":"a","uid":"u1"}'


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (Bind(POD, "n1"), f'{{"t_ns":5,"command":"Bind","pod":{REF},"node":"n1"}}'),
        (
            PatchStatus(POD, {"b": 1, "a": None}, (Condition("T", "True", "R"),)),
            (
                f'{{"t_ns":5,"command":"PatchStatus","target":{REF},"fields":{{"a":null,"b":1}},'
                '"conditions":[{"type":"T","status":"True","reason":"R","message":"",'
                '"last_heartbeat_time":""}],"why":"","resource_version":""}'
            ),
        ),
        (
            PatchObject(POD, {"z": {"y": 1, "x": 2}}),
            f'{{"t_ns":5,"command":"PatchObject","target":{REF},"patch":{{"z":{{"x":2,"y":1}}}}}}',
        ),
        (
            CreateObject({"kind": "Pod", "apiVersion": "v1"}),
            '{"t_ns":5,"command":"CreateObject","manifest":{"apiVersion":"v1","kind":"Pod"}}',
        ),
        (
            DeleteObject(POD, 0, "why"),
            (
                f'{{"t_ns":5,"command":"DeleteObject","target":{REF},"grace_period_s":0,'
                '"why":"why","policy":"Background"}'
            ),
        ),
        (EvictPod(POD), f'{{"t_ns":5,"command":"EvictPod","pod":{REF},"why":""}}'),
        (
            RecordEvent(POD, "Normal", "R", "A", "é", "c"),
            (
                f'{{"t_ns":5,"command":"RecordEvent","regarding":{REF},"type":"Normal","reason":"R",'
                '"action":"A","note":"é","reporting_controller":"c","related":null}'
            ),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_command_is_written_as_a_line(command, line):
    assert command_line(command, 5) == line
    assert json.loads(line)["t_ns"] == 5


def test_the_order_of_keys_in_a_patch_is_ignored():
    first = PatchObject(POD, {"a": 1, "b": {"c": 2, "d": 3}})
    second = PatchObject(POD, {"b": {"d": 3, "c": 2}, "a": 1})
    assert command_line(first, 1) == command_line(second, 1)
