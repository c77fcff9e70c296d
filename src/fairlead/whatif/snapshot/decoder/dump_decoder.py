"""DumpDecoder: decodes the texts of dumped objects directly into typed views.

Decoding texts to JSON values, and converting these values to views, would take ten times as long.
Direct decoding works for objects of the common kinds if they are in the form that an API server
stores (`StoredForm`). Other objects are decoded as JSON. Most pods are not decoded at all, because
they match the template of another pod's text (`PodTexts`).

The views of pods and workloads lack timestamps of the status. The status is therefore decoded a
second time, to find the newest timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec
import numpy as np

from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Deployment,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ReplicaSet,
    StatefulSet,
    WorkloadSpec,
)
from fairlead.api.reported_status import (
    DaemonSetStatus,
    DeploymentStatus,
    ReplicaSetStatus,
    StatefulSetStatus,
)
from fairlead.api.text.json_template import TemplateRows, TemplateText
from fairlead.api.text.nesting import DEPTH_MAX, is_text_too_deep
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from fairlead.apiserver.registry.dump.object import DumpedObject, Text
from fairlead.apiserver.registry.dump.replicas import DumpedReplicas
from fairlead.apiserver.registry.dump.stored_form import StoredForm
from fairlead.apiserver.validation.apps.workload import Replicated
from fairlead.whatif.snapshot.decoder.newest_timestamp import (
    NewestTimestamp,
    times_of,
    times_of_node,
)
from fairlead.whatif.snapshot.decoder.pod_texts import Item, PodTemplate, PodTexts
from fairlead.whatif.snapshot.decoder.template_specs import (
    TemplateSpec,
    TemplateSpecs,
    with_images,
)
from fairlead.worlds.fairlead_annotation import FAIRLEAD_PREFIX


class _Item(msgspec.Struct, tag_field="kind", rename="camel", gc=False):
    """An item of a listing."""

    metadata: ObjectMeta


class _Node(_Item, tag="Node", rename="camel", gc=False):
    api_version: Literal["v1"]
    spec: NodeSpec
    status: NodeStatus


class _Pod(_Item, tag="Pod", rename="camel", gc=False):
    """A pod; its status is decoded later."""

    api_version: Literal["v1"]
    spec: PodSpec
    status: msgspec.Raw


class _Template(msgspec.Struct, gc=False):
    spec: msgspec.Raw


class _WorkloadOutline(msgspec.Struct, gc=False):
    template: _Template


class _Workload(_Item, rename="camel", gc=False):
    """A workload; its spec and its status are decoded later."""

    api_version: Literal["apps/v1"]
    spec: _WorkloadOutline
    status: msgspec.Raw


class _Deployment(_Workload, tag="Deployment", gc=False):
    pass


class _ReplicaSet(_Workload, tag="ReplicaSet", gc=False):
    pass


class _StatefulSet(_Workload, tag="StatefulSet", gc=False):
    pass


class _DaemonSet(_Workload, tag="DaemonSet", gc=False):
    pass


class _OfWorkload(msgspec.Struct, gc=False):
    spec: WorkloadSpec


_WorkloadView = type[Deployment] | type[ReplicaSet] | type[StatefulSet] | type[DaemonSet]
_WORKLOADS: Final[
    dict[type[_Workload], tuple[Kind, _WorkloadView, Callable[[msgspec.Raw], Any]]]
] = {
    _Deployment: (DEPLOYMENT, Deployment, msgspec.json.Decoder(DeploymentStatus).decode),
    _ReplicaSet: (REPLICA_SET, ReplicaSet, msgspec.json.Decoder(ReplicaSetStatus).decode),
    _StatefulSet: (STATEFUL_SET, StatefulSet, msgspec.json.Decoder(StatefulSetStatus).decode),
    _DaemonSet: (DAEMON_SET, DaemonSet, msgspec.json.Decoder(DaemonSetStatus).decode),
}

# In a workload, the API server stores these fields even if they are empty, because they are
# pointers or lack omitempty in upstream's types. It leaves out other empty fields.
_STORED_EMPTY: Final = frozenset(
    b"allowPrivilegeEscalation automountServiceAccountToken availableReplicas collisionCount"
    b" currentNumberScheduled desiredNumberScheduled emptyDir enableServiceLinks"
    b" fullyLabeledReplicas maxSurge maxUnavailable numberMisscheduled numberReady optional"
    b" partition privileged readOnlyRootFilesystem readyReplicas replicas resources runAsGroup"
    b" runAsNonRoot runAsUser securityContext".split()
)
# The comma is part of it, so that the rest is JSON.
_NULL_TIME: Final = re.compile(rb'"creationTimestamp"\s*:\s*null\s*,')
# A null in an object or a list. In a string, such as kubectl's last-applied-configuration, a
# backslash precedes the quote of the key.
_NULL: Final = re.compile(rb'(?:(?<!\\)|\\\\)"\s*:\s*null|[\[,]\s*null')
_EMPTY_VALUE: Final = re.compile(rb':\s*(?:\{\s*\}|\[\s*\]|""|false|0\s*[,}])')
_decode_item: Final = msgspec.json.Decoder(
    _Pod | _Node | _Deployment | _ReplicaSet | _StatefulSet | _DaemonSet
).decode
_decode_spec: Final = msgspec.json.Decoder(_OfWorkload).decode
_encode: Final = msgspec.msgpack.Encoder().encode
# Replaces the text of a known spec, which need not be decoded again.
_KNOWN_SPEC: Final = b'{"known": true}'
_SEARCHED_BYTES: Final = 64
_decode_pod_status: Final = msgspec.json.Decoder(PodStatus).decode


class DumpDecoder:
    """Decodes the objects of one dump; what it learns from one object speeds up the next."""

    def __init__(self) -> None:
        self._form = StoredForm()
        self._newest = NewestTimestamp()
        self._pods = PodTexts(_decode_pod)
        self._templates = TemplateSpecs()

    def decode(self, text: Text) -> tuple[DumpedObject, str] | None:
        """Return (object, its newest timestamp); None if `text` must be decoded as JSON.

        Raises msgspec.DecodeError for a text that is not JSON.
        """
        try:
            if isinstance(text, TemplateText):
                return self._like_another_pod(text, b"") or self._decoded(text, bytes(text))
            data = bytes(text)
            return self._like_another_pod(text, data) or self._decoded(text, data)
        except (
            msgspec.ValidationError,
            OverflowError,
        ):  # the object is not in stored form, or contains a long integer
            return None

    def with_rows(self, items: Iterable[Item]) -> Iterator[Item | TemplateRows]:
        """Yield `items`; adjacent pods that match one template are combined for `decode_rows`.

        The caller must decode each item before it takes the next one. Templates are learned from
        the decoded pods.
        """
        return self._pods.with_rows(items)

    def decode_rows(self, texts: TemplateRows) -> tuple[DumpedReplicas, str] | None:
        """Return (pods, their newest timestamp) for `texts`, which all match one template.

        Returns None for a single pod, for an unusable template, or if a check of the pods fails.
        The caller must then decode each text. Raises msgspec.DecodeError for a text that is not
        JSON.
        """
        if len(texts) == 1:
            return None
        template = self._pods.template_of(texts.template) or self._learned(texts)
        if template is None or not template.makes_replicas_of(texts.columns):
            return None
        found = DumpedReplicas(template, texts)
        newest = [self._newest.of_times(times) for times in template.times_in(texts)]
        if "" in newest or not self._form.has_replicas(found):
            return None
        return found, max(newest)

    def _learned(self, texts: TemplateRows) -> PodTemplate | None:
        """Learn the template of `texts`, and return it.

        Returns None if the template is not usable, or if the first pod is not in the form that an
        API server stores (`StoredForm`).
        """
        template = self._pods.learn_stated(texts.template)
        if template is None:
            return None
        first = template.view_of(texts[0].strings)
        with suppress(OverflowError):  # the pod contains a long integer
            if not _has_own_annotations(first) and self._form.has(POD, first):
                return template
        self._pods.forget(texts.template)
        return None

    def _like_another_pod(self, text: Text, data: bytes) -> tuple[DumpedObject, str] | None:
        """Return (object, its newest timestamp) for the `text` of a pod that matches a template.

        `data` contains the bytes of `text`. `data` is ignored if `text` is a TemplateText. Returns
        None if `text` must be decoded without a template.
        """
        template: PodTemplate | None
        strings: Sequence[str]
        if isinstance(text, TemplateText):
            template, strings = self._pods.template_of(text.template), text.strings
        else:
            template, strings = self._pods.find(data) or (None, ())
        if template is None:
            return None
        pod, times = template.with_strings(strings)
        is_stored = template.makes_replicas_of(strings) and self._form.has_replica(pod)
        if not is_stored and not self._form.has(POD, pod, template.view):
            return None
        if isinstance(text, bytes):  # bytes take memory; a part of a mapped file does not
            text = TemplateText(template.texts, strings)
        newest = self._newest.of_times(times)
        return (DumpedObject(POD, pod, text, template), newest) if newest else None

    def _decoded(self, text: Text, data: bytes) -> tuple[DumpedObject, str] | None:
        if _has_many_containers(data) and is_text_too_deep(data):
            return None
        item = _decode_item(data)
        if isinstance(item, _Node):
            node = Node(metadata=item.metadata, spec=item.spec, status=item.status)
            found = self._checked(DumpedObject(NODE, node, text))
            times = times_of_node(node)
        else:
            found = (
                self._pod(item, text)
                if isinstance(item, _Pod)
                else self._workload(item, text, data)
            )
            times = times_of(item.metadata.creation_timestamp, item.status)
        newest = found and self._newest.of_times(times)
        if not found or not newest:
            return None
        if found.kind is POD:
            self._pods.learn(text)
        return found, newest

    def _checked(self, found: DumpedObject, like: Replicated | None = None) -> DumpedObject | None:
        """Return `found` if it is certainly in stored form (`StoredForm.has`), otherwise None."""
        if _has_own_annotations(found.view) or not self._form.has(found.kind, found.view, like):
            return None
        return found

    def _pod(self, item: _Pod, text: Text) -> DumpedObject | None:
        status = _decode_pod_status(item.status)
        pod = Pod(metadata=item.metadata, spec=item.spec, status=status)
        return self._checked(DumpedObject(POD, pod, text))

    def _workload(
        self, item: _Deployment | _ReplicaSet | _StatefulSet | _DaemonSet, text: Text, data: bytes
    ) -> DumpedObject | None:
        """Return the DumpedObject of the workload `item`, whose JSON text is `text`.

        `data` contains the bytes of `text`. Returns None if it is not certain that the workload is
        in the form that an API server stores (`StoredForm`).
        """
        spec_text = bytes(item.spec.template.spec)
        described = TemplateSpec.of(spec_text)
        like = self._templates.find(described)
        if like is not None:
            data = _replaced(data, spec_text, _KNOWN_SPEC)
        # The view contains the template as JSON, in which annotations may be null. A template with
        # an empty field would never equal a template that the API server has stored.
        data = _without_null_times(data)
        if _has_null(data) or _has_unstored_field(data):
            return None
        spec = _decode_spec(data).spec
        kind, view, decode_status = _WORKLOADS[type(item)]
        workload = view(metadata=item.metadata, spec=spec, status=decode_status(item.status))
        _encode(workload)  # rejects integers that are too long to be stored
        if like is not None:
            if spec.template.get("spec") != {"known": True}:
                return None  # see `_replaced`
            spec.template["spec"] = with_images(like.spec.template["spec"], described.images)
        found = self._checked(DumpedObject(kind, workload, text), like)
        if found is not None and like is None:
            self._templates.learn(described, workload)
        return found


def _has_many_containers(text: bytes) -> bool:
    """Return whether more than DEPTH_MAX brackets in the JSON `text` open an object or a list.

    Only such a text can be nested deeper than DEPTH_MAX. Few objects have so many brackets. NumPy
    counts the brackets in a third of the time that `is_text_too_deep` takes.
    """
    # The codes of `[` and `{` differ only in the bit 0x20.
    opening = (np.frombuffer(text, np.uint8) | 0x20) == ord("{")
    return int(np.count_nonzero(opening)) > DEPTH_MAX


def _replaced(text: bytes, old: bytes, new: bytes) -> bytes:
    """Return `text` with `new` in place of `old`; return `text` if it does not contain `old`.

    Only the place where the first bytes of `old` first occur in `text` is examined. If `old` is not
    at this place, `text` is returned, even if `old` occurs later.
    """
    begin = text.find(old[:_SEARCHED_BYTES])  # a search for all of `old` takes ten times as long
    return text[:begin] + new + text[begin + len(old) :] if text.startswith(old, begin) else text


def _without_null_times(text: bytes) -> bytes:
    """Return `text` without the creationTimestamps that are null.

    API servers before Kubernetes 1.34 stored `creationTimestamp: null` in the metadata of each pod
    template.
    """
    return _NULL_TIME.sub(b"", text) if b"null" in text else text


def _has_null(text: bytes) -> bool:
    """Return whether `text` contains a null.

    The result can also be True if `null` occurs only within strings.
    """
    return b"null" in text and _NULL.search(text) is not None


def _has_unstored_field(text: bytes) -> bool:
    """Return whether the workload `text` has an empty field, which the API server would not store.

    Such a workload must be decoded as JSON.
    """
    # Few fields are empty, so a search for the values first is quicker than one for the names.
    for value in _EMPTY_VALUE.finditer(text):
        end = text.rfind(b'"', 0, value.start())
        name = text[text.rfind(b'"', 0, end) + 1 : end]
        if name.isalpha() and name not in _STORED_EMPTY:
            return True
    return False


def _decode_pod(text: bytes) -> tuple[Pod, set[str]]:
    """Return (pod, its timestamps). Raises msgspec.ValidationError."""
    item = _decode_item(text)
    if not isinstance(item, _Pod):
        raise msgspec.ValidationError
    pod = Pod(metadata=item.metadata, spec=item.spec, status=_decode_pod_status(item.status))
    return pod, times_of(item.metadata.creation_timestamp, item.status)


def _has_own_annotations(view: ApiObject) -> bool:
    """Return whether `view` or its pod template has annotations of Fairlead.

    Such an object must be decoded as JSON, because these annotations are checked only in JSON.
    """
    if any(key.startswith(FAIRLEAD_PREFIX) for key in view.metadata.annotations):
        return True
    if not isinstance(view, Deployment | ReplicaSet | StatefulSet | DaemonSet):
        return False
    metadata = view.spec.template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else metadata
    return FAIRLEAD_PREFIX in str(annotations)
