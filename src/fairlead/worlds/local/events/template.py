"""EventTemplates: stores an event as a copy of an earlier event, without the create pipeline.

Most events differ only in a few strings. Two events of a component have the same form if their
`EventStrings.fixed` are equal, and if the same strings of `EventStrings.own` are empty. All strings
that a stage of the pipeline reads are in `fixed`, so the pipeline treats all events of a form
alike. Only the first event of each form goes through the full pipeline. The JSON text of the stored
event becomes a template, with placeholders for the strings that differ. Later events of the form
are stored as this text with their own strings.

An event is stored only if its namespace is not terminating and its name is free. Both conditions
are checked for each event, because they can change from one event to the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.json_template import has_marks, marker
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
_NAMESPACE_LIFECYCLE: Final = NamespaceLifecycle()
_MARKER: Final = re.compile(rb'"\x7f(\d+)"')
_encode: Final = msgspec.json.Encoder().encode


class EventStrings(Struct, frozen=True):
    """The strings of a new event; a string is "" if the event does not have the field.

    `fixed` contains the strings that have few different values, and the strings that a stage of the
    create pipeline reads. `own` contains the other strings; the first two are the event's name and
    namespace. Two events of a component have the same form if their `fixed` is equal and the same
    strings of `own` are empty.
    """

    fixed: tuple[str, ...]
    own: tuple[str, ...]


class _Template(Struct, frozen=True):
    """The text of an event with `%b` in place of each string that differs between events.

    `order` takes JSON texts: first the texts of all strings in `EventStrings.own`, then the texts
    of the uid, the time and the resource version. `order` returns the texts to insert, in the order
    of the `%b` in `text`.
    """

    text: bytes
    order: Callable[[list[bytes]], tuple[bytes, ...]]


class EventTemplates:
    """Stores new Kubernetes events in `store`; `signatures` supplies their managedFields."""

    def __init__(self, store: Store, signatures: FieldManagers) -> None:
        self._store = store
        self._signatures = signatures
        self._known: dict[Form, _Template] = {}
        self._living: Json | None = None  # a namespace that is not terminating

    def create(
        self,
        strings: EventStrings,
        manifest_of: Callable[[EventStrings], Json],
        component: Component,
        now: Instant,
    ) -> None:
        """Store a new event of `component`.

        `manifest_of` returns the manifest of an event with the given strings. Raises ApiError.
        """
        form = (component, strings.fixed, *map(bool, strings.own))
        known = self._known.get(form)
        if known is not None:
            self._create_like(known, strings.own, now)
            return
        track = self._signatures.of(component, EVENT, "", now)
        stored = self._store.create(manifest_of(strings), now, write=Write(track=track))
        if len(self._known) >= FORMS_MAX:
            self._known.clear()
        template = _template_of(stored, strings, manifest_of)
        if template is not None:
            self._known[form] = template

    def _create_like(self, known: _Template, own: tuple[str, ...], now: Instant) -> None:
        storage = self._store.storage
        name, namespace, *_ = own
        found = storage.find(NAMESPACE, "", namespace)
        if found is not self._living or found is None:
            event = {"metadata": {"name": name, "namespace": namespace}}
            _NAMESPACE_LIFECYCLE.admit(AdmissionAttributes(Operation.CREATE, EVENT, event), storage)
            self._living = found
        if storage.find_stored(EVENT, namespace, name) is not None:
            raise already_exists(EVENT, namespace, name)
        texts = [_encode(one) for one in own]
        texts.append(_encode(self._store.ids.new_uid(EVENT, namespace, name)))
        texts.append(_encode(format_timestamp(now)))

        def text_at(version: int) -> bytes:
            texts.append(b'"%d"' % version)
            return known.text % known.order(texts)

        storage.add_text(EVENT, (namespace, name), text_at)


def _template_of(
    stored: Json, strings: EventStrings, manifest_of: Callable[[EventStrings], Json]
) -> _Template | None:
    """Return a template made from the stored event `stored`, whose strings are `strings`.

    Returns None if `stored` contains a text that looks like a marker of the template.
    """
    if has_marks(_encode(stored)):
        return None
    own = strings.own
    marked = tuple(marker(number) if one else "" for number, one in enumerate(own))
    manifest = manifest_of(EventStrings(strings.fixed, marked))
    meta = stored["metadata"]
    uid, time, version = map(marker, range(len(own), len(own) + 3))
    event: dict[str, Any] = {**stored, **{key: value for key, value in manifest.items() if value}}
    event["metadata"] = {
        **meta,
        **manifest["metadata"],
        "uid": uid,
        "creationTimestamp": time,
        "managedFields": [{**entry, "time": time} for entry in meta["managedFields"]],
        "resourceVersion": version,
    }
    first, *others = _MARKER.split(_encode(event).replace(b"%", b"%%"))
    text = b"".join((first, *(b"%b" + after for after in others[1::2])))
    return _Template(text, itemgetter(*map(int, others[::2])))
