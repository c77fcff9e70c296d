"""VolumeBinding: the nodes from which the volumes of a pod are accessible or can be provisioned."""

from __future__ import annotations

import re

import pytest

from fairlead.api.objects import PersistentVolumeClaim
from fairlead.engine.core.status import SKIP, Code, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.plugins.volume_binding.plugin import VolumeBindingArgs
from fairlead.testing.storage_builders import (
    make_capacity,
    make_claim,
    make_claim_volumes,
    make_csi_driver,
    make_csi_node,
    make_storage_class,
    make_volume,
)

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@pytest.fixture
def plugin(scene):
    for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z2")):
        scene.node(name, zone)
    return scene.plugin("VolumeBinding")


def volumes_by_node(scene, plugin, *claims):
    """Return {node: "claim=volume claim!" or reason}, where `!` marks a claim to be provisioned."""
    pod = scene.incoming(**make_claim_volumes(*claims))
    state = scene.started(plugin, pod)
    found = scene.verdicts(plugin, pod, state)
    for name, reason in found.items():
        if not reason:
            volumes = plugin.volumes_on(state, scene.table.find(name))
            parts = [f"{claim.metadata.name}={one.key}" for claim, one in volumes.bindings]
            parts += [f"{claim.metadata.name}!" for claim in volumes.provisions]
            found[name] = " ".join(parts)
    return found


def everywhere(text):
    return dict.fromkeys("abc", text)


# --- the pod as a whole ----------------------------------------------------------------------

