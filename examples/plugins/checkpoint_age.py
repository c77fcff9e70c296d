"""CheckpointAge: preempts the pods that lose the least work.

Jobs state the time of their last checkpoint in the annotation `example.com/last-checkpoint` (RFC
3339). A preempted pod loses its work since its last checkpoint, or all work if it has no
checkpoint. Among pods of equal priority, the pod with the newest checkpoint is preempted first.
Among nodes with equally important victims, the node whose oldest checkpoint is newest is chosen.

The plugin needs no clock, because comparing the instants of checkpoints also compares their ages.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlead import plugin
from fairlead.api.timestamp import parse_timestamp

AFTER = "lowest highest victim priority"


class CheckpointAge:
    """Changes which pods DefaultPreemption chooses as victims, and on which node."""

    name = "CheckpointAge"

    class Args(msgspec.Struct, frozen=True):
        """`annotation` is the annotation with the time of a pod's last checkpoint."""

        annotation: str = "example.com/last-checkpoint"

    def __init__(self, args: Args) -> None:
        """Store `args`."""
        self._annotation = args.annotation

    def checkpoint(self, pod: plugin.PodInfo) -> plugin.Instant:
        """Return the time of the last checkpoint of `pod`, or else the time of its start."""
        text = pod.pod.metadata.annotations.get(self._annotation, "")
        try:
            return max(parse_timestamp(text), pod.start) if text else pod.start
        except ValueError:
            return pod.start

    def importance(self, pod: plugin.PodInfo) -> tuple[int, ...]:
        """Return the sort key of `pod`: its priority, then the age of its checkpoint."""
        return (pod.priority, -self.checkpoint(pod))

    def candidate_rules(
        self, rules: Sequence[plugin.CandidateRule]
    ) -> Sequence[plugin.CandidateRule]:
        """Return `rules` with the rule about lost work after the rule about highest priority."""
        least_lost = plugin.CandidateRule("least work lost since a checkpoint", self.oldest)
        place = next((at for at, rule in enumerate(rules, 1) if rule.name == AFTER), len(rules))
        return [*rules[:place], least_lost, *rules[place:]]

    def oldest(self, candidate: plugin.Candidate) -> int:
        """Return the negated time of the victims' oldest checkpoint; lower values are better."""
        return -min(self.checkpoint(victim) for victim in candidate.victims)
