"""Explains a queue of kube-batch or Volcano, or all queues: who gets which resources, and why.

The amounts apply at the beginning of the next session of the batch scheduler. The next session
itself is simulated, too: the answer names the pods that it evicts for the queue or from the queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.api.resource_name import is_extended_resource
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.batch.compose import Composition
from fairlead.engine.batch.explanation.explanation import GroupExplanation
from fairlead.engine.batch.explanation.queue import (
    QueueExplanation,
    QueueWaiting,
    all_queues,
    explain_queue,
)
from fairlead.engine.batch.plugin_guard import PluginFailures
from fairlead.engine.batch.queue_usage import QueueUsage
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.configuration.batch.batch_config import batch_notes
from fairlead.whatif.configuration.batch.batch_file import override_notes
from fairlead.whatif.configuration.batch.options import SINGLE_PODS, BatchOptions
from fairlead.whatif.explain.group import batch_state, explained_config
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.deserved_amount import borrowed_amounts, deserved_amounts
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.result.table import amount_cell
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.snapshot import Snapshot

QUEUE_KINDS: Final = ("queue", "queues", "q")
_GROUPS: Final = ("scheduling.volcano.sh", "scheduling.incubator.k8s.io", "scheduling.sigs.dev")
_WAITING_MAX: Final = 50
_NAMED_MAX: Final = 3
_RESOURCE_COLUMNS: Final = (
    ResultColumn("resource", "resource", NAME),
    ResultColumn("requested_words", "requested", NUMBER),
    ResultColumn("allocated_words", "allocated", NUMBER),
    ResultColumn("deserved_words", "deserved", NUMBER),
    ResultColumn("capability_words", "capability", NUMBER, rank=1),
    ResultColumn("guarantee_words", "guarantee", NUMBER, rank=2),
    ResultColumn("cluster_words", "cluster", NUMBER, rank=3),
)
_WAITING_COLUMNS: Final = (
    ResultColumn("group", "group", NAME),
    ResultColumn("ready_words", "ready", NUMBER),
    ResultColumn("why", "waits because"),
    ResultColumn("remedy", "would start with", rank=1),
    ResultColumn("starts_after_s", "may start after", SECONDS, rank=2),
)
_HOLDING_COLUMNS: Final = (
    ResultColumn("group", "group", NAME),
    ResultColumn("members", "members", NUMBER),
    ResultColumn("priority", "priority", NUMBER, rank=1),
    ResultColumn("holds", "holds"),
)
_QUEUE_COLUMNS: Final = (
    ResultColumn("queue", "queue", NAME),
    ResultColumn("weight", "weight", NUMBER),
    ResultColumn("share_words", "share", NUMBER),
    ResultColumn("waiting", "waiting groups", NUMBER),
)
_AMOUNT_COLUMNS: Final = (
    ResultColumn("queue", "queue", NAME),
    ResultColumn("resource", "resource", NAME),
    ResultColumn("requested_words", "requested", NUMBER),
    ResultColumn("allocated_words", "allocated", NUMBER),
    ResultColumn("deserved_words", "deserved", NUMBER),
)


def is_about_queue(target: str, inventory: Inventory) -> bool:
    """Return whether `target` is a queue of kube-batch or Volcano, or all queues.

    Other APIs have kinds with the name Queue, too. If `target` names an object of such a kind,
    return False.
    """
    kind, slash, name = target.partition("/")
    if kind.partition(".")[0].lower() not in QUEUE_KINDS:
        return False
    queues = [one for one in inventory.kinds if one.kind == "Queue"]
    own = [one for one in queues if one.group in _GROUPS]
    if not slash:
        return bool(own or not queues)
    if not name or "/" in name:
        return False
    is_own = any(inventory.get(one, "", name) for one in own)
    return is_own or not any(inventory.look_up("", target) for _ in queues[:1])


def explain_queues(
    snapshot: Snapshot, target: str, scheduler: SchedulerConfig, options: BatchOptions
) -> TabularAnswer:
    """Return the explanation of `target`: a queue (`queue/NAME`), or all queues (`queues`).

    `scheduler` and `options` configure the scheduler and the batch scheduler. Raises InputError if
    neither the queue nor a group in it exists, or if `options` select SINGLE_PODS.
    """
    if options.source == SINGLE_PODS:
        raise InputError("--batch-config", f"{SINGLE_PODS} ignores queues")
    config = explained_config(options, scheduler, snapshot)
    failures = PluginFailures()
    cluster, composition = batch_state(snapshot, config, failures)
    now, name = snapshot.taken_at, target.partition("/")[2]
    if name:
        jobs = composition.jobs
        if name not in jobs.queues and all(job.queue != name for job in jobs.jobs.values()):
            found = snapshot.inventory().find("explain", target)
            raise found.refuse("cannot be explained")
        answer = _one_queue(
            explain_queue(composition, cluster, name, now, _WAITING_MAX), snapshot, now
        )
    else:
        answer = _every_queue(composition, cluster, snapshot, now)
    notes = (
        *failures.messages,
        *override_notes(config),
        *batch_notes(options, config, snapshot.manifests, scheduler),
    )
    return replace(answer, notes=notes)


# --- one queue -----------------------------------------------------------------------------


def _one_queue(found: QueueExplanation, snapshot: Snapshot, now: Instant) -> TabularAnswer:
    usage, info = found.usage, found.info
    return TabularAnswer(
        kind="QueueExplanation",
        source=snapshot.source,
        verdict=_verdict(found),
        findings=tuple(_findings(found)),
        tables=(
            ResultTable("resources", "its resources", _RESOURCE_COLUMNS, _resource_rows(found)),
            ResultTable("waiting", f"waiting groups ({found.waiting_count:,})", _WAITING_COLUMNS,
                        [_waiting_row(one, now) for one in found.waiting]),
            ResultTable("holding", f"groups with pods on nodes ({len(found.holding):,})",
                        _HOLDING_COLUMNS, _holding_rows(found)),
            ResultTable("queues", "all queues with groups or guarantees", _QUEUE_COLUMNS[:-1],
                        [_queue_row(one.name, one.weight, one) for one in found.usages]),
        ),
        facts={
            "queue": found.name,
            "exists": info is not None,
            "is_open": info is not None and info.is_open,
            "weight": None if info is None else info.weight,
            "parent": info.parent or None if info is not None else None,
            "reclaimable": info is not None and info.reclaimable,
            "share": None if usage is None else round(usage.share, 6),
            "is_overused": usage is not None and usage.is_overused,
            "waiting_count": found.waiting_count,
            "victims": list(found.victims),
            "losses": list(found.losses),
        },
    )  # fmt: skip


def _verdict(found: QueueExplanation) -> str:
    name, info, usage = f"queue/{found.name}", found.info, found.usage
    groups = counted(found.waiting_count, "group")
    waits = f"{groups} {'waits' if found.waiting_count == 1 else 'wait'}"
    if info is None:
        return f"{name} does not exist, so {waits}."
    if not info.is_open:
        return f"{name} is closed, so none of its waiting groups starts ({waits})."
    title = f"{name} (weight {info.weight})"
    if not found.has_shares and found.waiting_count + len(found.holding):
        return f"{title}: the configuration does not divide the cluster between queues; {waits}."
    if usage is None or not any(_claimed(usage).values()):
        without = "has no pods" if not found.waiting_count else f"has no pods yet; {waits}"
        return f"{title} {without}."
    main = _main_resource(usage)
    held, deserved = usage.allocated[main], deserved_amounts(usage.deserved)[main]
    sums = f"{title} uses {_amount(main, held)} {main} and deserves {_amount(main, deserved)}"
    if held > deserved:
        state = "it is above its share"
    elif usage.is_overused:
        state = "it has its share"
    elif held == deserved:
        state = f"it has its share of {main}, but not of all resources"
    else:
        state = "it is below its share"
    return f"{sums}: {state}; {waits if found.waiting_count else 'no group waits'}."


def _main_resource(usage: QueueUsage) -> str:
    """Return the resource to name in the verdict, such as GPUs.

    Resources are compared by these criteria, the most important first: the queue holds more than it
    deserves, or deserves less than it requests; pods of the queue use or request the resource; the
    resource is extended; the ratio allocated ÷ deserved is larger.
    """
    claimed = _claimed(usage)

    def rank(name: str) -> tuple[bool, bool, bool, float, str]:
        deserved, held, is_used = usage.deserved[name], usage.allocated[name], claimed[name] > 0
        is_contested = held > deserved or deserved + 1 <= usage.request[name]
        is_device = is_extended_resource(name) and is_used
        return is_contested, is_used, is_device, held / deserved if deserved else 0.0, name

    return max(usage.deserved, key=rank)


def _claimed(usage: QueueUsage) -> dict[str, int]:
    """Return the larger of the requested and the allocated amount of each resource.

    The requested amount covers the queue's pods. The allocated amount covers the queue and the
    queues below it.
    """
    return {name: max(usage.request[name], usage.allocated[name]) for name in usage.request}


def _findings(found: QueueExplanation) -> Iterator[str]:
    usage = found.usage
    if usage is not None:
        yield from _above_share(found, usage)
        lacking = {
            name: usage.request[name]
            for name, deserved in deserved_amounts(usage.deserved).items()
            if deserved < usage.request[name]
        }
        if lacking:
            yield (
                f"Its pods request {_amounts(lacking)}. It deserves less, because {found.why_less}."
            )
        full = {
            name: most
            for name, most in found.limits.capability.items()
            if usage.allocated.get(name, 0) >= most
        }
        if full:
            yield f"It is at its capability: {_amounts(full, zero=True)}."
    if found.info is not None and found.info.parent:
        parent, problem = found.info.parent, found.parent_problem
        yield (
            f"It counts as a queue without a parent, because its parent ({parent}) {problem}."
            if problem
            else f"Its parent is queue {parent}, whose limits count, too."
        )
    if found.below:
        queues = listed(found.below, _NAMED_MAX)
        yield (
            f"What it uses includes what the queues below it use ({queues}); what it requests "
            "does not include their requests."
        )
    for victims, what in (
        (found.victims, "The next session evicts {} for groups of this queue: {}."),
        (found.losses, "The next session evicts {} of this queue for other queues: {}."),
    ):
        if victims:
            yield what.format(counted(len(victims), "pod"), listed(victims, _NAMED_MAX))
    for sentence in found.no_evictions:
        yield f"{found.waiting[0].title}: {sentence}"


def _above_share(found: QueueExplanation, usage: QueueUsage) -> Iterator[str]:
    """Yield a sentence about what the queue holds in addition to what it deserves."""
    borrowed = borrowed_amounts(usage)
    if not borrowed:
        return
    if found.info is not None and not found.info.reclaimable:
        back = "Other queues cannot reclaim this (reclaimable: false)"
    elif found.can_reclaim:
        back = "Other queues that are below their shares can reclaim this"
    else:
        back = "It keeps this until its pods end: the configuration has no action reclaim"
    yield f"It uses {_amounts(borrowed)} more than it deserves. {back}."


def _resource_rows(found: QueueExplanation) -> list[Row]:
    usage, limits = found.usage, found.limits
    names = dict.fromkeys(
        (*(usage.request if usage is not None else ()), *limits.capability, *limits.guarantee)
    )
    deserved = {} if usage is None else deserved_amounts(usage.deserved)
    rows: list[Row] = []
    for name in names:
        amounts = {
            "requested": 0 if usage is None else usage.request.get(name, 0),
            "allocated": 0 if usage is None else usage.allocated.get(name, 0),
            "deserved": deserved.get(name, 0),
            "capability": limits.capability.get(name),
            "guarantee": limits.guarantee.get(name),
            "cluster": found.total.get(name, 0),
        }
        words = {
            f"{key}_words": "" if amount is None else _amount(name, amount)
            for key, amount in amounts.items()
        }
        rows.append({"resource": name, **amounts, **words})
    return rows


def _waiting_row(group: GroupExplanation, now: Instant) -> Row:
    detail = f" ({short_reason(group.summary)})" if group.summary else ""
    why = f"{group.obstacle}{detail}"
    begins = group.starts_at
    return {
        "group": group.title,
        "ready": group.ready,
        "min_member": group.min_member,
        "ready_words": f"{group.ready:,} of {group.min_member:,}",
        "obstacle": group.obstacle.name,
        "why": why,
        "remedy": "; or ".join(group.remedies),
        "starts_after_s": None if begins is None else round(to_seconds(begins - now), 3),
    }


def _holding_rows(found: QueueExplanation) -> list[Row]:
    return [
        {
            "group": one.title,
            "members": one.members,
            "priority": one.priority,
            "amounts": dict(one.amounts),
            "holds": _amounts(one.amounts),
        }
        for one in found.holding
    ]


# --- all queues ----------------------------------------------------------------------------


def _every_queue(
    composition: Composition, cluster: Cluster, snapshot: Snapshot, now: Instant
) -> TabularAnswer:
    found = all_queues(composition, cluster, now)
    rows = [
        {
            **_queue_row(name, info.weight, found.usages.get(name)),
            "waiting": found.waiting.get(name, 0),
        }
        for name, info in found.infos.items()
    ]
    waiting = sum(found.waiting.values())
    groups = counted(waiting, "group")
    verdict = f"{counted(len(rows), 'queue')}; {groups} {'waits' if waiting == 1 else 'wait'}."
    if not rows and not waiting:
        verdict = "The cluster has no queues of kube-batch or Volcano."
    return TabularAnswer(
        kind="QueuesExplanation",
        source=snapshot.source,
        verdict=verdict,
        findings=tuple(missing_queue_sentences(found)),
        tables=(
            ResultTable("queues", "queues", _QUEUE_COLUMNS, rows, shown=20),
            ResultTable("amounts", "resources of queues", _AMOUNT_COLUMNS,
                        [each for row in rows for each in _amount_rows(row)], shown=20),
        ),
        facts={"waiting_count": waiting, "absent": _absent(found)},
    )  # fmt: skip


def missing_queue_sentences(found: QueueWaiting) -> Iterator[str]:
    """Yield a sentence about each queue that does not exist and for which groups wait."""
    for name, count in _absent(found).items():
        groups = f"{counted(count, 'group')} {'waits' if count == 1 else 'wait'}"
        yield f"Queue {name} does not exist, so {groups} for it."


def _absent(found: QueueWaiting) -> dict[str, int]:
    """Return the number of waiting groups of each queue that does not exist."""
    return {name: count for name, count in found.waiting.items() if name not in found.infos}


def _queue_row(name: str, weight: int, usage: QueueUsage | None) -> Row:
    deserved = {} if usage is None else deserved_amounts(usage.deserved)
    allocated = {} if usage is None else dict(usage.allocated)
    requested = {} if usage is None else dict(usage.request)
    return {
        "queue": name,
        "weight": weight,
        "deserved": deserved,
        "allocated": allocated,
        "requested": requested,
        "share": 0.0 if usage is None else round(usage.share, 6),
        "share_words": f"{0.0 if usage is None else usage.share:.2f}",
    }


def _amount_rows(queue: Row) -> Iterator[Row]:
    """Yield a row for each resource that the `queue`, a row of the queues, uses or requests."""
    parts = ("requested", "allocated", "deserved")
    for name in dict.fromkeys(name for part in parts for name in queue[part]):
        amounts = {part: queue[part].get(name, 0) for part in parts}
        if any(amounts.values()):
            words = {f"{part}_words": _amount(name, one) for part, one in amounts.items()}
            yield {"queue": queue["queue"], "resource": name, **amounts, **words}


def _amounts(amounts: Mapping[str, float], *, zero: bool = False) -> str:
    """Return a text such as `4 cpu, 8Gi memory`; amounts of 0 are left out if `zero` is not set."""
    parts = (f"{_amount(name, one)} {name}" for name, one in amounts.items() if one or zero)
    return ", ".join(parts) or "nothing"


def _amount(name: str, amount: float) -> str:
    return amount_cell(name, amount) if isinstance(amount, int) else f"{amount:,}"
