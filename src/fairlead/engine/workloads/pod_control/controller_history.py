"""Histories: the revisions of StatefulSets and DaemonSets, with their templates.

A label of each pod states the revision from which it was created. A ControllerRevision keeps the
template of each revision for `kubectl rollout undo`; in a simulation only the revisions exist.

A snapshot may lack ControllerRevisions. Then the revision of the template is taken from the owner's
status or the labels of its pods, so that no rollout starts only because the name of the revision
cannot be computed. Pods without the label belong to the first revision.

upstream: pkg/controller/history/controller_history.go,
pkg/controller/statefulset/stateful_set_control.go:getStatefulSetRevisions, truncateHistory,
pkg/controller/daemon/update.go:constructHistory, cleanupHistory
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.objects import ControllerRevision, DaemonSet, Pod, StatefulSet
from fairlead.api.pods.facts import controller_of
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.workloads.identity import template_hash
from fairlead.engine.workloads.pod_control.pod_template import same_template

Revised = StatefulSet | DaemonSet

REVISION_LABEL: Final = "controller-revision-hash"
# StatefulSets label their revisions with the hash under this key, DaemonSets under the pods' key.
HASH_LABEL: Final = "controller.kubernetes.io/hash"
CONTROLLER_REVISION: Final = "ControllerRevision"
WHY_HISTORY: Final = "older than the revision history"


@dataclass(slots=True)
class History:
    """The ControllerRevisions of one owner, keyed by name.

    `update` names the revision of the owner's template, `current` the revision before it; both are
    equal unless an update is in progress. `first` is the revision of pods without a label.
    `born` are names of ControllerRevisions that were created, `failures` how many creations were
    refused in a row.
    """

    owner: Revised
    views: dict[str, ControllerRevision] = field(default_factory=dict)
    templates: dict[str, Json] = field(default_factory=dict)
    update: str = ""
    current: str = ""
    first: str = ""
    collisions: int = 0
    born: dict[str, None] = field(default_factory=dict)
    failures: int = 0

    def see(self, view: ControllerRevision) -> None:
        """Store the newest version of a ControllerRevision."""
        name = view.metadata.name
        self.views[name] = view
        self.templates.setdefault(name, _template_in(view))
        self.born.pop(name, None)
        self.failures = 0

    def forget(self, view: ControllerRevision) -> None:
        """Remove a deleted ControllerRevision."""
        name = view.metadata.name
        self.views.pop(name, None)
        if name not in (self.update, self.current):
            self.templates.pop(name, None)

    def resolve(self, owner: Revised, pods: Iterable[Pod]) -> None:
        """Find the revision of the current template of `owner`; `pods` are its pods."""
        self.owner = owner
        template = owner.spec.template
        if self.update and same_template(self.templates[self.update], template):
            return
        known = (name for name, one in self.templates.items() if same_template(one, template))
        is_first = not self.update
        found = next(known, "") or (self._trusted(owner, pods) if is_first else "")
        self.update = found or self._new_name(template)
        self.templates[self.update] = template
        if is_first:
            current = owner.status.get("currentRevision", "")
            self.current = current if current in self.templates else self.update
            self.first = self.current

    def revision_of(self, pod: Pod) -> str:
        """Return the name of the revision that `pod` was created from."""
        label = pod.metadata.labels.get(REVISION_LABEL)
        if label is None:
            return self.first
        return label if isinstance(self.owner, StatefulSet) else f"{self._prefix}{label}"

    def label_of(self, name: str) -> str:
        """Return the value of the revision label of pods of the revision `name`."""
        return name if isinstance(self.owner, StatefulSet) else name.removeprefix(self._prefix)

    def keep(self, live: Iterable[str]) -> list[Command]:
        """Create or renumber the newest ControllerRevision, and delete old ones.

        `live` are the names of revisions of existing pods.
        """
        view = self.views.get(self.update)
        newest = max((one.revision for one in self.views.values()), default=0)
        if view is None:
            if self.update in self.born or self.owner.metadata.deletion_timestamp:
                return []
            self.born[self.update] = None
            return [self._create(newest + 1)]
        if view.revision < newest:
            ref = self._ref(view)
            return [PatchObject(ref, {"revision": newest + 1})]
        return self._truncated(set(live))

    def not_created(self, name: str, *, is_taken: bool) -> None:
        """Handle a rejected creation of `name`; use another name if it is taken."""
        was_born = self.born.pop(name, 0) is None
        self.failures = 0 if is_taken else self.failures + 1
        if is_taken and was_born and name == self.update:
            self.collisions += 1
            template = self.templates.pop(name)
            self.update = self._new_name(template)
            self.templates[self.update] = template

    @property
    def _prefix(self) -> str:
        return f"{self.owner.metadata.name}-"

    def _new_name(self, template: Json) -> str:
        return self._prefix + template_hash(template, self.collisions)

    def _trusted(self, owner: Revised, pods: Iterable[Pod]) -> str:
        """Return the template's revision according to a snapshot, "" if it is missing."""
        status, generation = owner.status, owner.metadata.generation
        if status.get("observedGeneration", generation) < generation:
            return ""
        if status.get("updateRevision"):
            return str(status["updateRevision"])
        labels = Counter(
            pod.metadata.labels[REVISION_LABEL]
            for pod in pods
            if REVISION_LABEL in pod.metadata.labels
        )
        if not labels:
            return ""
        [(label, _)] = labels.most_common(1)
        return label if isinstance(owner, StatefulSet) else f"{self._prefix}{label}"

    def _create(self, number: int) -> Command:
        meta, spec = self.owner.metadata, self.owner.spec
        key = HASH_LABEL if isinstance(self.owner, StatefulSet) else REVISION_LABEL
        labels = spec.template.get("metadata", {}).get("labels", {})
        metadata: Json = {
            "name": self.update,
            "namespace": meta.namespace,
            "labels": {**labels, key: self.update.removeprefix(self._prefix)},
            "ownerReferences": [_reference(self.owner)],
        }
        if meta.annotations:
            metadata["annotations"] = dict(meta.annotations)
        return CreateObject(
            {
                "apiVersion": "apps/v1",
                "kind": CONTROLLER_REVISION,
                "metadata": metadata,
                "data": {"spec": {"template": {**spec.template, "$patch": "replace"}}},
                "revision": number,
            }
        )

    def _truncated(self, live: set[str]) -> list[Command]:
        kept = (*live, self.update, self.current)
        old = sorted((one.revision, name) for name, one in self.views.items() if name not in kept)
        excess = len(old) - self.owner.spec.revision_history_limit
        return [
            DeleteObject(self._ref(self.views[name]), why=WHY_HISTORY)
            for _, name in old[: max(0, excess)]
        ]

    def _ref(self, view: ControllerRevision) -> ObjectRef:
        meta = view.metadata
        return ObjectRef(CONTROLLER_REVISION, meta.namespace, meta.name, meta.uid)


