"""Manifest: one Kubernetes object from a user's file, in the form that the API server stores.

Lists are expanded, nulls and managedFields removed, old apiVersions replaced and missing namespaces
filled in. Unusable objects are reported here with file and name. Kinds unknown to Fairlead are
kept. Most objects of a dump need no such change and remain texts with typed views (`DumpDecoder`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, overload

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import UNNAMED, VIEWS, DecodeError, View, decode, decode_as, display_name
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Deployment,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    ReplicaSet,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of
from fairlead.api.text.json_template import TemplateRows
from fairlead.api.text.name_list import listed
from fairlead.api.text.nesting import is_too_deep
from fairlead.apiserver.error import Cause
from fairlead.apiserver.kind import (
    CRON_JOB,
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    HORIZONTAL_POD_AUTOSCALER,
    KINDS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    Kind,
    find_kind,
    kind_of,
    reference_kind,
)
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.registry.dump.replicas import DumpedReplicas
from fairlead.apiserver.registry.dump.snapshot_load import Content
from fairlead.apiserver.validation.core.node import check_scheduled_node
from fairlead.apiserver.validation.core.pod.spec import check_scheduled_spec, template_view
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.input.content import OnRead, read_silently
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError, one_line
from fairlead.whatif.input.listing import DecodedItem, Listing
from fairlead.whatif.input.pod_columns import KIND as SNAPSHOT
from fairlead.whatif.input.pod_columns import ColumnError, ItemText, objects_of
from fairlead.whatif.snapshot.decoder.dump_decoder import DumpDecoder
from fairlead.whatif.snapshot.decoder.newest_timestamp import timestamps
from fairlead.whatif.snapshot.decoder.simulator_export import exported_objects, is_simulator_export
from fairlead.whatif.snapshot.served_kind import full_kind, is_custom, is_served, nearest_kind
from fairlead.worlds.fairlead_annotation import (
    FIELD,
    node_annotation_problem,
    pod_annotation_problem,
    unknown_annotation_notes,
)

DEFAULT_NAMESPACE: Final = "default"

_API_VERSION: Final = re.compile(r"(?:[^/\s]*/)?[^/\s]+")
_INTEGER_BOUND: Final = 2**63
_REPORTED_EVERY: Final = 512  # number of objects
_RELEASED_EVERY: Final = 8192  # number of objects
_FORMER_API_VERSIONS: Final = {
    "apps/v1beta1": "apps/v1",
    "apps/v1beta2": "apps/v1",
    "extensions/v1beta1": "apps/v1",
    "batch/v1beta1": "batch/v1",
    "node.k8s.io/v1beta1": "node.k8s.io/v1",
    "policy/v1beta1": "policy/v1",
    "scheduling.k8s.io/v1alpha1": "scheduling.k8s.io/v1",
    "scheduling.k8s.io/v1beta1": "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1": "storage.k8s.io/v1",
    "resource.k8s.io/v1alpha3": "resource.k8s.io/v1beta2",
}
_VERSIONS: Final = {(version.rpartition("/")[0], kind): version for version, kind in VIEWS}
_AUTOSCALING_V1: Final = "autoscaling/v1"
_AUTOSCALING_BETA: Final = "autoscaling/v2beta"
_AUTOSCALING_V2BETA2: Final = "autoscaling/v2beta2"
_DEVICE_BETAS: Final = ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2")
_OF_DEVICES: Final = frozenset(
    {RESOURCE_CLAIM.kind, RESOURCE_CLAIM_TEMPLATE.kind, DEVICE_CLASS.kind, RESOURCE_SLICE.kind}
)
_POLICY_V1BETA1: Final = "policy/v1beta1"
# The names are those of kustomize/api/konfig/general.go.
_LIST_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "items"})
_KUSTOMIZE: Final = "kustomize.config.k8s.io/"
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHART: Final = "Chart.yaml"
# Kinds of configuration files of programs. The API server does not serve these kinds.
_BOTH: Final = "for a what-if that compares both configurations"
_CONFIGURATIONS: Final = {
    "KubeSchedulerConfiguration": (
        f"kube-scheduler, not an object; use --config, or --new-config {_BOTH}"
    ),
    "DeschedulerPolicy": "the descheduler, not an object; use fairlead whatif --descheduler",
}
_BATCH_CONFIGURATION: Final = (
    f"a batch scheduler, not an object; use --batch-config, or --new-batch-config {_BOTH}"
)
_RENAMED: Final = frozenset(
    {
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "DaemonSet",
        "CronJob",
        "RuntimeClass",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "PodDisruptionBudget",
        "PriorityClass",
        "DeviceTaintRule",
    }
)


class Manifest(Struct, frozen=True):
    """An object and its file.

    `content` is JSON without nulls, or a DumpedObject (the text of the object and its view).
    `newest` is the newest timestamp if `content` is a DumpedObject, else "". If `content` is JSON,
    `managed` contains the managedFields as they are in the file; otherwise, `managed` is ().
    """

    source: str
    kind: Kind
    ref: ObjectRef
    content: Json | DumpedObject
    newest: str = ""
    managed: tuple[Json, ...] = ()

    @property
    def value(self) -> Json:
        """The object as JSON without nulls; a text is decoded at each call."""
        content = self.content
        return content if isinstance(content, dict) else content.value

    @property
    def text(self) -> bytes:
        """The object as compact JSON, with everything that the file contains except nulls."""
        content = self.content
        if not isinstance(content, dict):
            return msgspec.json.format(bytes(content.text), indent=-1)
        if not self.managed:
            return msgspec.json.encode(content)
        metadata = {**content["metadata"], "managedFields": self.managed}
        return msgspec.json.encode({**content, "metadata": metadata})

    @property
    def view(self) -> ApiObject | None:
        """The typed view of an object in stored form (`StoredForm`); None for other objects."""
        content = self.content
        return None if isinstance(content, dict) else content.view

    @property
    def metadata(self) -> ObjectMeta:
        """The typed view of the metadata."""
        if self.view is not None:
            return self.view.metadata
        return decode_as(ObjectMeta, self.value["metadata"])

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference of the object's controller; None without a controller."""
        return controller_of(self.metadata)

    def is_controlled_by(self, owner: Manifest) -> bool:
        """Return whether `owner` is the object's controller. Uids are not compared."""
        found = self.controller
        if found is None or self.ref.namespace != owner.ref.namespace:
            return False
        return owner.is_named_by(found.kind, found.api_version, found.name)

    def is_named_by(self, kind: str, api_version: str, name: str) -> bool:
        """Return whether a reference with these fields refers to the object.

        The reference is assumed to be in the object's namespace. The version of the API is not
        compared.
        """
        return name == self.ref.name and full_kind(kind, api_version) == self.full_kind

    def is_replica_of(self, other: Manifest) -> bool:
        """Return True if this object and `other` are certainly replicas of each other.

        Replicas are pods of one workload. Replicas differ only in name, uid, version, node,
        addresses, times, volume names, and a node affinity that pins a pod to its own node.
        """
        mine, theirs = self.content, other.content
        if isinstance(mine, dict) or isinstance(theirs, dict):
            return False
        template = mine.template
        return template is not None and template is theirs.template and template.makes_replicas

    @property
    def pod(self) -> Pod:
        """The typed view of a Pod. Raises InputError if the object is not a valid Pod."""
        return self.as_view(Pod)

    @property
    def node(self) -> Node:
        """The typed view of a Node. Raises InputError if the object is not a valid Node."""
        if isinstance(self.view, Node):
            return self.view  # checked when it was decoded, see StoredForm
        node = self.as_view(Node)
        for cause in check_scheduled_node(node):
            raise self.refuse(cause.message, field=cause.field)
        return node

    @property
    def pod_template(self) -> Any:
        """The pod template of a workload as JSON; None if the object has no pod template."""
        if isinstance(self.view, Deployment | ReplicaSet | StatefulSet | DaemonSet):
            return self.view.spec.template  # the template is as in the file, see DumpDecoder
        found: Any = self.value
        for name in self.pod_template_path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    @property
    def pod_template_path(self) -> str:
        """The path of the pod template in a workload."""
        return pod_template_path(self.kind)

    @property
    def labels(self) -> dict[str, str]:
        """The labels."""
        return self.metadata.labels

    @property
    def managed_fields(self) -> tuple[Json, ...]:
        """The managedFields; () if the dump was taken without --show-managed-fields."""
        content = self.content
        return self.managed if isinstance(content, dict) else content.managed_fields

    @property
    def timestamps(self) -> Iterable[str]:
        """The timestamps of past changes of the object; only the newest one if `newest` is set."""
        if self.newest:
            return (self.newest,)
        return dict.fromkeys(timestamps(self.kind, self.value))

    @property
    def full_kind(self) -> str:
        """The kind, with its group if it is a custom resource with the name of a built-in kind."""
        return full_kind(self.kind.kind, self.kind.api_version)

    @property
    def title(self) -> str:
        """The name of the object in messages: `Pod store/web-1`.

        The group of a custom resource follows its kind if a known kind has the same name.
        """
        known = find_kind(self.kind.kind) if is_custom(self.kind.api_version) else None
        is_taken = known is not None and known.resource != self.kind.resource
        return f"{self.ref.kind if is_taken else self.kind.kind} {self.ref.key}"

    def without_uid(self) -> Manifest:
        """Return the object without its uid, because the API server gives a new object another uid.

        Otherwise, commands that name the object would require the uid from the file.
        """
        if not self.ref.uid:
            return self
        value = self.value
        metadata = {name: part for name, part in value["metadata"].items() if name != "uid"}
        ref = ObjectRef(self.ref.kind, self.ref.namespace, self.ref.name)
        return replace(self, ref=ref, content={**value, "metadata": metadata})

    @property
    def identity(self) -> tuple[str, str, str]:
        """The triple (resource, namespace, name), which is unique."""
        return (self.kind.resource, self.ref.namespace, self.ref.name)

    def as_view(self, kind: type[View]) -> View:
        """Return the typed view `kind` of the object.

        Raises InputError for a field of the wrong type.
        """
        view = self.view
        if isinstance(view, kind):
            return view
        try:
            return decode_as(kind, self.value)
        except DecodeError as cause:
            raise InputError.of_decode(self.source, cause) from None

    def require_right_types(self) -> None:
        """Raise InputError for a field of the wrong type, or a bad amount in a pod template."""
        try:
            if self.view is None:
                decode(self.value)
        except DecodeError as cause:
            raise InputError.of_decode(self.source, cause) from None
        if not isinstance(self.pod_template, dict):
            return
        path = self.pod_template_path
        pod = template_view(path, self.pod_template)
        causes = (
            (pod,) if isinstance(pod, Cause) else check_scheduled_spec(f"{path}.spec", pod.spec)
        )
        for wrong in causes:
            raise self.refuse(wrong.message, field=wrong.field)

    def refuse(self, problem: str, field: str = "") -> InputError:
        """Return an InputError with `problem` about this object, or about its `field`."""
        return InputError(self.source, problem, object_name=self.title, field=field)


