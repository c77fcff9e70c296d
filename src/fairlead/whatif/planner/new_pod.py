"""NewPods: a template of new pods, made from a pod or workload in a file or in the cluster.

The pods of a Deployment get the template and the owner of its newest ReplicaSet, if it has a
ReplicaSet. The pods of a StatefulSet get the next ordinals and their own claims. Pods with ordinals
below the partition of its update strategy get the template of its current revision. The pods of a
custom resource are copies of one of its pods. If the cluster lacks a workload, but pods name it as
their controller, the new pods are copies of one of these pods. Operators create a claim for each
pod, such as `data-db-1` for the pod `db-1`. So a copy gets its own claim if two conditions hold:
the name of the claim contains the name of the copied pod, and only one node at a time can use the
volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import ControllerRevision, HorizontalPodAutoscaler, Pod, StatefulSet
from fairlead.api.pods.facts import belongs_to_node, is_terminal
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import (
    CONTROLLER_REVISION,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    DEVICE_CLASS,
    JOB,
    LIMIT_RANGE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
    SCALABLE,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    STORAGE_CLASS,
    find_kind,
)
from fairlead.engine.batch.info.group import group_name
from fairlead.engine.kubelet.volume_attachment import MULTI_NODE_ACCESS_MODES
from fairlead.engine.workloads.deployment.revision import REVISION, number_in
from fairlead.engine.workloads.pod_control.controller_history import template_in
from fairlead.engine.workloads.pod_control.pod_template import same_template
from fairlead.engine.workloads.stateful_set.rule import first_updated
from fairlead.engine.workloads.volumes.claim_creation import claims_of_set, templates_by_name
from fairlead.whatif.change.edit.scale import (
    autoscaler_of,
    control_hint,
    owned_hint,
    pod_controller_of,
    scalable_part,
)
from fairlead.whatif.change.note.held_rollout import awaited_in_order, held_scaling
from fairlead.whatif.change.owned_object import is_owner, owned_by
from fairlead.whatif.input.document import Document, read
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.snapshot.inventory import Inventory, name_parts
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import DEFAULT_NAMESPACE, manifests
from fairlead.whatif.snapshot.owner_name import owner_names
from fairlead.whatif.snapshot.pod_spec import with_complete_pods
from fairlead.whatif.snapshot.served_kind import full_kind, is_custom
from fairlead.whatif.snapshot.validation.custom_resource_check import CustomResourceCheck
from fairlead.whatif.snapshot.validation.unknown_field import refuse_malformed_fields
from fairlead.whatif.snapshot.validation.workload import refuse_invalid_workloads

LIKE: Final = "--like"
_WORKLOADS: Final = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, REPLICATION_CONTROLLER, JOB, CRON_JOB)
_DEFAULT_SPREAD_KINDS: Final = (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
# The kinds on which admission or the scheduling of a pod can depend.
_NEEDED: Final = (
    NAMESPACE, SERVICE_ACCOUNT, LIMIT_RANGE, RESOURCE_QUOTA, PRIORITY_CLASS, RUNTIME_CLASS,
    STORAGE_CLASS, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, DEVICE_CLASS, RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
)  # fmt: skip
_NAMED_MAX: Final = 3
_COPIED: Final = ("labels", "annotations")
# Fields of a spec that the new copies of a running pod do not have.
_OF_A_RUNNING_POD: Final = ("nodeName", "ephemeralContainers")


class KeptRevision(Struct, frozen=True):
    """The revision `name` of a StatefulSet, which its new pods with ordinals under `below` get.

    `template` is the template of the revision; None if the dump lacks the ControllerRevision.
    """

    name: str
    below: int
    template: Json | None


class NewPods(Struct, frozen=True):
    """A template for pods in `namespace`."""

    source: str  # the template's file, or the option that names the template
    title: str  # names the template in answers
    namespace: str
    name: str
    template: Mapping[str, Any]
    owner: Json | None = None  # the owner reference of the pods
    # The object that `owner` refers to, if the cluster lacks it. For a Deployment, this is the
    # ReplicaSet that its controller would create. The scheduler reads its selector for default
    # topology spread constraints.
    controller: Json | None = None
    stateful_set: StatefulSet | None = None  # determines the names of the pods
    first: int = 0  # the first new ordinal of `stateful_set`
    # The present number of replicas of the workload that --like names. None for a workload without
    # replicas, such as a Job, and for a template from --pod. 0 for a paused Deployment without a
    # ReplicaSet: such a Deployment creates no pods when it is scaled (`held_scaling`).
    replicas: int | None = None
    replicas_when: str = "today"  # when the workload has `replicas`
    autoscaler: Manifest | None = None  # the HorizontalPodAutoscaler of the workload
    # The name of the unready pod for which a StatefulSet waits before it creates pods.
    awaited: str = ""
    # Each pod has its own claims of these, which have the form of volumeClaimTemplates.
    claim_templates: tuple[Json, ...] = ()
    # The revision that new pods with ordinals below the partition get; None if all new pods get the
    # newest template.
    kept: KeptRevision | None = None

    def above_maximum(self, count: int) -> str:
        """Return a sentence if `count` more pods would exceed maxReplicas, otherwise ""."""
        if self.autoscaler is None:
            return ""
        most = self.autoscaler.as_view(HorizontalPodAutoscaler).spec.max_replicas
        if not count or (self.replicas or 0) + count <= most:
            return ""
        name = self.autoscaler.ref.key
        return f"HorizontalPodAutoscaler {name} allows at most {most:,} replicas (maxReplicas)."

    def in_all(self, count: int, without_node: int = 0) -> str:
        """Return the end of a sentence: the numbers of replicas with and without `count` more pods.

        `without_node` is the number of present replicas that stay pending. Example: `: 12 replicas
        in all, 10 today`. Return "" if `count` is 0, or if `replicas` is 0 or None.
        """
        if not self.replicas or not count:
            return ""
        pending = f" ({without_node:,} without a node)" if without_node else ""
        in_all = f"{self.replicas + count:,} replicas in all"
        return f": {in_all}, {self.replicas:,} {self.replicas_when}{pending}"

    @property
    def has_claims(self) -> bool:
        """Whether each pod has its own claims."""
        return bool(self.claim_templates)

    def name_of(self, number: int) -> str:
        """Return the name of the pod `number`, counted from 0."""
        if self.stateful_set is not None:
            return f"{self.name}-{self.first + number}"
        return f"{self.name}-fit-{number}"

    def kept_by(self, number: int) -> KeptRevision | None:
        """Return the older revision that the pod `number` gets; None if it gets the newest one."""
        kept = self.kept
        return kept if kept is not None and self.first + number < kept.below else None

    @property
    def missing_revision(self) -> str:
        """A sentence about new pods with an older template that the dump lacks.

        The sentence is "" if there are no such pods.
        """
        kept = self.kept_by(0)
        if kept is None or kept.template is not None:
            return ""
        return (
            f"New pods of {self.title} with numbers below {kept.below:,} get the template of its "
            f"revision {kept.name} (partition of the updateStrategy). The dump lacks this "
            "ControllerRevision, so the answer about these pods assumes the newest template."
        )

    @property
    def kept_pods(self) -> int:
        """The number of new pods that get the template of an older revision, if it is known."""
        kept = self.kept
        return 0 if kept is None or kept.template is None else max(0, kept.below - self.first)

    def template_of(self, number: int) -> Mapping[str, Any]:
        """Return the template of the pod `number`, counted from 0."""
        kept = self.kept_by(number)
        return self.template if kept is None or kept.template is None else kept.template

    def pod(self, number: int) -> Json:
        """Return the manifest of the pod `number`, counted from 0.

        If the dump lacks the template of its revision, the pod gets the newest template.
        """
        template = self.template_of(number)
        described = template.get("metadata") or {}
        name = self.name_of(number)
        meta: Json = {key: dict(described[key]) for key in _COPIED if described.get(key)}
        meta |= {"name": name, "namespace": self.namespace}
        if self.owner is not None:
            meta["ownerReferences"] = [self.owner]
        spec = {
            key: value
            for key, value in (template.get("spec") or {}).items()
            if key not in _OF_A_RUNNING_POD
        }
        if self.has_claims:
            spec["volumes"] = [*self._claim_volumes(name), *self._other_volumes(spec)]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def claims(self, number: int) -> Iterator[Json]:
        """Yield the manifests of the claims of the pod `number`, counted from 0."""
        pod = self.name_of(number)
        if self.stateful_set is not None:
            made = [dict(one.manifest) for one in claims_of_set(self.stateful_set, pod)]
        else:
            templates = templates_by_name(self.claim_templates).values()
            made = [_claim(template, pod) for template in templates]
        for manifest in made:
            yield {**manifest, "metadata": {**manifest["metadata"], "namespace": self.namespace}}

    def _claim_names(self) -> list[str]:
        return list(templates_by_name(self.claim_templates))

    def _claim_volumes(self, pod: str) -> Iterator[Json]:
        for name in self._claim_names():
            yield {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}

    def _other_volumes(self, spec: Json) -> Iterator[Json]:
        names = self._claim_names()
        yield from (one for one in spec.get("volumes") or () if one.get("name") not in names)


class PodFile(Struct, frozen=True):
    """The contents of a file: `written` is the pod or workload, `others` are the other objects."""

    written: Manifest
    others: tuple[Manifest, ...] = ()

    def needed(self, inventory: Inventory) -> list[Manifest]:
        """Return the other objects on which pods can depend and which `inventory` lacks."""
        return [one for one in self.others if one.kind in _NEEDED and not _exists(one, inventory)]

    def refuse_malformed(self, inventory: Inventory) -> None:
        """Raise InputError for a custom resource that cannot be created.

        Its CustomResourceDefinition can be in the file, or in `inventory`, the objects of the
        cluster. `read_pod_file` has checked the other objects.
        """
        every = [self.written, *self.others]
        refuse_malformed_fields(every, inventory=inventory)
        CustomResourceCheck(inventory).refuse_invalid(every)
        if not is_owner(self.written):
            return
        parts = manifests(owned_by(self.written))
        refuse_malformed_fields(parts)
        refuse_invalid_workloads([self.written, *parts])

    def notes(self, inventory: Inventory) -> Iterator[str]:
        """Yield notes about the other objects that are not used; see `needed`."""
        titles = sorted(one.title for one in self.others if one.kind not in _NEEDED)
        if titles:
            yield f"Ignored in {self.written.source}: {listed(titles, _NAMED_MAX)}."
        wanted = (one for one in self.others if one.kind in _NEEDED)
        titles = sorted(one.title for one in wanted if _exists(one, inventory))
        if titles:
            yield (
                f"Ignored in {self.written.source}, because the dump has them: "
                f"{listed(titles, _NAMED_MAX)}."
            )


def _exists(one: Manifest, inventory: Inventory) -> bool:
    return inventory.get(one.kind, one.ref.namespace, one.ref.name) is not None


def require_one_source(pod_file: str | None, like: str | None) -> None:
    """Raise InputError unless exactly one of the options --pod and --like is given."""
    if (pod_file is None) == (like is None):
        raise InputError("arguments", "name either --pod FILE or --like KIND/NAMESPACE/NAME")


def read_pod_file(pod_file: str, namespace: str) -> PodFile:
    """Read the file of --pod, which must contain exactly one pod or workload.

    A Volcano Job or a JobSet counts as a workload. `PodFile.refuse_malformed` checks custom
    resources, because their definitions can be in the cluster. `namespace` is the namespace of
    objects that name no namespace. Raises InputError.
    """
    found = manifests(with_complete_pods(read(pod_file)), namespace or DEFAULT_NAMESPACE)
    wanted = [one for one in found if one.kind is POD or one.kind in _WORKLOADS or is_owner(one)]
    if len(wanted) != 1:
        hint = "" if wanted else custom_hint(found)
        problem = f"contains {len(wanted)} pods and workloads; expected one{hint}"
        raise InputError(pod_file, problem)
    checked = [one for one in found if not is_custom(one.value["apiVersion"])]
    refuse_malformed_fields(checked)
    refuse_invalid_workloads(one for one in checked if one is wanted[0])
    return PodFile(wanted[0], tuple(one for one in found if one is not wanted[0]))


def pod_source(
    pod_file: str | None, like: str | None, namespace: str, inventory: Inventory
) -> NewPods:
    """Return the template that --pod or --like names; see `read_pod_file`.

    Exactly one of the options must be given. Raises InputError.
    """
    require_one_source(pod_file, like)
    if like is not None:
        return _new_pods_like(like, namespace, inventory)
    assert pod_file is not None
    return new_pods_of_file(read_pod_file(pod_file, namespace).written, inventory, inventory)


def _new_pods_like(like: str, namespace: str, inventory: Inventory) -> NewPods:
    if inventory.look_up(LIKE, like, namespace) is None:
        copies = _new_pods_of_missing(like, namespace, inventory)
        if copies is not None:
            return copies
    named = inventory.find(LIKE, like, namespace, expected=_WORKLOADS)
    found = scalable_part(named, inventory) or named
    return replace(
        new_pods_of(LIKE, named, inventory),
        replicas=0 if held_scaling(found, inventory) else _replicas(found),
        autoscaler=autoscaler_of(named, inventory),
        awaited=awaited_in_order(found, found.value, inventory),
    )


def new_pods_of_file(written: Manifest, inventory: Inventory, revisions: Inventory) -> NewPods:
    """Return a template for pods of `written`, a pod or workload in a file.

    If `written` is a StatefulSet that `inventory` does not contain, the first new pod has the first
    ordinal of the StatefulSet. The newest ReplicaSet of a Deployment is looked up in `revisions`.
    Raises InputError if `written` has a value of a wrong type or no containers, and for the same
    reasons as `new_pods_of`.
    """
    written.require_right_types()
    if written.kind is POD:
        _require_containers(written, written.value, "spec")
    elif written.kind in _WORKLOADS:
        _require_containers(written, _template(written), f"{written.pod_template_path}.spec")
    new, ref = new_pods_of(written.source, written, revisions), written.ref
    if written.kind in _DEFAULT_SPREAD_KINDS:
        new = replace(new, controller=_with_namespace(written))
    if new.stateful_set is None or inventory.get(STATEFUL_SET, ref.namespace, ref.name):
        return new
    return replace(new, first=new.stateful_set.spec.ordinals.start)


def custom_hint(found: Iterable[Manifest]) -> str:
    """Return a hint about the first custom resource in `found`; "" if `found` contains none.

    The hint says that the user can write the template of the resource's pods as a Pod.
    """
    custom = (one.title for one in found if is_custom(one.kind.api_version))
    first = next(custom, "")
    return f"; for the pods of {first}, write their template as a Pod" if first else ""


def new_pods_of(source: str, manifest: Manifest, inventory: Inventory) -> NewPods:
    """Return a template for new pods of a workload, or for copies of a pod.

    `manifest` is the workload or the pod. For a custom resource that controls pods, such as a
    CloneSet, the template is its newest pod in `inventory`. For a custom resource that controls a
    workload, such as an Argo Rollout, the template is the template of this workload
    (`scalable_part`). `source` names the file or option. Raises InputError for a DaemonSet, for an
    object without pods and for an invalid workload.
    """
    value, ref = manifest.value, manifest.ref
    kind = full_kind(manifest.kind.kind, manifest.kind.api_version)
    title = str(WorkloadRef(kind, ref.namespace, ref.name))
    if manifest.kind is POD:
        return NewPods(source, title, ref.namespace, ref.name, value, _controller(manifest))
    if manifest.kind.kind == DAEMON_SET.kind:  # also one of an operator, such as OpenKruise
        raise InputError(source, f"{manifest.title} runs one pod on each node; it cannot have more")
    if manifest.kind not in _WORKLOADS:
        if part := scalable_part(manifest, inventory):
            return replace(new_pods_of(source, part, inventory), title=title)
        resource = pod_controller_of(manifest, inventory)
        hint = owned_hint(manifest, inventory) if resource is None else control_hint(resource)
        if hint and resource is not manifest:
            raise InputError(source, f"pods of a {manifest.kind.kind} cannot be counted{hint}")
        sample = _pod_of(manifest, inventory)
        if sample is None:
            problem = f"{manifest.title} controls no pods{_member_hint(manifest, inventory)}"
            raise InputError(source, problem)
        return _copies_of(sample, source, title, ref.name, inventory)
    template = _template(manifest)
    if manifest.kind is DEPLOYMENT:
        newest = _newest_replica_set(manifest, inventory)
        controller = None
        if newest is None:
            newest = _first_replica_set(manifest, template)
            controller = _with_namespace(newest)
        owner, template = _reference(newest), _template(newest)
        return NewPods(source, title, ref.namespace, ref.name, template, owner, controller)
    if manifest.kind is not STATEFUL_SET:
        return NewPods(source, title, ref.namespace, ref.name, template, _reference(manifest))
    view = manifest.as_view(StatefulSet)
    return NewPods(
        source,
        title,
        ref.namespace,
        ref.name,
        template,
        _reference(manifest),
        stateful_set=view,
        first=view.spec.ordinals.start + view.spec.replicas,
        claim_templates=tuple(view.spec.volume_claim_templates),
        kept=_kept_revision(view, inventory),
    )


def _kept_revision(stateful_set: StatefulSet, inventory: Inventory) -> KeptRevision | None:
    """Return the revision that the partition of `stateful_set` keeps; None if there is none.

    The result is also None if the kept revision has the newest template.

    upstream: pkg/controller/statefulset/stateful_set_control.go: getStatefulSetRevisions
    """
    status, below = stateful_set.status, first_updated(stateful_set)
    current = str(status.get("currentRevision") or "")
    if not current or below <= stateful_set.spec.ordinals.start:
        return None
    found = inventory.get(CONTROLLER_REVISION, stateful_set.metadata.namespace, current)
    if found is None:
        generation = stateful_set.metadata.generation
        is_observed = status.get("observedGeneration", generation) >= generation
        is_newest = is_observed and current == status.get("updateRevision", current)
        return None if is_newest else KeptRevision(current, below, None)
    template = template_in(found.as_view(ControllerRevision))
    is_newest = same_template(template, stateful_set.spec.template)
    return None if is_newest else KeptRevision(current, below, template or None)


def _new_pods_of_missing(like: str, namespace: str, inventory: Inventory) -> NewPods | None:
    """Return a template for more pods of a workload that the cluster lacks.

    The template is the newest pod that names the workload as its controller. Return None if there
    are no such pods, or if `like` has a form other than KIND/NAMESPACE/NAME or KIND/NAME. Raises
    InputError if there are such pods in several namespaces.
    """
    parts = name_parts(like, namespace)
    kind = None if parts is None else find_kind(parts[0])
    if parts is None or (kind is not None and kind not in _WORKLOADS):
        return None
    kind_name = parts[0].lower() if kind is None else kind.kind.lower()
    _, namespace, name = parts
    found = [
        pod
        for pod in (one.pod for one in inventory.of_kind(POD))
        if namespace in ("", pod.metadata.namespace)
        and (kind_name, name) in owner_names(pod)
        and not is_terminal(pod)
        and not belongs_to_node(pod)
    ]
    if not found:
        return None
    namespaces = sorted({pod.metadata.namespace for pod in found})
    if len(namespaces) > 1:
        where = ", ".join(namespaces)
        raise InputError(LIKE, f"{like} is in several namespaces ({where}); name one of them")
    newest = max(found, key=_creation).metadata
    sample = inventory.get(POD, newest.namespace, newest.name)
    assert sample is not None
    title = str(WorkloadRef(kind_name if kind is None else kind.kind, newest.namespace, name))
    new = _copies_of(sample, LIKE, title, name, inventory)
    return replace(new, replicas=len(found)) if kind in SCALABLE else new


def _copies_of(
    sample: Manifest, source: str, title: str, name: str, inventory: Inventory
) -> NewPods:
    """Return a template for copies of `sample`, a pod of the workload `name`."""
    return NewPods(
        source,
        title,
        sample.ref.namespace,
        name,
        sample.value,
        _controller(sample),
        claim_templates=tuple(_claim_templates(sample, inventory)),
    )


def _pod_of(owner: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the newest pod that `owner` controls, by creation and name; None if there is none."""
    found = max(inventory.pods_of(owner), key=_creation, default=None)
    if found is None:
        return None
    return inventory.get(POD, found.metadata.namespace, found.metadata.name)


