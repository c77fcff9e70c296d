"""Telling of rollouts: status, revisions, and old ReplicaSets that nobody will go back to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlead.api.objects import Deployment
from fairlead.core.command import Command, ObjectRef, PatchObject
from fairlead.core.instant import Instant
from fairlead.workloads.deployment import REPLICA_SET, Rollout
from fairlead.workloads.pod_sets import PodSets
from fairlead.workloads.revision import REVISION, revised, revision_of
from fairlead.workloads.rollout_status import Count, Course, is_complete, status_of, with_news
from fairlead.workloads.status_writing import StatusWriter, status_patch

Json = dict[str, Any]


@dataclass(slots=True)
class RolloutTelling:
    """Writes what people read of rollouts."""

    pod_sets: PodSets
    writer: StatusWriter

    def tell(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Status, revisions, and ReplicaSets that nobody will go back to."""
        deployment, count = rollout.deployment, self._count(rollout)
        course = self._course(rollout)
        commands, before = self._revise(rollout, course, now)
        if is_complete(deployment, count) or deployment.spec.paused:
            commands += rollout.forgettable(self.pod_sets.sets)
        status = status_of(deployment, before, count, course, now)
        return commands + self.writer.write(rollout.ref, before, status)

    def _count(self, rollout: Rollout) -> Count:
        """As the ReplicaSets say themselves: a Deployment tells nothing before they do."""
        sets = rollout.replica_sets
        statuses = [one.status for one in sets.values()]
        current = sets.get(rollout.current)
        return Count(
            asked=sum(one.spec.replicas for one in sets.values()),
            replicas=_sum(statuses, "replicas"),
            updated=0 if current is None else current.status.get("replicas", 0),
            ready=_sum(statuses, "readyReplicas"),
            available=_sum(statuses, "availableReplicas"),
            terminating=_sum(statuses, "terminatingReplicas"),
        )

    def _course(self, rollout: Rollout) -> Course:
        current = rollout.replica_sets.get(rollout.current)
        name = "" if current is None else current.metadata.name
        pods = self.pod_sets.sets.get(rollout.current)
        news, rollout.news = rollout.news, None
        if news is None and current is not None and _is_without_progress(rollout.deployment):
            news = ("FoundNewReplicaSet", f'Found new replica set "{name}"')
        return Course(
            name=name,
            collisions=rollout.collisions,
            news=news,
            refusal=rollout.refusal or ("" if pods is None else pods.refusal),
            is_set_refused=bool(rollout.refusal),
        )

    def _revise(self, rollout: Rollout, course: Course, now: Instant) -> tuple[list[Command], Json]:
        """Number the current ReplicaSet, and the Deployment after it, whose status is then that."""
        current, before = rollout.replica_sets.get(rollout.current), rollout.deployment.status
        if current is None:
            return [], before
        meta = rollout.deployment.metadata
        others = [one for key, one in rollout.replica_sets.items() if key != rollout.current]
        changes = revised(current, others, meta.annotations)
        if changes:
            ref = ObjectRef(
                REPLICA_SET, meta.namespace, current.metadata.name, current.metadata.uid
            )
            return [PatchObject(ref, {"metadata": {"annotations": dict(changes)}})], before
        revision = str(revision_of(current))
        if meta.annotations.get(REVISION) == revision:
            return [], before
        after = with_news(rollout.deployment, course, now)
        patch: Json = {"metadata": {"annotations": {REVISION: revision}}}
        if after != before:
            patch["status"] = status_patch(before, after)
        return [PatchObject(rollout.ref, patch)], after


def _sum(statuses: list[Json], name: str) -> int:
    return sum(one.get(name, 0) for one in statuses)


def _is_without_progress(deployment: Deployment) -> bool:
    conditions = deployment.status.get("conditions", ())
    return not any(one.get("type") == "Progressing" for one in conditions)