@dataclass(slots=True)
class Histories:
    """Controller histories by the owner's key; `lost` are revisions observed before their owner."""

    _by_owner: dict[str, History] = field(default_factory=dict)
    _early: dict[str, list[ControllerRevision]] = field(default_factory=dict)

    def of(self, key: str, owner: Revised) -> History:
        """Return the history of `owner`, created if missing."""
        history = self._by_owner.get(key)
        if history is None:
            history = self._by_owner[key] = History(owner)
            for view in self._early.pop(key, ()):
                history.see(view)
        return history

    def find(self, key: str) -> History | None:
        """Return the history of the owner with that key."""
        return self._by_owner.get(key)

    def see(self, view: ControllerRevision) -> None:
        """Store the newest version of a ControllerRevision."""
        owner = controller_of(view.metadata)
        if owner is None:
            return
        history = self._by_owner.get(owner.uid)
        if history is None:
            self._early.setdefault(owner.uid, []).append(view)
        else:
            history.see(view)

    def forget(self, view: ControllerRevision) -> None:
        """Remove a deleted ControllerRevision."""
        owner = controller_of(view.metadata)
        history = self._by_owner.get(owner.uid) if owner is not None else None
        if history is not None:
            history.forget(view)

    def forget_owner(self, key: str) -> None:
        """Remove a deleted owner."""
        self._by_owner.pop(key, None)
        self._early.pop(key, None)

    def not_created(self, manifest: Any, *, is_taken: bool) -> tuple[str, int]:
        """Handle the failed creation of a ControllerRevision, whose name may be taken.

        Return the key of its owner, and how often in a row it failed for another reason.
        """
        meta = manifest["metadata"]
        key = str(meta["ownerReferences"][0]["uid"])
        history = self._by_owner.get(key)
        if history is not None:
            history.not_created(meta["name"], is_taken=is_taken)
        return key, 0 if history is None else history.failures


def _template_in(view: ControllerRevision) -> Json:
    template = view.data.get("spec", {}).get("template", {})
    return {key: part for key, part in template.items() if key != "$patch"}


def _reference(owner: Revised) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": type(owner).__name__,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
