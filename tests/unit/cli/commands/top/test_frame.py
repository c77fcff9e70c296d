"""A frame of `fairlead top`: its sums, order, omissions and warnings."""

from __future__ import annotations

from io import StringIO

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console
from rich.live import Live

from fairlead.api.objects import Node, Pod
from fairlead.api.timestamp import parse_timestamp
from fairlead.cli.commands.top.frame import FrameOptions, print_frame
from fairlead.cli.commands.top.reading import Event, Reading, Usage
from fairlead.cli.commands.top.run import draw
from fairlead.testing.builders import make_pod

NOW = parse_timestamp("2026-01-01T00:10:00Z")
LEFT = "2026-01-01T00:09:00Z"
GIB = 1 << 30


def node(name, ready="True", **spec):
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "eu-1"}},
            "spec": spec,
            "status": {
                "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        },
        Node,
    )


WHY = "0/2 nodes: too small"


def pod(name, on="", cpu="1", memory="1Gi", phase="Running", namespace="shop", *, why=WHY):
    unscheduled = {"type": "PodScheduled", "status": "False", "message": why}
    requests = {"cpu": cpu, "memory": memory}
    created = "2026-01-01T00:05:30Z"
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
            "spec": {
                "nodeName": on,
                "containers": [{"name": "c", "resources": {"requests": requests}}],
            },
            "status": {"phase": phase, "conditions": [] if on else [unscheduled]},
        },
        Pod,
    )


def event(name, at, kind="Warning"):
    manifest = {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": name},
        "type": kind,
        "reason": "FailedScheduling",
        "message": f"message of {name}",
        "lastTimestamp": at,
    }
    return msgspec.convert(manifest, Event)


@pytest.fixture
def frame():
    """Returns the lines of a frame."""

    def print_lines(width=110, options=None, **parts):
        empty = {"nodes": (), "pods": (), "events": (), "node_usage": {}, "pod_usage": {}}
        reading = Reading(name="context prod", now=NOW, **{**empty, **parts})
        console = Console(width=width, record=True, force_terminal=False, file=None, quiet=False)
        with console.capture() as captured:
            print_frame(console, reading, options or FrameOptions())
        return captured.get().splitlines()

    return print_lines


def test_the_summary_names_three_of_the_objects_that_are_left_out(frame):
    lines = frame(width=200, left_out=tuple(f"Pod p{n} (status: wrong)" for n in range(5)))
    assert lines[3] == (
        "left out 5 objects that cannot be decoded: "
        "Pod p0 (status: wrong), Pod p1 (status: wrong), Pod p2 (status: wrong) and 2 more"
    )


def test_the_summary_leaves_out_virtual_nodes_and_says_so(frame):
    """A virtual node often offers far more than all machines together."""
    virtual = node("v")
    virtual.metadata.labels["type"] = "virtual-kubelet"
    virtual.status.allocatable.update(cpu="10k", memory="100Ti")
    head = frame(nodes=(node("a"), virtual), pods=(pod("x", "a"),), node_usage={})[1:3]
    assert head == [
        "cpu     requested 25.0% of 4 without 10,000 on virtual nodes",
        "memory  requested 6.2% of 16.0Gi without 100Ti on virtual nodes",
    ]


def test_the_summary_has_counts_and_sums(frame):
    nodes = (node("a"), node("b", ready="Unknown", unschedulable=True))
    pods = (pod("x", "a"), pod("done", "a", phase="Succeeded"), pod("waits"))
    usage = {"a": Usage(2000, 4 * GIB), "b": Usage(0, 0)}
    head = frame(nodes=nodes, pods=pods, node_usage=usage)[:3]
    assert head == [
        "context prod  2 nodes (1 not ready, 1 cordoned), 2 pods (1 pending)  2026-01-01T00:10:00Z",
        "cpu     requested 12.5% of 8 (4 on unschedulable nodes), used 25.0%",
        "memory  requested 3.1% of 32.0Gi (16.0Gi on unschedulable nodes), used 12.5%",
    ]


