"""LoadedTracks: makes the PodTracks and PodEnds of the dump's replicas when they are needed.

A PodTrack is the record of a pod during a run, and a PodEnd is the state of a pod at the end. The
PodEnds of replicas that run at the start differ only in name, node and creation time. The PodEnds
of such replicas are made together, as copies of one PodEnd. PodTracks are made one by one, mainly
for pods that change.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec.structs import replace

from fairlead.api.pods.original import original_name
from fairlead.api.pods.replicas import Replicas
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.run.recorders.pod_count_recorder import RUNNING
from fairlead.whatif.run.recorders.pod_track import OwnerFacts, PodTrack


class LoadedTracks:
    """The PodTracks of `replicas`: running pods with a known owner, loaded at `now`."""

    def __init__(
        self, replicas: Replicas, facts: OwnerFacts, requests: Mapping[str, int], now: Instant
    ) -> None:
        """Store `facts` and `requests`, which are the same for all `replicas`."""
        self.replicas = replicas
        self._facts = facts
        self._requests = requests
        self._now = now

    @property
    def owner(self) -> WorkloadRef:
        """The workload to which all `replicas` belong."""
        return self._facts.owner

    def track(self, index: int) -> PodTrack:
        """Return a new PodTrack of the pod at `index`.

        The field `end` of the PodTrack is set only if `self.ends` has already been computed.
        """
        pod = self.replicas[index]
        created = self._instant(pod.metadata.creation_timestamp)
        started_at = self._now if pod.status.phase == "Running" else None
        track = PodTrack(pod, RUNNING, "", created, started_at, is_initial=True)
        if "ends" in self.__dict__:
            track.end = self.ends[index]
        return track

    @cached_property
    def ends(self) -> list[PodEnd]:
        """The PodEnd of each pod; it is valid until the pod changes."""
        replicas = self.replicas
        first = self.track(0).new_end(self._requests, self._facts)
        instants = {text: self._instant(text) for text in {*replicas.created}}
        has_other_name = original_name(replicas[0]) != replicas[0].metadata.name
        names = map(original_name, replicas) if has_other_name else replicas.names
        return [
            replace(first, name=name, node=node, since=instants[created])
            for name, node, created in zip(names, replicas.nodes, replicas.created, strict=True)
        ]

    def _instant(self, created: str) -> Instant:
        return min(parse_timestamp(created), self._now) if created else self._now