def _member_hint(group: Manifest, inventory: Inventory) -> str:
    """Return a hint that names a pod of `group`; "" if `group` is no PodGroup or has no pods.

    The pods of a PodGroup need not be alike, so `--like` cannot choose one of them.
    """
    if group.kind.kind != POD_GROUP.kind:
        return ""
    pods = (one.pod for one in inventory.of_kind(POD) if one.ref.namespace == group.ref.namespace)
    members = [pod for pod in pods if group_name(pod) == group.ref.name]
    newest = max(members, key=_creation, default=None)
    return "" if newest is None else f"; name a pod of the group, such as pod/{newest.key}"


def _claim_templates(sample: Manifest, inventory: Inventory) -> Iterator[Json]:
    """Yield a template for each claim that belongs only to the pod `sample`.

    The name of such a claim contains the name of the pod, and its access modes allow only one node.
    The template has the name that the volume has in the spec of the pod.
    """
    for volume in sample.pod.spec.volumes:
        used = volume.persistent_volume_claim
        if used is None or sample.ref.name not in used.claim_name:
            continue
        claim = inventory.get(PERSISTENT_VOLUME_CLAIM, sample.ref.namespace, used.claim_name)
        spec = claim.value["spec"] if claim is not None else {}
        if spec and MULTI_NODE_ACCESS_MODES.isdisjoint(spec.get("accessModes") or ()):
            spec = {key: one for key, one in spec.items() if key != "volumeName"}
            yield {"metadata": {"name": volume.name}, "spec": spec}


