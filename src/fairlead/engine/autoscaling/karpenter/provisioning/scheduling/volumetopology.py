"""The node requirements of a pod's volumes, and volumes for which no node can be created.

upstream: pkg/controllers/provisioning/scheduling/volumetopology.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import (
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import (
    of_selector,
    requirement,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements, combined
from fairlead.engine.autoscaling.karpenter.state.storage import StorageObjects, claim_name

_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_PVC: Final = "PersistentVolumeClaim"
_PV: Final = "PersistentVolume"
_CLASS: Final = "StorageClass"

Alternatives = tuple[Requirements, ...]


def volume_requirements(pod: Pod, storage: StorageObjects) -> Alternatives | None:
    """Return the node requirements of the pod's volumes; None if the volumes have none.

    The result contains alternatives, of which a node must meet one. For two volumes, each
    alternative of the first is combined with each alternative of the second. Contradictory pairs
    are left out. If all pairs are contradictory, they are kept. Each further volume is combined
    with the result in the same way.
    """
    alternatives: Alternatives | None = None
    for volume in pod.spec.volumes:
        claim = storage.claims.get(f"{pod.metadata.namespace}/{claim_name(pod, volume)}")
        mine = _claim_alternatives(claim, storage) if claim is not None else ()
        if mine:
            alternatives = mine if alternatives is None else _product(alternatives, mine)
    return alternatives


def _product(first: Alternatives, second: Alternatives) -> Alternatives:
    pairs = [(a, b) for a in first for b in second]
    agreeing = [(a, b) for a, b in pairs if a.intersects(b)]
    return tuple(a.with_added(b) for a, b in agreeing or pairs)


def _claim_alternatives(claim: PersistentVolumeClaim, storage: StorageObjects) -> Alternatives:
    if claim.spec.volume_name:
        volume = storage.volumes.get(claim.spec.volume_name)
        return _volume_alternatives(volume) if volume is not None else ()
    storage_class = storage.classes.get(claim.spec.storage_class_name or "")
    return _class_alternatives(storage_class) if storage_class is not None else ()


def _class_alternatives(storage_class: StorageClass) -> Alternatives:
    return tuple(
        combined(requirement(one.key, "In", one.values) for one in term.match_label_expressions)
        for term in storage_class.allowed_topologies
        if term.match_label_expressions
    )


def _volume_alternatives(volume: PersistentVolume) -> Alternatives:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return ()
    is_local = volume.spec.local is not None or volume.spec.host_path is not None
    found = (_term(one, is_local) for one in affinity.required.node_selector_terms)
    return tuple(one for one in found if one is not None)


def _term(term: NodeSelectorTerm, is_local: bool) -> Requirements | None:  # noqa: FBT001
    """Return the requirements of a node selector term; None if it has no expressions.

    The hostname requirement of a local volume (`is_local`) is ignored.
    """
    stated = term.match_expressions
    kept = [one for one in stated if not (is_local and one.key == HOSTNAME)]
    if stated and not kept:
        return Requirements()
    return combined(of_selector(one) for one in kept) if kept else None


def volume_problem(pod: Pod, storage: StorageObjects, options: KarpenterOptions) -> str | None:
    """Return upstream's text about the first volume that no node can use.

    Returns None if there is no such volume.
    """
    # upstream: volumetopology.go:ValidatePersistentVolumeClaims
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if not name:
            continue
        claim = storage.claims.get(f"{pod.metadata.namespace}/{name}")
        if claim is None:
            problem = f'getting persistent volume claim, persistentvolumeclaims "{name}" not found'
            return _wrapped(problem, {_PVC: name})
        found = _claim_problem(claim, storage, options)
        if found is not None:
            return found
    return None


def _claim_problem(
    claim: PersistentVolumeClaim, storage: StorageObjects, options: KarpenterOptions
) -> str | None:
    volume_name, class_name = claim.spec.volume_name, claim.spec.storage_class_name or ""
    if claim.metadata.deletion_timestamp:
        return _wrapped("persistentvolumeclaim is being deleted", {_PVC: claim.key})
    if claim.status.phase == "Lost":
        text = "persistentvolumeclaim bound to non-existent persistentvolume"
        return _wrapped(text, {_PVC: claim.key, _PV: volume_name})
    if volume_name:
        problem = _bound_problem(claim, storage)
    else:
        problem = _unbound_problem(claim, storage, options)
    if problem is not None:
        return problem
    driver = storage.driver(claim)
    if driver in options.unsupported_provisioners:
        text = "failed to validate pvc, provisioner is not supported"
        return _wrapped(text, {_PVC: claim.key, _CLASS: class_name, "Provisioner": driver})
    return None


def _bound_problem(claim: PersistentVolumeClaim, storage: StorageObjects) -> str | None:
    volume_name, class_name = claim.spec.volume_name, claim.spec.storage_class_name or ""
    volume = storage.volumes.get(volume_name)
    about = {_PVC: claim.key, _PV: volume_name, _CLASS: class_name}
    if volume is None:
        text = f'failed to validate pvc, persistentvolumes "{volume_name}" not found'
        return _wrapped(text, about)
    if volume.metadata.deletion_timestamp:
        return _wrapped("failed to validate pvc, persistentvolume is being deleted", about)
    if _BIND_COMPLETED not in claim.metadata.annotations:
        text = "pvc is considered unbound because it does not contain annotation"
        names = {_PVC: claim.metadata.name, _PV: volume_name, "annotation": _BIND_COMPLETED}
        return _wrapped(text, names)
    return None


def _unbound_problem(
    claim: PersistentVolumeClaim, storage: StorageObjects, options: KarpenterOptions
) -> str | None:
    name = claim.spec.storage_class_name or ""
    about = {_PVC: claim.key, _CLASS: name}
    if not name:
        return _wrapped("unbound pvc must define a storage class", about)
    storage_class = storage.classes.get(name)
    if storage_class is None:
        text = (
            "failed to validate pvc, failed to get storage class, "
            f'storageclasses.storage.k8s.io "{name}" not found'
        )
        return _wrapped(text, about)
    if storage_class.volume_binding_mode == "Immediate":
        text = "failed to validate pvc, pvc with immediate volume binding mode must be bound"
        return _wrapped(text, about)
    for key in _topology_keys(storage_class):
        if key in options.unsupported_topology_keys:
            text = "failed to validate pvc, storage class uses unsupported topology key"
            return _wrapped(text, about | {"TopologyKey": key})
    return None


def _topology_keys(storage_class: StorageClass) -> Sequence[str]:
    return [
        one.key for term in storage_class.allowed_topologies for one in term.match_label_expressions
    ]


def _wrapped(text: str, values: dict[str, str]) -> str:
    """Return `text` followed by `values`, in the format of upstream's structured errors."""
    shown = ", ".join(f"{key}={values[key]}" for key in sorted(values))
    return f"{text} ({shown})"