class ReplicaManifests(Struct, frozen=True, dict=True):
    """The objects of replicas that are next to each other in a dump.

    The method `at` makes an object when it is needed. `newest` is the newest timestamp in any of
    the objects.
    """

    source: str
    replicas: DumpedReplicas
    newest: str
    kind: Kind = POD

    def at(self, index: int) -> Manifest:
        """Return the object of the pod with the index `index`."""
        replicas = self.replicas
        ref = ObjectRef("Pod", replicas.namespace, replicas.names[index], replicas.uids[index])
        return Manifest(self.source, POD, ref, replicas.object_at(index), self.newest)

    @cached_property
    def sample(self) -> Manifest:
        """The object of the first pod."""
        return self.at(0)

    def __iter__(self) -> Iterator[Manifest]:
        return map(self.at, range(len(self.replicas)))


class Manifests(Sequence[Manifest]):
    """The objects of a cluster in order, as a sequence that behaves like a tuple.

    Neighbouring replicas are stored as one ReplicaManifests, which `entries_of` returns as one
    entry.
    """

    def __init__(self, entries: Iterable[Manifest | ReplicaManifests]) -> None:
        self.entries = tuple(entries)

    @cached_property
    def _all(self) -> tuple[Manifest, ...]:
        return tuple(
            one
            for entry in self.entries
            for one in (entry if isinstance(entry, ReplicaManifests) else (entry,))
        )

    @cached_property
    def samples(self) -> tuple[Manifest, ...]:
        """The objects without the pods that are replicas of an earlier pod."""
        return without_replicas(self.entries)

    def __len__(self) -> int:
        are_replicas = (one for one in self.entries if isinstance(one, ReplicaManifests))
        return len(self.entries) + sum(len(one.replicas) - 1 for one in are_replicas)

    @overload
    def __getitem__(self, index: int) -> Manifest: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Manifest, ...]: ...

    def __getitem__(self, index: int | slice) -> Manifest | tuple[Manifest, ...]:
        return self._all[index]

    def __iter__(self) -> Iterator[Manifest]:
        """Iterate over all objects; a second iteration yields the same Python objects again."""
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # not hashable, like a list


