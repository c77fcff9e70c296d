"""Notes about a run: what the simulation ignored, and why objects stay unfinished at its end."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, text
from fairlead.api.objects import PersistentVolumeClaim, Pod
from fairlead.api.pods.volumes import all_claims
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.admission.simulation import Unchecked
from fairlead.apiserver.kind import (
    DEVICE_TAINT_RULE,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import DeleteObject
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.snapshot.dump_note import (
    IGNORED_GROUPS,
    IGNORED_MAX_UNAVAILABLE,
    IGNORED_RULES,
)
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_NAMED_MAX: Final = 3


def unchecked_notes(unchecked: Unchecked, manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield notes about the checks that admission skipped.

    If `manifests` come from files and not from a cluster, missing objects are not noted: users
    leave them out on purpose.
    """
    if unchecked.plugins and any(one.ref.uid for one in samples(manifests)):
        lacking = ", ".join(f"{one} ({plugin})" for one, plugin in unchecked.plugins.items())
        yield f"Admission could not check new objects, because the dump lacks {lacking}."
    if unchecked.webhooks:
        names = ", ".join(f"{name} ({count})" for name, count in unchecked.webhooks.items())
        yield f"Admission webhooks are not called. Calls left out, by webhook: {names}."


def deleted_namespaces(steps: Iterable[ScriptedStep]) -> Iterator[str]:
    """Yield the names of the namespaces that `steps` delete."""
    for command in (one for step in steps for one in step.commands):
        if isinstance(command, DeleteObject) and command.target.kind == NAMESPACE.kind:
            yield command.target.name


def held_namespaces(
    steps: Iterable[ScriptedStep], store: Store, is_serving: Callable[[str], bool]
) -> Iterator[str]:
    """Yield a note for each namespace that `steps` delete and that `store` still has at the end.

    Only namespaces with pods on nodes without a working kubelet are noted.
    """
    # upstream: namespaced_resources_deleter.go:deleteAllContent deletes the pods first
    for name in deleted_namespaces(steps):
        if store.find(NAMESPACE, "", name) is None:
            continue
        nodes = [pod["spec"].get("nodeName", "") for pod in store.list(POD, name)]
        held = [node for node in nodes if not is_serving(node)]
        if held:
            pods = counted(len(held), "pod")
            first, *others = sorted(set(held))
            where = f"{first} and {len(others):,} more" if others else first
            yield (
                f"Namespace {name} stays Terminating and keeps its other objects, because {pods} "
                f"on {where} cannot stop: the kubelet does not answer. Delete such a node if its "
                "machine is gone."
            )


def missing_class_notes(
    store: Store, initial: Iterable[Manifest], pending: Iterable[Pod]
) -> Iterator[str]:
    """Yield a note if unbound claims of `pending` pods name StorageClasses that `store` lacks.

    The scheduler says only that such a pod has unbound immediate claims. If a class is among the
    `initial` objects, the change deleted the class. Any other class may exist in the cluster,
    although the dump lacks it. So the note says how to add the class.
    """
    claims: dict[str, list[str]] = {}
    for pod in pending:
        namespace = pod.metadata.namespace
        for name in all_claims(pod):
            found = store.find(PERSISTENT_VOLUME_CLAIM, namespace, name)
            if found is None:
                continue
            spec = decode_as(PersistentVolumeClaim, found).spec
            wanted = "" if spec.volume_name else spec.storage_class_name
            if wanted and store.find(STORAGE_CLASS, "", wanted) is None:
                claims.setdefault(wanted, []).append(f"{namespace}/{name}")
    if claims:
        classes = "; ".join(
            f"{name} (for {listed(sorted(set(found)), _NAMED_MAX)})"
            for name, found in sorted(claims.items())
        )
        listed_at_first = {one.ref.name for one in samples(initial) if one.kind is STORAGE_CLASS}
        remedy = " If the cluster has the class, add storageclasses to the dump."
        yield (
            f"Pods wait for claims of a StorageClass that does not exist: {classes}."
            f"{'' if listed_at_first.issuperset(claims) else remedy}"
        )


def failing_provisioner_notes(
    store: Store, pending: Iterable[Pod], failing: Container[str]
) -> Iterator[str]:
    """Yield a note if `pending` pods wait for `failing` claims.

    The provisioners of these claims failed in the dump. `store` has the objects at the end of the
    run.
    """
    found: dict[str, str] = {}
    for pod in pending:
        for name in all_claims(pod):
            key = f"{pod.metadata.namespace}/{name}"
            if key not in failing:
                continue
            value = store.find(PERSISTENT_VOLUME_CLAIM, pod.metadata.namespace, name)
            wanted = text(value, "spec", "storageClassName")
            found[key] = text(store.find(STORAGE_CLASS, "", wanted), "provisioner")
    if found:
        claims = "PersistentVolumeClaim" if len(found) == 1 else "PersistentVolumeClaims"
        have = "has" if len(found) == 1 else "have"
        yield (
            f"{claims} {listed(sorted(found), _NAMED_MAX)} {have} waited for at least 5m for "
            f"{listed(sorted(set(found.values())), _NAMED_MAX)}, so this answer assumes that the "
            "provisioner fails."
        )


def ignored_call_note(url: str, message: str, times: int = 1) -> str:
    """Return the note that `times` calls to the extender at `url` failed and were ignored.

    `message` is the error of the first of these calls.
    """
    if times == 1:
        return (
            f"The call to the extender at {url} failed: {message}. The scheduler ignores this "
            "failure."
        )
    return (
        f"{times:,} calls to the extender at {url} failed. The scheduler ignores these failures. "
        f"The first error: {message}."
    )


def ignored_notes(experiment: Experiment, store: Store) -> Iterator[str]:
    """Yield notes about objects and fields in `store` whose feature gate is off."""
    if not experiment.scheduler.version.device_taint_rules:
        yield from [IGNORED_RULES] if store.list(DEVICE_TAINT_RULE) else ()
    if not experiment.scheduler.version.pod_groups and experiment.batch is None:
        yield from [IGNORED_GROUPS] if store.list(POD_GROUP) else ()
    if not experiment.followed.general.max_unavailable_stateful_set:
        initial = {
            one.ref.key: one.metadata.generation
            for one in samples(experiment.initial)
            if one.kind is STATEFUL_SET
        }
        if any(
            _has_max_unavailable(one) and _is_or_was_updated(one, initial)
            for one in store.list(STATEFUL_SET)
        ):
            yield IGNORED_MAX_UNAVAILABLE


def _has_max_unavailable(stateful_set: Json) -> bool:
    """Return whether `stateful_set` sets `maxUnavailable` to a value other than 1, the default."""
    rolling = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return rolling.get("maxUnavailable") not in (None, 1)


def _is_or_was_updated(stateful_set: Json, initial: Mapping[str, int]) -> bool:
    """Return whether the rolling update of `stateful_set` may have replaced pods in the run.

    `initial` maps `namespace/name` of each StatefulSet to its generation at the start of the run.
    """
    meta, status = stateful_set["metadata"], stateful_set.get("status") or {}
    key = f"{meta['namespace']}/{meta['name']}"
    if key in initial and meta.get("generation", 0) != initial[key]:
        return True
    return status.get("currentRevision") != status.get("updateRevision")
