"""TriggerTime: the annotation endpoints.kubernetes.io/last-change-trigger-time.

For a new Service it is the creation time, later the time of the first pod readiness change since
the last write. A write for another reason has no trigger time.

upstream: staging/src/k8s.io/endpointslice/trace/trigger_time_tracker.go
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.api.objects import Pod, Service
from fairlead.api.pods.facts import condition

TRIGGERED_AT: Final = "endpoints.kubernetes.io/last-change-trigger-time"


@dataclass(slots=True)
class TriggerTime:
    """The trigger time of one Service; `at` is a timestamp, "" for none (they sort as text)."""

    at: str = ""
    is_known: bool = False
    _pods: dict[str, str] = field(default_factory=dict)
    _service: str = ""

    def look(self, service: Service, pods: Iterable[Pod]) -> None:
        """Computes the trigger time of a write from the changes since the last one."""
        since = {pod.metadata.name: at for pod in pods if (at := _changed_at(pod))}
        triggers = [at for name, at in since.items() if at > self._pods.get(name, "")]
        created = service.metadata.creation_timestamp
        if created > self._service:
            triggers.append(created)
        self.at = min(triggers, default="") if self.is_known else created
        self.is_known, self._pods, self._service = True, since, created

    @property
    def annotations(self) -> dict[str, Any]:
        """The annotation as metadata of a new object."""
        return {"annotations": {TRIGGERED_AT: self.at}} if self.at else {}


def _changed_at(pod: Pod) -> str:
    ready = condition(pod, "Ready")
    return "" if ready is None else ready.last_transition_time
