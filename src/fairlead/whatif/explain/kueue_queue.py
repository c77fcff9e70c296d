"""Explains the queues of Kueue: their quotas, and the workloads that wait for them.

Kueue is not simulated. The amounts come from the status of the queue, and the reasons come from the
conditions of the Workloads.

upstream: kueue: apis/kueue/v1beta2/clusterqueue_types.go, localqueue_types.go, workload_types.go;
pkg/cache/queue/cluster_queue.go: queueOrderingFunc
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import items, mapping, text
from fairlead.api.objects import QuantityText
from fairlead.api.quantity import Quantity, QuantityError, canonical, parse_quantity
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.validation.core.resource import quantity_or_none
from fairlead.whatif.explain.pod import SOURCE
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.kueue import (
    KUEUE,
    QueuedWorkload,
    decode_object,
    queued_workloads,
)
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.snapshot import Snapshot

_CLUSTER_QUEUE: Final = "ClusterQueue"
_LOCAL_QUEUE: Final = "LocalQueue"
_NAMED_MAX: Final = 3
STARTED_KINDS: Final = ("Job", "JobSet")
"""The kinds whose start a what-if simulates if it sets spec.suspend to false."""
_STOPPED: Final = {
    "Hold": "it admits no workloads",
    "HoldAndDrain": "it admits no workloads, and evicts the admitted ones",
}
_AMOUNT_COLUMNS: Final = (
    ResultColumn("flavor", "flavor", NAME),
    ResultColumn("resource", "resource", NAME),
    ResultColumn("quota", "quota", NUMBER),
    ResultColumn("borrowing_limit", "may borrow", NUMBER, rank=1),
    ResultColumn("reserved", "reserved", NUMBER),
    ResultColumn("left", "left", NUMBER),
)
_WAITING_COLUMNS: Final = (
    ResultColumn("workload", "workload", NAME),
    ResultColumn("queue", "queue", NAME, rank=1),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("priority", "priority", NUMBER, rank=2),
    ResultColumn("why", "waits because"),
)
_QUEUE_COLUMNS: Final = (
    ResultColumn("queue", "queue", NAME),
    ResultColumn("waiting", "waiting workloads", NUMBER),
    ResultColumn("admitted", "admitted workloads", NUMBER),
)
_ADMITTED_COLUMNS: Final = (
    ResultColumn("workload", "workload", NAME),
    ResultColumn("queue", "queue", NAME, rank=1),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("uses", "reserves"),
)


_NAMES: Final = {
    _LOCAL_QUEUE: ("localqueue", "localqueues", "lq"),
    _CLUSTER_QUEUE: ("clusterqueue", "clusterqueues", "cq"),
}
KUEUE_KINDS: Final = tuple(name for names in _NAMES.values() for name in names)
_SHARED_NAMES: Final = ("queue", "queues")  # of LocalQueues, unless the dump has other Queues
_NOTE: Final = (
    "Kueue is not simulated: the amounts and reasons are those that Kueue wrote to the objects of "
    "the dump."
)


class _QuotaForm(Struct, rename="camel"):
    name: str
    nominal_quota: QuantityText


class _FlavorForm(Struct):
    name: str
    resources: tuple[_QuotaForm, ...] = ()


class _GroupForm(Struct):
    flavors: tuple[_FlavorForm, ...] = ()


class _ClusterQueueSpec(Struct, rename="camel"):
    resource_groups: tuple[_GroupForm, ...] = ()
    cohort: str = ""
    cohort_name: str = ""
    stop_policy: str = ""
    queueing_strategy: str = ""


class _ClusterQueueForm(Struct):
    spec: _ClusterQueueSpec = field(default_factory=_ClusterQueueSpec)


class _LocalQueueSpec(Struct, rename="camel"):
    cluster_queue: str = ""
    stop_policy: str = ""


class _LocalQueueForm(Struct):
    spec: _LocalQueueSpec = field(default_factory=_LocalQueueSpec)


def explain_kueue(snapshot: Snapshot, target: str) -> TabularAnswer | None:
    """Return the explanation of `target`; None if it is no queue of Kueue.

    `target` is a LocalQueue, a ClusterQueue, or a kind, which means all ClusterQueues. Raises
    InputError if there is no such queue.
    """
    inventory = snapshot.inventory()
    name, slash, key = target.partition("/")
    name = name.partition(".")[0].lower()
    kind = next((kind for kind, names in _NAMES.items() if name in names), "")
    if name in _SHARED_NAMES and not _has_other_queues(inventory):
        kind = _LOCAL_QUEUE
    if not kind or not _kinds(inventory, kind):
        return None
    if not slash:
        return _explain_all(snapshot)
    return _explain_queue(inventory.find(SOURCE, f"{kind.lower()}/{key}"), snapshot)


def _has_other_queues(inventory: Inventory) -> bool:
    return any(one.kind == "Queue" for one in inventory.kinds)


def _kinds(inventory: Inventory, name: str) -> list[Kind]:
    """Return the kinds of Kueue in `inventory` called `name`: one for each version of the API."""
    return [one for one in inventory.kinds if (one.group, one.kind) == (KUEUE, name)]


def _explain_all(snapshot: Snapshot) -> TabularAnswer:
    """Return a comparison of all ClusterQueues of `snapshot`."""
    inventory = snapshot.inventory()
    kinds = _kinds(inventory, _CLUSTER_QUEUE)
    queues = sorted((one for kind in kinds for one in inventory.of_kind(kind)), key=_name)
    for queue in queues:
        _refuse_malformed(queue)
    waiting_in, admitted_in = Counter[str](), Counter[str]()
    for one in queued_workloads(inventory):
        counts = admitted_in if one.is_admitted else waiting_in
        counts[_cluster_queue_of(one, inventory)] += 1
    rows: list[Row] = [
        {"queue": name, "waiting": waiting_in[name], "admitted": admitted_in[name]}
        for name in map(_name, queues)
    ]
    waiting = sum(row["waiting"] for row in rows)
    wait = f"{counted(waiting, 'workload')} {'waits' if waiting == 1 else 'wait'}"
    amounts = [{"queue": _name(one), **row} for one in queues for row in _amount_rows(one)]
    return TabularAnswer(
        kind="KueueQueuesExplanation",
        source=snapshot.source,
        verdict=f"{counted(len(rows), _CLUSTER_QUEUE)} of Kueue; {wait} for admission.",
        tables=(
            ResultTable("queues", "queues", _QUEUE_COLUMNS, rows, shown=20),
            ResultTable("amounts", "quotas", (_QUEUE_COLUMNS[0], *_AMOUNT_COLUMNS), amounts,
                        shown=20),
        ),
        facts={"waiting_count": waiting},
        notes=(_NOTE,),
    )  # fmt: skip


def _name(queue: Manifest) -> str:
    return queue.ref.name


def _explain_queue(queue: Manifest, snapshot: Snapshot) -> TabularAnswer:
    """Return the explanation of `queue`, a LocalQueue or ClusterQueue of `snapshot`.

    Raises InputError if the queue, its ClusterQueue or a Workload is malformed.
    """
    inventory = snapshot.inventory()
    _refuse_malformed(queue)
    backing = _backing_queue(queue, inventory)
    if backing is not None:
        _refuse_malformed(backing)
    own = [one for one in queued_workloads(inventory) if _is_in(one, queue, inventory)]
    waiting = sorted(
        (one for one in own if not one.is_admitted),
        key=lambda one: (-one.priority, one.created, one.key),
    )
    admitted = sorted((one for one in own if one.is_admitted), key=lambda one: one.key)
    waits = f"{counted(len(waiting), 'workload')} {'waits' if len(waiting) == 1 else 'wait'}"
    runs = f"{len(admitted):,} {'is' if len(admitted) == 1 else 'are'} admitted"
    return TabularAnswer(
        kind="KueueQueueExplanation",
        source=snapshot.source,
        verdict=f"{queue.kind.kind.lower()}/{queue.ref.key}: {waits} for admission, {runs}.",
        findings=tuple(_findings(queue, backing)),
        steps=tuple(_steps(waiting, snapshot.question_arguments)),
        tables=(
            ResultTable("amounts", _amounts_title(queue, backing), _AMOUNT_COLUMNS,
                        [] if backing is None else _amount_rows(backing)),
            ResultTable("waiting", "workloads that wait, in Kueue's order", _WAITING_COLUMNS, [
                {**_row(one), "priority": one.priority, "why": one.why} for one in waiting
            ]),
            ResultTable("admitted", "admitted workloads", _ADMITTED_COLUMNS, [
                {**_row(one), "uses": _reserved_amounts(one)} for one in admitted
            ]),
        ),
        facts={
            "queue": queue.ref.key,
            "cluster_queue": None if backing is None else _name(backing),
            "waiting_count": len(waiting),
            "admitted_count": len(admitted),
        },
        notes=(_NOTE,),
    )  # fmt: skip


def _refuse_malformed(queue: Manifest) -> None:
    """Raise InputError if a field of `queue` that is read has a wrong type or a bad quota."""
    if queue.kind.kind == _LOCAL_QUEUE:
        decode_object(queue, _LocalQueueForm)
        return
    groups = decode_object(queue, _ClusterQueueForm).spec.resource_groups
    for at, group in enumerate(groups):
        for index, flavor in enumerate(group.flavors):
            for number, one in enumerate(flavor.resources):
                quota = quantity_or_none(one.nominal_quota)
                if quota is None or quota.nano < 0:
                    path = f"spec.resourceGroups[{at}].flavors[{index}].resources[{number}]"
                    problem = f"{one.nominal_quota!r} is not an amount, such as 4 or 16Gi"
                    raise queue.refuse(problem, field=f"{path}.nominalQuota")


def _backing_queue(queue: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the ClusterQueue behind `queue`; None if it does not exist.

    The ClusterQueue behind a ClusterQueue is the ClusterQueue itself. The ClusterQueue behind a
    LocalQueue is the ClusterQueue that the LocalQueue names.
    """
    if queue.kind.kind == _CLUSTER_QUEUE:
        return queue
    name = text(queue.value, "spec", "clusterQueue")
    kinds = _kinds(inventory, _CLUSTER_QUEUE)
    return next(filter(None, (inventory.get(kind, "", name) for kind in kinds)), None)


