"""CheckpointAge: preemption takes the pods that lose least work.

Jobs that checkpoint say when, in the annotation `example.com/last-checkpoint` (RFC 3339). What a
pod has done since is lost when it is pushed out. Among pods of equal priority the one with the most
recent checkpoint goes first, and among nodes with equally important victims the one whose victims
have all checkpointed most recently. A pod that never did loses everything since its start.

No clock is asked: to compare ages it is enough to compare instants.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlead import plugin
from fairlead.api.timestamp import parse_timestamp

AFTER = "lowest highest victim priority"


class CheckpointAge:
    """Changes whom DefaultPreemption gives up first, and on which node."""

    name = "CheckpointAge"

    class Args(msgspec.Struct, frozen=True):
        """Where pods say when they last checkpointed."""

        annotation: str = "example.com/last-checkpoint"

    def __init__(self, args: Args) -> None:
        """See Args."""
        self._annotation = args.annotation

    def checkpoint(self, pod: plugin.PodInfo) -> plugin.Instant:
        """Since when `pod` has done work that would be lost."""
        text = pod.pod.metadata.annotations.get(self._annotation, "")
        try:
            return max(parse_timestamp(text), pod.start) if text else pod.start
        except ValueError:
            return pod.start

    def importance(self, pod: plugin.PodInfo) -> tuple[int, ...]:
        """Priority first, then the age of the checkpoint."""
        return (pod.priority, -self.checkpoint(pod))

    def candidate_rules(
        self, rules: Sequence[plugin.CandidateRule]
    ) -> Sequence[plugin.CandidateRule]:
        """Lost work decides before the number of victims does, not before their priority."""
        least_lost = plugin.CandidateRule("least work lost since a checkpoint", self.oldest)
        place = next((at for at, rule in enumerate(rules, 1) if rule.name == AFTER), len(rules))
        return [*rules[:place], least_lost, *rules[place:]]

    def oldest(self, candidate: plugin.Candidate) -> int:
        """The oldest checkpoint among the victims; later is cheaper, so negative."""
        return -min(self.checkpoint(victim) for victim in candidate.victims)
