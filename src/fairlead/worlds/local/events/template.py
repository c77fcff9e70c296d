"""EventTemplates: stores an event as a copy of an earlier one, without the full create pipeline.

Events are numerous, and most of them differ only in a few values. The result of the pipeline
(decoding, defaults, managed fields), and whether the pipeline accepts the event, depend only on the
event's form. The form is the set of the event's fields, and the values of those fields that a stage
reads. So the first event of each form goes through the full pipeline, and each later event of the
form is stored as a copy with its own values. Two conditions can change between two events, and are
checked each time: the namespace is not terminating, and the name is free.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import already_exists
from fairlead.apiserver.kind import NAMESPACE, kind_of
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component
from fairlead.worlds.local.field_manager import FieldManagers

Form = tuple[object, ...]

FORMS_MAX: Final = 512
EVENT: Final = kind_of({"apiVersion": "v1", "kind": "Event"})
_LIVING: Final = NamespaceLifecycle()
# Fields whose values are part of the form; for other fields only their presence counts.
_ALIKE: Final = ("reason", "type", "action", "reportingComponent")


class EventTemplates:
    """Creates events in `store`, with managed fields from `signatures`."""

    def __init__(self, store: Store, signatures: FieldManagers) -> None:
        """Start without known forms."""
        self._store = store
        self._signatures = signatures
        self._known: dict[Form, Json] = {}
        self._living: Json | None = None  # a namespace that is not terminating

    def create(self, manifest: Json, component: Component, now: Instant) -> Json:
        """Store a new event of `component` and return it. Raises ApiError."""
        form = _form_of(manifest, component)
        known = self._known.get(form)
        if known is not None:
            return self._create_like(known, manifest, now)
        track = self._signatures.of(component, EVENT, "", now)
        stored = self._store.create(manifest, now, write=Write(track=track))
        if len(self._known) >= FORMS_MAX:
            self._known.clear()
        self._known[form] = stored
        return stored

    def _create_like(self, known: Json, manifest: Json, now: Instant) -> Json:
        storage, meta = self._store.storage, manifest["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        found = storage.find(NAMESPACE, "", namespace)
        if found is not self._living or found is None:
            _LIVING.admit(AdmissionAttributes(Operation.CREATE, EVENT, manifest), storage)
            self._living = found
        if storage.find(EVENT, namespace, name) is not None:
            raise already_exists(EVENT, namespace, name)
        stamp = format_timestamp(now)
        own = {
            "name": name,
            "namespace": namespace,
            "uid": self._store.ids.new_uid(EVENT, namespace, name),
            "creationTimestamp": stamp,
            "managedFields": [
                {**entry, "time": stamp} for entry in known["metadata"]["managedFields"]
            ],
        }
        values = {key: value for key, value in manifest.items() if value}
        event = {**known, **values, "metadata": {**known["metadata"], **own}}
        return storage.put(EVENT, event, is_arranged=True)


def _form_of(manifest: Json, component: Component) -> Form:
    alike = [manifest.get(key) for key in _ALIKE]
    presence = [tuple(value) if type(value) is dict else not value for value in manifest.values()]
    return (component, *alike, *manifest, *presence)
