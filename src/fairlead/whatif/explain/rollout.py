"""Finds what a rollout changes, which pods it has yet to replace, and the pod that stops it.

    kind          a pod has an old template if
    Deployment    its ReplicaSet does not have the template of the Deployment
    StatefulSet   its revision is not status.updateRevision
    DaemonSet     its label pod-template-generation is not that of the DaemonSet

Before a StatefulSet with the policy OrderedReady replaces a pod, it waits for each pod that is not
ready, even if the awaited pod has an old template. So a broken pod has to be deleted after the
template is reverted ("forced rollback" in the documentation of Kubernetes).

upstream: pkg/controller/deployment/util/deployment_util.go: FindNewReplicaSet,
pkg/controller/statefulset/stateful_set_control.go: processReplica, updateStatefulSet,
staging/src/k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go: Status
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json, items, mapping, number, text
from fairlead.api.pods.facts import controller_of
from fairlead.apiserver.kind import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
)
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.daemon_set.rule import GENERATION_LABEL, TEMPLATE_GENERATION
from fairlead.engine.workloads.deployment.revision import REVISION
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.pod_control.pod_template import changed_keys, same_template
from fairlead.whatif.change.note.held_rollout import awaited_in_order
from fairlead.whatif.dump_comparison.field_difference import (
    ADDED,
    REMOVED,
    arrow,
    field_differences,
)
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.workload import WorkloadRef, revision_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

_AMOUNTS: Final = ("requests", "limits")  # parts of `resources` that map names to quantities
_VALUE_MAX: Final = 100  # characters; the name of an image with its digest has up to about 100


class StuckPod(Struct, frozen=True):
    """The pod `name`, for which the StatefulSet `owner` waits in a rollout.

    If `is_old` is set, the pod itself has an old template. `revision` is the number of the revision
    that most of the replaced pods have; "" if the dump lacks its ControllerRevision.
    """

    owner: ObjectRef
    name: str
    is_old: bool
    revision: str = ""

    @property
    def sentence(self) -> str:
        """What keeps the StatefulSet from replacing the pod."""
        pod = f"{self.owner.namespace}/{self.name}"
        if self.is_old:
            return (
                f"Its rollout waits until {pod} is ready, although this pod has an old template "
                "(podManagementPolicy). If the pod cannot become ready, delete it."
            )
        return (
            f"Its rollout waits until {pod} is ready (podManagementPolicy). If its new template "
            "cannot work, revert the template, and then delete this pod: its controller does not "
            "replace the pod by itself."
        )

    def steps(self, arguments: Sequence[str]) -> Iterator[NextStep]:
        """Yield the commands that let the rollout continue, or that undo it.

        `arguments` are the command-line words with which another command reads the same cluster.
        """
        namespace, pod = self.owner.namespace, f"{self.owner.namespace}/{self.name}"
        if self.is_old:
            words = ("fairlead", "whatif", *arguments, "--delete", f"pod/{pod}")
            step = "if the pod cannot become ready, simulate its deletion first"
            yield NextStep(step, command=shlex.join(words))
        else:
            yield _undo_step(namespace, f"sts/{self.owner.name}", self.revision)
        command = shlex.join(("kubectl", "delete", "pod", "-n", namespace, self.name))
        then = "delete the pod" if self.is_old else "then delete the pod"
        yield NextStep(then, command=command, makes_change=True)


def stuck_pod(
    workload: Manifest, inventory: Inventory, to_replace: Sequence[PodInfo]
) -> StuckPod | None:
    """Return the pod that the rollout of `workload` waits for, and that it does not replace.

    `to_replace` is the result of `pods_to_replace`. Return None if `to_replace` is empty, if
    `workload` is no StatefulSet, or if there is no such pod.
    """
    if workload.kind is not STATEFUL_SET or not to_replace:
        return None
    name = awaited_in_order(workload, workload.value, inventory)
    own = next(
        (revision_of(one) for one in inventory.pods_of(workload) if one.metadata.name == name), ""
    )
    if not own:
        return None
    is_old = own != text(workload.value, "status", "updateRevision")
    replaced = _most_frequent(revision_of(pod.pod) for pod in to_replace)
    found = inventory.get(CONTROLLER_REVISION, workload.ref.namespace, replaced)
    revision = "" if found is None else str(number(found.value, "revision") or "")
    return StuckPod(workload.ref, name, is_old, revision)


def replaced_set(
    deployment: Manifest, controllers: Iterable[Manifest], to_replace: Iterable[PodInfo]
) -> Manifest | None:
    """Return the ReplicaSet that has most of the pods that the rollout of `deployment` replaces.

    `to_replace` is the result of `pods_to_replace`, and `controllers` are the ReplicaSets of
    `deployment`. Return None for other kinds, if there are no such pods, or if the dump does not
    contain their ReplicaSet.
    """
    if deployment.kind is not DEPLOYMENT:
        return None
    first = _most_frequent(_controller(pod) for pod in to_replace)
    sets = (one for one in controllers if one.kind is REPLICA_SET)
    return next((one for one in sets if one.ref.name == first), None)


def template_changes(deployment: Manifest, replaced: Manifest) -> list[str]:
    """Return what the template of `deployment` changes, as texts such as `image of app a → b`.

    The template is compared with the template of `replaced`, the result of `replaced_set`.
    """
    before, after = (mapping(one.value, "spec", "template") for one in (replaced, deployment))
    return list(_template_changes(before, after))


def _template_changes(before: Json, after: Json) -> Iterator[str]:
    for name in ("initContainers", "containers"):
        old, new = _containers(before, name), _containers(after, name)
        for container in dict.fromkeys((*old, *new)):
            if container not in new:
                yield f"container {container} {REMOVED}"
            elif container not in old:
                yield f"container {container} {ADDED}"
            else:
                yield from _container_changes(container, old[container], new[container])
    old_spec, new_spec = mapping(before, "spec"), mapping(after, "spec")
    for key in changed_keys(old_spec, new_spec):
        if key not in ("initContainers", "containers"):
            yield _change(key, old_spec.get(key), new_spec.get(key))
    for name, noun in (("labels", "label"), ("annotations", "annotation")):
        old_texts, new_texts = mapping(before, "metadata", name), mapping(after, "metadata", name)
        yield from (f"{noun} {key}" for key in changed_keys(old_texts, new_texts))


def _containers(template: Json, name: str) -> dict[str, Json]:
    return {text(one, "name"): one for one in items(template, "spec", name)}


def _container_changes(name: str, before: Json, after: Json) -> Iterator[str]:
    for key in changed_keys(before, after):
        if key != "resources":
            yield _change(f"{key} of {name}", before.get(key), after.get(key))
            continue
        old, new = mapping(before, key), mapping(after, key)
        for part in _AMOUNTS:
            amounts = (mapping(one, part) for one in (old, new))
            yield from field_differences(f"{part} of {name}:", *amounts)
        others = (part for part in changed_keys(old, new) if part not in _AMOUNTS)
        yield from (f"{key}.{part} of {name}" for part in others)


def _change(title: str, before: object, after: object) -> str:
    """Return `title`; append `before` and `after` if they are numbers or short (_VALUE_MAX)."""
    values = [one for one in (before, after) if one is not None]
    is_short = all(isinstance(one, str | int) and len(str(one)) <= _VALUE_MAX for one in values)
    return f"{title} {arrow(before, after)}" if is_short else title


def undo_steps(deployment: Manifest, replaced: Manifest) -> Iterator[NextStep]:
    """Yield the command that reverts `deployment` to the template of the ReplicaSet `replaced`."""
    revision = replaced.metadata.annotations.get(REVISION, "")
    yield _undo_step(deployment.ref.namespace, f"deploy/{deployment.ref.name}", revision)


def _undo_step(namespace: str, workload: str, revision: str) -> NextStep:
    """Return the command that reverts `workload`, such as sts/db, to `revision`.

    If `revision` is "", the command reverts to the revision before the present revision. That
    revision may not work either.
    upstream: staging/src/k8s.io/kubectl/pkg/polymorphichelpers/rollback.go: deploymentRevision,
    findHistory
    """
    words = ["kubectl", "rollout", "undo", "-n", namespace, workload]
    if revision:
        words.append(f"--to-revision={revision}")
    step = "if the new template cannot work, revert it"
    return NextStep(step, command=shlex.join(words), makes_change=True)


def _most_frequent(names: Iterable[str]) -> str:
    """Return the most frequent of `names`; "" if `names` is empty.

    Of equally frequent names, the result is the first in alphabetical order.
    """
    counts = Counter(names)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def pods_to_replace(
    workload: Manifest,
    controllers: Iterable[Manifest],
    pods: Sequence[PodInfo],
    kept: Mapping[WorkloadRef, int | None],
) -> list[PodInfo]:
    """Return the `pods` that have an old template, and that the rollout replaces.

    `pods` are the pods of `workload`, and `controllers` are the objects that it controls. `kept` is
    the result of `kept_revisions`: pods that keep their revision are left out. The result is [] if
    the workload is paused, if its controller has not observed its last change, or if the dump does
    not tell which template is current.
    """
    if workload.kind is DEPLOYMENT:
        if mapping(workload.value, "spec").get("paused") is True:
            return []
        sets = [one for one in controllers if one.kind is REPLICA_SET]
        current = _current_set(workload, sets)
        return [pod for pod in pods if current and _controller(pod) not in ("", current)]
    if workload.kind not in (STATEFUL_SET, DAEMON_SET):
        return []
    ref = WorkloadRef(workload.full_kind, workload.ref.namespace, workload.ref.name)
    first = kept.get(ref, 0)
    if first is None:
        return []
    if workload.kind is DAEMON_SET:
        generation = text(workload.value, "metadata", "annotations", TEMPLATE_GENERATION)
        known = ((pod, pod.labels.get(GENERATION_LABEL, "")) for pod in pods)
        return [pod for pod, own in known if generation and own not in ("", generation)]
    status = mapping(workload.value, "status")
    if status.get("observedGeneration", 0) != workload.metadata.generation:
        return []
    revision = text(status, "updateRevision")
    return [
        pod
        for pod in pods
        if revision and revision_of(pod.pod) not in ("", revision)
        if (ordinal_of(ref.name, pod.pod.metadata.name) or 0) >= first
    ]


def _current_set(deployment: Manifest, sets: Sequence[Manifest]) -> str:
    """Return the name of the ReplicaSet in `sets` that has the template of `deployment`.

    If no ReplicaSet has the template, the result is the name of the ReplicaSet with the
    Deployment's revision. If no ReplicaSet has the revision either, the result is "".
    """
    template = mapping(deployment.value, "spec", "template")
    alike = [one for one in sets if same_template(mapping(one.value, "spec", "template"), template)]
    oldest = min(
        ((one.metadata.creation_timestamp, one.ref.name) for one in alike), default=("", "")
    )
    revision = deployment.metadata.annotations.get(REVISION, "")
    numbered = (one for one in sets if one.metadata.annotations.get(REVISION, "") == revision)
    return oldest[1] or next((one.ref.name for one in numbered if revision), "")


def _controller(pod: PodInfo) -> str:
    found = controller_of(pod.pod.metadata)
    return "" if found is None else found.name
