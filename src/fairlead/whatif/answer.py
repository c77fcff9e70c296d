"""WhatIfAnswer: both runs of a what-if, the effect of the change, and its verdict."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ZONE
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.release import CURRENT_RELEASES, Releases
from fairlead.whatif.configuration.scheduler_words import scheduler_words
from fairlead.whatif.outcome.assessment.certainty import (
    CertaintyRow,
)
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.assessment.verdict import Verdict
from fairlead.whatif.outcome.comparison.difference import Difference
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.outage import OutageOutcome
from fairlead.whatif.outcome.packing import PackingRow
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.start_time import StartTimes
from fairlead.whatif.snapshot.node_pool import pool_labels


class WhatIfAnswer(Struct, frozen=True, kw_only=True):
    """Both runs of a what-if, the effect of the change, and the verdict.

    The fields `scheduler_config`, `scheduler_plugins` and `batch_config` describe the schedulers of
    the run without the change.
    """

    source: str  # the snapshot as the user named it
    change: ClusterChange
    seed: int
    releases: Releases = CURRENT_RELEASES
    # The path of the configuration file, "" for kube-scheduler's defaults.
    scheduler_config: str = ""
    scheduler_plugins: tuple[str, ...] = ()  # the names of the user's plugins
    batch_config: str = ""  # the name of the configuration, "" if no batch scheduler runs
    effect: Effect
    verdict: Verdict
    seeds: int = 1  # the number of seeds; the what-if ran once with each
    # For each outcome, the number of seeds with which it occurs; () for one seed.
    certainty: tuple[CertaintyRow, ...] = ()
    # The simulated start times of pods that wait at the end; None if no pod waits or no start times
    # were simulated.
    start_times: StartTimes | None = None
    next_steps: tuple[NextStep, ...] = ()  # suggestions for the user, the most important first
    # The notes that explain why pods wait or stay pending. These notes come before all other notes
    # of the answer.
    causes: tuple[str, ...] = ()
    # The nodes that the change makes fail, but that were already out of service when the dump was
    # taken. These nodes return to service in the run without the change.
    returned: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the question and the verdict; a text with both runs would be megabytes long."""
        words = " ".join(self.change.words)
        return f"<WhatIfAnswer: {self.source} {words}: {self.verdict.first.sentence}>"

    def next_steps_if(self, conditions: Iterable[ConditionResult]) -> tuple[NextStep, ...]:
        """Return the next steps, given the results of the --fail-on conditions.

        If a condition holds, the steps that make the change in the real cluster are left out.
        """
        fails = any(one.holds for one in conditions)
        return tuple(one for one in self.next_steps if not (fails and one.makes_change))

    @property
    def title(self) -> str:
        """The first line of the answer: the change, and the names of the nodes in `returned`."""
        if not self.returned:
            return self.change.title
        is_, its = ("is", "its") if len(self.returned) == 1 else ("are", "their")
        names = listed(self.returned)
        return (
            f"{self.change.title} ({names} {is_} out of service already; compared with {its} "
            "return now)"
        )

    @property
    def node_cost(self) -> str:
        """The cost of the autoscaled nodes at the end, as a sentence; "" if it is unknown."""
        changed, without = self.changed.autoscaling, self.without.autoscaling
        if changed is None:
            return ""
        # Imported here, because most answers have no autoscaler.
        from fairlead.whatif.outcome.autoscaling.node_cost import node_cost_sentence  # noqa: PLC0415

        is_same = changed == without and not self.change.words
        return node_cost_sentence(changed, without, is_changed=not is_same)

    @property
    def scheduler_words(self) -> str:
        """The configurations and plugins of the schedulers in the run without the change."""
        return scheduler_words(self.scheduler_config, self.scheduler_plugins, self.batch_config)

    @property
    def pool_labels(self) -> tuple[str, ...]:
        """The label keys that divide the nodes into pools; () if there are none.

        If the change selects nodes by a label, the result is this label. Otherwise, the result
        contains the POOL_LABELS (labels of managed node pools) that nodes have. If nodes have no
        such label, and the change makes a zone fail, the result is the zone label.
        """
        if self.change.node_label:
            return (self.change.node_label,)
        nodes = (*self.changed.nodes, *self.without.nodes)
        zone = (ZONE,) if self.change.failures.fail_zone else ()
        return pool_labels(node.labels for node in nodes) or zone

    @property
    def without(self) -> RunOutcome:
        """The run without the change."""
        return self.effect.without

    @property
    def changed(self) -> RunOutcome:
        """The run with the change."""
        return self.effect.changed

    @property
    def difference(self) -> Difference:
        """The differences between the pods at the end of both runs."""
        return self.effect.difference

    @property
    def still_pending(self) -> list[PodEnd]:
        """The pods that are pending at the end of both runs."""
        new = {pod.key for pod in self.difference.pending}
        return [pod for pod in self.changed.pending if pod.key not in new]

    @property
    def packing(self) -> tuple[PackingRow, ...]:
        """How tightly pods are placed in the dump and both runs; () if no pods are rescheduled."""
        return self.effect.packing

    @property
    def outage(self) -> OutageOutcome | None:
        """The outage in the run with the change; None if both runs have the same outage.

        Two outages are the same if their nodes and lost pods are equal.
        """
        changed, without = self.changed.outage, self.without.outage
        if changed is None or without is None:
            return changed
        is_same = (changed.nodes, changed.lost) == (without.nodes, without.lost)
        return None if is_same else changed
