"""RunControllers: the controllers of an engine that show the progress and outcome of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition
from fairlead.engine.core.instant import Instant, earliest
from fairlead.engine.engine import Engine
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.drain.rolling_drain import RollingDrains
from fairlead.engine.workloads.horizontal_pod_autoscaler.controller import HorizontalPodAutoscalers
from fairlead.engine.workloads.volumes.controller import Volumes
from fairlead.whatif.configuration.other_scheduler import no_scheduler
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.recorders.job_recorder import (
    has_task,
    missing_group,
    missing_group_notes,
    missing_queue,
    missing_queue_notes,
)

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
    from fairlead.engine.autoscaling.cluster_autoscaler.controller import ClusterAutoscaler
    from fairlead.engine.autoscaling.karpenter.controller import Karpenter
    from fairlead.engine.batch.controller import Batch
    from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome
    from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome
    from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait


class RunControllers(Struct, frozen=True):
    """The controllers of one run; a field is None if the run does not have this controller.

    `estimated_prices` are the instance types of Karpenter whose prices are estimates.
    """

    scheduler: Scheduler
    workloads: Workloads
    kubelets: Kubelets
    pod_autoscalers: HorizontalPodAutoscalers
    rolling_drains: RollingDrains
    volumes: Volumes
    batch: Batch | None
    karpenter: Karpenter | None
    autoscaler: ClusterAutoscaler | None
    estimated_prices: frozenset[str] = frozenset()

    def is_waiting(self, now: Instant) -> bool:
        """Return whether any controller waits for a time at which it will change something.

        The times at which a pod or a Job ends by itself (`next_end`) do not count.
        """
        return self._is_working(now) or bool(self._removal_times(now))

    def awaited_removals(self, now: Instant) -> tuple[Instant, ...]:
        """Return the times from which the node autoscaler may remove nodes.

        The result is () if any controller also waits for another time.
        """
        return () if self._is_working(now) else self._removal_times(now)

    def _removal_times(self, now: Instant) -> tuple[Instant, ...]:
        """Return the times from which the node autoscaler may remove nodes that must stay now."""
        if self.karpenter is not None:
            return self.karpenter.removal_times
        return () if self.autoscaler is None else self.autoscaler.removal_times(now)

    def _is_working(self, now: Instant) -> bool:
        """Return whether a controller waits for a time that is not one of `_removal_times`."""
        if self.batch is not None and self.batch.next_deadline() is not None:
            return True
        if self.pod_autoscalers.is_waiting() or self.kubelets.is_waiting():
            return True
        if self.rolling_drains.is_waiting():
            return True
        if self.karpenter is not None and self.karpenter.is_working():
            return True
        return self.autoscaler is not None and self.autoscaler.is_working(now)

    def add_outage(self, outage: CapacityOutage) -> None:
        """Add a capacity outage to the autoscaler's provider, if there is an autoscaler."""
        for one in (self.autoscaler, self.karpenter):
            if one is not None:
                one.add_outage(outage)

    def next_end(self) -> Instant | None:
        """Return the next time at which a pod or a Job ends by itself; None if none does."""
        return earliest(self.workloads.next_job_deadline(), self.kubelets.next_transition())

    def why_waiting(self, pod: Pod) -> str:
        """Return why `pod`, which no scheduling attempt has rejected, is pending; "" if unknown."""
        queued = self.scheduler.queue.find(pod.key)
        if queued is None:
            node = self.scheduler.binding_node(pod.key)
            if node:
                return f"placed on {node}, where its volumes or devices are not ready"
            if self.batch is not None and (group := missing_group(self.batch, pod)):
                return f'PodGroup "{group}" does not exist'
            if self.batch is not None and (queue := missing_queue(self.batch, pod)):
                return f'queue "{queue}" does not exist'
            name = pod.spec.scheduler_name
            is_task = self.batch is not None and has_task(self.batch, pod)
            if not is_task and name not in self.scheduler.profiles:
                # The pod's condition, if any, is from a scheduler that this run does not have.
                return no_scheduler(name)
            scheduled = condition(pod, "PodScheduled")
            return "" if scheduled is None else scheduled.message
        if not queued.gated_by:
            return ""
        built = self.scheduler.profiles[pod.spec.scheduler_name]
        status = built.framework.run_pre_enqueue(queued.info)
        return "" if status is None else status.message

    @property
    def _has_pod_autoscalers(self) -> bool:
        return any(True for _ in self.pod_autoscalers.autoscalers)

    def pod_autoscaler_outcomes(
        self, since: Instant, until: Instant
    ) -> tuple[PodAutoscalerOutcome, ...]:
        """Return the effects of each HorizontalPodAutoscaler from `since` to `until`."""
        if not self._has_pod_autoscalers:
            return ()
        from fairlead.whatif.run.autoscaling.pod_autoscaler import pod_autoscaler_outcomes  # noqa: PLC0415

        return pod_autoscaler_outcomes(self.pod_autoscalers, since, until)

    def notes(self, now: Instant) -> Iterator[str]:
        """Yield notes about missing PodGroups and queues, and about nodes that Karpenter protects.

        A node is protected if, at `now` (the end of the run), Karpenter's disruption budgets do not
        allow its disruption.
        """
        if self.batch is not None:
            yield from missing_group_notes(self.batch)
            yield from missing_queue_notes(self.batch)
        if self.karpenter is not None:
            from fairlead.whatif.run.autoscaling.node_autoscaler import awaited_budget_notes  # noqa: PLC0415

            yield from awaited_budget_notes(self.karpenter, now)

    def autoscaling(
        self, since: Instant, until: Instant, waits: Iterable[PodWait]
    ) -> AutoscalingOutcome | None:
        """Return the nodes that the node autoscaler added and removed.

        Return None if no node autoscaler is simulated.

        `waits` are the times that pods waited for a node between `since` and `until`.
        """
        if self.autoscaler is None and self.karpenter is None:
            return None
        from fairlead.whatif.run.autoscaling.node_autoscaler import (  # noqa: PLC0415
            autoscaling_outcome,
            karpenter_outcome,
        )

        if self.autoscaler is not None:
            return autoscaling_outcome(self.autoscaler, since, until, waits)
        assert self.karpenter is not None
        found = karpenter_outcome(self.karpenter, since, until, waits)
        return replace(found, estimated_prices=self.estimated_prices)