def without_replicas(entries: Iterable[Manifest | ReplicaManifests]) -> tuple[Manifest, ...]:
    """Return the objects of `entries` without the pods that are replicas of an earlier pod."""
    found: list[Manifest] = []
    known: set[int] = set()  # ids of templates
    for entry in entries:
        manifest = entry.sample if isinstance(entry, ReplicaManifests) else entry
        content = manifest.content
        template = None if isinstance(content, dict) else content.template
        if template is not None and template.makes_replicas:
            if id(template) in known:
                continue
            known.add(id(template))
        found.append(manifest)
    return tuple(found)


def entries_of(manifests: Iterable[Manifest]) -> Iterable[Manifest | ReplicaManifests]:
    """Return all objects in `manifests`; neighbouring replicas are one entry."""
    return manifests.entries if isinstance(manifests, Manifests) else manifests


def contents_of(manifests: Iterable[Manifest]) -> Iterator[Content]:
    """Yield the objects in `manifests` in the form that the store loads."""
    for entry in entries_of(manifests):
        yield entry.replicas if isinstance(entry, ReplicaManifests) else entry.content


def manifests(documents: Iterable[Document], namespace: str = DEFAULT_NAMESPACE) -> list[Manifest]:
    """Return all objects in `documents` as a list; see `manifests_of_cluster`."""
    return list(manifests_of_cluster(documents, namespace))