def _is_in(workload: QueuedWorkload, queue: Manifest, inventory: Inventory) -> bool:
    """Return whether `workload` is in `queue`, or in a LocalQueue that names `queue`."""
    if queue.kind.kind == _LOCAL_QUEUE:
        return queue.ref.key == f"{workload.namespace}/{workload.queue}"
    return _cluster_queue_of(workload, inventory) == _name(queue)


def _cluster_queue_of(workload: QueuedWorkload, inventory: Inventory) -> str:
    """Return the name of the ClusterQueue in which `workload` has quota.

    If `workload` has no quota yet, the result is the ClusterQueue that its LocalQueue names. The
    result is "" if this LocalQueue does not exist.
    """
    if workload.cluster_queue:
        return workload.cluster_queue
    kinds = _kinds(inventory, _LOCAL_QUEUE)
    found = (inventory.get(kind, workload.namespace, workload.queue) for kind in kinds)
    return next((text(one.value, "spec", "clusterQueue") for one in found if one), "")


def _findings(queue: Manifest, backing: Manifest | None) -> Iterator[str]:
    """Yield why the queue admits nothing, and with which queues it shares its quota.

    `backing` is the ClusterQueue behind `queue` (see `_backing_queue`), or None.
    """
    if backing is None:
        name = text(queue.value, "spec", "clusterQueue")
        why = f"ClusterQueue {name} does not exist" if name else "The queue names no ClusterQueue"
        yield f"{why}, so Kueue admits nothing from this queue."
    for one in [queue] if backing is queue or backing is None else [queue, backing]:
        policy = text(one.value, "spec", "stopPolicy")
        if policy in _STOPPED:
            yield f"{one.title} is stopped: {_STOPPED[policy]} (stopPolicy {policy})."
        for condition in items(one.value, "status", "conditions"):
            if text(condition, "type") == "Active" and text(condition, "status") == "False":
                yield f"{one.title} is not active: {text(condition, 'message').rstrip('. ')}."
    if backing is not None:
        spec = mapping(backing.value, "spec")
        cohort = text(spec, "cohortName") or text(spec, "cohort")
        if cohort:
            yield f"{backing.title} is in cohort {cohort} and may borrow unused quota there."
        if text(spec, "queueingStrategy") == "StrictFIFO":
            yield (
                "A workload that cannot be admitted blocks those after it (queueingStrategy "
                "StrictFIFO)."
            )


