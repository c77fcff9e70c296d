"""Explaining a group of a snapshot: what holds it back, and what would let it start.

The group is looked at as the next session would see it, on the cluster as the snapshot shows it;
see `engine.batch.explanation`. Of a pod that chose a scheduler of whole jobs its group is
explained; a pod without one is a group by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.engine.batch.compose import Composition, compose
from fairlead.engine.batch.configuration_file import BatchConfig
from fairlead.engine.batch.explanation.explanation import GroupExplanation, explain_group
from fairlead.engine.batch.queue_share import QueueStanding
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.batch_config import SINGLE_PODS, Jobs, batch_config, read_batch_config
from fairlead.whatif.explaining import SOURCE, loaded
from fairlead.whatif.input_error import InputError, known_names
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.result import API_VERSION
from fairlead.whatif.snapshot import Snapshot
from fairlead.worlds.simulation.seeded_ids import SeededIds

GROUP_KINDS: Final = ("podgroup", "podgroups", "pg")


@dataclass(frozen=True, slots=True)
class ExplainedGroup:
    """What is said of a group, as of the instant `at`."""

    found: GroupExplanation
    at: Instant


def is_about_group(target: str, snapshot: Snapshot, scheduler: SchedulerConfig, jobs: Jobs) -> bool:
    """Whether `target` names a group, or a pod that is scheduled as part of one."""
    if target.partition("/")[0].partition(".")[0].lower() in GROUP_KINDS:
        return True
    config = (
        None if jobs.source == SINGLE_PODS else batch_config(jobs, scheduler, snapshot.manifests)
    )
    if config is None:
        return False
    manifest = Inventory(snapshot.manifests).find(SOURCE, target, expected=(POD,))
    chosen = manifest.value.get("spec", {}).get("schedulerName")
    return manifest.kind is POD and chosen in config.ownership.scheduler_names


def explain_group_of(
    snapshot: Snapshot, target: str, scheduler: SchedulerConfig, jobs: Jobs
) -> ExplainedGroup:
    """What the next session would think of the group, or pod, that `target` names.

    `jobs` is how whole jobs are scheduled. Raises InputError when there is no such group.
    """
    config = batch_config(jobs, scheduler, snapshot.manifests) or read_batch_config("fairlead")
    cluster, composition = _look(snapshot, config)
    job = _job_of(snapshot, target, composition)
    return ExplainedGroup(
        explain_group(composition, cluster, job, snapshot.taken_at), snapshot.taken_at
    )


def _look(snapshot: Snapshot, config: BatchConfig) -> tuple[Cluster, Composition]:
    cluster = Cluster()
    composition = compose(config, cluster)
    everything = ObjectsLoaded(loaded(snapshot, Store(SeededIds(0))))
    cluster.apply(everything)
    composition.jobs.apply(everything)
    return cluster, composition


def _job_of(snapshot: Snapshot, target: str, composition: Composition) -> str:
    kind, _, name = target.partition("/")
    if kind.partition(".")[0].lower() not in GROUP_KINDS:
        pod = Inventory(snapshot.manifests).find(SOURCE, target, expected=(POD,))
        tasks = composition.jobs.tasks.values()
        return next(task.job.id for task in tasks if task.key == pod.ref.key)
    groups = [
        job.id for job in composition.jobs.jobs.values() if job.group is not None and job.group.ref
    ]
    found = [job for job in groups if name in (job, job.partition("/")[2])]
    if len(found) == 1:
        return found[0]
    if found:
        where = ", ".join(sorted(job.partition("/")[0] for job in found))
        raise InputError(SOURCE, f"{target} is in several namespaces ({where}); say which")
    known = f"; {known_names(name, groups)}" if groups else ""
    raise InputError(SOURCE, f"there is no PodGroup {name}{known}")


def group_explanation_json(explained: ExplainedGroup) -> Json:
    """`explained` as data; amounts by resource, cpu in milli."""
    found, begins = explained.found, explained.found.starts_at
    return {
        "apiVersion": API_VERSION,
        "kind": "GroupExplanation",
        "group": found.title,
        "at": format_timestamp(explained.at),
        "obstacle": found.obstacle.name,
        "why": found.summary or str(found.obstacle),
        "min_member": found.min_member,
        "members": found.members,
        "ready": found.ready,
        "promised": found.promised,
        "placeable": found.placeable,
        "queue": None if found.queue is None else _queue(found.queue),
        "member": found.member,
        "nodes": [
            {"node": fact.node, "reason": fact.reason, "lacking": dict(fact.lacking)}
            for fact in found.nodes
        ],
        "starts_after_s": None if begins is None else round(to_seconds(begins - explained.at), 3),
        "remedies": list(found.remedies),
    }


def _queue(queue: QueueStanding) -> Json:
    return {
        "queue": queue.name,
        "weight": queue.weight,
        "deserved": {name: round(amount) for name, amount in queue.deserved.items()},
        "allocated": dict(queue.allocated),
        "requested": dict(queue.request),
        "share": round(queue.share, 6),
        "overused": queue.is_overused,
    }