def test_the_share_in_use_is_that_of_nodes_with_metrics(frame):
    """A node that is not ready has no metrics. Its pods may use any amount."""
    nodes = (node("a"), node("b", ready="Unknown"))
    head = frame(nodes=nodes, pods=(pod("x", "b"),), node_usage={"a": Usage(2000, 4 * GIB)})[1:3]
    assert [line.partition(", ")[2] for line in head] == [
        "used 50.0% of 4 on nodes with metrics",
        "used 25.0% of 16.0Gi on nodes with metrics",
    ]


def test_one_node_and_one_pod_are_counted_in_the_singular(frame):
    head = frame(nodes=(node("a"),), pods=(pod("x", "a"),))[0]
    assert head.startswith("context prod  1 node, 1 pod  ")


def test_nodes_are_sorted_by_usage(frame):
    nodes, pods = (node("a"), node("b")), (pod("x", "a", cpu="3"),)
    usage = {"a": Usage(100, 2 * GIB), "b": Usage(900, GIB)}
    by_cpu = frame(nodes=nodes, pods=pods, node_usage=usage)
    assert by_cpu[4].startswith("NODE  ZONE  STATUS  PODS  CPU REQ   USED  MEM REQ   USED")
    assert by_cpu[5].startswith("b     eu-1  Ready      0     0.0%  22.5%     0.0%   6.2%")
    assert by_cpu[6].startswith("a     eu-1  Ready      1    75.0%   2.5%     6.2%  12.5%")
    by_memory = frame(nodes=nodes, node_usage=usage, options=FrameOptions("memory"))
    assert [line.split()[0] for line in by_memory[5:7]] == ["a", "b"]


def test_without_metrics_there_is_no_usage(frame):
    lines = frame(nodes=(node("a"),), pods=(pod("x", "a"),))
    assert not any("USED" in line or "used" in line for line in lines)
    assert "shop/x  a     Running        1    1.0Gi" in lines


def test_pending_pods_have_reasons(frame):
    lines = frame(nodes=(node("a"),), pods=(pod("waits"),))
    assert "shop/waits  4m30s  0/2 nodes: too small" in lines


def test_a_pod_that_waits_for_its_binding_is_nominated(frame):
    """The scheduler has written no message about it."""
    waits = make_pod("waits", status={"nominatedNodeName": "a"})
    lines = frame(nodes=(node("a"),), pods=(waits,))
    assert any(line.endswith("nominated to a, not bound yet") for line in lines)


def test_the_newest_events_are_listed_first(frame):
    events = (event("old", "2026-01-01T00:00:00Z"), event("new", "2026-01-01T00:09:00Z"))
    lines = frame(events=events)
    assert [line.split()[:3] for line in lines[-2:]] == [
        ["60s", "FailedScheduling", "pod/shop/new"],
        ["10m", "FailedScheduling", "pod/shop/old"],
    ]


def test_an_event_of_a_series_has_the_time_of_the_last_occurrence(frame):
    stamp = "2026-01-01T00:09:00.000000Z"
    manifest = {
        "type": "Warning",
        "reason": "FailedScheduling",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 3, "lastObservedTime": stamp},
    }
    lines = frame(events=(msgspec.convert(manifest, Event),))
    assert lines[-1].split()[:2] == ["60s", "FailedScheduling"]


def test_a_node_without_a_ready_condition_is_unknown(frame):
    new = msgspec.convert({"metadata": {"name": "new"}, "spec": {"unschedulable": True}}, Node)
    lines = frame(nodes=(new, node("a", ready="False"), node("b", ready="Unknown")))
    status = {line.split()[0]: line for line in lines[5:8]}
    assert "Unknown,SchedulingDisabled" in status["new"]
    assert "NotReady" in status["a"]
    assert "NotReady" in status["b"]


def test_a_namespace_limits_pods_but_not_the_load_of_nodes(frame):
    pods = (pod("x", "a"), pod("other", "a", namespace="else"))
    lines = frame(nodes=(node("a"),), pods=pods, options=FrameOptions(namespace="shop"))
    assert not any("else/other" in line for line in lines)
    assert lines[5].split()[3] == "2"


