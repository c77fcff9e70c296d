"""Telling of rollouts: status, revisions, and old ReplicaSets that nobody will go back to."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.api.objects import Deployment
from fairlead.core.command import Command, ObjectRef, PatchObject
from fairlead.core.instant import Instant
from fairlead.workloads.deployment import REPLICA_SET, Rollout
from fairlead.workloads.pod_sets import PodSets
from fairlead.workloads.revision import REVISION, revised, revision_of
from fairlead.workloads.rollout_status import Count, Course, is_complete, status_of
from fairlead.workloads.status_writing import StatusWriter


@dataclass(slots=True)
class RolloutTelling:
    """Writes what people read of rollouts."""

    pod_sets: PodSets
    writer: StatusWriter

    def tell(self, rollout: Rollout, now: Instant) -> list[Command]:
        """Status, revisions, and ReplicaSets that nobody will go back to."""
        deployment, count = rollout.deployment, self._count(rollout, now)
        commands = self._revise(rollout)
        if is_complete(deployment, count) or deployment.spec.paused:
            commands += rollout.forgettable(self.pod_sets.sets)
        status = status_of(deployment, count, self._course(rollout), now)
        return commands + self.writer.write(rollout.ref, deployment.status, status)

    def _count(self, rollout: Rollout, now: Instant) -> Count:
        new, old = rollout.parts(self.pod_sets.sets, now)
        parts = [*old, *((new,) if new is not None else ())]
        sets = [self.pod_sets.sets[part.key] for part in parts if part.key in self.pod_sets.sets]
        current = self.pod_sets.sets.get(rollout.current)
        return Count(
            asked=sum(part.replicas for part in parts),
            replicas=sum(len(pods.active) for pods in sets),
            updated=0 if current is None else len(current.active),
            ready=sum(len(pods.ready) for pods in sets),
            available=sum(part.available for part in parts),
            terminating=sum(pods.leaving for pods in sets),
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

    def _revise(self, rollout: Rollout) -> list[Command]:
        """Number the current ReplicaSet, and the Deployment after it."""
        current = rollout.replica_sets.get(rollout.current)
        if current is None:
            return []
        meta = rollout.deployment.metadata
        others = [one for key, one in rollout.replica_sets.items() if key != rollout.current]
        changes = revised(current, others, meta.annotations)
        if changes:
            ref = ObjectRef(
                REPLICA_SET, meta.namespace, current.metadata.name, current.metadata.uid
            )
            return [PatchObject(ref, {"metadata": {"annotations": dict(changes)}})]
        revision = str(revision_of(current))
        if meta.annotations.get(REVISION) == revision:
            return []
        return [PatchObject(rollout.ref, {"metadata": {"annotations": {REVISION: revision}}})]


def _is_without_progress(deployment: Deployment) -> bool:
    conditions = deployment.status.get("conditions", ())
    return not any(one.get("type") == "Progressing" for one in conditions)
