"""Trigger: since when a Service's endpoints have been waiting to be written, for those who measure.

A new Service's have been since it was made; later ones since the first pod that has changed its
readiness did so. What is written for another reason says nothing.

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
class Trigger:
    """One Service's; `at` is a timestamp, "" where nothing is to be said. They sort as texts."""

    at: str = ""
    is_known: bool = False
    _pods: dict[str, str] = field(default_factory=dict)
    _service: str = ""

    def look(self, service: Service, pods: Iterable[Pod]) -> None:
        """What is written now was triggered by what has changed since the last time."""
        since = {pod.metadata.name: at for pod in pods if (at := _changed_at(pod))}
        news = [at for name, at in since.items() if at > self._pods.get(name, "")]
        created = service.metadata.creation_timestamp
        if created > self._service:
            news.append(created)
        self.at = min(news, default="") if self.is_known else created
        self.is_known, self._pods, self._service = True, since, created

    @property
    def annotations(self) -> dict[str, Any]:
        """What a new object's metadata says of it."""
        return {"annotations": {TRIGGERED_AT: self.at}} if self.at else {}


def _changed_at(pod: Pod) -> str:
    ready = condition(pod, "Ready")
    return "" if ready is None else ready.last_transition_time
