"""DelayedQuotas: quota admission with a delayed view of ResourceQuotas, as on a real server.

On a real server, a client's change of a quota reaches the admission plugin through a watch, which
takes time. The plugin sees its own changes of the used amounts immediately.

upstream: apiserver/pkg/admission/plugin/resourcequota/resource_access.go:quotaAccessor
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.quota.resource_quota import ResourceQuota
from fairlead.apiserver.kind import RESOURCE_QUOTA
from fairlead.apiserver.storage.storage import ChangeType, Storage, StoredChange


class DelayedQuotas:
    """The admission plugin ResourceQuota with a cache that receives modifications after a delay.

    The cache receives created and deleted quotas immediately.
    """

    CHECKS_ONLY: ClassVar[bool] = True

    def __init__(self, clock: Callable[[], int], delay: int) -> None:
        """`clock` returns the time in ns; the plugin sees a modified quota after `delay` ns.

        The caller must subscribe `note` to the changes of the store.
        """
        self._plugin = ResourceQuota()
        self._clock = clock
        self._delay = delay
        self._before: dict[tuple[str, str], tuple[int, Json]] = {}
        self._is_charging = False

    def note(self, change: StoredChange) -> None:
        """Record a client's modification of a ResourceQuota.

        The modification becomes visible after the delay. Exception: if a previous modification of
        the same quota is not visible yet, both modifications become visible after the delay of the
        previous one.
        """
        if change.kind is not RESOURCE_QUOTA or change.previous is None or self._is_charging:
            return
        if change.type is ChangeType.MODIFIED:
            key, now = _key(change.object), self._clock()
            visible_at, _ = self._before.get(key, (now, None))
            if visible_at <= now:
                self._before[key] = now + self._delay, change.previous

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Do what `ResourceQuota.admit` does, but with the quotas that the cache contains now."""
        visible = Storage()
        stored = {_key(one): one for one in storage.items(RESOURCE_QUOTA, attributes.namespace)}
        quotas = [(RESOURCE_QUOTA, self._visible(one)) for one in stored.values()]
        visible.restore(quotas, storage.version)
        admitted = self._plugin.admit(attributes, visible)
        self._is_charging = True
        for change in visible.changes_since(storage.version):
            quota = {**stored[_key(change.object)], "status": change.object["status"]}
            storage.put(RESOURCE_QUOTA, quota)
        self._is_charging = False
        return admitted

    def _visible(self, quota: Json) -> Json:
        visible_at, before = self._before.get(_key(quota), (0, quota))
        if visible_at > self._clock():
            return before
        self._before.pop(_key(quota), None)
        return quota


def _key(quota: Json) -> tuple[str, str]:
    meta = quota["metadata"]
    return meta["namespace"], meta["name"]