EPHEMERAL = {"volumes": [{"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}]}


@pytest.mark.parametrize(
    ("objects", "spec", "reason"),
    [
        pytest.param(
            [],
            make_claim_volumes("c"),
            'persistentvolumeclaim "c" not found',
            id="a claim that is not there",
        ),
        pytest.param(
            [],
            EPHEMERAL,
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            '"incoming-e"',
            id="a claim that is still to be made",
        ),
        pytest.param(
            [make_claim("incoming-e", made_for="u-somebody")],
            EPHEMERAL,
            "PVC default/incoming-e was not created for pod default/incoming (pod is not owner)",
            id="a claim that was made for somebody else",
        ),
        pytest.param(
            [make_claim("c", phase="Lost", volume="v")],
            make_claim_volumes("c"),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            id="a lost claim",
        ),
        pytest.param(
            [make_claim("c", terminating=True)],
            make_claim_volumes("c"),
            'persistentvolumeclaim "c" is being deleted',
            id="a claim on its way out",
        ),
    ],
)
def test_an_unusable_claim_makes_the_pod_unschedulable(objects, spec, reason, scene, plugin):
    """The claim is unusable on every node, and preemption does not help."""
    scene.tell(*objects)
    answer = plugin.pre_filter(CycleState(), scene.incoming(**spec))
    assert isinstance(answer, Status)
    assert (answer.code, answer.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason)


@pytest.mark.parametrize(
    ("claim", "classes"),
    [
        pytest.param(
            make_claim("c"), [make_storage_class(waits=False)], id="its class binds at once"
        ),
        pytest.param(make_claim("c"), [], id="its class is not there"),
        pytest.param(make_claim("c", of_class=""), [], id="it has the empty class"),
        pytest.param(make_claim("c", of_class=None), [make_storage_class()], id="it has no class"),
        pytest.param(
            make_claim("c", volume="v"), [make_storage_class()], id="it names a volume already"
        ),
        pytest.param(
            make_claim("c", annotations={"volume.beta.kubernetes.io/storage-class": "gone"}),
            [make_storage_class()],
            id="a former annotation names another class",
        ),
    ],
)
def test_unbound_claims_that_make_the_pod_unschedulable(claim, classes, scene, plugin):
    """Another controller must bind these claims first."""
    scene.tell(claim, *classes)
    answer = plugin.pre_filter(CycleState(), scene.incoming(**make_claim_volumes("c")))
    assert answer.message == "pod has unbound immediate PersistentVolumeClaims"


def test_pods_without_claims_are_skipped(scene, plugin):
    """Other volumes do not matter, and no scores are computed."""
    assert plugin.pre_filter(CycleState(), scene.incoming()) is SKIP
    disk = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]}
    assert plugin.pre_filter(CycleState(), scene.incoming(**disk)) is SKIP
    assert plugin.pre_score(CycleState(), scene.incoming(), scene.rows()) is SKIP
    assert plugin.scores_alike(scene.incoming())


# --- bound claims ----------------------------------------------------------------------------


def bound(scene, name, volume, **more):
    scene.tell(make_claim(name, volume=volume, bound=True))
    scene.tell(make_volume(volume, claim=f"default/{name}", **more))


def test_a_bound_volume_must_be_accessible_from_the_node(scene, plugin):
    """A volume without node affinity is accessible from every node."""
    bound(scene, "c1", "v1", reach={ZONE: ["z1"]})
    bound(scene, "c2", "v2")
    expected = {"a": "", "b": "", "c": OUT_OF_REACH}
    assert volumes_by_node(scene, plugin, "c1", "c2") == expected
    bound(scene, "c2", "v2", reach={HOST: ["b", "c"]})
    expected = {"a": OUT_OF_REACH, "b": "", "c": OUT_OF_REACH}
    assert volumes_by_node(scene, plugin, "c1", "c2") == expected


def test_node_affinity_of_volumes_does_not_match_node_names(scene, plugin):
    """A requirement on metadata.name finds an empty name (CheckNodeAffinity)."""
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    required = {"required": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    bound(scene, "c1", "v1", spec={"nodeAffinity": required})
    assert volumes_by_node(scene, plugin, "c1") == everywhere(OUT_OF_REACH)
    fields[0]["operator"] = "NotIn"
    bound(scene, "c1", "v1", spec={"nodeAffinity": required})
    assert volumes_by_node(scene, plugin, "c1") == everywhere("")


def test_the_first_conflicting_bound_claim_is_reported(scene, plugin):
    """On each node, the first conflicting claim of the pod is reported."""
    bound(scene, "far", "v1", reach={HOST: ["a"]})
    scene.tell(make_claim("stray", volume="gone", bound=True))
    expected = {"a": NO_VOLUME, "b": OUT_OF_REACH, "c": OUT_OF_REACH}
    assert volumes_by_node(scene, plugin, "far", "stray") == expected
    assert volumes_by_node(scene, plugin, "stray", "far") == everywhere(NO_VOLUME)


def test_a_migrated_disk_uses_the_labels_of_its_driver(scene, plugin):
    """This holds on nodes whose CSINode lists the plugin as migrated; others use the zone label."""
    scene.node("b", "z1", labels={"topology.gke.io/zone": "z2"})
    scene.tell(make_csi_node("b", migrated=["kubernetes.io/gce-pd"]), make_csi_node("c"))
    disk = {"gcePersistentDisk": {"pdName": "d"}}
    bound(scene, "c1", "v1", driver="", reach={ZONE: ["z2"]}, spec=disk)
    expected = {"a": OUT_OF_REACH, "b": "", "c": ""}
    assert volumes_by_node(scene, plugin, "c1") == expected


def test_a_node_whose_disks_are_not_migrated_any_more(scene, plugin):
    """The zone label counts again on this node; other nodes stay migrated."""
    for name in ("a", "b"):
        scene.node(name, "z1", labels={"topology.gke.io/zone": "z2"})
        scene.tell(make_csi_node(name, migrated=["kubernetes.io/gce-pd"]))
    disk = {"gcePersistentDisk": {"pdName": "d"}}
    bound(scene, "c1", "v1", driver="", reach={ZONE: ["z2"]}, spec=disk)
    assert volumes_by_node(scene, plugin, "c1") == everywhere("")
    scene.tell(make_csi_node("b"))
    assert volumes_by_node(scene, plugin, "c1") == {"a": "", "b": OUT_OF_REACH, "c": ""}


def where(*terms):
    """Return the spec of a volume that is accessible from the nodes of any of `terms`."""
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}


def labelled(key, *values, **more):
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}], **more}


NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
UNNAMED = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}


@pytest.mark.parametrize(
    ("terms", "reached"),
    [
        ((labelled(HOST, "a"), labelled(ZONE, "z2")), "ac"),
        (({}, labelled(HOST, "a")), "a"),
        (({},), ""),
        ((labelled(HOST, "b", **UNNAMED),), "b"),
    ],
    ids=["either of two", "one that is empty", "only an empty one", "labels and the name"],
)
def test_a_volume_is_accessible_from_nodes_that_match_a_term(terms, reached, scene, plugin):
    """An empty term matches no node."""
    bound(scene, "c1", "v1", spec=where(*terms))
    expected = {name: "" if name in reached else OUT_OF_REACH for name in "abc"}
    assert volumes_by_node(scene, plugin, "c1") == expected


# --- static volumes --------------------------------------------------------------------------


@pytest.fixture
def waiting(scene, plugin):
    """A class without dynamic provisioning, and its plugin."""
    scene.tell(make_storage_class(provisioner="kubernetes.io/no-provisioner"), make_claim("c"))
    return plugin


