"""StepContext: the input of the functions that yield next steps."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, mapping
from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.objects import (
    CSIDriver,
    PersistentVolume,
    PodSpec,
    ResourceClaim,
    StatefulSet,
    Taint,
)
from fairlead.apiserver.kind import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    SCALABLE,
    STATEFUL_SET,
    Kind,
)
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.kubelet.volume_attachment import attaches_to_one_node
from fairlead.engine.plugins.volume_binding.node_volumes import NODE_CONFLICT, STATUSES
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.stateful_set.rule import is_ordered
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.outage import STOPPED
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.snapshot.manifest import Manifest, entries_of
from fairlead.whatif.snapshot.node_pool import is_lasting_taint
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.served_kind import is_custom

NAMES_MAX: Final = 5  # maximum number of objects that a command names
TRIES_MAX: Final = 3  # number of remedies of one kind that are tried; each takes a simulation
_EVICTED_PODS_MANY: Final = 1_000  # a simulation in which more pods are evicted takes seconds
ELSEWHERE: Final = STATUSES[NODE_CONFLICT].message
"""The reason of nodes that cannot use a volume of a pod."""
_SHUT_DOWN: Final = ("", STOPPED)  # values of --how; the default is "stopped"
_SCALABLE: Final = frozenset(kind.kind for kind in SCALABLE)

Ask = Callable[[ClusterChange], Effect | None]
"""Returns the effect of another change of the same cluster; None if the change is invalid."""


class StepContext(Struct, frozen=True, dict=True):
    """An answer, the objects of its snapshot, a function that tries what-ifs, and notes so far."""

    answer: WhatIfAnswer
    manifests: Sequence[Manifest]
    ask: Ask  # tries a what-if
    notes: list[str]  # about steps that would not help
    causes: list[str]  # explain why pods are pending
    scheduler: SchedulerConfig  # the configuration of the run with the change
    # The command-line words with which another command reads the same cluster and the scheduler's
    # current configuration.
    arguments: Sequence[str]
    awaited: Sequence[ObjectRef] = ()  # the unready pods for which rollouts of the change wait
    written: Sequence[ObjectRef] = ()  # the objects that manifests and edits of the change write

    def has(self, ref: WorkloadRef) -> bool:
        """Return whether the snapshot contains the workload `ref` itself, not only its pods."""
        return bool(self.workloads({ref}))

    def has_object(self, kind: Kind, key: str) -> bool:
        """Return whether the snapshot contains the object of `kind` with the key namespace/name."""
        namespace, _, name = key.rpartition("/")
        return any(one.kind is kind for one in self._by_name.get((namespace, name), ()))

    def workloads(self, refs: Collection[WorkloadRef]) -> dict[WorkloadRef, Manifest]:
        """Return the workloads of `refs` that are in the snapshot as objects (`has`)."""
        found = {
            WorkloadRef(one.full_kind, *name): one
            for name in {(ref.namespace, ref.name) for ref in refs}
            for one in self._by_name.get(name, ())
        }
        return {ref: found[ref] for ref in sorted(refs) if ref in found}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], list[Manifest]]:
        """The objects of the snapshot by (namespace, name).

        Pods that are stored in groups of replicas (`ReplicaManifests`) are left out.
        """
        found: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
        for one in entries_of(self.manifests):
            if isinstance(one, Manifest):
                found[one.ref.namespace, one.ref.name].append(one)
        return found

    @cached_property
    def lasting_taints(self) -> Mapping[str, tuple[Taint, ...]]:
        """The taints that a copy of each node of the snapshot has, by the name of the node."""
        return {
            one.ref.name: tuple(
                taint for taint in one.node.spec.taints if is_lasting_taint(taint.key)
            )
            for one in samples(self.manifests)
            if one.kind is NODE
        }

    # --- failed nodes ----------------------------------------------------------------------

    def failed_nodes(self) -> set[str]:
        """Return the names of the nodes that the user's what-if makes fail."""
        outage = self.answer.changed.outage
        return set() if outage is None else {node.node for node in outage.nodes}

    def nodes_not_to_copy(self) -> set[str]:
        """Return the nodes whose copies would fail, or would make other nodes fail.

        --fail-zone also selects new nodes of the zone. --fail-fraction selects some of the present
        and the new nodes. If the fraction names a zone, only nodes of this zone are selected. If
        the fraction names no zone, any new node can change which nodes are selected.
        """
        answer = self.answer
        failures, known = answer.change.failures, (*answer.without.nodes, *answer.changed.nodes)
        if any("@" not in one for one in failures.fail_fraction):
            return {node.name for node in known}
        if not (failures.fail_zone or failures.fail_fraction):
            return set()
        failed = self.failed_nodes()
        zones = {node.zone for node in known if node.name in failed}
        return {node.name for node in known if node.zone in zones}

    def may_be_shut_down(self, least: DurationNs | None = None) -> bool:
        """Return whether the failed nodes may be machines that do not come back.

        If `least` is given, failed nodes that stay away for at least this time count, too.
        """
        change, outage = self.answer.change, self.answer.changed.outage
        failures = change.failures
        if failures.how not in _SHUT_DOWN or failures.flap:
            return False
        if not change.lasts or outage is None or least is None:
            return not change.lasts
        return all(
            one.back_at is None or one.back_at - one.quiet_at >= least for one in outage.nodes
        )

    # --- trials ----------------------------------------------------------------------------

    @property
    def is_slow(self) -> bool:
        """Return whether each trial takes several seconds, because many pods are evicted."""
        return len(self.answer.changed.evicted) > _EVICTED_PODS_MANY

    def with_edits(self, *edits: str) -> Effect | None:
        """Run the user's what-if with `edits` as further values of --set; return the effect.

        Returns None if the what-if with these edits is invalid.
        """
        change = self.answer.change
        return self.ask(replace(change, set=(*change.set, *edits)))

    def can_edit(self, ref: WorkloadRef) -> bool:
        """Return whether the user's what-if can run again with an edited pod template of `ref`."""
        change = self.answer.change
        return ref.kind in _SCALABLE and not (change.apply or is_named(ref.name, change.set))

    # --- replicas --------------------------------------------------------------------------

    def can_grow(self, one: WorkloadEffect) -> bool:
        """Return whether more replicas of the workload `one` would run and stay.

        If pods wait for a node, new replicas would wait, too. A StatefulSet that creates its pods
        in order creates no pod while another of its pods is not ready. If all replicas share a
        volume or devices that only one node at a time can use, a replica on another node waits
        until the volume or the devices are free.
        """
        effect = self.answer.effect
        is_full = bool(effect.difference.pending or effect.waited)
        waits = one.workload.kind == STATEFUL_SET.kind and self._waits_in_order(one)
        if one.down or is_full or waits or not self._has_unmanaged_scale(one):
            return False
        ref = one.workload
        return not (self._shares_volume_of_one_node(ref) or self._shares_devices_of_one_node(ref))

    def _shares_volume_of_one_node(self, workload: WorkloadRef) -> bool:
        """Return whether `workload` uses a claim whose volume attaches to only one node at a time.

        Return False if the snapshot lacks the claim or its volume.
        """
        named = {
            (workload.namespace, volume["persistentVolumeClaim"]["claimName"])
            for volume in self.pod_spec(workload).get("volumes") or ()
            if volume.get("persistentVolumeClaim")
        }
        if not named:
            return False
        present = [one for one in entries_of(self.manifests) if isinstance(one, Manifest)]
        volumes = {
            one.value["spec"].get("volumeName", "")
            for one in present
            if one.kind is PERSISTENT_VOLUME_CLAIM and (one.ref.namespace, one.ref.name) in named
        }
        drivers = {
            one.ref.name: decode_as(CSIDriver, one.value)
            for one in present
            if one.kind.kind == CSIDriver.__name__
        }
        bound = (
            decode_as(PersistentVolume, one.value)
            for one in present
            if one.kind is PERSISTENT_VOLUME and one.ref.name in volumes
        )
        return any(
            attaches_to_one_node(one, drivers.get(one.spec.csi.driver) if one.spec.csi else None)
            for one in bound
        )

    def _shares_devices_of_one_node(self, workload: WorkloadRef) -> bool:
        """Return whether `workload` names a ResourceClaim whose devices only one node can use.

        Return False if the snapshot lacks the claim or its devices.
        """
        named = {
            (workload.namespace, one["resourceClaimName"])
            for one in self.pod_spec(workload).get("resourceClaims") or ()
            if one.get("resourceClaimName")
        }
        claims = (
            decode_as(ResourceClaim, one.value)
            for one in (entries_of(self.manifests) if named else ())
            if isinstance(one, Manifest)
            and one.kind is RESOURCE_CLAIM
            and (one.ref.namespace, one.ref.name) in named
        )
        return any(self._reaches_one_node(claim) for claim in claims)

    def _reaches_one_node(self, claim: ResourceClaim) -> bool:
        """Return whether at most one node can use the devices that are allocated to `claim`."""
        allocation = claim.status.allocation
        selector = None if allocation is None else allocation.node_selector
        if selector is None:
            return False
        nodes = self.answer.changed.nodes
        return sum(node_selector_matches(selector, one.labels, one.name) for one in nodes) <= 1

    def pod_spec(self, workload: WorkloadRef) -> Json:
        """Return the spec in the pod template of `workload`, which the snapshot contains."""
        return mapping(self.workloads({workload})[workload].pod_template, "spec")

    def pod_specs(self, refs: Collection[WorkloadRef]) -> dict[WorkloadRef, Json]:
        """Return the specs of the pods of the workloads `refs`.

        For a workload of a built-in kind, the spec is taken from its pod template. For a custom
        resource or a workload that the snapshot lacks, the spec is taken from one of its pods. A
        workload without such a pod is left out.
        """
        owners = self.workloads(refs)
        specs = {
            ref: mapping(one.pod_template, "spec")
            for ref, one in owners.items()
            if one.kind is not POD and not is_custom(one.kind.api_version)
        }
        others = frozenset(refs).difference(specs)
        for one in samples(self.manifests) if others else ():
            if one.kind is POD and (ref := workload_of(one.pod)) in others:
                specs.setdefault(ref, one.value["spec"])
        return specs

    def edited_specs(self, refs: Collection[WorkloadRef]) -> dict[WorkloadRef, Json]:
        """Return the specs in the pod templates of `refs` with the edits of --set.

        Workloads that the snapshot lacks are left out, and so are workloads of custom resources.
        """
        # Imported here, because it imports schemas.
        from fairlead.whatif.change.edit.object_edit import with_field  # noqa: PLC0415
        from fairlead.whatif.snapshot.inventory import Inventory  # noqa: PLC0415

        found: dict[WorkloadRef, Json] = {}
        for ref, one in self.workloads(refs).items():
            if is_custom(one.kind.api_version):
                continue
            edits = [text for text in self.answer.change.set if is_named(ref.name, (text,))]
            inventory = Inventory([one])
            for text in edits:
                # An edit may be of another object with the same name.
                with suppress(InputError):
                    edit = with_field(text, inventory, ref.namespace)
                    inventory.add(replace(edit.target, content=edit.content))
            [edited] = inventory.of_kind(one.kind)
            found[ref] = mapping(edited.pod_template, "spec")
        return found

    def changed_specs(self, refs: Collection[WorkloadRef]) -> dict[WorkloadRef, PodSpec]:
        """Return the known specs of the pods of `refs`, as the user's what-if changes them.

        The specs are not known if the what-if applies files.
        """
        change = self.answer.change
        if change.apply:
            return {}
        edited = {ref for ref in refs if self.has(ref) and is_named(ref.name, change.set)}
        found = self.pod_specs(set(refs) - edited) | self.edited_specs(edited)
        return {ref: decode_as(PodSpec, spec) for ref, spec in found.items()}

    def _waits_in_order(self, one: WorkloadEffect) -> bool:
        """Return whether a pod of the StatefulSet `one` was not ready before the change.

        Return False if the policy of the StatefulSet is Parallel, or if the change creates it.
        """
        found = self.workloads({one.workload}).get(one.workload)
        if found is None:
            return False
        owner = decode_as(StatefulSet, found.value)
        return is_ordered(owner) and one.readiness.before < owner.spec.replicas

    def can_scale(self, one: WorkloadEffect) -> bool:
        """Return whether the user's what-if can run again with another scale of `one`."""
        change = self.answer.change
        is_edited = change.apply or is_named(one.workload.name, (*change.scale, *change.set))
        return not is_edited and self._has_unmanaged_scale(one)

    def _has_unmanaged_scale(self, one: WorkloadEffect) -> bool:
        """Return whether the workload `one` of the snapshot has a scale that no autoscaler sets."""
        ref = one.workload
        is_autoscaled = any(
            each.target == f"{ref.kind} {ref.name}"
            and each.autoscaler.startswith(f"{ref.namespace}/")
            for each in self.answer.changed.pod_autoscalers
        )
        return ref.kind in _SCALABLE and not is_autoscaled and self.has(ref)


