"""PodTexts: recognizes pods whose texts differ only in the values of some strings.

The texts of a workload's pods match one `JsonTemplate`, or a few. Each template has a placeholder
for every string in which its texts differ. The template has one sample pod. The view (the typed
object) and the JSON value of another pod are copies of the view and the value of the sample pod.
Only the strings of the placeholders are replaced.

    1. The first three pods of a workload (same generateName, or the same owner if there is no
       generateName) are decoded. The strings that differ between the second and the third text
       become the placeholders of a template.
    2. A pod whose text matches no template is decoded. If its text differs from the sample of a
       template only in the values of strings, these strings become placeholders, too.
    3. After too many attempts to make or extend a template, the workload gets no further template.

Pods of one template that are neighbours in the dump are stored as columns, one for each
placeholder. A pod is made from its strings when it is first read (`DumpedReplicas`).

A snapshot file that stores pods as columns contains the templates (`TemplateText`), so only the
first pod of each template is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.quantity import QuantityError
from fairlead.api.text.json_template import (
    JsonTemplate,
    Places,
    TemplateRows,
    TemplateText,
    has_marks,
    pieces_of,
    places_in,
    substitution,
)
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.dump.object import Text, value_of_text

_NAME_KEY: Final = b'"generateName"'
_OWNERS_KEY: Final = b'"ownerReferences"'
_UID_KEY: Final = b'"uid"'
_HEAD_BYTES: Final = 8192  # the keys above are searched only in the first bytes of a text
_DECODED_FIRST: Final = 3  # pods of a workload that are decoded before a template is tried
# Templates of one workload. Its pods can differ in more than strings, for example in the number of
# restarts. So it can need several templates.
_TEMPLATES_MAX: Final = 4
_ATTEMPTS_MAX: Final = 24  # attempts to make or extend the templates of one workload
_WITH_TEXT: Final = (msgspec.Raw, bytes)  # classes of items with a text
_NO_TEXT: Final = memoryview(b"")
_ROWS_MAX: Final = 1024  # pods in one TemplateRows, so that the parts of a file are soon released

# The fields in which pods with texts of one template may differ if the template `makes_replicas`.
_OWN_FIELDS: Final = {
    ("metadata", "name"),
    ("metadata", "uid"),
    ("metadata", "resource_version"),
    ("metadata", "creation_timestamp"),
    ("spec", "node_name"),
    ("spec", "volumes", "name"),
    ("status", "start_time"),
    ("status", "pod_ip"),
    ("status", "conditions", "last_transition_time"),
}
# The field with the name of the node to which a DaemonSet pins a pod.
_PINNED_TO: Final = (
    "spec",
    "affinity",
    "node_affinity",
    "required_during_scheduling_ignored_during_execution",
    "node_selector_terms",
    "match_fields",
    "values",
)

_decode_json: Final = msgspec.json.Decoder().decode
Decode = Callable[[bytes], "tuple[Pod, set[str]]"]
Item = TypeVar("Item")


class PodTemplate:
    """The common parts of all pods whose texts match one template.

    `makes_replicas` is True if these pods are replicas. Replicas differ only in name, uid, version,
    node, addresses, times, volume names, and a node affinity that pins a pod to its own node.
    """

    def __init__(self, texts: JsonTemplate, decode: Decode) -> None:
        """`texts` is the template of the pods' texts; `decode` returns a text's (view, timestamps).

        Raises msgspec.ValidationError if a placeholder is in a field that does not accept every
        string. Also raises this error if the view or the timestamps depend on a string that cannot
        be inserted into them (see `_needs_opaque_strings`).
        """
        self.texts = texts
        self.view, times = decode(texts.marked)
        view_places = self._places = places_in(self.view)
        self.view_of: Callable[[Sequence[str]], Pod] = substitution(self.view, view_places)
        paths = dict(_paths_in(view_places))
        self.makes_replicas = {*_OWN_FIELDS, _PINNED_TO}.issuperset(paths.values())
        self._pins = [number for number, path in paths.items() if path == _PINNED_TO]
        self._node = self.number_at(("spec", "node_name"))
        places = [(one, places_in(one)) for one in times]
        self._times = [place for _, place in places if isinstance(place, int)]
        self._fixed_time = max((one for one, place in places if place is None), default=None)
        self._value_of: Callable[[Sequence[str]], Json] | None = None
        if texts.opaque and self._needs_opaque_strings({*_numbers_in(view_places), *self._times}):
            raise msgspec.ValidationError

    def _needs_opaque_strings(self, numbers: set[int]) -> bool:
        """Return whether a pod's view or timestamps need a placeholder that cannot be replaced.

        In a copy of the sample pod, a placeholder that is the key of a map cannot be replaced. Nor
        can a placeholder whose JSON text differs from its value (`JsonTemplate.opaque`). `numbers`
        are the numbers of the placeholders in the view and in the timestamps.
        """
        if numbers & self.texts.opaque or _has_marked_key(_decode_json(self.texts.marked)):
            return True
        without = self.view_of([""] * (max(numbers, default=0) + 1))
        return has_marks(msgspec.json.encode(without))  # True if a marker is the key of a map

    def makes_replicas_of(self, strings: Sequence[Sequence[str] | str]) -> bool:
        """Return whether the pods with `strings` in the placeholders are replicas.

        `strings` contains one item for each placeholder: the string of a single pod, or a column
        with the strings of several pods. Replicas differ only in the fields that the docstring of
        the class lists. A pod with a node affinity for one node must also be on this node.
        """
        if not self.makes_replicas or not self._pins:
            return self.makes_replicas
        node = None if self._node is None else strings[self._node]
        return all(strings[number] == node for number in self._pins)

    def with_strings(self, strings: Sequence[str]) -> tuple[Pod, set[str]]:
        """Return (view, timestamps) of the pod with `strings` in the placeholders of the template.

        The timestamps are the timestamps in `strings`, and the newest of the timestamps that all
        pods of the template share.
        """
        times = {strings[number] for number in self._times}
        if self._fixed_time is not None:
            times.add(self._fixed_time)
        return self.view_of(strings), times

    def times_in(self, texts: TemplateRows) -> list[set[str]]:
        """Return the timestamps of the pods whose texts are `texts`, as a list of sets.

        For each placeholder for a timestamp, the list has a set with the pods' values of this
        placeholder. Timestamps outside the placeholders are equal in all pods. If there are
        timestamps outside the placeholders, the list begins with a further set, which contains only
        the newest of them.
        """
        fixed = [] if self._fixed_time is None else [{self._fixed_time}]
        return [*fixed, *({*texts.columns[number]} for number in self._times)]

    def number_at(self, path: Sequence[str | int]) -> int | None:
        """Return the number of the placeholder for the field `path` of the typed object (the view).

        Returns None if the field has the same value in all pods.
        """
        found: Any = self._places
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return found if isinstance(found, int) else None

    def value_of(self, text: Text) -> Json | None:
        """Return the object with the JSON text `text` as a JSON value.

        Returns None if the value cannot be copied from the template, so that the caller must decode
        `text` itself.
        """
        strings = None if self.texts.opaque else self._strings(text)
        if strings is None:
            return None
        if self._value_of is None:
            try:
                value = value_of_text(POD, self.texts.marked)
            except QuantityError:  # a placeholder is part of a sum of quantities
                return None
            self._value_of = substitution(value, places_in(value))
        return self._value_of(strings)

    def replica_strings(self, text: Text) -> Sequence[str] | None:
        """Return the strings that the pod with the text `text` has in the placeholders.

        Returns None if `text` does not match the template, or if the pod is not a replica.
        """
        strings = self._strings(text)
        return strings if strings is not None and self.makes_replicas_of(strings) else None

    def _strings(self, text: Text) -> Sequence[str] | None:
        """Return the strings in the placeholders of `text`; None if `text` does not match."""
        if isinstance(text, TemplateText) and text.template is self.texts:
            return text.strings
        return self.texts.strings(bytes(text))


class _Workload(msgspec.Struct):
    """The templates of the pods of one workload; the last used template comes first."""

    seen: int = 0
    attempts: int = 0
    latest: Text | None = None  # the text of the last decoded pod
    templates: list[PodTemplate] = []


class PodTexts:
    """The templates of the pods of one dump."""

    def __init__(self, decode: Decode) -> None:
        """`decode` is a function that returns (view, timestamps) of a pod's JSON text."""
        self._decode = decode
        self._workloads: dict[bytes, _Workload] = {}
        # Templates that were learned or that the snapshot contains; None for unusable templates.
        self._of_texts: dict[JsonTemplate, PodTemplate | None] = {}

    def find(self, text: bytes) -> tuple[PodTemplate, Sequence[str]] | None:
        """Return (template that `text` matches, strings that replace its placeholders in `text`).

        `text` is the text of a pod. Returns None if `text` matches no template. Pods of one
        template share parts of their views, so the views must not be mutated.
        """
        workload = self._workloads.get(_workload_name(text)) if self._workloads else None
        if workload is None:
            return None
        for index, template in enumerate(workload.templates):
            strings = template.texts.strings(text)
            if strings is not None:
                if index:
                    workload.templates.insert(0, workload.templates.pop(index))
                return template, strings
        return None

    def with_rows(self, items: Iterable[Item]) -> Iterator[Item | TemplateRows]:
        """Yield `items`, but yield neighbouring pods of one template together as TemplateRows.

        Only pods whose template has `makes_replicas` are combined. If the caller learns a template
        from a yielded item, the template applies from the next item on.
        """
        template: PodTemplate | None = None
        rows: list[Sequence[str]] = []
        for item in items:
            if not self._workloads:  # no template is learned yet, so nothing needs the text
                yield item
                continue
            text = memoryview(item) if isinstance(item, _WITH_TEXT) else _NO_TEXT
            if template is not None:
                strings = template.texts.strings(text)
                if strings is not None and len(rows) < _ROWS_MAX:
                    rows.append(strings)
                    continue
                yield TemplateRows.of(template.texts, rows)
                template = None
            found = self.find(bytes(text))
            if found is not None and found[0].makes_replicas:
                template, rows = found[0], [found[1]]
            else:
                yield item
        if template is not None:
            yield TemplateRows.of(template.texts, rows)

    def template_of(self, texts: JsonTemplate) -> PodTemplate | None:
        """Return the PodTemplate of `texts`; None if it was not made yet, or cannot be made."""
        return self._of_texts.get(texts)

    def learn(self, text: Text) -> None:
        """Record `text`, from which a pod in stored form (`StoredForm`) was decoded."""
        if isinstance(text, TemplateText):
            self.learn_stated(text.template)
            return
        data = bytes(text)
        name = _workload_name(data)
        if not name:
            return
        workload = self._workloads.setdefault(name, _Workload())
        workload.seen += 1
        if workload.seen >= _DECODED_FIRST and workload.attempts < _ATTEMPTS_MAX:
            workload.attempts += 1
            self._learn(workload, data)
        workload.latest = text

    def learn_stated(self, texts: JsonTemplate) -> PodTemplate | None:
        """Return the PodTemplate made from `texts`, a template that the snapshot file contains.

        Returns None if `texts` is not usable. Raises msgspec.DecodeError if the sample text of
        `texts` is not JSON.
        """
        if texts not in self._of_texts:
            self._of_texts[texts] = None
            if not has_marks(texts.sample):
                with suppress(msgspec.ValidationError):
                    self._of_texts[texts] = PodTemplate(texts, self._decode)
        return self._of_texts[texts]

    def forget(self, texts: JsonTemplate) -> None:
        """Remove the template for `texts`, because one of its pods has an unusual form.

        The pod is not in the form that an API server stores (`StoredForm`).
        """
        del self._of_texts[texts]

    def _learn(self, workload: _Workload, text: bytes) -> None:
        """Extend a template of `workload` so that it matches `text`, or make a new template.

        The strings in which `text` differs from the template become placeholders. If no template
        can be extended in this way, a new template is made from `text` and an earlier text. The
        extended or new template comes first in `workload`.
        """
        pieces, templates = pieces_of(text), workload.templates
        for known in templates:
            extended = known.texts.extended(pieces)
            if extended is not None:
                templates.remove(known)
                self._add(workload, extended)
                return
        if workload.latest is None or len(templates) == _TEMPLATES_MAX:
            return
        made = JsonTemplate.between(pieces_of(bytes(workload.latest)), pieces)
        if made is not None:
            self._add(workload, made)

    def _add(self, workload: _Workload, texts: JsonTemplate) -> None:
        try:
            template = PodTemplate(texts, self._decode)
            workload.templates.insert(0, template)
            self._of_texts[texts] = template
        except msgspec.ValidationError:  # a placeholder is the kind, or a number that varies
            workload.attempts = _ATTEMPTS_MAX


