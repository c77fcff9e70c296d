"""The output of commands, compared line by line."""

from __future__ import annotations

import pytest

from fairlead.conformance.api.comparison.printed_output import drain_messages, mismatch
from fairlead.conformance.api.placeholder import PlaceholderValues


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        ("pod/a created\n", "pod/a created\n"),
        ("NAME   AGE\na      <age>\n", "NAME AGE\na    5m3s\n"),
        ("web-<hash:1>-<gen:1>   node-2\n", "web-7d9f8c-x2x4z   node-3\n"),
        ("Created pod: web-<hash:1>-hcr2r\n", "Created pod: web-7d9f8c-zzzzz\n"),
        ("E<klog> diff.go:723] x\n", "E1120 09:00:29.939887   21007 diff.go:723] x\n"),
        ('{"a": 1, "metadata": {"uid": "<uid:1>"}}', '{"metadata": {"uid": "%s"}, "a": 1}'),
        (
            'stored to "/tmp/kubectl.1.32-edit-32.yaml"\n',
            'stored to "/tmp/kubectl-edit-4567.yaml"\n',
        ),
        (
            "a vm_73ab3390-4380-4bc7-930b-a6b2bc3488e6 <age>\n",
            "a vm_12345678-1234-1234-1234-123456789012 9s\n",
        ),
    ],
    ids=["same", "widths", "node", "suffix", "log", "object", "draft", "holder"],
)
def test_random_differences_agree(recorded, found):
    found = found.replace("%s", "12345678-1234-1234-1234-123456789012")
    assert mismatch(recorded, found, PlaceholderValues(), "stdout") is None


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        ("a\n", "b\n"),
        ("a\n", "a\nb\n"),
        ("a\nb\n", "b\na\n"),
        ("NAME   AGE\n", "NAME AGE\n"),
        ("pod/<uid:1>\n", "pod/x\n"),
        ("web-2 node-2\n", "web-3 node-2\n"),
        ("a vm_73ab3390-4380-4bc7-930b-a6b2bc3488e6\n", "a vm_12345678\n"),
        ('{"a": 1}', '{"a": 2}'),
    ],
)
def test_other_differences_are_found(recorded, found):
    assert mismatch(recorded, found, PlaceholderValues(), "stdout") is not None


def test_lines_whose_order_is_random_may_be_in_any_order():
    recorded, found = "a <age>\nb <age>\n", "b 3s\na 4s\n"
    assert mismatch(recorded, found, PlaceholderValues(), "stdout", in_order=False) is None
    assert (
        mismatch(recorded, "b 3s\nc 4s\n", PlaceholderValues(), "stdout", in_order=False)
        is not None
    )


def test_generated_names_determine_the_order_of_their_lines():
    recorded = "NAME\nweb-<hash:1>   0\nweb-<hash:2>   2\nz   1\n"
    assert (
        mismatch(recorded, "NAME\nweb-b5bb5b5b 2\nweb-c5cc5c5c 0\nz 1\n", PlaceholderValues(), "")
        is None
    )
    assert (
        mismatch(recorded, "NAME\nz 1\nweb-b5bb5b5b 2\nweb-c5cc5c5c 0\n", PlaceholderValues(), "")
        is None
    )
    assert mismatch(
        recorded, "z 1\nweb-b5bb5b5b 2\nweb-c5cc5c5c 0\nNAME\n", PlaceholderValues(), ""
    )
    assert mismatch(
        recorded, "NAME\nweb-b5bb5b5b 2\nweb-c5cc5c5c 2\nz 1\n", PlaceholderValues(), ""
    )


def test_messages_of_drains_agree_for_pods_with_other_names():
    recorded = (
        "node/node-2 drained\nevicting pod a/p3\nevicting pod a/j1-h4hnd\nWarning: x: a/b, a/c\n"
    )
    found = "node/node-2 drained\nevicting pod a/unk\nWarning: x: a/b\n"
    assert drain_messages(recorded) == drain_messages(found)
    assert drain_messages(found) != drain_messages(found.replace("node-2", "node-3"))
    assert drain_messages(found) != drain_messages(found.replace("evicting", "deleting"))