def test_the_smallest_matching_volume_is_chosen(scene, waiting):
    """Of equal volumes, the first by name is chosen; volumes that are too small are ignored."""
    scene.tell(make_volume("big", size="9Gi"), make_volume("small", size="1023Mi"))
    scene.tell(make_volume("y", size="2Gi"), make_volume("x", size="2Gi"))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=x")


def test_each_node_uses_the_volumes_accessible_from_it(scene, waiting):
    """One node has a local disk, one has a disk of its zone, and one has nothing."""
    scene.tell(make_volume("local", size="2Gi", reach={HOST: ["a"]}))
    scene.tell(make_volume("zonal", size="3Gi", reach={ZONE: ["z1"]}))
    expected = {"a": "c=local", "b": "c=zonal", "c": NO_MATCH}
    assert volumes_by_node(scene, waiting, "c") == expected


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(make_volume("v", of_class="slow"), id="of another class"),
        pytest.param(make_volume("v", phase="Released"), id="released"),
        pytest.param(make_volume("v", phase="Pending"), id="not available yet"),
        pytest.param(make_volume("v", terminating=True), id="on its way out"),
        pytest.param(make_volume("v", modes=["ReadOnlyMany"]), id="without the access mode"),
        pytest.param(make_volume("v", spec={"volumeMode": "Block"}), id="of another mode"),
        pytest.param(
            make_volume("v", spec={"volumeAttributesClassName": "gold"}), id="of other attributes"
        ),
        pytest.param(make_volume("v", claim="default/other"), id="of another claim"),
        pytest.param(make_volume("v", claim="other/c"), id="of a claim elsewhere"),
        pytest.param(
            make_volume("v", claim="default/c", claim_uid="uid-before"), id="of an earlier claim"
        ),
    ],
)
def test_volumes_that_do_not_match_a_claim(volume, scene, waiting):
    """Each of these differences alone excludes the volume."""
    scene.tell(volume)
    assert volumes_by_node(scene, waiting, "c") == everywhere(NO_MATCH)


@pytest.mark.parametrize(
    ("terms", "reached"),
    [
        ((labelled(HOST, "a"), labelled(ZONE, "z2")), "ac"),
        ((labelled(HOST, "b", **UNNAMED),), "b"),
        ((labelled(HOST, "b", **NAMED),), ""),
    ],
    ids=["either of two", "labels and no name", "labels and a name"],
)
def test_a_volume_is_chosen_on_nodes_that_match_a_term(terms, reached, scene, waiting):
    scene.tell(make_volume("v", spec=where(*terms)))
    expected = {name: "c=v" if name in reached else NO_MATCH for name in "abc"}
    assert volumes_by_node(scene, waiting, "c") == expected


GCE = {"gcePersistentDisk": {"pdName": "d"}}


@pytest.mark.parametrize("migrated", [[], ["kubernetes.io/gce-pd"]], ids=["own", "migrated"])
def test_an_in_tree_disk_without_node_affinity_is_accessible_from_all_nodes(
    migrated, scene, waiting
):
    scene.tell(make_csi_node("a", migrated=migrated))
    scene.tell(make_volume("v", driver="", spec=GCE))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=v")


def test_a_selector_restricts_the_volumes(scene, waiting):
    """A larger volume that matches the selector is chosen."""
    selector = {"selector": {"matchLabels": {"tier": "gold"}}}
    scene.tell(make_claim("c", spec=selector), make_volume("x", labels={"tier": "tin"}))
    scene.tell(make_volume("y", size="5Gi", labels={"tier": "gold"}))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=y")


def test_a_volume_with_a_claim_reference_is_preferred(scene, waiting):
    """Its phase, access modes and labels do not matter. Nodes without access to it do not fit."""
    scene.tell(make_volume("free"))
    meant = {"claim": "default/c", "claim_uid": "", "size": "9Gi", "modes": ["ReadOnlyMany"]}
    scene.tell(make_volume("meant", phase="Pending", reach={HOST: ["a"]}, **meant))
    expected = {"a": "c=meant", "b": NO_MATCH, "c": NO_MATCH}
    assert volumes_by_node(scene, waiting, "c") == expected


def test_a_volume_with_a_claim_reference_must_be_large_enough(scene, waiting):
    """If it is too small, another volume is chosen."""
    scene.tell(make_volume("free"))
    scene.tell(make_volume("meant", claim="default/c", claim_uid="", size="1Mi"))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=free")