def _has_marked_key(value: object, path: tuple[str, ...] = ()) -> bool:
    """Return whether a key in `value`, outside the managedFields, is a placeholder.

    A placeholder stands for a text that differs between the pods of a template. If the text is a
    key, it may be the name of a Pod field in some pods. The typed views of these pods then differ
    in more than the values of strings.
    """
    if isinstance(value, list):
        return any(_has_marked_key(item, path) for item in value)
    if not isinstance(value, dict) or path == ("metadata", "managedFields"):
        return False
    return any(
        has_marks(key.encode()) or _has_marked_key(item, (*path, key))
        for key, item in value.items()
    )


def _paths_in(
    places: Places | None, path: tuple[str, ...] = ()
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (number, path) of each placeholder in `places`; a path omits the indices of lists."""
    if isinstance(places, int):
        yield places, path
        return
    for key, below in () if places is None else places.items():
        yield from _paths_in(below, path if isinstance(key, int) else (*path, key))


def _numbers_in(places: Places | None) -> Iterator[int]:
    """Yield the numbers of the placeholders in `places`."""
    if isinstance(places, int):
        yield places
        return
    for below in () if places is None else places.values():
        yield from _numbers_in(below)


def _workload_name(text: bytes) -> bytes:
    """Return the generateName in the text of a pod, or else the uid of its owner, or else b"".

    The text is not parsed: the first `generateName` in its first _HEAD_BYTES bytes counts, wherever
    it stands. A wrong result does no harm, because it only selects the pods to compare.
    """
    found = text.find(_NAME_KEY, 0, _HEAD_BYTES)
    if found >= 0:
        return _string_after(text, found + len(_NAME_KEY))
    owners = text.find(_OWNERS_KEY, 0, _HEAD_BYTES)
    uid = text.find(_UID_KEY, owners, _HEAD_BYTES) if owners >= 0 else -1
    return _string_after(text, uid + len(_UID_KEY)) if uid >= 0 else b""


def _string_after(text: bytes, position: int) -> bytes:
    """Return the content of the first string in `text` from `position` on."""
    begin = text.find(b'"', position) + 1
    return text[begin : text.find(b'"', begin)]
