"""DumpedObject: the text of an object in a dump, together with its typed view.

The text is decoded only when something reads the JSON value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from fairlead.api.codec import drop_nulls
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Pod
from fairlead.api.text.json_template import TemplateText
from fairlead.apiserver.defaulting.simulation import with_defaults
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import Key

_decode: Final = msgspec.json.Decoder(type=Json).decode

Text = msgspec.Raw | bytes | TemplateText


class DumpedTemplate(Protocol):
    """Makes typed views and JSON values of similar objects without decoding each object's text.

    If `makes_replicas` is True, the objects are pods that differ only in name, uid,
    resourceVersion, node, addresses, times and volume names. Their node affinity may also pin them
    to different nodes.
    """

    makes_replicas: bool

    def value_of(self, text: Text) -> Json | None:
        """Return the JSON value of `text`; None if the caller must decode `text` to get it.

        The value shares parts with other values, so callers must not mutate it.
        """

    def view_of(self, strings: Sequence[str]) -> Pod:
        """Return the typed view of the pod that has `strings` in place of the placeholders."""

    def replica_strings(self, text: Text) -> Sequence[str] | None:
        """Return the strings that `text` has in place of the template's placeholders.

        Return None if `text` does not match the template, or if the pod in `text` is not a replica.
        """

    def number_at(self, path: Sequence[str | int]) -> int | None:
        """Return the index of the string at `path` in the result of `replica_strings`.

        `path` leads to a string in a pod's view. Return None if all views have the same string
        there.
        """


class DumpedObject(msgspec.Struct, frozen=True, gc=False):
    """A dumped object that loading does not change (see `StoredForm`): its typed view and its text.

    `template` is set only if many objects of the dump have similar texts.
    """

    kind: Kind
    view: ApiObject
    text: Text
    template: DumpedTemplate | None = None

    @property
    def key(self) -> Key:
        """The namespace and name of the object."""
        meta = self.view.metadata
        return meta.namespace, meta.name

    @property
    def version(self) -> int | None:
        """The resourceVersion of the object; never None."""
        return int(self.view.metadata.resource_version)

    @property
    def value(self) -> Json:
        """The object as JSON, made again at each access; callers must not mutate it."""
        if self.template is not None:
            value = self.template.value_of(self.text)
            if value is not None:
                return value
        return value_of_text(self.kind, self.text)

    @property
    def managed_fields(self) -> tuple[Json, ...]:
        """The managedFields in `text`; `value` does not contain them."""
        return tuple(_decode(bytes(self.text))["metadata"].get("managedFields") or ())


def value_of_text(kind: Kind, text: Text | bytes) -> Json:
    """Return the object in `text` without managedFields and nulls, and with defaults added."""
    data = bytes(text)
    obj = _decode(data)
    obj["metadata"].pop("managedFields", None)
    if b"null" in data:
        drop_nulls(obj)
    return with_defaults(kind, obj)