def is_named(name: str, texts: Iterable[str]) -> bool:
    """Return whether an edit in `texts`, such as `deploy/web=2`, names `name` in any namespace."""
    targets = (text.partition(":")[0].partition("=")[0] for text in texts)
    return name.rpartition("/")[2] in {one.rpartition("/")[2] for one in targets}


def scaled(one: WorkloadEffect, count: int) -> NextStep:
    """Return a what-if with `count` more replicas of the workload `one`."""
    replicas = "one more replica" if count == 1 else f"{count:,} more replicas"
    return NextStep(
        f"ask again with {replicas} of {one.workload}",
        shlex.join(("--scale", f"{one.workload}={one.readiness.wanted + count}")),
    )


def more_ready(one: WorkloadEffect, tried: Effect | None) -> bool:
    """Return whether a workload has more ready pods at the end of a trial than with the change.

    `one` is the effect of the change on this workload, and `tried` is the effect of the trial.
    """
    if tried is None:
        return False
    found = tried.changed.workloads.get(one.workload)
    at_end = one.readiness.before if found is None else found.at_end
    return at_end > one.readiness.at_end


def waiting_pods(effect: Effect) -> int:
    """Return the number of pods that are pending, or that wait to be created."""
    found = effect.difference
    missing = sum(one.missing for one in effect.workloads)
    return len(found.pending) + len(found.not_created) + missing


def is_worse(tried: Effect, present: Effect) -> bool:
    """Return whether a trial ends worse than the user's what-if.

    The trial ends worse if more pods wait, if more of a workload's wanted pods are not ready, or if
    more pods keep an old template.

    `tried` is the effect of the trial, and `present` is the effect of the user's what-if. Pods
    without a controller do not count, because every eviction is the end of such a pod.
    """
    if waiting_pods(tried) > waiting_pods(present) or _outdated(tried) > _outdated(present):
        return True
    known = present.changed.workloads
    return any(
        one.wanted - one.at_end > max(0, known[ref].wanted - known[ref].at_end)
        for ref, one in tried.changed.workloads.items()
        if ref in known and ref.kind != POD.kind
    )


def _outdated(effect: Effect) -> int:
    return sum(one.outdated for one in effect.workloads)