def manifests_of_cluster(
    documents: Iterable[Document],
    namespace: str = DEFAULT_NAMESPACE,
    on_read: OnRead = read_silently,
    *,
    is_live: bool = False,
) -> Manifests:
    """Return all objects in `documents`; namespaced objects without a namespace get `namespace`.

    `on_read` is called with the progress of reading. Raises InputError for an invalid object, and
    for an object that appears twice. Also raises InputError for a hand-written object with a kind
    that seems to be misspelled. `is_live` is set if the objects were just read from a cluster. Then
    an invalid value in one of Fairlead's annotations is no error, because one user of a cluster
    would block the questions of all others (`invalid_annotations`).
    """
    found = Manifests(
        one for document in documents for one in _manifests(document, namespace, on_read)
    )
    refuse_duplicates(found)
    for manifest in entries_of(found):
        if isinstance(manifest, ReplicaManifests) or manifest.view is not None:
            continue  # the object is of a known kind and has none of Fairlead's annotations
        if not (manifest.ref.uid or is_served(manifest.kind)) and nearest_kind(manifest.kind):
            require_known_kind(manifest)
        if not is_live:
            refuse_invalid_annotations(manifest)
    return found


def refuse_invalid_annotations(manifest: Manifest) -> None:
    """Raise InputError for one of Fairlead's annotations with an invalid value."""
    value = manifest.value
    if manifest.kind is NODE and (problem := node_annotation_problem(value)):
        raise manifest.refuse(problem, field=FIELD)
    if problem := pod_annotation_problem(value):
        raise manifest.refuse(problem)


