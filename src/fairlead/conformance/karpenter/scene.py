"""Scene: the cluster of a case, and Karpenter's controllers, which the caller runs step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.api.json import Json
from fairlead.conformance.karpenter.case import CaseTypes, read_cluster, read_object, read_options
from fairlead.conformance.karpenter.shown_command import shown_command
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.loop import DisruptionLoop
from fairlead.engine.autoscaling.karpenter.disruption.queue import DisruptionQueue
from fairlead.engine.autoscaling.karpenter.nodeclaim.conditions import ClaimConditions
from fairlead.engine.autoscaling.karpenter.overlay import OverlaidTypes
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.core.instant import Instant, seconds, to_seconds


class Scene:
    """The cluster, provisioner, disruption loop and disruption queue of one case, at `now`."""

    def __init__(self, case: Json) -> None:
        """Build the cluster of `case` at the start time of the case."""
        self.case = case
        self.cluster, self.now = read_cluster(case)
        self.options = read_options(case)
        self.types = CaseTypes(case)
        self.overlaid = OverlaidTypes(self.cluster, self.types.table, self.options)
        self.provisioner = Provisioner(self.cluster, self.overlaid.table, self.options)
        reasons = case.get("cloudDrift") or {}
        self.conditions = ClaimConditions(
            self.overlaid.table, lambda claim: reasons.get(claim.name, "")
        )
        self.queue = DisruptionQueue(self.cluster)
        self.loop = DisruptionLoop(
            self.cluster,
            self.provisioner,
            self.overlaid.table,
            self.queue,
            self.options,
        )

    def shown_loop(self) -> Json:
        """Run one disruption loop; return its commands and its effects in the recorded form.

        The loop waits before it validates a command. The changes in the case's `during` are applied
        in the first wait. The field `at` of a change is the number of seconds after the start of
        the wait. Each wait advances `now`.
        """
        started: list[DisruptionCommand] = []

        def start(command: DisruptionCommand, now: Instant) -> None:
            started.append(command)
            self.start(command, now)

        begun = self.now
        loop = self.loop.run(self.now, start)
        changes = list(self.case.get("during") or ())
        try:
            delay = next(loop)
            while True:  # bounded: each disruption method waits at most once
                self._wait(delay, changes)
                changes = []
                delay = loop.send(self.now)
        except StopIteration as done:
            result = done.value
        return self._shown(started, to_seconds(self.now - begun), to_seconds(result.requeue_ns))

    def _wait(self, delay: int, changes: Sequence[Json]) -> None:
        begun = self.now
        for change in changes:
            self.now = begun + seconds(change["at"])
            self.change(change)
        self.now = begun + delay

    def _shown(self, started: Sequence[DisruptionCommand], waited: float, requeue: float) -> Json:
        nodes = self.cluster.nodes(self.now)
        found: Json = {
            "commands": [
                {**shown_command(one), "method": one.method, "reason": one.reason}
                for one in started
            ],
            "waitedSeconds": waited,
            "requeueAfterSeconds": requeue,
            "nominatedAfter": sorted(node.name for node in nodes if node.nominated),
            "markedAfter": sorted(node.name for node in nodes if node.marked_for_deletion),
        }
        rejected = self.loop.context.rejected
        if rejected:
            found["rejected"] = [f"{name}: {why}" for name, why in rejected]
        return found

    def start(self, command: DisruptionCommand, now: Instant) -> None:
        """Add `command` to the disruption queue; its replacements are not launched.

        The names of the replacements are replacement-0, replacement-1 and so on.
        """
        names = [f"replacement-{i}" for i, _ in enumerate(command.replacements)]
        self.queue.add(command, names, now)

    def change(self, change: Json) -> None:
        """Apply `change` to the cluster; the field `op` of `change` says what changes."""
        match change["op"]:
            case "apply":
                self.cluster.put(read_object(change["kind"], change["object"]), self.now)
            case "delete":
                self._delete(change["kind"], change["name"])
            case "nominate":
                self.cluster.nominate(self._key(change["name"]), self.now)
            case "markForDeletion":
                self.cluster.mark((self._key(change["name"]),))
            case "setOffering":
                self.types.set_offering(change)

    def _key(self, name: str) -> str:
        for node in self.cluster.nodes(self.now):
            if name in (node.name, node.node_name):
                return node.key
        return name

    def _delete(self, kind: str, name: str) -> None:
        namespace, _, plain = name.rpartition("/")
        stores: Mapping[str, Mapping[str, Any]] = {
            "Node": self.cluster.node_objects,
            "NodeClaim": self.cluster.node_claims,
            "NodePool": self.cluster.node_pools,
            "Pod": self.cluster.pods,
            "PodDisruptionBudget": self.cluster.budgets,
            "DaemonSet": self.cluster.daemon_sets,
            "NodeOverlay": self.cluster.overlays,
        }
        store = stores[kind]
        for key in (name, f"{namespace or 'default'}/{plain}"):
            if key in store:
                self.cluster.remove(store[key], self.now)
                return
