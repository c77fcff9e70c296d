"""Notes about missing settings of the simulated node autoscaler, and about ignored changes.

A simulated autoscaler reads its settings once, before the run. The settings are in the Deployment
of the autoscaler. The limits of Cluster API are in annotations of MachineDeployments and
MachineSets. NodePools of Karpenter are not settings: changes of NodePools take effect, except
changes that need a feature gate that is off. Cluster Autoscaler reads the ConfigMap of the priority
expander again and again, so changes of this ConfigMap take effect, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json, at
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import CONFIG_MAP
from fairlead.apiserver.registry.store import Store
from fairlead.engine.autoscaling.cluster_autoscaler.expander.priority import (
    CONFIG_MAP as PRIORITIES,
)
from fairlead.whatif.configuration.autoscaling.autoscaler import CLUSTER_AUTOSCALER, KARPENTER
from fairlead.whatif.configuration.autoscaling.group_limit import limit_annotations
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.snapshot.installed_autoscaler import autoscaler_words, deployments_of
from fairlead.whatif.snapshot.samples import samples

_KARPENTER: Final = "karpenter.sh"


def kept_setting_notes(experiment: Experiment, store: Store) -> Iterator[str]:
    """Yield a note about the objects of `experiment` whose settings the run has changed.

    The simulated node autoscaler of `experiment` ignores these changes. `store` has the objects at
    the end of the run. Deleted objects are left out.
    """
    changed = list(_changed(experiment, store))
    if not changed:
        return
    name, files = CLUSTER_AUTOSCALER, "the dump or in the file of --node-groups"
    if experiment.karpenter is not None:
        name, files = KARPENTER, "the dump"
    yield (
        f"The settings of the autoscaler in {listed(changed)} change, but the simulated {name} "
        f"keeps its settings. To simulate other settings, state them in {files}."
    )


def missing_priority_notes(experiment: Experiment, store: Store) -> Iterator[str]:
    """Yield a note if the priority expander is used, but `store` lacks its ConfigMap.

    `store` has the objects at the end of the run of `experiment`.
    """
    if experiment.autoscaler is None:
        return
    options = experiment.autoscaler.options
    is_used = "priority" in options.expander
    if is_used and store.find(CONFIG_MAP, options.namespace, PRIORITIES) is None:
        yield (
            f"There is no ConfigMap {PRIORITIES} in namespace {options.namespace}; without it, the "
            "expander priority has no effect."
        )


def gate_notes(experiment: Experiment, store: Store) -> Iterator[str]:
    """Yield a note for each feature gate of Karpenter that is off, although new objects need it.

    `store` has the objects at the end of the run. An object of `experiment` is not new. There is
    one exception: a NodePool counts as new if it has become static during the run.
    """
    if experiment.karpenter is None:
        return
    options = experiment.karpenter.options
    for gate, is_on, kind, field in (
        ("NodeOverlay", options.node_overlay, "NodeOverlay", "apiVersion"),
        ("StaticCapacity", options.static_capacity, "NodePool", "spec.replicas"),
    ):
        if not is_on and (named := list(_new(experiment, store, kind, field))):
            yield (
                f"{listed(named)} {'has' if len(named) == 1 else 'have'} no effect, because "
                f"Karpenter's feature gate {gate} is off in the dump."
            )


def _new(experiment: Experiment, store: Store, kind: str, field: str) -> Iterator[str]:
    """Yield `KIND NAME` of each Karpenter object of `kind` that gained `field` during the run."""
    path = field.split(".")
    known = {
        one.ref.name
        for one in samples(experiment.initial)
        if one.kind.group == _KARPENTER
        and one.kind.kind == kind
        and at(one.value, *path) is not None
    }
    for found in store.storage.kinds():
        if found.group == _KARPENTER and found.kind == kind:
            for one in store.list(found):
                name = one["metadata"]["name"]
                if at(one, *path) is not None and name not in known:
                    yield f"{kind} {name}"


def _changed(experiment: Experiment, store: Store) -> Iterator[str]:
    name = CLUSTER_AUTOSCALER if experiment.karpenter is None else KARPENTER
    for one in deployments_of(name, experiment.initial):
        present = store.find(one.kind, one.ref.namespace, one.ref.name)
        if present and autoscaler_words(name, present) != autoscaler_words(name, one.value):
            yield one.title
    if experiment.autoscaler is None:
        return
    for one in samples(experiment.initial):
        stated = limit_annotations(_annotations(one.value))
        if stated and one.kind.kind in ("MachineDeployment", "MachineSet"):
            present = store.find(one.kind, one.ref.namespace, one.ref.name)
            if present and limit_annotations(_annotations(present)) != stated:
                yield one.title


def _annotations(value: Json) -> dict[str, Any]:
    return value["metadata"].get("annotations") or {}
