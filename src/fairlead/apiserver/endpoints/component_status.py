"""componentstatuses: how the parts of the control plane are, as they were found when asked.

upstream: pkg/registry/core/componentstatus/rest.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError


def component(name: str, message: str = "ok", *, is_healthy: bool = True) -> Json:
    """A part of the control plane."""
    condition = {"type": "Healthy", "status": str(is_healthy), "message": message}
    return {"metadata": {"name": name}, "conditions": [condition]}


# All parts in the server's own process: what answers at all is well.
ONE_PROCESS: Final = (component("controller-manager"), component("scheduler"), component("etcd-0"))


class Components:
    """The parts as Observed objects."""

    def __init__(self, parts: tuple[Json, ...]) -> None:
        """They stay as they are."""
        self._deps = parts

    def objects(self, namespace: str, now: int) -> list[Json]:
        """All parts; neither argument matters."""
        return list(self._deps)

    def absent(self, namespace: str, name: str) -> ApiError:
        """See Observed."""
        return ApiError("", 500, f"Component not found: {name}")
