"""StoreHistory: checks every change of the store as it happens."""

from __future__ import annotations

from collections import Counter
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.testing.torture.fault.in_process_webhooks import MARK
from fairlead.testing.torture.law import Law, LawBrokenError

_FINAL: Final = ("Succeeded", "Failed")


class StoreHistory:
    """Checks all changes of the store in a run, across restarts. Raises LawBrokenError.

    `checked` counts the checks of each `Law`, by its name. `has_webhooks` tells whether the
    webhooks of `in_process_webhooks` are registered. If they are registered, every pod that a
    controller creates must have the annotation that the webhook `mark` adds.
    """

    def __init__(self, checked: Counter[str], *, has_webhooks: bool = False) -> None:
        self._checked = checked
        self._has_webhooks = has_webhooks
        self._version = 0

    def observe(self, change: StoredChange) -> None:
        """Check that `change` is legal after the earlier changes."""
        self._require(change.version > self._version, change, f"version {change.version} is old")
        self._version = change.version
        old, new = change.previous, change.object
        is_new = change.type is ChangeType.ADDED
        self._require((old is None) == is_new, change, f"{change.type} with previous {old}")
        if old is None:
            if change.kind is POD and self._has_webhooks:
                self._check_admitted(change)
            return
        before, after = old["metadata"], new["metadata"]
        self._require(before["uid"] == after["uid"], change, "another uid")
        ending = before.get("deletionTimestamp")
        kept = not ending or bool(after.get("deletionTimestamp"))
        self._require(kept, change, "its deletion was undone")
        if change.kind is POD and change.type is ChangeType.MODIFIED:
            self._check_pod(change, old, new)

    def _check_pod(self, change: StoredChange, old: Json, new: Json) -> None:
        node = old["spec"].get("nodeName")
        is_same = not node or new["spec"].get("nodeName") == node
        self._require(is_same, change, f"moved from {node} to {new['spec'].get('nodeName')}")
        phase, then = old["status"].get("phase"), new["status"].get("phase")
        self._require(phase not in _FINAL or phase == then, change, f"{phase} became {then}")

    def _check_admitted(self, change: StoredChange) -> None:
        """Check that a pod of a controller has the mark of the required webhook.

        Pods without an owner were created by the client script, which calls no webhooks.
        """
        meta = change.object["metadata"]
        if meta.get("ownerReferences"):
            self._checked[Law.ADMITTED.name] += 1
            if MARK not in meta.get("annotations", {}):
                key = f"{meta['namespace']}/{meta['name']}"
                raise LawBrokenError(Law.ADMITTED, f"Pod {key} was stored without the mark")

    def _require(self, holds: bool, change: StoredChange, message: str) -> None:  # noqa: FBT001
        self._checked[Law.HISTORY.name] += 1
        if not holds:
            meta = change.object["metadata"]
            key = f"{change.kind.kind} {meta.get('namespace', '')}/{meta['name']}"
            raise LawBrokenError(Law.HISTORY, f"{key}: {message}")
