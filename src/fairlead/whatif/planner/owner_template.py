"""OwnerTemplates: the replacement that a controller creates for a pod, if it differs from the pod.

    owner         what the replacement takes from the owner
    StatefulSet   the template of the current or of the update revision, depending on the pod's
                  ordinal and the partition of the StatefulSet (also with OnDelete)
    DaemonSet     the present template
    any           the requests and limits of the template, if the pod was resized in place
    any           the requests and limits that a VerticalPodAutoscaler recommends now, as its
                  webhook would set them (`RecommendedRequests`)
    any           the nodeSelector that a pod has when it is created, if the template has scheduling
                  gates: the program that removes the gates may have changed the nodeSelector, to
                  assign the pod to its node (`observed_mutation`)

For pods of other owners, such as ReplicaSets, only the rows with `any` apply. A pod counts as
resized if two conditions hold. Its spec was changed since its creation (metadata.generation), and
its requests or limits differ from the requests or limits of the template. If a
VerticalPodAutoscaler manages the pod but is missing in the dump, the replacement keeps the requests
and limits of the pod. The webhook of the autoscaler sets them again.

The replacement has the spec of the old pod if the dump lacks the owner or the template of the
revision. The replacement also has the spec of the old pod if admission refuses the template, or if
the template has other ResourceClaims than the old pod.

upstream: pkg/controller/statefulset/stateful_set_utils.go: newVersionedStatefulSetPod,
pkg/controller/daemon/daemon_controller.go: syncNodes
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    Container,
    ControllerRevision,
    DaemonSet,
    Job,
    Node,
    OwnerReference,
    Pod,
    ReplicaSet,
    ReplicationController,
    ResourceRequirements,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.observed_mutation import OF_VERTICAL_AUTOSCALER
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.suspension import run_to_end
from fairlead.engine.workloads.daemon_set.rule import (
    daemon_template,
    node_eligibility,
    pinned,
    target_node,
)
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.pod_control.controller_history import (
    REVISION_LABEL,
    Histories,
    History,
)
from fairlead.engine.workloads.pod_control.pod_template import (
    pod_manifest,
    read_template,
    with_labels,
)
from fairlead.engine.workloads.stateful_set.rule import StatefulSetRule
from fairlead.whatif.run.autoscaling.vertical_pod_autoscaler import RecommendedRequests

_Owner = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job
_OWNERS: Final = (ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job)


class OwnerTemplates:
    """The templates of the owners in `objects`; `store` admits the pods that are made from them.

    `recommended` gives these pods the requests that VerticalPodAutoscalers in `store` recommend.
    """

    def __init__(
        self, objects: Iterable[ApiObject], store: Store, recommended: RecommendedRequests
    ) -> None:
        """Index the owners in `objects`, and the revisions of StatefulSets and DaemonSets."""
        self._store = store
        self._recommended = recommended
        # The containers of new pods, by uid of the owner and the old containers as JSON. The new
        # pods of a workload share them, so that their shape is found quickly (`ShapeTable`).
        self._containers: dict[tuple[str, bytes], tuple[Container, ...]] = {}
        self._histories = Histories()
        self._owners: dict[str, _Owner] = {}
        self._pods: list[Pod] = []
        for one in objects:
            if isinstance(one, Pod):
                self._pods.append(one)
            elif isinstance(one, _OWNERS):
                if not one.metadata.deletion_timestamp:
                    self._owners[one.metadata.uid] = one
            elif isinstance(one, ControllerRevision):
                self._histories.observe(one)
        self._resolved: dict[str, History] = {}  # by uid of the owner
        self._rules: dict[str, StatefulSetRule] = {}
        self._templates: dict[tuple[str, str], Pod | None] = {}  # by owner and revision
        # by uid of an owner whose template has scheduling gates
        self._selectors: dict[str, Mapping[str, str] | None] = {}
        self._updated_pods: dict[str, Pod] = {}  # by uid of the old pod, which has another revision
        self._daemons: dict[str, Pod | None] = {}  # by uid of the DaemonSet

    def with_current_template(self, pod: Pod) -> Pod:
        """Return `pod` with the labels and the spec that its controller gives to its replacement.

        Return `pod` itself if it has these labels and this spec, or if it has no node.
        """
        reference = controller_of(pod.metadata)
        owner = self._owners.get(reference.uid) if reference is not None else None
        if owner is None or reference is None or not pod.spec.node_name:
            return pod
        revision = ""
        if isinstance(owner, StatefulSet | DaemonSet):
            history = self._history(owner)
            revision = history.revision_of(pod)
            wanted = self._wanted_revision(owner, pod)
            if wanted != revision and wanted in history.templates:
                known = self._updated_pods.get(pod.metadata.uid)
                if known is None:
                    known = self._of_revision(pod, owner, reference, wanted)
                    self._updated_pods[pod.metadata.uid] = known
                return known
        if (owner.spec.template.get("spec") or {}).get("schedulingGates"):
            pod = self._assigned_anew(pod, owner, reference)
        if pod.metadata.generation > 1:
            pod = self._resized_back(pod, owner, revision)
        return self._with_recommended(pod, owner) if self._has_recommendations else pod

    def next_pod(self, pod: Pod) -> tuple[str, Json] | None:
        """Return (key, manifest) of the pod that the controller of `pod` creates in its place.

        The manifest is what the controller sends to the API server. The manifests of
        pods with equal keys are equal. Return None if the snapshot lacks the
        controller, or if the controller is a custom resource.

        No existing pod has the name of the returned pod, so that the returned pod can be created in
        a dry run.
        """
        reference = controller_of(pod.metadata)
        owner = self._owners.get(reference.uid) if reference is not None else None
        if owner is None or reference is None:
            return None
        template, revision, name = owner.spec.template, "", f"{owner.metadata.name}-next"
        if isinstance(owner, StatefulSet):
            revision = self._wanted_revision(owner, pod)
            template = self._history(owner).templates.get(revision) or template
        namespace = pod.metadata.namespace
        made = pod_manifest(template, name=name, namespace=namespace, owner=reference)
        return f"{reference.uid} {revision}", made

    def daemon_pods(self, node: Node) -> dict[str, Pod | None]:
        """Return the pods that DaemonSets create on the new `node`, by uid of the DaemonSet.

        The value is None for a DaemonSet whose pods do not run on `node`. If admission refuses the
        pods of a DaemonSet, the result has no entry for the DaemonSet.
        """
        found: dict[str, Pod | None] = {}
        for uid, owner in self._owners.items():
            if not isinstance(owner, DaemonSet):
                continue
            if uid not in self._daemons:
                self._daemons[uid] = self._daemon(owner)
            pod = self._daemons[uid]
            if pod is not None:
                found[uid] = pod if node_eligibility(pod, node).should_run else None
        return found

    def _daemon(self, owner: DaemonSet) -> Pod | None:
        """Return the pod of `owner`, not pinned to a node yet; None if admission refuses it."""
        meta = owner.metadata
        reference = OwnerReference(
            api_version="apps/v1", kind="DaemonSet", name=meta.name, uid=meta.uid, controller=True
        )
        template = daemon_template(owner.spec.template)
        return self._admitted(
            pod_manifest(template, name=meta.name, namespace=meta.namespace, owner=reference)
        )

    def _history(self, owner: StatefulSet | DaemonSet) -> History:
        uid = owner.metadata.uid
        found = self._resolved.get(uid)
        if found is None:
            found = self._resolved[uid] = self._histories.of(uid, owner)
            found.resolve(owner, self._pods_by_owner.get(uid, ()))
        return found

    @cached_property
    def _pods_by_owner(self) -> dict[str, list[Pod]]:
        by_owner: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._pods:
            reference = controller_of(pod.metadata)
            if reference is not None:
                by_owner[reference.uid].append(pod)
        return by_owner

    def _rule(self, owner: StatefulSet) -> StatefulSetRule:
        uid = owner.metadata.uid
        found = self._rules.get(uid)
        if found is None:
            history = self._history(owner)
            found = StatefulSetRule.of(owner, history, applies_max_unavailable=False)
            self._rules[uid] = found
        return found

    def _wanted_revision(self, owner: StatefulSet | DaemonSet, pod: Pod) -> str:
        """Return the revision from which `owner` creates a replacement of `pod`.

        Return "" if `owner` is a StatefulSet that does not create pods with the name of `pod`.
        """
        if isinstance(owner, DaemonSet):
            return self._history(owner).update
        ordinal = ordinal_of(owner.metadata.name, pod.metadata.name)
        if ordinal is None:
            return ""
        rule, current = self._rule(owner), str(owner.status.get("currentRevision", ""))
        if current and rule.keeps_current_revision(ordinal):
            return current  # the template of this revision may be missing in the dump
        return rule.revision_at(ordinal)

    def _of_revision(
        self, pod: Pod, owner: StatefulSet | DaemonSet, reference: OwnerReference, revision: str
    ) -> Pod:
        """Return `pod` as `owner` creates it from the template of `revision`.

        `reference` is the owner reference of the pod. Return `pod` itself if admission refuses the
        new pod, or if the new pod does not have the same ResourceClaims.
        """
        history, name = self._history(owner), pod.metadata.name
        if isinstance(owner, StatefulSet):
            ordinal = ordinal_of(owner.metadata.name, name)
            assert ordinal is not None, name
            template = self._rule(owner).desired_pod(ordinal).template
        else:
            labels = {REVISION_LABEL: history.label_of(revision)}
            template = with_labels(daemon_template(owner.spec.template), labels)
            template = pinned(template, target_node(pod))
        namespace = pod.metadata.namespace
        made = self._admitted(
            pod_manifest(template, name=name, namespace=namespace, owner=reference)
        )
        if made is None or made.spec.resource_claims != pod.spec.resource_claims:
            return pod
        meta = replace(pod.metadata, labels=made.metadata.labels, generation=1)
        return replace(pod, metadata=meta, spec=replace(made.spec, node_name=pod.spec.node_name))

    def _admitted(self, manifest: Json) -> Pod | None:
        """Return the pod with its defaults and the changes of admission; None if it is refused.

        Quotas are not checked, because they still count the pod that is replaced.
        """
        admission = self._store.admission
        try:
            complete = self._store.completed(POD, manifest)
            attributes = admission.attributes(Operation.CREATE, POD, complete)
            return decode_as(Pod, run_to_end(admission.mutate(attributes)).obj)
        except ApiError:
            return None

    def _assigned_anew(self, pod: Pod, owner: _Owner, reference: OwnerReference) -> Pod:
        """Return `pod` with the nodeSelector that admission gives a new pod of `owner`.

        `reference` is the owner reference of the pod.
        """
        uid, meta = owner.metadata.uid, pod.metadata
        if uid not in self._selectors:
            template, namespace = owner.spec.template, meta.namespace
            made = self._admitted(
                pod_manifest(template, name=meta.name, namespace=namespace, owner=reference)
            )
            self._selectors[uid] = None if made is None else made.spec.node_selector
        selector = self._selectors[uid]
        if selector is None or selector == pod.spec.node_selector:
            return pod
        return replace(pod, spec=replace(pod.spec, node_selector=selector))

    @cached_property
    def _has_recommendations(self) -> bool:
        return bool(self._recommended.targets(self._store.storage))

    def _with_recommended(self, pod: Pod, owner: _Owner) -> Pod:
        """Return `pod` with the requests and limits that a VerticalPodAutoscaler recommends."""
        key = owner.metadata.uid, msgspec.json.encode(pod.spec.containers)
        if key not in self._containers:
            manifest: Json = to_builtins(pod)
            spec = self._recommended.recommended(manifest, self._store.storage)
            self._containers[key] = tuple(
                replace(
                    one, resources=msgspec.convert(new.get("resources") or {}, ResourceRequirements)
                )
                for one, new in zip(pod.spec.containers, spec["containers"], strict=True)
            )
        containers = self._containers[key]
        if containers == pod.spec.containers:
            return pod
        return replace(pod, spec=replace(pod.spec, containers=containers))

    def _resized_back(self, pod: Pod, owner: _Owner, revision: str) -> Pod:
        """Return `pod` with the requests and limits that the template of `owner` states."""
        if any(key in pod.metadata.annotations for key in OF_VERTICAL_AUTOSCALER):
            return pod
        key = owner.metadata.uid, revision
        if key not in self._templates:
            template: Json | None = owner.spec.template
            if isinstance(owner, StatefulSet | DaemonSet):
                template = self._history(owner).templates.get(revision)
            self._templates[key] = None if template is None else read_template(template)
        template_pod = self._templates[key]
        if template_pod is None:
            return pod
        spec, stated = pod.spec, template_pod.spec
        resources = spec.resources
        if resources is not None and stated.resources is not None:
            resources = _as_stated(resources, stated.resources)
        restored = replace(
            spec,
            containers=_restored(spec.containers, stated.containers),
            init_containers=_restored(spec.init_containers, stated.init_containers),
            resources=resources,
        )
        return pod if restored == spec else replace(pod, spec=restored)


def _restored(
    containers: tuple[Container, ...], of_template: tuple[Container, ...]
) -> tuple[Container, ...]:
    """Return `containers` with the amounts that `of_template` states for the same names."""
    by_name = {one.name: one.resources for one in of_template}
    return tuple(
        replace(one, resources=_as_stated(one.resources, by_name[one.name]))
        if one.name in by_name
        else one
        for one in containers
    )


def _as_stated(
    resources: ResourceRequirements, of_template: ResourceRequirements
) -> ResourceRequirements:
    """Return `resources` with the amounts that `of_template` states.

    If `of_template` has a limit but no request for a resource, the limit is also the request.
    Amounts of resources that are not in `of_template`, such as the defaults of a LimitRange, are
    kept.
    """
    return replace(
        resources,
        requests={**resources.requests, **of_template.limits, **of_template.requests},
        limits={**resources.limits, **of_template.limits},
    )
