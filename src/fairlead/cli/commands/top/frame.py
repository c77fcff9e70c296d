"""Prints one frame of `fairlead top`, as tables that fit the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.api.nodes.readiness import TRUE, ready_status
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import condition, is_terminal, is_terminating
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.api.well_known_label import is_virtual
from fairlead.apiserver.printers.age import human_duration
from fairlead.cli.commands.top.reading import Event, Reading, Usage
from fairlead.cli.output.console.amount import amount_text, percent_text
from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn
from fairlead.cli.output.console.terminal import print_line
from fairlead.engine.core.instant import Instant

SECTIONS: Final = 4
ROWS_MIN: Final = 3
# The number of lines in a frame that are not rows of tables: the lines of the summary, and for each
# table an empty line, the headings and (except for the events) a line such as "... and 3 more".
LINES_BESIDE_ROWS: Final = 3 + 2 * SECTIONS + (SECTIONS - 1)
NODE_SHARE: Final = 0.4  # the share of nodes in the rows of all tables together
POD_SHARE: Final = 0.3
ROWS_DEFAULT: Final = 10  # of each table, if the height of the terminal is not used


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """How to print a frame of `fairlead top`.

    `sort` is `cpu` or `memory`. If `namespace` is "", the pods of all namespaces are shown.
    `height` is the number of lines on the terminal. 0 means up to ROWS_DEFAULT rows for each table.
    """

    sort: str = "cpu"
    namespace: str = ""
    height: int = 0

    @property
    def node_rows(self) -> int:
        """The largest number of nodes to print."""
        return self._rows(NODE_SHARE)

    @property
    def pod_rows(self) -> int:
        """The largest number of pods to print."""
        return self._rows(POD_SHARE)

    @property
    def other_rows(self) -> int:
        """The largest number of rows for pending pods; the table of events has the same limit."""
        return self._rows((1 - NODE_SHARE - POD_SHARE) / 2)

    def _rows(self, share: float) -> int:
        if not self.height:
            return ROWS_DEFAULT
        return max(ROWS_MIN, int((self.height - LINES_BESIDE_ROWS) * share))


@dataclass(frozen=True, slots=True)
class _NodeLoad:
    """The usage and allocatable resources of a node, and the number and requests of its pods.

    `used` is None if the usage is unknown.
    """

    node: Node
    pods: int
    requested: Usage
    used: Usage | None
    allocatable: Usage


@dataclass(frozen=True, slots=True)
class _Table:
    """A table with some of its `total` rows; `styles` contains the style of each row.

    If `total` is 0, the table does not say how many rows are not shown.
    """

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str]
    total: int = 0

    def print(self, console: Console) -> None:
        """Print the rows, and how many of the `total` rows are not shown."""
        FittedTable(self.columns, self.rows, self.styles).print(console)
        if len(self.rows) < self.total:
            console.print(Text(f"... and {self.total - len(self.rows):,} more", style="dim"))

    def height(self, console: Console) -> int:
        """Return the number of lines that `print` prints."""
        height = FittedTable(self.columns, self.rows).height(console)
        return height + (len(self.rows) < self.total)


def print_frame(console: Console, reading: Reading, options: FrameOptions) -> None:
    """Print a frame: first a summary, then nodes, pods, pending pods and events."""
    living = [pod for pod in reading.pods if not is_terminal(pod)]
    loads = _node_loads(reading, living)
    shown = [pod for pod in living if options.namespace in ("", pod.metadata.namespace)]
    pending = [pod for pod in shown if not pod.spec.node_name and not is_terminating(pod)]
    summary = StringIO()  # Its lines may be wrapped, so they are counted.
    for target in (Console(file=summary, width=console.width), console):
        _print_summary(target, reading, loads, _counted_pods(living, shown, options.namespace))
    tables = [
        _nodes(loads, options),
        _pods(reading, [pod for pod in shown if pod.spec.node_name], options),
        _pending(pending, reading.now, options),
        _events(reading, options),
    ]
    if options.height:
        lines = options.height - summary.getvalue().count("\n")
        tables = _fitted(tables, console, max(lines, 0))
    for table in tables:
        table.print(console)


# --- sums ----------------------------------------------------------------------------------------


def _node_loads(reading: Reading, living: Iterable[Pod]) -> list[_NodeLoad]:
    requested: dict[str, list[Usage]] = defaultdict(list)
    for pod in living:
        requested[pod.spec.node_name].append(_requested(pod))
    loads = []
    for node in reading.nodes:
        of_pods = requested[node.metadata.name]
        allocatable = node.status.allocatable
        cpu, memory = allocatable.get("cpu", "0"), allocatable.get("memory", "0")
        loads.append(
            _NodeLoad(
                node,
                len(of_pods),
                _sum(of_pods),
                reading.node_usage.get(node.metadata.name),
                Usage(milli_value(cpu), whole_value(memory)),
            )
        )
    return loads


def _requested(pod: Pod) -> Usage:
    requests = pod_requests(pod, existing=bool(pod.spec.node_name))
    return Usage(requests.get("cpu", 0), requests.get("memory", 0))


def _sum(amounts: Iterable[Usage]) -> Usage:
    found = list(amounts)
    return Usage(sum(one.cpu for one in found), sum(one.memory for one in found))


# --- tables --------------------------------------------------------------------------------------


def _counted_pods(living: Sequence[Pod], shown: Sequence[Pod], namespace: str) -> str:
    """Return the numbers of pods as text, such as `2 of 3 pods in namespace shop (1 pending)`.

    `living` are the pods of all namespaces, and `shown` are the pods in `namespace`. If `namespace`
    is "", `shown` equals `living`. The text says how many of `shown` are pending.
    """
    waiting = sum(not pod.spec.node_name for pod in shown)
    pending = f" ({waiting:,} pending)" if waiting else ""
    if namespace:
        return f"{len(shown):,} of {counted(len(living), 'pod')} in namespace {namespace}{pending}"
    return counted(len(living), "pod") + pending


def _print_summary(
    console: Console, reading: Reading, loads: Sequence[_NodeLoad], pods: str
) -> None:
    not_ready = sum(ready_status(one.node) != TRUE for one in loads)
    cordoned = sum(one.node.spec.unschedulable for one in loads)
    marks = [f"{not_ready} not ready"] * bool(not_ready) + [f"{cordoned} cordoned"] * bool(cordoned)
    nodes = counted(len(loads), "node") + (f" ({', '.join(marks)})" if marks else "")
    now = format_timestamp(reading.now) if reading.now else ""
    print_line(console, f"{reading.name}  {nodes}, {pods}  {now}", "bold")
    # A virtual node often states far more than all machines together.
    virtual = _sum(one.allocatable for one in loads if is_virtual(one.node.metadata.labels))
    loads = [one for one in loads if not is_virtual(one.node.metadata.labels)]
    offered, requested = (_sum(getattr(one, name) for one in loads) for name in _SUMS)
    unschedulable = _sum(one.allocatable for one in loads if not _is_schedulable(one.node))
    measured = [one for one in loads if one.used is not None]
    used = _sum(one.used for one in loads if one.used is not None)
    usable = _sum(one.allocatable for one in measured)
    for resource in ("cpu", "memory"):
        whole, part = getattr(offered, resource), getattr(requested, resource)
        text = (
            f"{resource:<7} requested {percent_text(part, whole)} of {amount_text(resource, whole)}"
        )
        if amount := getattr(unschedulable, resource):
            text += f" ({amount_text(resource, amount)} on unschedulable nodes)"
        if amount := getattr(virtual, resource):
            text += f" without {amount_text(resource, amount)} on virtual nodes"
        if measured:
            base = getattr(usable, resource)
            text += f", used {percent_text(getattr(used, resource), base)}"
            if len(measured) < len(loads):
                text += f" of {amount_text(resource, base)} on nodes with metrics"
        print_line(console, text)
    if reading.left_out:
        number = counted(len(reading.left_out), "object")
        text = f"left out {number} that cannot be decoded: {listed(reading.left_out)}"
        print_line(console, text, "yellow")


def _is_schedulable(node: Node) -> bool:
    return ready_status(node) == TRUE and not node.spec.unschedulable


_SUMS: Final = ("allocatable", "requested")

_NODE_COLUMNS: Final = (
    TableColumn("NODE", is_name=True),
    TableColumn("ZONE", rank=3),
    TableColumn("STATUS"),
    TableColumn("PODS", rank=1, is_number=True),
    TableColumn("CPU REQ", is_number=True),
    TableColumn("USED", is_number=True),
    TableColumn("MEM REQ", is_number=True),
    TableColumn("USED", is_number=True),
)


def _nodes(loads: Sequence[_NodeLoad], options: FrameOptions) -> _Table:
    def weight(one: _NodeLoad) -> tuple[bool, float, str]:
        whole = getattr(one.allocatable, options.sort)
        part = getattr(one.used or one.requested, options.sort)
        is_ready = ready_status(one.node) == TRUE
        return (is_ready, -part / whole if whole else 0.0, one.node.metadata.name)

    ordered = sorted(loads, key=weight)
    rows, styles = [], []
    for one in ordered[: options.node_rows]:
        status = _status(one.node)
        rows.append((
            one.node.metadata.name,
            one.node.metadata.labels.get("topology.kubernetes.io/zone", ""),
            status,
            f"{one.pods:,}",
            percent_text(one.requested.cpu, one.allocatable.cpu),
            percent_text(one.used.cpu, one.allocatable.cpu) if one.used else "",
            percent_text(one.requested.memory, one.allocatable.memory),
            percent_text(one.used.memory, one.allocatable.memory) if one.used else "",
        ))  # fmt: skip
        styles.append("" if status == "Ready" else "yellow")
    return _Table(_NODE_COLUMNS, rows, styles, len(ordered))


def _status(node: Node) -> str:
    """Return the node's text in the column STATUS of `kubectl get nodes`."""
    # upstream: pkg/printers/internalversion/printers.go:printNode
    status = ready_status(node)
    ready = "Ready" if status == TRUE else "NotReady" if status else "Unknown"
    return f"{ready},SchedulingDisabled" if node.spec.unschedulable else ready


