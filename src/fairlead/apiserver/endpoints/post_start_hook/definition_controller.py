"""DefinitionController: serves the kinds of CustomResourceDefinitions.

The controller accepts the names of a definition, and serves or withdraws its kinds. When the
schemas of a definition change, the controller applies them to the stored objects. The watches of
the objects end when the definition's spec changes, or when the definition is removed. When a client
deletes a definition, the controller first deletes all objects of the definition's kinds. The
controller writes in `reconcile`, after a request has been handled. Therefore, watches receive the
client's change before the changes of the controller.

    created -> names accepted -> established (served) -> deleted -> objects deleted -> removed
    created -> names refused (not served), retried when a definition of the same group changes

upstream: apiextensions-apiserver/pkg/controller/{establish,finalizer,status}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.definition.names import (
    holder_of_own_plural,
    with_name_conflict,
)
from fairlead.apiserver.apiextensions.definition.status import (
    CLEANUP,
    has_name_conflict,
    is_accepted,
    is_deleting_objects,
    is_established,
    with_deletion_in_progress,
    with_established,
    with_names_accepted,
    without_cleanup_finalizer,
)
from fairlead.apiserver.apiextensions.definition.validation import causes
from fairlead.apiserver.apiextensions.served_kind import LAST_VERBS, kinds_of
from fairlead.apiserver.conversion.kind_conversion import reread
from fairlead.apiserver.endpoints.post_start_hook.reconcile_delay import NO_DELAY, ReconcileDelay
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, Kind
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange

# (old, new, now) -> new, with the manager of its status tracked
TrackStatus = Callable[[Json, Json, int], Json]
EndWatches = Callable[[Kind], None]

CHANGES_MAX: Final = 10_000
_INSTALLING: Final = "installing"
_DELETING: Final = "deleting"


def untracked(_: Json, new: Json, __: int) -> Json:
    """Return `new`, without updating its managedFields."""
    return new


def _ignore(_: Kind) -> None:
    """Do nothing: a DefinitionController without `end_watches` ends no watches."""


class DefinitionController:
    """Keeps the custom kinds in `registry` up to date with the definitions in `store`."""

    def __init__(
        self,
        store: Store,
        registry: ServedKinds,
        track_status: TrackStatus = untracked,
        delays: ReconcileDelay = NO_DELAY,
        end_watches: EndWatches = _ignore,
    ) -> None:
        """Subscribe to `store`, and record all existing definitions as changed.

        `track_status` updates the managedFields of a definition whose status the controller writes.
        `delays` contains the delays of the controller's steps. `end_watches` ends the watches of
        all versions of a kind.
        """
        self._store = store
        self._registry = registry
        self._track_status = track_status
        self._delays = delays
        self._end_watches = end_watches
        # By definition: its (uid, generation), and the kinds that were built from its spec at that
        # generation.
        self._kinds: dict[str, tuple[tuple[str, int], tuple[Kind, ...]]] = {}
        self._served: dict[str, tuple[Json, Kind]] = {}  # by definition: its spec and a kind
        # by definition: its phase, and when the phase began
        self._since: dict[str, tuple[str, int]] = {}
        self._due: dict[str, int] = {}  # when to examine a definition again
        # Changed definitions, in the order of their changes.
        self._changed: dict[str, None] = {
            definition["metadata"]["name"]: None
            for definition in store.storage.items(CUSTOM_RESOURCE_DEFINITION)
        }
        # resource -> the definition that is deleted after the resource's last object
        self._ending: dict[str, str] = {}
        store.subscribe(self._note)

    @property
    def waits(self) -> bool:
        """True if a definition has changed, or waits for a delayed step."""
        return bool(self._changed or self._due)

    def reconcile(self, now: int) -> None:
        """Handle the recorded changes, and the delayed steps due at `now` (ns since 1970)."""
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            self._changed[name] = None
        for _ in range(CHANGES_MAX):
            if not self._changed:
                return
            name = next(iter(self._changed))
            del self._changed[name]
            self._reconcile(name, now)

    def _note(self, change: StoredChange) -> None:
        if change.kind is CUSTOM_RESOURCE_DEFINITION:
            self._changed[change.object["metadata"]["name"]] = None
            # The change may have freed a name that a refused definition of the same group needs.
            group = change.object["spec"].get("group")
            for other in self._store.storage.unsorted(CUSTOM_RESOURCE_DEFINITION):
                if other["spec"].get("group") == group and has_name_conflict(other):
                    self._changed.setdefault(other["metadata"]["name"])
        elif change.type is ChangeType.DELETED and change.kind.resource in self._ending:
            self._changed[self._ending[change.kind.resource]] = None

    def _reconcile(self, name: str, now: int) -> None:
        storage = self._store.storage
        definition = storage.find(CUSTOM_RESOURCE_DEFINITION, "", name)
        if definition is None:
            self._since.pop(name, None)
            self._kinds.pop(name, None)
            if (served := self._served.pop(name, None)) is not None:
                self._end_watches(served[1])
            self._registry.withdraw(name)
            return
        if definition["metadata"].get("deletionTimestamp"):
            self._end(name, definition, now)
            return
        kinds = self._kinds_of(definition)
        if not kinds:
            self._registry.withdraw(name)
            return
        if self._registry.is_own(kinds[0].resource):
            self._refuse(name, definition, now)
        else:
            self._serve(name, definition, kinds, now)

    def _serve(self, name: str, definition: Json, kinds: tuple[Kind, ...], now: int) -> None:
        """Do the next step for a definition: accept its names, establish it, or serve `kinds`."""
        others = self._store.storage.unsorted(CUSTOM_RESOURCE_DEFINITION)
        conflict = None if is_accepted(definition) else with_name_conflict(definition, others, now)
        if conflict is not None:
            if conflict is not definition:
                self._put(definition, conflict, now)
        elif not is_accepted(definition) and self._delays.established:
            if self._is_time(name, _INSTALLING, self._delays.accepted, now):
                self._put(definition, with_names_accepted(definition, now), now)
        elif is_established(definition):
            self._since.pop(name, None)
            self._registry.define(name, kinds)
            self._apply_spec(definition, kinds[0])
        elif self._is_time(name, _INSTALLING, self._delays.established, now):
            self._put(definition, with_established(definition, now), now)

    def _apply_spec(self, definition: Json, kind: Kind) -> None:
        """Apply a changed spec: end the watches, and apply the new schemas to the stored objects.

        `kind` is one of the kinds of the definition.
        """
        meta, spec = definition["metadata"], definition["spec"]
        before = self._served.get(meta["name"])
        if before is not None and before[0] == spec:
            return
        self._served[meta["name"]] = spec, kind
        if before is not None:
            # Clients must list the objects again, because the new spec may show them differently.
            # upstream: customresource_handler.go:updateCustomResourceDefinition
            self._end_watches(before[1])
        # Objects were stored with the schemas of the definition's first generation.
        is_changed = meta.get("generation", 0) > 1
        if is_changed and (before is None or _schemas(before[1]) != _schemas(kind)):
            self._store.storage.rewrite(kind, partial(reread, kind))

    def _refuse(self, name: str, definition: Json, now: int) -> None:
        """Stop serving a definition of a built-in resource; record the name conflict in its status.

        The definition is refused even if it has the condition Established. Upstream stores the
        objects of such a definition separately. Fairlead would mix them with the built-in objects.
        """
        self._registry.withdraw(name)
        conflict = with_name_conflict(definition, (holder_of_own_plural(definition),), now)
        if conflict is not None and conflict is not definition:
            self._put(definition, conflict, now)

    def _put(self, old: Json, new: Json, now: int) -> None:
        self._store.storage.put(CUSTOM_RESOURCE_DEFINITION, self._track_status(old, new, now))

    def _is_time(self, name: str, phase: str, delay: int, now: int) -> bool:
        """Return whether `delay` (ns) has passed since the definition entered `phase`.

        If the delay has not passed yet, this method records that the definition must be handled
        again at the end of the delay.
        """
        known, began = self._since.get(name, ("", now))
        due = (began if known == phase else now) + delay
        if due <= now:
            self._since[name] = phase, due
            return True
        self._since[name] = phase, due - delay
        self._due[name] = due
        return False

    def _end(self, name: str, definition: Json, now: int) -> None:
        """Delete the objects of a definition that is being deleted, then the definition itself.

        The definition's kinds are served until its objects are deleted.
        """
        storage = self._store.storage
        kinds = self._kinds_of(definition)
        if kinds and self._registry.is_own(kinds[0].resource):
            kinds = ()  # the objects belong to the built-in resource
        if kinds and is_established(definition):
            self._registry.define(name, tuple(replace(kind, verbs=LAST_VERBS) for kind in kinds))
        if CLEANUP not in definition["metadata"].get("finalizers", ()):
            return
        if not self._advance_deletion(name, definition, now):
            return
        if kinds and self._delete_objects(kinds[0], now):  # some objects remain
            self._ending[kinds[0].resource] = name
            if not is_deleting_objects(definition):
                self._put(definition, with_deletion_in_progress(definition, now), now)
            return
        if kinds:
            self._ending.pop(kinds[0].resource, None)
        free = without_cleanup_finalizer(definition)
        if free["metadata"].get("finalizers"):
            storage.put(CUSTOM_RESOURCE_DEFINITION, free)
        else:
            self._registry.withdraw(name)
            storage.remove(CUSTOM_RESOURCE_DEFINITION, "", name)

    def _advance_deletion(self, name: str, definition: Json, now: int) -> bool:
        """Advance the deletion; return whether to delete the definition's objects now.

        If the controller has no delays, return True. If it has delays, as in a replay, return False
        until the Terminating condition is written and a further delay has passed.
        """
        if not self._delays.ended:
            return True
        if is_deleting_objects(definition):
            return self._is_time(name, _DELETING, self._delays.ended, now)
        if self._is_time(name, _DELETING, self._delays.ending, now):
            self._put(definition, with_deletion_in_progress(definition, now), now)
        return False

    def _kinds_of(self, definition: Json) -> tuple[Kind, ...]:
        """Return the kinds that a CustomResourceDefinition defines; () if it is invalid."""
        meta = definition["metadata"]
        spec_id = meta.get("uid", ""), meta.get("generation", 0)
        made = self._kinds.get(meta["name"])
        if made is None or made[0] != spec_id or not all(spec_id):
            made = self._kinds[meta["name"]] = spec_id, _kinds(definition)
        return made[1]

    def _delete_objects(self, kind: Kind, now: int) -> bool:
        """Request the deletion of all objects of `kind`.

        Returns whether some objects remain, such as those with finalizers.
        """
        for obj in self._store.list(kind):
            meta = obj["metadata"]
            if not meta.get("deletionTimestamp"):
                try:
                    self._store.delete(kind, meta.get("namespace", ""), meta["name"], now)
                except ApiError:
                    continue  # then the definition stays, too
        return bool(self._store.list(kind))


def _schemas(kind: Kind) -> tuple[str, bool, dict[str, Json]]:
    """Return the facts that determine the form in which objects of a custom kind are stored.

    The facts are (stored apiVersion, whether a webhook converts objects, schemas of all versions).
    """
    schemas = {api_version: one.raw for api_version, one in kind.all_types}
    return kind.stored_as, kind.conversion_webhook is not None, schemas


def _kinds(definition: Json) -> tuple[Kind, ...]:
    """Return the kinds of a definition; () if the definition is invalid.

    A snapshot can contain an invalid definition.
    """
    # CEL rules are not compiled here, because they were checked when the definition was stored.
    if next(causes(definition, None), None) is not None:
        return ()
    return kinds_of(definition)