def invalid_annotations(found: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each invalid value of Fairlead's annotations in `found`.

    Only objects of a live cluster can have such a value. The engine ignores it, as in
    `fairlead up`.
    """
    titles: dict[str, list[str]] = {}
    for one in found:
        if one.view is not None:  # such an object has none of Fairlead's annotations
            continue
        try:
            refuse_invalid_annotations(one)
        except InputError as cause:
            problem = ": ".join(filter(None, (cause.field, cause.problem)))
            titles.setdefault(problem, []).append(one.title)
    for problem, objects in titles.items():
        yield f"{listed(objects, 1)}: {problem}; this value has no effect."


def unknown_annotations(found: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each of Fairlead's annotations in `found` that has no effect."""
    # An object with a view was loaded as it is in the dump. Objects with Fairlead's annotations are
    # never loaded in this way.
    own = ((one.title, one.value) for one in found if one.view is None)
    return unknown_annotation_notes(own)


def manifests_to_apply(
    documents: Iterable[Document], namespace: str = DEFAULT_NAMESPACE
) -> list[tuple[Manifest, Json]]:
    """Return (object, value as in the file) for each object in `documents`.

    The value still contains the nulls of the file.

    Raises InputError for an invalid object, and for a kind that does not exist in its API group.
    """
    whole = [
        one
        for document in documents
        for one in ([document] if document.listing is None else document.parsed())
    ]
    found = manifests(whole, namespace)
    for manifest in found:
        require_known_kind(manifest)
    written = [value for one in whole for _, value in _opened(one.source, one.value)]
    return list(zip(found, written, strict=True))


def require_known_kind(manifest: Manifest) -> None:
    """Raise InputError for a kind that Kubernetes lacks in one of its own API groups."""
    if is_served(manifest.kind):
        return
    near = nearest_kind(manifest.kind)
    # LeaseCandidate and others exist, but are off by default
    hint = f"; did you mean {near}?" if near else " that Kubernetes serves by default"
    problem = f"{manifest.kind.api_version} has no kind {manifest.kind.kind}{hint}"
    raise manifest.refuse(problem, field="kind")


def refuse_duplicates(manifests: Iterable[Manifest]) -> None:
    """Raise InputError if an object appears twice in `manifests`."""
    if _are_distinct(manifests):
        return
    seen: dict[tuple[str, str, str], Manifest] = {}
    for manifest in manifests:
        first = seen.setdefault(manifest.identity, manifest)
        if first is not manifest:
            where = f" (first in {first.source})" if first.source != manifest.source else ""
            raise manifest.refuse(f"appears twice{where}", field="metadata.name")


def refuse_shared_uids(manifests: Iterable[Manifest]) -> None:
    """Raise InputError if two objects of one kind have the same uid, as after copy and paste.

    An owner reference with this uid would refer to both objects. Objects without a uid are
    accepted: they get a uid later.
    """
    if _have_own_uids(manifests):
        return
    seen: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests:
        first = seen.setdefault((manifest.kind.resource, manifest.ref.uid), manifest)
        if first is not manifest and manifest.ref.uid:
            problem = f"is also the uid of {first.title}; remove it or give it another value"
            raise manifest.refuse(problem, field="metadata.uid")


def _have_own_uids(manifests: Iterable[Manifest]) -> bool:
    """Return whether all uids in `manifests` are different within each kind."""
    seen: defaultdict[str, set[str]] = defaultdict(set)  # uids by resource
    count = 0
    for entry in entries_of(manifests):
        if isinstance(entry, ReplicaManifests):
            uids = entry.replicas.uids  # none is empty, see `StoredForm.has_replicas`
            count += len(uids)
            seen[entry.kind.resource].update(uids)
        elif entry.ref.uid:
            count += 1
            seen[entry.kind.resource].add(entry.ref.uid)
    return sum(map(len, seen.values())) == count


def _are_distinct(manifests: Iterable[Manifest]) -> bool:
    """Return whether no object appears twice in `manifests`."""
    # The names by (resource, namespace). A set of all identities would need a tuple for each pod.
    seen: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    count = 0
    for entry in entries_of(manifests):
        if isinstance(entry, ReplicaManifests):
            count += len(entry.replicas)
            seen[entry.kind.resource, entry.replicas.namespace].update(entry.replicas.names)
        else:
            count += 1
            resource, namespace, name = entry.identity
            seen[resource, namespace].add(name)
    return sum(map(len, seen.values())) == count


def _manifests(
    document: Document, namespace: str, on_read: OnRead = read_silently
) -> list[Manifest | ReplicaManifests]:
    source = document.source
    if document.listing is None:
        values = _opened(source, document.value)
        return [
            _manifest_at(source, ": ".join(filter(None, (document.place, place))), value, namespace)
            for place, value in values
        ]
    _refuse_objects_beside_items(source, document.listing.head)
    try:
        return _listed(source, document.listing, namespace, on_read)
    except (msgspec.DecodeError, RecursionError):
        # An item is not a valid value, such as 1e999, or is nested too deeply. The error of the
        # whole document says so.
        return [one for whole in document.parsed() for one in _manifests(whole, namespace)]


def _listed(
    source: str, listing: Listing, namespace: str, on_read: OnRead
) -> list[Manifest | ReplicaManifests]:
    """Return the objects in `listing`.

    Raises msgspec.DecodeError for an item that is not a valid value. Raises RecursionError for an
    item that is nested too deeply for the decoder.
    """
    defaults, decoder = _item_defaults(listing.head), DumpDecoder()
    total = sum(len(one) if isinstance(one, TemplateRows) else 1 for one in listing.items)
    found: list[Manifest | ReplicaManifests] = []
    number = next_report = 0
    next_release = _RELEASED_EVERY
    for texts in decoder.with_rows(listing.items):
        if number >= next_report:
            on_read("objects", number, total)
            next_report = number + _REPORTED_EVERY
        if number >= next_release:
            listing.release(number / total)
            next_release = number + _RELEASED_EVERY
        if isinstance(texts, TemplateRows) and (rows := decoder.decode_rows(texts)) is not None:
            found.append(ReplicaManifests(source, *rows))
            number += len(texts)
            continue
        for text in texts if isinstance(texts, TemplateRows) else (texts,):
            decoded = (
                (text.dumped, text.newest)
                if isinstance(text, DecodedItem)
                else decoder.decode(text)
            )
            if decoded is None:
                found += _decoded_as_json(source, number, text, defaults, namespace)
            else:
                dumped, newest = decoded
                meta = dumped.view.metadata
                kind = reference_kind(dumped.kind)
                ref = ObjectRef(kind, meta.namespace, meta.name, meta.uid)
                found.append(Manifest(source, dumped.kind, ref, dumped, newest))
            number += 1
    return found


def _decoded_as_json(
    source: str, number: int, text: ItemText | DecodedItem, defaults: Json, namespace: str
) -> Iterator[Manifest]:
    """Yield the objects in `text`, the item `number` of a listing; usually there is only one."""
    item = msgspec.json.decode(bytes(text))
    if is_too_deep(item):
        is_object = isinstance(item, dict) and isinstance(item.get("kind"), str)
        title = f"{item['kind']} {display_name(item)}" if is_object else f"items[{number}]"
        raise InputError(source, "is nested too deeply", object_name=title)
    value = {**defaults, **item} if isinstance(item, dict) else item
    for place, one in _opened(source, value, f"items[{number}]"):
        yield _manifest_at(source, place, one, namespace)


def _manifest_at(source: str, place: str, value: Any, namespace: str) -> Manifest:
    """Return the manifest of `value`, the object at `place` in the file `source`.

    A namespaced object without a namespace gets `namespace`. Raises InputError; an error about an
    object without a name contains `place`.
    """
    try:
        return _manifest(source, value, namespace)
    except InputError as cause:
        if place and not cause.object_name:
            raise InputError(source, cause.problem, field=place) from None
        if not place or not cause.object_name.endswith(UNNAMED):
            raise
        name = f"{place}: {cause.object_name}"
        raise InputError(source, cause.problem, object_name=name, field=cause.field) from None


def _opened(source: str, value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (place, object) for the object `value`, or for each object in the list `value`.

    A snapshot and an export of kube-scheduler-simulator count as lists.

    `place` is the path of `value` in the document, such as `items[3]`; "" for the whole document.
    """
    if isinstance(value, list):
        for item in value:
            yield from _opened(source, item, place)
    elif _is_list(value):
        items, field = value["items"], f"{place}.items" if place else "items"
        if items is None:
            items = []  # Go programs write a nil slice as null; kubectl reads it as empty
        if not isinstance(items, list):
            raise InputError(source, f"expected a list, got {type_name(items)}", field=field)
        _refuse_objects_beside_items(source, value, place)
        defaults = _item_defaults(value)
        for number, item in enumerate(items):
            whole = {**defaults, **item} if isinstance(item, dict) else item
            yield from _opened(source, whole, f"{field}[{number}]")
    elif isinstance(value, dict) and value.get("kind") == SNAPSHOT and "pods" in value:
        yield from ((place, item) for item in _objects_of_snapshot(source, value))
    elif is_simulator_export(value):
        yield from ((place, item) for item in exported_objects(value))
    else:
        yield place, value


def _objects_of_snapshot(source: str, value: Json) -> list[Any]:
    try:
        return objects_of(value)
    except ColumnError as cause:
        raise InputError(source, cause.problem, field=cause.field) from None


def _is_list(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("kind", "")).endswith("List")
        and ("items" in value)
    )


def _refuse_objects_beside_items(source: str, value: Json, place: str = "") -> None:
    """Raise InputError if an unknown field of the List `value` is a list of objects.

    The answer would lack these objects. Other unknown fields of a List are ignored, as by kubectl.
    """
    for field, content in value.items():
        if field in _LIST_FIELDS:
            continue
        if isinstance(content, list) and any(map(_is_object, content)):
            problem = f"{value['kind']} has no such field; put its objects into items"
            raise InputError(source, problem, field=f"{place}.{field}" if place else field)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _item_defaults(value: Json) -> Json:
    """Return apiVersion and kind for the items of a typed list (PodList); items may omit both."""
    kind = str(value["kind"]).removesuffix("List").removesuffix(SNAPSHOT)
    return {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}


def _manifest(source: str, value: Any, namespace: str) -> Manifest:
    if not isinstance(value, dict):
        raise InputError(
            source, f"expected an object with apiVersion and kind, got {type_name(value)}"
        )
    if problem := _no_object(source, value):
        raise InputError(source, problem)
    for field in ("kind", "apiVersion"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise InputError(
                source, "is required and must be text", object_name=display_name(value), field=field
            )
    if not _API_VERSION.fullmatch(value["apiVersion"]):
        problem = f"{value['apiVersion']!r} is neither VERSION nor GROUP/VERSION, such as apps/v1"
        title = f"{value['kind']} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="apiVersion")
    clean = _clean(source, value)
    kind = kind_of(clean)
    metadata = clean["metadata"]
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace
    try:
        decode(clean)  # checks the types of the fields
    except DecodeError as cause:
        raise InputError.of_decode(source, cause) from None
    name, uid = metadata["name"], metadata.get("uid", "")
    ref = ObjectRef(reference_kind(kind), metadata.get("namespace", ""), name, uid)
    managed = value["metadata"].get("managedFields")
    kept = tuple(managed) if isinstance(managed, list) else ()
    return Manifest(source, kind, ref, clean, managed=kept)


def _no_object(source: str, value: Json) -> str:
    """Return the likely reason why the map `value` is not an object; "" if no reason is likely.

    The reason is a part of an error message.
    """
    name, version = source.rpartition("/")[2], value.get("apiVersion")
    if str(version).startswith(_KUSTOMIZE) or (name in _KUSTOMIZATIONS and version is None):
        return "is an input of kustomize; use the output of kustomize build instead"
    if "kind" in value:
        of = _CONFIGURATIONS.get(str(value["kind"]))
        return f"is a configuration of {of}" if of else ""
    if value.keys() >= {"actions", "tiers"}:
        return f"is a configuration of {_BATCH_CONFIGURATION}"
    if name == _CHART:
        return "is a file of a Helm chart; use the output of helm template instead"
    if "items" in value:  # kubectl writes the kind of a List after its items
        return "is a list without a kind; the file may be cut off"
    if "apiVersion" not in value and ("cluster" in value or "events" in value):
        return "is a scenario, not a list of objects; use fairlead simulate"
    return ""


def _clean(source: str, value: Json) -> Json:
    """Return the object `value` in the form that the store accepts.

    Raises InputError, for example if the name, the namespace or the uid is invalid.
    """
    kind = value["kind"]
    metadata = value.get("metadata")
    if not isinstance(metadata, dict | None):
        problem = f"expected an object, got {type_name(metadata)}"
        title = f"{kind} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="metadata")
    if not isinstance(metadata, dict) or metadata.get("name") in (None, ""):
        is_generated = isinstance(metadata, dict) and metadata.get("generateName")
        hint = "; kubectl apply refuses generateName" if is_generated else ""
        raise InputError(
            source,
            f"is required{hint}",
            object_name=f"{kind} {display_name(value)}",
            field="metadata.name",
        )
    for field in ("name", "namespace", "uid"):
        if not isinstance(metadata.get(field, ""), str | None):
            # In YAML, the words n, y, no, yes, off and on without quotes are booleans.
            hint = "; put it in quotes" if isinstance(metadata[field], bool | int) else ""
            raise InputError(
                source,
                f"expected text, got {type_name(metadata[field])}{hint}",
                object_name=f"{kind} {display_name(value)}",
                field=f"metadata.{field}",
            )
    clean = _storable(source, f"{kind} {display_name(value)}", value)
    if kind == HORIZONTAL_POD_AUTOSCALER.kind:
        clean = _current_autoscaler(clean)
    elif kind == DEVICE_TAINT_RULE.kind:
        _check_device_selector(source, clean)
    elif clean["apiVersion"] == _POLICY_V1BETA1:
        clean = _current_budget(clean)
    elif clean["apiVersion"] in _DEVICE_BETAS:
        # Imported only when needed, because few dumps have these versions.
        from fairlead.apiserver.conversion.device import new_device_object  # noqa: PLC0415

        clean = new_device_object(clean)
    clean["apiVersion"] = _current_api_version(source, clean)
    return clean


def _check_device_selector(source: str, value: Json) -> None:
    """Raise InputError if a DeviceTaintRule has a selector field that Kubernetes 1.35 removed."""
    spec = value.get("spec")
    selector = spec.get("deviceSelector") if isinstance(spec, dict) else None
    for field in ("deviceClassName", "selectors"):
        if isinstance(selector, dict) and field in selector:
            raise InputError(
                source,
                "is not supported; Kubernetes 1.35 removed it",
                object_name=f"{value['kind']} {display_name(value)}",
                field=f"spec.deviceSelector.{field}",
            )


def _current_autoscaler(value: Json) -> Json:
    """Return the HorizontalPodAutoscaler `value`, converted from v1 or v2beta2 to v2.

    Returns `value` unchanged if it has another version. An object of v1 is also unchanged if its
    spec, status or annotations are not a map.
    """
    if value["apiVersion"] == _AUTOSCALING_V2BETA2:  # v2beta2 has the fields of v2
        return {**value, "apiVersion": HORIZONTAL_POD_AUTOSCALER.api_version}
    notes = value["metadata"].get("annotations", {})
    parts = (value.get("spec", {}), value.get("status", {}), notes)
    if value["apiVersion"] != _AUTOSCALING_V1 or not all(isinstance(one, dict) for one in parts):
        return value
    # Imported only when needed, because few dumps have this version.
    from fairlead.apiserver.conversion.autoscaler import new_autoscaler  # noqa: PLC0415

    return {**new_autoscaler(value), "apiVersion": HORIZONTAL_POD_AUTOSCALER.api_version}


def _current_budget(value: Json) -> Json:
    """Return `value`, a PodDisruptionBudget of v1beta1, without its selector if that is empty.

    An empty selector matches no pod in v1beta1, but every pod in v1. A budget without a selector
    matches no pod in either version.
    """
    # upstream: pkg/apis/policy/v1beta1/zz_generated.conversion.go, pkg/apis/policy/helper.go:
    # NonV1beta1MatchNoneSelector
    spec = value.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(selector, dict) or any(selector.values()):
        return value
    return {**value, "spec": {name: one for name, one in spec.items() if name != "selector"}}


def _current_api_version(source: str, value: Json) -> str:
    """Return the API version in which Fairlead reads the object `value`.

    An object of an unknown kind keeps its version. Raises InputError for a version that is not
    supported.
    """
    version, kind = value["apiVersion"], value["kind"]
    other = find_kind(kind) if version == "v1" else None
    if other is not None and other.api_version != version and kind_of(value) not in KINDS:
        problem = f"v1 has no kind {kind}; {other.api_version} has"
        title = f"{kind} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="apiVersion")
    if kind in _RENAMED:
        version = _FORMER_API_VERSIONS.get(version, version)
    if kind == HORIZONTAL_POD_AUTOSCALER.kind and version.startswith(_AUTOSCALING_BETA):
        return str(version)  # stored, but not interpreted
    known = _VERSIONS.get((version.rpartition("/")[0], kind), version)
    if version == known != "v1" and "/" not in version:  # the core group has only v1
        named = find_kind(kind)
        known = "v1" if named is None else named.api_version
    if version != known:
        problem = f"{version} is not supported; expected {known}"
        title = f"{kind} {display_name(value)}"
        raise InputError(source, problem, object_name=title, field="apiVersion")
    return str(version)


def is_older_version(kind: Kind, version: str) -> bool:
    """Return whether `version` is an older version in which all objects of `kind` can be read.

    The result is False for the kind DeviceTaintRule: older versions have a field that Kubernetes
    1.35 removed, and rules with this field are refused.
    """
    api_version = f"{kind.group}/{version}"
    if kind.kind == HORIZONTAL_POD_AUTOSCALER.kind:
        return api_version in (_AUTOSCALING_V1, _AUTOSCALING_V2BETA2)
    if kind.kind in _OF_DEVICES:
        return api_version in _DEVICE_BETAS
    is_renamed = kind.kind in _RENAMED and kind.kind != DEVICE_TAINT_RULE.kind
    return is_renamed and _FORMER_API_VERSIONS.get(api_version) == kind.api_version


# (parent, field) of the maps whose values are texts; Go decodes null as the text "".
_TEXT_MAPS: Final = frozenset(
    (
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec", "nodeSelector"),
        ("scheduling", "nodeSelector"),
        ("selector", "matchLabels"),
        ("labelSelector", "matchLabels"),
        ("namespaceSelector", "matchLabels"),
    )
)


def _storable(source: str, title: str, value: Json) -> Json:
    """Return `value` without null members and managedFields.

    Raises InputError if `value` cannot be stored.
    """
    metadata = {key: item for key, item in value["metadata"].items() if key != "managedFields"}
    try:
        clean: Json = _without_nulls({**value, "metadata": metadata})
    except RecursionError:
        raise InputError(source, "is nested too deeply", object_name=title) from None
    except OverflowError:
        field, number = next(_long_integers(value, ""))
        problem = f"the integer {one_line(str(number), 40)} does not fit into 64 bits"
        raise InputError(source, problem, object_name=title, field=field) from None
    return clean


def _without_nulls(value: Any, parent: str = "", name: str = "") -> Any:
    """Return `value` without null members. Raises OverflowError for an integer over 64 bits.

    Null elements of lists are kept (see `api.codec.without_nulls`).

    `parent` and `name` are the last two steps of the path of `value`, such as spec and
    nodeSelector. In maps of strings (`_TEXT_MAPS`), null becomes "", as in the API server. So a
    nodeSelector with `disktype:`, without a value, selects only nodes whose label `disktype` is
    empty.
    """
    if isinstance(value, dict):
        if (parent, name) in _TEXT_MAPS:
            texts = value.items()
            return {key: "" if item is None else _without_nulls(item) for key, item in texts}
        return {
            key: _without_nulls(item, name, key) for key, item in value.items() if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if type(value) is int and not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        raise OverflowError
    return value


def _long_integers(value: Any, path: str) -> Iterator[tuple[str, int]]:
    """Yield (path, integer) for every integer over 64 bits."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _long_integers(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _long_integers(item, f"{path}[{index}]")
    elif type(value) is int and not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
        yield path, value


def type_name(value: Any) -> str:
    """Return the JSON type of `value` as text."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"


def pod_template_path(kind: Kind) -> str:
    """Return the path of the pod template in workloads of `kind`."""
    return "spec.jobTemplate.spec.template" if kind is CRON_JOB else "spec.template"