_POD_COLUMNS: Final = (
    TableColumn("POD", is_name=True),
    TableColumn("NODE", rank=1, is_name=True),
    TableColumn("STATUS", rank=2),
    TableColumn("CPU REQ", is_number=True),
    TableColumn("USED", is_number=True),
    TableColumn("MEM REQ", is_number=True),
    TableColumn("USED", is_number=True),
)


def _pods(reading: Reading, pods: Sequence[Pod], options: FrameOptions) -> _Table:
    usage: Mapping[str, Usage] = reading.pod_usage

    lost = {node.metadata.name for node in reading.nodes if ready_status(node) != TRUE}

    def weight(pod: Pod) -> tuple[bool, int, str]:
        is_stuck = is_terminating(pod) and pod.spec.node_name in lost
        amount = getattr(usage.get(pod.key) or _requested(pod), options.sort)
        return (not is_stuck, -amount, pod.key)

    rows = []
    for pod in sorted(pods, key=weight)[: options.pod_rows]:
        requested, used = _requested(pod), usage.get(pod.key)
        rows.append((
            pod.key,
            pod.spec.node_name,
            "Terminating" if is_terminating(pod) else pod.status.phase,
            amount_text("cpu", requested.cpu),
            amount_text("cpu", used.cpu) if used else "",
            amount_text("memory", requested.memory),
            amount_text("memory", used.memory) if used else "",
        ))  # fmt: skip
    return _Table(_POD_COLUMNS, rows, (), len(pods))


