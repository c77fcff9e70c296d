"""VolumeBinding evaluates all nodes at once; this test compares it with one node at a time.

The reference is upstream's binder.go: FindPodVolumes, without columns, caches or indexes.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.objects import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from fairlead.api.quantity import parse_quantity
from fairlead.api.selector import selector_matches
from fairlead.engine.core.status import SKIP, Status
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.testing.builders import make_node
from fairlead.testing.random_cluster import Chance
from fairlead.testing.storage_builders import (
    make_capacity,
    make_claim,
    make_claim_volumes,
    make_csi_driver,
    make_storage_class,
    make_volume,
)

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REASONS = (OUT_OF_REACH, NO_MATCH, NO_SPACE, NO_VOLUME)

NODES = tuple(f"n{i}" for i in range(4))
ZONES = ("z1", "z2")
CLAIMS = tuple(f"c{i}" for i in range(5))
VOLUMES = tuple(f"v{i}" for i in range(10))
CLASSES = ("fast", "slow")
MOSTLY_FAST = ("fast", "fast", "fast", "slow")
SIZES = ("1Gi", "2Gi", "3Gi", "1500Mi")


# --- the walk --------------------------------------------------------------------------------


def amount(text):
    return parse_quantity(text).nano


def size_of(claim):
    return amount(claim.spec.resources.requests.get("storage", 0))


def reaches(volume, node):
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return node_selector_matches(affinity.required, node.metadata.labels, "")


def walk(related, claims, node):
    """Return (reasons, {claim: volume}, claims to provision) for one node."""
    reasons = bound_reasons(related, [c for c in claims if BOUND in c.metadata.annotations], node)
    waiting = [c for c in claims if BOUND not in c.metadata.annotations]
    tied = [c for c in waiting if SELECTED in c.metadata.annotations]
    if any(c.metadata.annotations[SELECTED] != node.metadata.name for c in tied):
        return sorted([*reasons, NO_MATCH], key=REASONS.index), {}, []
    taken, unmatched = {}, []
    for claim in sorted((c for c in waiting if c not in tied), key=size_of):
        volume = matching(related, claim, node, taken)
        if volume is None:
            unmatched.append(claim)
        else:
            taken[volume.key] = claim
    wanted = [*tied, *unmatched]
    problem = next((p for p in (provision_problem(related, c, node) for c in wanted) if p), None)
    if problem is not None:
        reasons.append(problem)
    reasons.sort(key=REASONS.index)
    return reasons, {c.metadata.name: name for name, c in taken.items()}, wanted


def bound_reasons(related, claims, node):
    for claim in claims:
        volume = related.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return [NO_VOLUME]
        if not reaches(volume, node):
            return [OUT_OF_REACH]
    return []


def matching(related, claim, node, taken):
    best, meta = None, claim.metadata
    ordered = sorted(
        related.all_of(PersistentVolume), key=lambda v: (amount(v.spec.capacity["storage"]), v.key)
    )
    for volume in ordered:
        spec = volume.spec
        if volume.key in taken or spec.storage_class_name != claim.spec.storage_class_name:
            continue
        theirs = spec.claim_ref
        is_ours = theirs is not None and (
            (theirs.namespace, theirs.name) == (meta.namespace, meta.name)
            and theirs.uid in ("", meta.uid)
        )
        if theirs is not None and not is_ours:
            continue
        if amount(spec.capacity["storage"]) < size_of(claim):
            continue
        if spec.volume_mode != claim.spec.volume_mode or volume.metadata.deletion_timestamp:
            continue
        if is_ours:
            return volume if reaches(volume, node) else None
        if volume.status.phase != "Available" or not reaches(volume, node):
            continue
        selector = claim.spec.selector
        if selector is not None and not selector_matches(selector, volume.metadata.labels):
            continue
        if not set(claim.spec.access_modes) <= set(spec.access_modes):
            continue
        best = best or volume
    return best


def provision_problem(related, claim, node):
    of = related.get(StorageClass, claim.spec.storage_class_name)
    if of.provisioner == "kubernetes.io/no-provisioner":
        return NO_MATCH
    labels = node.metadata.labels
    allowed = [
        term.match_label_expressions
        and all(labels.get(one.key) in one.values for one in term.match_label_expressions)
        for term in of.allowed_topologies
    ]
    if allowed and not any(allowed):
        return NO_MATCH
    driver = related.get(CSIDriver, of.provisioner)
    if driver is None or not driver.spec.storage_capacity or not claim.spec.resources.requests:
        return None
    for one in related.all_of(CSIStorageCapacity):
        said = one.capacity if one.maximum_volume_size is None else one.maximum_volume_size
        is_ours = one.storage_class_name == of.metadata.name and one.node_topology is not None
        enough = said is not None and amount(said) >= size_of(claim)
        if is_ours and enough and selector_matches(one.node_topology, labels):
            return None
    return NO_SPACE


# --- random storage --------------------------------------------------------------------------


def any_reach(chance):
    return chance.of(
        [None, {HOST: [chance.of(NODES)]}, {ZONE: [chance.of(ZONES)]}, {ZONE: list(ZONES)}]
    )


def any_volume(chance, name=""):
    claim = f"default/{chance.of(CLAIMS)}" if chance.one_in(5) else ""
    return make_volume(
        name or chance.of(VOLUMES),
        size=chance.of(SIZES),
        of_class=chance.of(MOSTLY_FAST),
        modes=["ReadWriteOnce"] if chance.one_in(6) else ["ReadWriteOnce", "ReadOnlyMany"],
        claim=claim,
        claim_uid=chance.of((None, "", "uid-other")),
        reach=any_reach(chance),
        labels={"tier": chance.of(("gold", "tin"))},
        phase="Released" if chance.one_in(8) else "",
        terminating=chance.one_in(9),
    )


def any_claim(chance, name=""):
    spec = {"selector": {"matchLabels": {"tier": "gold"}}} if chance.one_in(5) else {}
    if chance.one_in(12):
        spec["volumeMode"] = "Block"
    is_bound = chance.one_in(3)
    return make_claim(
        name or chance.of(CLAIMS),
        size=chance.of((*SIZES, None)),
        of_class=chance.of(MOSTLY_FAST),
        modes=chance.of((["ReadWriteOnce"], ["ReadOnlyMany"])),
        volume=chance.of(VOLUMES) if is_bound else "",
        bound=is_bound,
        node=chance.of(NODES) if chance.one_in(9) and not is_bound else "",
        spec=spec,
    )


def any_class(chance):
    return make_storage_class(
        chance.of(CLASSES),
        provisioner=chance.of(("csi.example.com", "kubernetes.io/no-provisioner")),
        topologies=chance.of(([], [{ZONE: ["z1"]}], [{HOST: ["n1"]}, {ZONE: ["z2"]}], [{}])),
    )


def any_capacity(chance):
    topology = chance.of(
        (
            {"matchLabels": {HOST: chance.of(NODES)}},
            {"matchLabels": {ZONE: chance.of(ZONES)}},
            {},
            None,
            {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]},
        )
    )
    return make_capacity(
        f"k{chance.below(4)}",
        capacity=chance.of((*SIZES, None)),
        maximum=chance.of((None, None, "1Gi")),
        topology=topology,
        of_class=chance.of(CLASSES),
    )


def any_node(chance):
    name = chance.of(NODES)
    zone = {} if chance.one_in(4) else {ZONE: chance.of(ZONES)}
    return make_node(name, labels={HOST: name} | zone)


MAKERS = (
    any_volume,
    any_volume,
    any_volume,
    any_claim,
    any_claim,
    any_class,
    any_capacity,
    any_node,
)


def any_change(chance):
    one = chance.of(MAKERS)(chance)
    return ObjectDeleted(one) if chance.one_in(5) else ObjectChanged(one)


@given(seed=st.integers(0, 2**32))
def test_results_for_all_nodes_equal_those_of_single_nodes(seed, new_scene):
    """The reasons, volumes and claims to provision are equal, after any changes of storage."""
    chance, scene = Chance(seed), new_scene()
    scene.tell(*(make_storage_class(name) for name in CLASSES))
    scene.tell(make_csi_driver(tells_capacity=chance.one_in(2)))
    scene.tell(*(make_node(name, labels={HOST: name}) for name in NODES[:2]))
    scene.tell(*(any_volume(chance, name) for name in VOLUMES))
    scene.tell(*(any_claim(chance, name) for name in CLAIMS))
    for _ in range(10):
        for _ in range(chance.below(5)):
            scene.cluster.apply(any_change(chance))
        compare(scene, chance.some(CLAIMS, 3))


def compare(scene, names):
    plugin, related = scene.plugin("VolumeBinding"), scene.cluster.related
    pod, state = scene.incoming(**make_claim_volumes(*names)), CycleState()
    answer = plugin.pre_filter(state, pod)
    if answer is SKIP or isinstance(answer, Status):
        return
    claims = [related.get(PersistentVolumeClaim, f"default/{name}") for name in names]
    for name, reason in scene.verdicts(plugin, pod, state).items():
        node = scene.table.find(name)
        reasons, taken, made = walk(related, claims, node.node)
        assert reason == ", ".join(reasons), name
        if not reason:
            volumes = plugin.volumes_on(state, node)
            assert {c.metadata.name: v.key for c, v in volumes.bindings} == taken
            assert list(volumes.provisions) == made