def test_claims_get_volumes_in_order_of_size(scene, waiting):
    """The smaller claim gets the smaller volume. There is no backtracking."""
    scene.tell(make_claim("big", size="2Gi"), make_claim("small", size="1Gi"))
    scene.tell(make_volume("x", size="2Gi"), make_volume("y", size="3Gi"))
    assert volumes_by_node(scene, waiting, "big", "small") == everywhere("small=x big=y")
    scene.untell(make_volume("y", size="3Gi"))
    assert volumes_by_node(scene, waiting, "big", "small") == everywhere(NO_MATCH)


def test_claims_of_a_pod_get_different_volumes(scene, waiting):
    """Local volumes are used if there are any, otherwise volumes that all nodes reach."""
    scene.tell(make_claim("c1"), make_claim("c2"))
    scene.tell(make_volume("l1", reach={HOST: ["a"]}), make_volume("l2", reach={HOST: ["a"]}))
    scene.tell(make_volume("l3", reach={HOST: ["b"]}), make_volume("m", size="2Gi"))
    expected = {"a": "c1=l1 c2=l2", "b": "c1=l3 c2=m", "c": NO_MATCH}
    assert volumes_by_node(scene, waiting, "c1", "c2") == expected


def test_a_claim_named_twice_needs_two_volumes(scene, waiting):
    """As in upstream, the second reference ignores the volume of the first."""
    scene.tell(make_volume("meant", claim="default/c", claim_uid=""), make_volume("x"))
    assert volumes_by_node(scene, waiting, "c", "c") == everywhere("c=meant c=x")


def test_results_follow_changes_of_volumes(scene, waiting):
    """Volumes are bound, released, resized, moved to another class or node, and deleted."""
    scene.tell(make_volume("x"), make_volume("y", size="2Gi"))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=x")
    scene.tell(make_volume("x", claim="default/other"))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=y")
    scene.tell(make_volume("x", size="3Gi"))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=y")
    scene.tell(make_volume("y", size="2Gi", of_class="slow"))
    assert volumes_by_node(scene, waiting, "c") == everywhere("c=x")
    scene.tell(make_volume("x", size="3Gi", reach={HOST: ["a"]}))
    assert volumes_by_node(scene, waiting, "c") == {"a": "c=x", "b": NO_MATCH, "c": NO_MATCH}
    scene.node("b", "z1", labels={HOST: "a"})
    assert volumes_by_node(scene, waiting, "c") == {"a": "c=x", "b": "c=x", "c": NO_MATCH}
    scene.untell(make_volume("x"))
    assert volumes_by_node(scene, waiting, "c") == everywhere(NO_MATCH)


# --- volumes to be made ----------------------------------------------------------------------


def test_claims_without_a_matching_volume_are_provisioned(scene, plugin):
    """The terms of allowedTopologies are alternatives; all labels of a term must match."""
    scene.tell(make_claim("c"), make_storage_class(topologies=[{ZONE: ["z2"]}, {HOST: ["a"]}]))
    assert volumes_by_node(scene, plugin, "c") == {"a": "c!", "b": NO_MATCH, "c": "c!"}
    scene.tell(make_storage_class(topologies=[{ZONE: ["z1"], HOST: ["a", "c"]}]))
    assert volumes_by_node(scene, plugin, "c") == {"a": "c!", "b": NO_MATCH, "c": NO_MATCH}
    scene.tell(make_storage_class(topologies=[{}]))
    assert volumes_by_node(scene, plugin, "c") == everywhere(NO_MATCH)


def test_an_existing_volume_is_preferred_to_provisioning(scene, plugin):
    """The decision is made for each node."""
    scene.tell(make_claim("c"), make_storage_class(), make_volume("x", reach={HOST: ["a"]}))
    assert volumes_by_node(scene, plugin, "c") == {"a": "c=x", "b": "c!", "c": "c!"}


def test_a_claim_with_a_selected_node_fits_only_this_node(scene, plugin):
    """No other volume is searched for; two claims may have different nodes."""
    scene.tell(make_storage_class(), make_volume("x"), make_claim("c", node="b"))
    expected = {"a": NO_MATCH, "b": "c!", "c": NO_MATCH}
    assert volumes_by_node(scene, plugin, "c") == expected
    scene.tell(make_claim("d", node="a"))
    assert volumes_by_node(scene, plugin, "c", "d") == everywhere(NO_MATCH)


