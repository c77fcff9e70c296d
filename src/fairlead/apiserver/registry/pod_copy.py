"""PodCopies: creates a pod as a copy of an earlier pod of the same workload.

The pods of a workload have equal manifests except for their names and, in a DaemonSet, the names of
their nodes. Admission, defaults, validation and managed fields turn equal manifests into equal
pods, except for a few strings of each pod:

    own strings     metadata.name, uid, creationTimestamp and the times of managedFields;
                    the random name of the volume with the service account token;
                    the name of the node in the required node affinity of a DaemonSet's pod;
                    the value of the annotation `PodCopying.own_annotation`, which no plugin reads
    shared          everything else

The first pod goes through all stages of `Store.create`, and becomes a template. Later pods are
copies of the template with their own strings. A pod is made as a copy only if both of these
conditions hold, so that the copy equals the pod that the stages would create:

- The manifest (except for the own strings), the user and the field manager are the same as for the
  first pod.
- The name of the new pod is a valid DNS label, and the name of its node is a valid node name.

Admission may read other objects. Therefore all templates are dropped when an object changes.
Changes of objects whose resource is in `_UNREAD` are ignored, because plugins read these objects
only for a pod with spec.nodeName. Plugins that count pods (`COUNTS_PODS`) read all pods, so these
plugins check each copy. No template is made while webhooks, policies or quotas are configured,
because they may read each pod. No template is made for a pod with spec.nodeName or with conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.nodes.node_selector import NAME_FIELD
from fairlead.api.text.json_template import has_marks, marker, places_in, substitution
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.plugins.service_account import VOLUME_PREFIX
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.kind import POD, RESOURCE_QUOTA
from fairlead.apiserver.registry.admission_control import AdmissionControl, has_dynamic_admission
from fairlead.apiserver.registry.dump.snapshot_load import DEFAULT_NAMESPACE
from fairlead.apiserver.registry.id_source import IdSource
from fairlead.apiserver.storage.storage import Storage, StoredChange
from fairlead.apiserver.validation.meta.format import dns_label_problems, dns_subdomain_problems

TEMPLATES_MAX: Final = 256
# Resources whose changes do not drop the templates. They often change while pods are created, and
# plugins read them only for a pod with spec.nodeName.
_UNREAD: Final = frozenset(
    (
        "pods", "events", "nodes", "leases.coordination.k8s.io", "replicationcontrollers",
        "replicasets.apps", "deployments.apps", "statefulsets.apps", "daemonsets.apps",
        "jobs.batch", "cronjobs.batch", "endpoints", "endpointslices.discovery.k8s.io",
        "horizontalpodautoscalers.autoscaling", "poddisruptionbudgets.policy",
    )
)  # fmt: skip
_NODES: Final = "system:nodes"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NAME, _UID, _TIME, _VOLUME, _OWN, _NODE = range(6)  # a copy's own strings
_NOTHING: Final[Mapping[str, Any]] = {}
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Recording:
    """Records the warnings and audit annotations that one call of `Store.create` issues."""

    def __init__(self, write: Write) -> None:
        """`self.write` is a copy of `write` that also records each warning and annotation."""
        self._client = write
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}
        self.write = replace(write, warn=self._warn, annotate=self._annotate)

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        self._client.warn(text)

    def _annotate(self, key: str, text: str) -> None:
        self.annotations[key] = text
        self._client.annotate(key, text)


class _Template(Struct, frozen=True):
    """A stored pod from which copies are made.

    `copy` returns a copy. Its argument contains the strings of the new pod that differ from pod to
    pod, such as the name and the uid. `has_volume` is True if one of these strings is the name of a
    volume. The creation of each copy issues `warnings` and the audit annotations `annotations`.
    """

    copy: Callable[[Sequence[str]], Json]
    has_volume: bool
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


class PodCopies:
    """Creates pods in one store by copying templates."""

    def __init__(
        self,
        storage: Storage,
        admission: AdmissionControl,
        ids: IdSource,
        own_annotation: str = "",
    ) -> None:
        """`ids` generates the uids of copies and the names of their token volumes.

        `own_annotation` names an annotation whose value may differ between copies of one template.
        """
        self._storage = storage
        self._own = own_annotation
        self._admission = admission
        self._ids = ids
        self._templates: dict[bytes, _Template] = {}
        # {id(spec): (spec, its JSON text)}, for the manifests from which templates were made
        self._known_specs: dict[int, tuple[Any, bytes]] = {}
        storage.subscribe(self._observe, lambda resource: resource not in _UNREAD)

    def create(self, manifest: Mapping[str, Any], now: int, write: Write) -> Json | None:
        """Create a pod for `manifest` by copying a template; return the stored pod.

        Return None if the pod cannot be created as a copy. The caller must then run all stages of
        `Store.create`. The caller must not change the spec in `manifest` later. Raises ApiError if
        there are too many pods or the storage is full.
        """
        template = self._templates.get(self._key(manifest, write)) if self._templates else None
        if template is None or write.dry_run:
            return None
        meta = manifest["metadata"]
        namespace, name = meta.get("namespace") or DEFAULT_NAMESPACE, meta.get("name")
        if not name or dns_label_problems(name) or self._storage.find(POD, namespace, name):
            return None
        node = _pinned_node(manifest.get("spec"))
        if node is not None and dns_subdomain_problems(node):
            return None
        volume = VOLUME_PREFIX + self._ids.new_suffix() if template.has_volume else ""
        uid = self._ids.new_uid(POD, namespace, name)
        own = (meta.get("annotations") or _NOTHING).get(self._own, "")
        strings = (name, uid, format_timestamp(now), volume, own, node or "")
        pod = template.copy(strings)
        for text in template.warnings:
            write.warn(text)
        for key, text in template.annotations.items():
            write.annotate(key, text)
        self._admission.check_count(
            self._admission.attributes(Operation.CREATE, POD, pod, write=write)
        )
        return self._storage.put(POD, pod, is_arranged=True)

    def record(self, write: Write) -> Recording:
        """Return a Recording of the warnings and audit annotations that `write` receives.

        `Store.create` calls this method if `PodCopies.create` cannot copy a template for the pod.
        """
        return Recording(write)

    def learn(self, manifest: Mapping[str, Any], recording: Recording, stored: Json) -> None:
        """Make a template of `stored`, the pod that `Store.create` made from `manifest`.

        No template is made if later pods could differ from `stored` in more than a few strings,
        such as the name and the uid.
        """
        write = recording.write
        if not self._is_typical(manifest, write, stored):
            return
        volume = _token_volume(manifest, stored)
        spec = manifest.get("spec")
        if _pinned_node(spec) != _pinned_node(stored["spec"]):
            return
        marked = _marked(stored, volume, self._own)
        if marked is None:
            return
        if max(len(self._templates), len(self._known_specs)) >= TEMPLATES_MAX:
            self._drop_templates()
        self._known_specs[id(spec)] = spec, _encode_spec(spec)
        copy = substitution(stored, places_in(marked))
        self._templates[self._key(manifest, write)] = _Template(
            copy, bool(volume), recording.warnings, recording.annotations
        )

    def _is_typical(self, manifest: Mapping[str, Any], write: Write, stored: Json) -> bool:
        """Return whether `stored`, made from `manifest`, can be the template of later pods.

        The result is False if a kubelet sends the request, because the plugin NodeRestriction then
        reads the node and its pods. The result is also False if the pod has several owners, because
        a `Recording` does not record the warnings about duplicate owners.
        """
        is_tracked_alike = write.track is None or write.manager is not None
        is_of_node = write.user is not None and _NODES in write.user.groups
        if write.dry_run or is_of_node or not is_tracked_alike:
            return False
        meta = manifest["metadata"]
        if "managedFields" in meta or len(meta.get("ownerReferences") or ()) > 1:
            return False
        if dns_label_problems(stored["metadata"]["name"]):  # causes a warning
            return False
        if stored["spec"].get("nodeName") or stored["status"].get("conditions"):
            return False
        return not has_dynamic_admission(self._storage) and not self._storage.count(RESOURCE_QUOTA)

    def _observe(self, _: StoredChange) -> None:
        self._drop_templates()

    def _drop_templates(self) -> None:
        self._templates.clear()
        self._known_specs.clear()

    def _key(self, manifest: Mapping[str, Any], write: Write) -> bytes:
        """Return the key of the template from which a pod with this `manifest` is copied.

        The key contains everything on which the stages of `Store.create` depend, except stored
        objects and the strings that differ from pod to pod, such as the name.
        """
        meta = manifest.get("metadata")
        if isinstance(meta, dict):
            meta = {**meta, "name": ""}
            annotations = meta.get("annotations")
            if isinstance(annotations, dict) and isinstance(annotations.get(self._own), str):
                meta["annotations"] = {**annotations, self._own: ""}
        rest = _encode(({**manifest, "metadata": meta, "spec": None}, write.manager, write.user))
        # Controllers create the pods of a workload with the same spec object. Then encoding the
        # spec, which is most of the manifest, is not repeated.
        spec = manifest.get("spec")
        known = self._known_specs.get(id(spec))
        return rest + (_encode_spec(spec) if known is None else known[1])


def _pinned_node(spec: Any) -> str | None:
    """Return the name of the only node that the required node affinity of `spec` allows.

    Return None if the affinity has another form than that of a DaemonSet's pod (`_pinned`).
    """
    try:
        terms = spec["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
        node = terms[0]["matchFields"][0]["values"][0]
    except (KeyError, IndexError, TypeError):
        return None
    return node if isinstance(node, str) and terms == _terms(node) else None


def _pinned(spec: Json, node: str) -> Json:
    """Return `spec`, which has a `_pinned_node`, with `node` as the name of this node."""
    affinity = spec["affinity"]
    required = {**affinity["nodeAffinity"][_REQUIRED], "nodeSelectorTerms": _terms(node)}
    of_node = {**affinity["nodeAffinity"], _REQUIRED: required}
    return {**spec, "affinity": {**affinity, "nodeAffinity": of_node}}


def _terms(node: str) -> list[Json]:
    return [{"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}]


def _encode_spec(spec: Any) -> bytes:
    """Return the JSON text of `spec` without the name of the `_pinned_node`."""
    return _encode(spec if _pinned_node(spec) is None else _pinned(spec, ""))


def _token_volume(manifest: Mapping[str, Any], stored: Json) -> str:
    """Return the name of the volume that the plugin ServiceAccount added; "" if it added none."""
    sent = _encode(manifest)
    for volume in stored["spec"].get("volumes") or ():
        name: str = volume["name"]
        if name.startswith(VOLUME_PREFIX) and name.encode() not in sent:
            return name
    return ""


def _marked(stored: Json, volume: str, own: str) -> Json | None:
    """Return `stored` with a marker in place of each string that differs between copies of a pod.

    `volume` is the name of the token volume, or "". `own` is the name of the annotation whose
    value may differ between pods. Return None if `stored` already contains text that looks like a
    marker.
    """
    if has_marks(_encode(stored)):
        return None
    meta = {
        **stored["metadata"],
        "name": marker(_NAME),
        "uid": marker(_UID),
        "creationTimestamp": marker(_TIME),
    }
    if own in meta.get("annotations", _NOTHING):
        meta["annotations"] = {**meta["annotations"], own: marker(_OWN)}
    if "managedFields" in meta:
        meta["managedFields"] = [{**one, "time": marker(_TIME)} for one in meta["managedFields"]]
    spec = stored["spec"]
    if volume:
        spec = _decode(_encode(spec).replace(_encode(volume), _encode(marker(_VOLUME))))
    if _pinned_node(spec) is not None:
        spec = _pinned(spec, marker(_NODE))
    return {**stored, "metadata": meta, "spec": spec}
