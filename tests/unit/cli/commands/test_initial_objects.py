"""A dump that lacks kinds is completed before a served cluster starts with it."""

from __future__ import annotations

from fairlead.cli.commands.up.initial_objects import objects_of_cluster
from fairlead.whatif.snapshot.snapshot import parse_snapshot

NODE = "{apiVersion: v1, kind: Node, metadata: {name: node-1, uid: u-n}}"
OWNED = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop, ownerReferences:"
    " [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u-r}]}, spec: {containers: []}}"
)
OWNER = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: shop, uid: u-r}}"
DEFINITION = (
    "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,"
    " metadata: {name: rollouts.argoproj.io}, spec: {group: argoproj.io, names: {kind: Rollout}}}"
)
LEASE = (
    "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: node-1, namespace: shop}}"
)


def objects(*texts):
    """Return the objects by kind."""
    snapshot = parse_snapshot("dump.yaml", "\n---\n".join((NODE, *texts)).encode())
    found = objects_of_cluster(snapshot)
    return {one["kind"]: one for one in found if isinstance(one, dict)}


def test_owners_that_are_missing_are_removed_and_counted(capsys):
    assert objects(OWNED)["Pod"]["metadata"]["ownerReferences"] == []
    assert capsys.readouterr().err.startswith(
        "dump.yaml: 1 object has an owner outside of the dump"
    )


def test_a_definition_without_a_group_and_a_kind_defines_no_kind(capsys):
    """The API server refuses the definition, with a message that names it."""
    for spec in ("x", "{names: x}", "[]"):
        start = DEFINITION.partition(" spec:")[0]
        custom = OWNED.replace("apps/v1, kind: ReplicaSet", "argoproj.io/v1alpha1, kind: Rollout")
        made = objects(custom, f"{start} spec: {spec}}}")
        assert len(made["Pod"]["metadata"]["ownerReferences"]) == 1
    assert capsys.readouterr().err == ""


def test_owners_of_kinds_that_are_not_served_are_kept(capsys):
    """Without its reference, a Deployment could adopt a ReplicaSet of an Argo Rollout."""
    custom = OWNED.replace("apps/v1, kind: ReplicaSet", "argoproj.io/v1alpha1, kind: Rollout")
    assert len(objects(custom)["Pod"]["metadata"]["ownerReferences"]) == 1
    assert capsys.readouterr().err == ""
    assert objects(custom, DEFINITION)["Pod"]["metadata"]["ownerReferences"] == []


def test_owners_in_the_dump_are_kept(capsys):
    assert len(objects(OWNED, OWNER)["Pod"]["metadata"]["ownerReferences"]) == 1
    assert capsys.readouterr().err == ""


def test_missing_namespaces_are_added():
    assert objects(OWNED)["Namespace"]["metadata"] == {"name": "shop"}


def test_leases_are_removed_because_new_kubelets_renew_their_own():
    assert set(objects(LEASE)) == {"Node"}


WORKLOAD = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec:"
    " {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},"
    " spec: {serviceAccountName: web, containers: [{name: c, image: i}]}}}}"
)
ACCOUNT = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}"


def test_service_accounts_that_workloads_name_are_added_if_the_dump_has_none(capsys):
    """The documented kubectl command does not dump them, and without them, no pod is created."""
    assert objects(WORKLOAD)["ServiceAccount"]["metadata"] == {"namespace": "shop", "name": "web"}
    notice = (
        "dump.yaml: the dump has no serviceaccounts; 1 ServiceAccount is added for its workload"
    )
    assert capsys.readouterr().err.startswith(notice)


def test_a_service_account_that_the_cluster_lacks_stays_missing(capsys):
    """A dump with other ServiceAccounts contains all of them."""
    assert objects(WORKLOAD, ACCOUNT)["ServiceAccount"]["metadata"]["name"] == "default"
    assert capsys.readouterr().err == ""
