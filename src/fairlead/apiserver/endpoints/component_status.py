"""componentstatuses: the health of the control plane's components, computed on request.

upstream: pkg/registry/core/componentstatus/rest.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError


def component(name: str, message: str = "ok", *, is_healthy: bool = True) -> Json:
    """Return the ComponentStatus `name`, whose condition Healthy has the status `is_healthy`."""
    condition = {"type": "Healthy", "status": str(is_healthy), "message": message}
    return {"metadata": {"name": name}, "conditions": [condition]}


# All components run in the server's process, so they are healthy if it responds.
ONE_PROCESS: Final = (component("controller-manager"), component("scheduler"), component("etcd-0"))


class Components:
    """Computes the componentstatuses: a fixed list of components."""

    def __init__(self, components: tuple[Json, ...]) -> None:
        self._components = components

    def objects(self, namespace: str, now: int) -> list[Json]:
        """Return all ComponentStatuses."""
        return list(self._components)

    def absent(self, namespace: str, name: str) -> ApiError:
        """Return the error 500 that upstream sends for an unknown component."""
        return ApiError("", 500, f"Component not found: {name}")