def test_conflicts_of_bound_and_unbound_claims_are_both_reported(scene, plugin):
    """Both reasons are reported, in this order."""
    bound(scene, "far", "v1", reach={HOST: ["a"]})
    scene.tell(make_claim("c"), make_storage_class(topologies=[{HOST: ["b"]}]))
    expected = {"a": NO_MATCH, "b": OUT_OF_REACH, "c": f"{OUT_OF_REACH}, {NO_MATCH}"}
    assert volumes_by_node(scene, plugin, "far", "c") == expected


def test_storage_capacity_is_checked_if_the_driver_publishes_it(scene, plugin):
    """The maximum size of a volume has precedence over the remaining capacity."""
    scene.tell(make_claim("c", size="5Gi"), make_storage_class())
    scene.tell(make_capacity("k1", capacity="9Gi", maximum="4Gi", topology={}))
    assert volumes_by_node(scene, plugin, "c") == everywhere("c!")
    scene.tell(make_csi_driver(tells_capacity=True))
    assert volumes_by_node(scene, plugin, "c") == everywhere(NO_SPACE)
    scene.tell(make_capacity("k1", capacity="5Gi", topology={"matchLabels": {HOST: "a"}}))
    scene.tell(make_capacity("k2", capacity="5Gi", of_class="slow", topology={}))
    scene.tell(make_capacity("k3", capacity="99Gi"))
    expected = {"a": "c!", "b": NO_SPACE, "c": NO_SPACE}
    assert volumes_by_node(scene, plugin, "c") == expected
    scene.tell(make_csi_driver(tells_capacity=False))
    assert volumes_by_node(scene, plugin, "c") == everywhere("c!")


def test_capacities_of_one_topology_are_not_summed(scene, plugin):
    """The largest capacity counts, whether selected by label or by expression."""
    scene.tell(
        make_claim("c", size="5Gi"), make_storage_class(), make_csi_driver(tells_capacity=True)
    )
    by_zone = [{"key": ZONE, "operator": "In", "values": ["z2"]}]
    scene.tell(make_capacity("k1", capacity="3Gi", topology={"matchLabels": {ZONE: "z1"}}))
    scene.tell(make_capacity("k2", capacity="4Gi", topology={"matchLabels": {ZONE: "z1"}}))
    scene.tell(make_capacity("k3", capacity="6Gi", topology={"matchExpressions": by_zone}))
    expected = {"a": NO_SPACE, "b": NO_SPACE, "c": "c!"}
    assert volumes_by_node(scene, plugin, "c") == expected
    scene.tell(make_capacity("k1", capacity="5Gi", topology={"matchLabels": {ZONE: "z1"}}))
    assert volumes_by_node(scene, plugin, "c") == everywhere("c!")


def test_a_claim_without_a_size_fits_anywhere(scene, plugin):
    """No capacity is checked for it."""
    scene.tell(make_claim("c", size=None), make_storage_class())
    scene.tell(make_csi_driver(tells_capacity=True))
    assert volumes_by_node(scene, plugin, "c") == everywhere("c!")


def test_the_first_claim_that_cannot_be_provisioned_is_reported(scene, plugin):
    """The smaller claim is checked first."""
    scene.tell(make_storage_class(), make_storage_class("slow", topologies=[{}]))
    scene.tell(make_csi_driver(tells_capacity=True))
    scene.tell(make_claim("c"), make_claim("d", of_class="slow", size="2Gi"))
    assert volumes_by_node(scene, plugin, "d", "c") == everywhere(NO_SPACE)
    scene.tell(make_claim("d", of_class="slow", size="1Mi"))
    assert volumes_by_node(scene, plugin, "d", "c") == everywhere(NO_MATCH)


# --- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"bindTimeoutSeconds": -1}, "bindTimeoutSeconds"),
        (
            {"shape": [{"utilization": 0, "score": 1}]},
            'shape: Invalid value: [{"Utilization":0,"Score":1}]: unexpected field `shape`',
        ),
        ({"shape": []}, "shape: Invalid value: []: unexpected field"),
        ({"bindTimeout": 3}, "bindTimeout"),
    ],
)
def test_invalid_arguments_are_refused(args, complaint, new_scene):
    """The error names the field."""
    with pytest.raises(ValueError, match=re.escape(complaint)):
        new_scene({"VolumeBinding": args})


def test_the_bind_timeout_is_ten_minutes_by_default():
    """upstream: apis/config/v1/defaults.go."""
    assert VolumeBindingArgs().bind_timeout_seconds == 600


def test_a_missing_storage_class_differs_from_an_empty_one():
    """A claim with a missing class gets the default class; one with an empty class never does."""
    assert [make_claim("c", of_class=name).spec.storage_class_name for name in (None, "")] == [
        PersistentVolumeClaim().spec.storage_class_name,
        "",
    ]