def _steps(waiting: Sequence[QueuedWorkload], arguments: Sequence[str]) -> Iterator[NextStep]:
    """Yield the what-if that starts the first of `waiting` that is a Job or a JobSet.

    `arguments` are the command-line words with which the what-if reads the same cluster.
    """
    for one in waiting:
        kind, _, key = one.title.partition(" ")
        if kind in STARTED_KINDS:
            yield start_step(kind, key, arguments)
            return


def start_step(kind: str, key: str, arguments: Sequence[str]) -> NextStep:
    """Return the what-if that starts the suspended Job or JobSet `key` (`namespace/name`).

    `kind` is one of STARTED_KINDS. `arguments` are the command-line words with which the what-if
    reads the same cluster.
    """
    edit = f"{kind.lower()}/{key}:spec.suspend=false"
    command = shlex.join(("fairlead", "whatif", *arguments, "--set", edit))
    return NextStep(f"ask whether the nodes have room for {kind} {key}", command=command)


def _amounts_title(queue: Manifest, backing: Manifest | None) -> str:
    return "its quota" if backing is queue or backing is None else f"quota of {backing.title}"


def _amount_rows(queue: Manifest) -> list[Row]:
    """Return a row for each flavor and resource of the ClusterQueue `queue`."""
    reserved: dict[tuple[str, str], Any] = {}
    for flavor in items(queue.value, "status", "flavorsReservation"):
        for one in items(flavor, "resources"):
            reserved[text(flavor, "name"), text(one, "name")] = text(one, "total")
    rows: list[Row] = []
    for group in items(queue.value, "spec", "resourceGroups"):
        for flavor in items(group, "flavors"):
            for one in items(flavor, "resources"):
                name = text(flavor, "name"), text(one, "name")
                quota, held = text(one, "nominalQuota"), reserved.get(name, "")
                rows.append({
                    "flavor": name[0],
                    "resource": name[1],
                    "quota": quota,
                    "borrowing_limit": text(one, "borrowingLimit"),
                    "reserved": held,
                    "left": _difference(quota, held),
                })  # fmt: skip
    return rows


def _difference(quota: str, held: str) -> str:
    """Return `quota` minus `held` as a quantity, at least 0; "" if either text is no quantity."""
    try:
        left = parse_quantity(quota).nano - parse_quantity(held).nano
    except QuantityError:
        return ""
    return canonical(Quantity(nano=max(left, 0)), parse_quantity(quota).format)


def _row(one: QueuedWorkload) -> dict[str, object]:
    return {"workload": one.title, "queue": f"{one.namespace}/{one.queue}", "pods": one.pods}


def _reserved_amounts(one: QueuedWorkload) -> str:
    amounts = [f"{amount} {name}" for name, amount in sorted(one.reserves.items())]
    return listed(amounts, _NAMED_MAX) if amounts else ""