def _claim(template: Json, pod: str) -> Json:
    return {
        "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
        "kind": PERSISTENT_VOLUME_CLAIM.kind,
        "metadata": {"name": f"{template['metadata']['name']}-{pod}"},
        "spec": template["spec"],
    }


def _creation(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp, pod.metadata.name


def _replicas(found: Manifest) -> int | None:
    """Return the number of replicas of a scalable workload; None for other workloads."""
    if found.kind not in SCALABLE:
        return None
    wanted = (found.value.get("spec") or {}).get("replicas", 1)
    return wanted if isinstance(wanted, int) else 1


def _template(found: Manifest) -> Mapping[str, Any]:
    template = found.pod_template
    if not isinstance(template, dict) or not template.get("spec"):
        raise found.refuse("is required", field=f"{found.pod_template_path}.spec")
    if template["spec"].get("ephemeralContainers"):
        # upstream: pkg/apis/core/validation/validation.go: ValidatePodTemplateSpec
        problem = "ephemeral containers not allowed in pod template"
        raise found.refuse(problem, field=f"{found.pod_template_path}.spec.ephemeralContainers")
    return template


def _require_containers(written: Manifest, pod: Mapping[str, Any], field: str) -> None:
    """Raise InputError if `pod`, a pod or a template, has no containers; `field` is its spec.

    The simulation accepts such pods. In a planner, they would request nothing, so too many would
    fit.
    """
    if not (pod.get("spec") or {}).get("containers"):
        raise written.refuse("Required value", field=f"{field}.containers")


def _controller(pod: Manifest) -> Json | None:
    """Return the owner reference of the controller of `pod`; None if it has none."""
    found = pod.controller
    return None if found is None else as_json(found)


def _reference(found: Manifest) -> Json:
    return {
        "apiVersion": found.value["apiVersion"],
        "kind": found.kind.kind,
        "name": found.ref.name,
        "uid": found.ref.uid or found.ref.name,
        "controller": True,
    }


def _newest_replica_set(deployment: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the ReplicaSet of `deployment` with the highest revision; None if it has none."""
    owned = [one for one in inventory.of_kind(REPLICA_SET) if one.is_controlled_by(deployment)]
    return max(owned, key=_revision, default=None)


def _with_namespace(found: Manifest) -> Json:
    meta = {**found.value["metadata"], "namespace": found.ref.namespace}
    return {**found.value, "metadata": meta}


def _first_replica_set(deployment: Manifest, template: Mapping[str, Any]) -> Manifest:
    """Return the ReplicaSet that the controller of a new Deployment creates.

    Its name and labels lack the hash of the pod template.
    """
    selector = deployment.value["spec"].get("selector")
    meta = {"name": deployment.ref.name, "namespace": deployment.ref.namespace}
    selected = {"selector": selector, "template": template, "replicas": 0}
    value = {"apiVersion": REPLICA_SET.api_version, "kind": REPLICA_SET.kind, "metadata": meta}
    [made] = manifests([Document(deployment.source, [{**value, "spec": selected}])])
    return made


def _revision(replica_set: Manifest) -> tuple[int, str]:
    return number_in(replica_set.metadata.annotations, REVISION) or 0, replica_set.ref.name