_PENDING_COLUMNS: Final = (
    TableColumn("PENDING", is_name=True),
    TableColumn("FOR", is_number=True),
    TableColumn("WHY"),
)


def _pending(pods: Sequence[Pod], now: Instant, options: FrameOptions) -> _Table:
    def since(pod: Pod) -> str:
        return pod.metadata.creation_timestamp

    rows = []
    for pod in sorted(pods, key=lambda pod: (since(pod), pod.key))[: options.other_rows]:
        age = _age(parse_timestamp(since(pod)) if since(pod) else 0, now)
        rows.append((pod.key, age, _why_pending(pod)))
    return _Table(_PENDING_COLUMNS, rows, ["yellow"] * len(rows), len(pods))


def _why_pending(pod: Pod) -> str:
    """Return why `pod` is pending: the scheduler's message, or else the nominated node.

    Returns "" if the pod has neither. While a scheduler waits before it binds a pod, for example
    for the pod's volumes, the pod has a nominated node and no message.
    """
    scheduled, nominated = condition(pod, "PodScheduled"), pod.status.nominated_node_name
    if scheduled is not None and scheduled.message:
        return scheduled.message
    return f"nominated to {nominated}, not bound yet" if nominated else ""


_EVENT_COLUMNS: Final = (
    TableColumn("AGE", is_number=True),
    TableColumn("EVENT"),
    TableColumn("OBJECT", is_name=True),
    TableColumn("MESSAGE"),
)


def _events(reading: Reading, options: FrameOptions) -> _Table:
    newest = sorted(reading.events, key=lambda event: (-event.at, event.metadata.name))
    shown = newest[: options.other_rows]
    rows = [
        (_age(event.at, reading.now), event.reason, _object(event), event.message)
        for event in shown
    ]
    styles = ["yellow" if event.type == "Warning" else "" for event in shown]
    return _Table(_EVENT_COLUMNS, rows, styles)


def _object(event: Event) -> str:
    named = event.involved_object
    place = f"{named.namespace}/" if named.namespace else ""
    return f"{named.kind.lower()}/{place}{named.name}"


def _age(at: Instant, now: Instant) -> str:
    return human_duration(max(0, now - at)) if at and now else ""


def _fitted(tables: Sequence[_Table], console: Console, lines: int) -> list[_Table]:
    """Return `tables` without the last rows that do not fit into `lines` lines.

    Each table keeps at least one row. A row with a long message takes several lines of a narrow
    terminal. Therefore the table with the most lines loses its last row, again and again, until all
    tables together fit.
    """
    fitted = list(tables)
    heights = [table.height(console) for table in fitted]
    while lines < sum(heights):
        at = max(range(len(fitted)), key=lambda n: (len(fitted[n].rows) > 1, heights[n]))
        if len(fitted[at].rows) <= 1:
            break
        fitted[at] = replace(fitted[at], rows=fitted[at].rows[:-1])
        heights[at] = fitted[at].height(console)
    return fitted
