"""Histories: the revisions of StatefulSets and DaemonSets, with their templates.

A label of each pod contains the revision from which the pod was created. A ControllerRevision
stores the template of each revision for `kubectl rollout undo`. In a simulation, there are
revisions but no ControllerRevision objects.

The name of a revision cannot be computed from its template. If a snapshot lacks the
ControllerRevision of the owner's template, the name is taken from the owner's status or the labels
of its pods. So no rollout starts. Pods without the label belong to the first revision.

upstream: pkg/controller/history/controller_history.go,
pkg/controller/statefulset/stateful_set_control.go:getStatefulSetRevisions, truncateHistory,
pkg/controller/daemon/update.go:constructHistory, cleanupHistory
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import ControllerRevision, DaemonSet, Pod, StatefulSet
from fairlead.api.pods.facts import controller_of
from fairlead.api.selector import selector_matches
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, PatchObject
from fairlead.engine.workloads.identity import object_ref, template_hash
from fairlead.engine.workloads.pod_control.pod_template import read_template, same_template

RevisionOwner = StatefulSet | DaemonSet

REVISION_LABEL: Final = "controller-revision-hash"
# Label of a StatefulSet's revisions with the hash; a DaemonSet's revisions have REVISION_LABEL.
HASH_LABEL: Final = "controller.kubernetes.io/hash"
CONTROLLER_REVISION: Final = "ControllerRevision"
WHY_HISTORY: Final = "older than the revision history"


class History(Struct):
    """The ControllerRevisions (`views`) of one owner, and the templates of its revisions."""

    owner: RevisionOwner
    views: dict[str, ControllerRevision] = field(default_factory=dict)
    templates: dict[str, Json] = field(default_factory=dict)
    update: str = ""  # the name of the revision with the owner's template
    # Only for StatefulSets: the name of the revision before the update that is in progress. When
    # the update is complete, the StatefulSet's rule sets it to `update`.
    current: str = ""
    first: str = ""  # the revision of pods without a label
    collisions: int = 0
    # Names of ControllerRevisions whose creation was requested.
    requested: dict[str, None] = field(default_factory=dict)
    failures: int = 0  # the number of consecutive refused creations
    # Maps the revision label of each ControllerRevision of a DaemonSet to the ControllerRevision's
    # name. The name cannot be derived from the label if the ControllerRevision was adopted from a
    # DaemonSet with another name.
    _named: dict[str, str] = field(default_factory=dict)

    def observe(self, view: ControllerRevision) -> None:
        """Store the newest version of a ControllerRevision."""
        name = view.metadata.name
        self.views[name] = view
        if REVISION_LABEL in view.metadata.labels:
            self._named[view.metadata.labels[REVISION_LABEL]] = name
        self.templates.setdefault(name, template_in(view))
        self.requested.pop(name, None)
        self.failures = 0

    def forget(self, view: ControllerRevision) -> None:
        """Remove a deleted ControllerRevision."""
        name = view.metadata.name
        self.views.pop(name, None)
        if name not in (self.update, self.current):
            self.templates.pop(name, None)

    def resolve(self, owner: RevisionOwner, pods: Iterable[Pod]) -> None:
        """Set `update` to the name of the revision of the owner's current template.

        If no known revision has this template, the name is new. `pods` contains one entry for each
        pod of the owner: the pod itself, or another pod with the same revision label. The first
        call also sets `current` to the name of the owner's current revision, and sets `first` to
        the same name.
        """
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
        """Return the name of the revision from which `pod` was created."""
        label = pod.metadata.labels.get(REVISION_LABEL)
        if label is None:
            return self.first
        if isinstance(self.owner, StatefulSet):
            return label
        return self._named.get(label) or f"{self._prefix}{label}"

    def label_of(self, name: str) -> str:
        """Return the value of the revision label of a pod that has the revision `name`."""
        if isinstance(self.owner, StatefulSet):
            return name
        labels = self.views[name].metadata.labels if name in self.views else {}
        return labels.get(REVISION_LABEL) or name.removeprefix(self._prefix)

    def next_writes(self, live: Iterable[str]) -> list[Command]:
        """Return the next writes of ControllerRevisions.

        A missing update revision is created. If the update revision exists but is not the newest
        one, it gets the highest number. Old revisions beyond the history limit are deleted. The
        revisions in `live` are kept, because existing pods have them.

        Returns [] while the update revision is missing and must not be created, because its
        creation is in flight already or the owner is being deleted.
        """
        view = self.views.get(self.update)
        others = (one.revision for name, one in self.views.items() if name != self.update)
        newest = max(others, default=0)
        written: list[Command] = []
        if view is None:
            if self.update in self.requested or self.owner.metadata.deletion_timestamp:
                return []
            self.requested[self.update] = None
            written = [self._create(newest + 1)]
        elif view.revision <= newest:
            written = [PatchObject(object_ref(view), {"revision": newest + 1})]
        return written + self._truncated(set(live))

    def not_created(self, name: str, *, is_taken: bool) -> None:
        """Handle the refused creation of the ControllerRevision `name`.

        If the name is taken (`is_taken`), choose another name.
        """
        was_requested = self.requested.pop(name, 0) is None
        self.failures = 0 if is_taken else self.failures + 1
        if is_taken and was_requested and name == self.update:
            self.collisions += 1
            template = self.templates.pop(name)
            self.update = self._new_name(template)
            self.templates[self.update] = template

    @property
    def _prefix(self) -> str:
        return f"{self.owner.metadata.name}-"

    def _new_name(self, template: Json) -> str:
        return self._prefix + template_hash(template, self.collisions)

    def _trusted(self, owner: RevisionOwner, pods: Iterable[Pod]) -> str:
        """Return the name of the template's revision from the owner's status or the pods' labels.

        Returns "" if neither contains the name, or if the status is older than the owner's
        specification.
        """
        status, generation = owner.status, owner.metadata.generation
        if status.get("observedGeneration", generation) < generation:
            return ""
        if isinstance(owner, StatefulSet) and owner.status.get("updateRevision"):
            return owner.status["updateRevision"]
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
        """Return the deletions of the oldest revisions that exceed revisionHistoryLimit.

        Three kinds of revisions are never deleted: revisions in `live`, the update revision, and a
        StatefulSet's current revision. For a StatefulSet, only the other revisions count towards
        the limit. For a DaemonSet, all revisions except the update revision count.
        """
        # upstream: stateful_set_control.go:truncateHistory, daemon/update.go:cleanupHistory
        others = sorted(
            (one.revision, name) for name, one in self.views.items() if name != self.update
        )
        limit = self.owner.spec.revision_history_limit
        if isinstance(self.owner, StatefulSet):
            live = live | {self.current}
        unused = [name for _, name in others if name not in live]
        counted = unused if isinstance(self.owner, StatefulSet) else others
        return [
            DeleteObject(object_ref(self.views[name]), why=WHY_HISTORY)
            for name in unused[: max(0, len(counted) - limit)]
        ]


class Histories(Struct):
    """The histories of all owners, by the owner's key.

    `_early` contains the revisions that were observed before their owner. `_orphans` contains the
    revisions without an owner, by namespace and name. Such a revision belongs to the history of a
    new owner that selects it, even before the owner adopts it. So a workload that is deleted with
    `--cascade=orphan` and created again does not replace its pods.

    upstream: pkg/controller/history/controller_history.go:ListControllerRevisions
    """

    _by_owner: dict[str, History] = field(default_factory=dict)
    _early: dict[str, list[ControllerRevision]] = field(default_factory=dict)
    _orphans: dict[str, dict[str, ControllerRevision]] = field(default_factory=dict)

    def of(self, key: str, owner: RevisionOwner) -> History:
        """Return the history of `owner`, created if missing."""
        history = self._by_owner.get(key)
        if history is None:
            collisions = owner.status.get("collisionCount") or 0
            history = self._by_owner[key] = History(owner, collisions=collisions)
            orphans = self._orphans.get(owner.metadata.namespace, {}).values()
            selected = (
                one for one in orphans if selector_matches(owner.spec.selector, one.metadata.labels)
            )
            for view in (*selected, *self._early.pop(key, ())):
                history.observe(view)
        return history

    def find(self, key: str) -> History | None:
        """Return the history of the owner `key`, or None if the owner has no history."""
        return self._by_owner.get(key)

    def observe(self, view: ControllerRevision) -> str:
        """Store the newest version of a ControllerRevision.

        Returns the key of its owner. Returns "" if the ControllerRevision has no owner or the owner
        has not been observed yet.
        """
        meta, owner = view.metadata, controller_of(view.metadata)
        if owner is None:
            self._orphans.setdefault(meta.namespace, {})[meta.name] = view
            return ""
        self._orphans.get(meta.namespace, {}).pop(meta.name, None)
        history = self._by_owner.get(owner.uid)
        if history is None:
            self._early.setdefault(owner.uid, []).append(view)
            return ""
        history.observe(view)
        return owner.uid

    def forget(self, view: ControllerRevision) -> None:
        """Remove a deleted ControllerRevision."""
        meta, owner = view.metadata, controller_of(view.metadata)
        self._orphans.get(meta.namespace, {}).pop(meta.name, None)
        history = self._by_owner.get(owner.uid) if owner is not None else None
        if history is not None:
            history.forget(view)

    def forget_owner(self, key: str) -> None:
        """Remove a deleted owner."""
        self._by_owner.pop(key, None)
        self._early.pop(key, None)

    def not_created(self, manifest: Any, *, is_taken: bool) -> tuple[str, int]:
        """Handle the refused creation of the ControllerRevision in `manifest`.

        `is_taken` means that the creation was refused because the name is taken. Returns the key of
        the revision's owner, and the number of consecutive refusals that had a reason other than a
        taken name.
        """
        meta = manifest["metadata"]
        key = str(meta["ownerReferences"][0]["uid"])
        history = self._by_owner.get(key)
        if history is not None:
            history.not_created(meta["name"], is_taken=is_taken)
        return key, 0 if history is None else history.failures


def template_in(view: ControllerRevision) -> Json:
    """Return the pod template in `view`; {} if there is no valid template.

    The API accepts any data in a ControllerRevision.
    """
    spec = view.data.get("spec")
    template: Json = spec.get("template", {}) if isinstance(spec, dict) else {}
    if not isinstance(template, dict) or read_template(template) is None:
        return {}
    return {key: part for key, part in template.items() if key != "$patch"}


def _reference(owner: RevisionOwner) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": type(owner).__name__,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