def test_the_summary_counts_the_pods_of_the_namespace(frame):
    pods = (pod("x", "a"), pod("waits"), pod("other", "a", namespace="else"))
    first, *_ = frame(nodes=(node("a"),), pods=pods, options=FrameOptions(namespace="shop"))
    assert "1 node, 2 of 3 pods in namespace shop (1 pending)" in first


def test_omitted_rows_are_counted(frame):
    nodes = tuple(node(f"n{number:02}") for number in range(30))
    lines = frame(nodes=nodes, options=FrameOptions(height=34))
    assert "... and 22 more" in lines
    assert len(lines) <= 31


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(frame, width):
    pods = (pod("a-pod-with-a-long-name-5f7d8c9b6d-abcde", "a"), pod("waits"))
    lines = frame(
        width=width, nodes=(node("a"),), pods=pods, events=(event("e", "2026-01-01T00:00:00Z"),)
    )
    assert max(map(len, lines)) <= max(width, 88)


def test_a_frame_on_a_screen_replaces_the_previous_one():
    empty = {"nodes": (), "pods": (), "events": (), "node_usage": {}, "pod_usage": {}}
    reading = Reading(name="context prod", now=NOW, **empty)
    output = StringIO()
    screen = Console(file=output, force_terminal=True, width=80, height=20)
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        for _ in range(3):
            draw(live, reading, FrameOptions(height=20))
        last = output.getvalue().split("\x1b[H")[-1]
    assert last.count("context prod") == 1


@pytest.mark.parametrize("height", [30, 40, 60])
def test_a_frame_of_a_large_cluster_fits_the_terminal(frame, height):
    lines = frame(
        options=FrameOptions(height=height),
        nodes=tuple(node(f"n{i}") for i in range(99)),
        pods=(*(pod(f"p{i}", "n1") for i in range(99)), *(pod(f"w{i}") for i in range(99))),
        events=tuple(event(f"e{i}", "2026-01-01T00:09:00Z") for i in range(99)),
    )
    assert height - 4 <= len(lines) <= height


def test_long_messages_do_not_push_other_tables_off_a_small_terminal(frame):
    why = "0/99 nodes are available: 99 Insufficient cpu. " * 4
    names = [f"a-pod-with-a-long-name-5f7d8c9b6d-w{number}" for number in range(9)]
    lines = frame(
        width=80,
        options=FrameOptions(height=24),
        nodes=tuple(node(f"n{number}") for number in range(9)),
        pods=(
            *(pod(f"p{number}", "n1") for number in range(9)),
            *(pod(one, why=why) for one in names),
        ),
        events=tuple(event(f"e{number}", "2026-01-01T00:09:00Z") for number in range(9)),
    )
    assert len(lines) <= 24
    headings = [line.split()[0] for line in lines if line.isupper()]
    assert {"NODE", "POD", "PENDING", "AGE"} <= set(headings)


def test_if_the_summary_is_taller_than_the_terminal_each_table_has_one_row(frame):
    lines = frame(
        width=20,
        options=FrameOptions(height=2),
        nodes=tuple(node(f"n{number}") for number in range(9)),
        pods=tuple(pod(f"p{number}", "n1") for number in range(9)),
    )
    assert lines.count("... and 8 more") == 2


def test_nodes_that_are_not_ready_and_their_terminating_pods_come_first(frame):
    """They use least, and other pods are terminating in the usual way."""
    nodes = [*(node(f"n{at}") for at in range(30)), node("zz", ready="Unknown")]
    pods = [pod(f"p{at:02}", f"n{at}", cpu="2") for at in range(30)]
    for name, on in (("stuck", "zz"), ("leaving", "n1")):
        one = pod(name, on, cpu="1m")
        pods.append(replace(one, metadata=replace(one.metadata, deletion_timestamp=LEFT)))
    lines = frame(nodes=nodes, pods=pods)
    rows = [line.split()[0] for line in lines if line.strip()]
    assert rows[rows.index("NODE") + 1] == "zz"
    assert rows[rows.index("POD") + 1] == "shop/stuck"
    assert "shop/leaving" not in rows