def controllers_of(engine: Engine, experiment: Experiment) -> RunControllers:
    """Return the controllers of `engine`, which was built for `experiment`."""
    karpenter = experiment.karpenter
    return RunControllers(
        scheduler=engine.find(Scheduler),
        workloads=engine.find(Workloads),
        kubelets=engine.find(Kubelets),
        pod_autoscalers=engine.find(HorizontalPodAutoscalers),
        rolling_drains=engine.find(RollingDrains),
        volumes=engine.find(Volumes),
        batch=None if experiment.batch is None else _batch_of(engine),
        karpenter=None if karpenter is None else _karpenter_of(engine),
        autoscaler=None if experiment.autoscaler is None else _autoscaler_of(engine),
        estimated_prices=frozenset() if karpenter is None else karpenter.estimated_prices,
    )


# --- controllers that few runs have; importing them takes as long as a small answer -------------


def _batch_of(engine: Engine) -> Batch:
    from fairlead.engine.batch.controller import Batch  # noqa: PLC0415

    return engine.find(Batch)


def _karpenter_of(engine: Engine) -> Karpenter:
    from fairlead.engine.autoscaling.karpenter.controller import Karpenter  # noqa: PLC0415

    return engine.find(Karpenter)


def _autoscaler_of(engine: Engine) -> ClusterAutoscaler:
    from fairlead.engine.autoscaling.cluster_autoscaler.controller import (  # noqa: PLC0415
        ClusterAutoscaler,
    )

    return engine.find(ClusterAutoscaler)
