"""InstanceCache: a cache of the provider's instances, by node group.

upstream: clusterstate/utils/node_instances_cache.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CloudProvider,
    Instance,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds

REFRESH_INTERVAL: Final[DurationNs] = seconds(120)


class InstanceCache:
    """A cache of the provider's instances, by node group."""

    def __init__(self, provider: CloudProvider) -> None:
        self._provider = provider
        self._by_group: dict[str, Sequence[Instance]] = {}
        self._next_refresh: Instant | None = None

    def refresh_if_due(self, now: Instant) -> None:
        """Read the instances of all groups if a refresh is due (every 2 minutes)."""
        if self._next_refresh is None:
            self._next_refresh = now
        if now < self._next_refresh:
            return
        passed = (now - self._next_refresh) // REFRESH_INTERVAL
        self._next_refresh += (passed + 1) * REFRESH_INTERVAL
        for group in self._provider.node_groups():
            self._by_group[group.id] = tuple(group.instances())

    def invalidate(self, group: str) -> None:
        """Make the next call of `by_group` read the instances of `group` again."""
        self._by_group.pop(group, None)

    def by_group(self) -> dict[str, Sequence[Instance]]:
        """Return the instances of each group, by group id.

        Groups that are not in the cache are read from the provider.
        """
        for group in self._provider.node_groups():
            if group.id not in self._by_group:
                self._by_group[group.id] = tuple(group.instances())
        return dict(self._by_group)
