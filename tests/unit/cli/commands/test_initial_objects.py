"""A dump that lacks kinds is completed before a served cluster starts with it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairlead.apiserver.auth.certificate_authority import new_authority
from fairlead.apiserver.request import ADMIN
from fairlead.cli.commands.up.initial_objects import (
    objects_of_cluster,
    print_age,
    print_invalid_templates,
)
from fairlead.engine.core.instant import seconds
from fairlead.whatif.snapshot.snapshot import parse_snapshot
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions

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


def warned(capsys, *texts):
    """Return what is printed after a cluster was started with the objects `texts`."""
    snapshot = parse_snapshot("dump.yaml", "\n---\n".join((NODE, ACCOUNT, *texts)).encode())
    key = new_authority(datetime(2026, 1, 1, tzinfo=UTC)).key
    clock = LocalClock(paused=True)
    options = LocalOptions(objects=objects_of_cluster(snapshot))
    cluster = LocalCluster(options, clock, {"t": ADMIN}, key)
    capsys.readouterr()
    print_invalid_templates(snapshot.source, cluster.store)
    return capsys.readouterr().err


MOUNTING = WORKLOAD.replace("image: i", "image: i, volumeMounts: [{name: v, mountPath: /v}]")
HAS_NO_VOLUME = 'template.spec.containers[0].volumeMounts[0].name: Not found: "v"\n'


def test_a_workload_whose_new_pods_will_be_refused_is_named(capsys):
    """Its template mounts a volume that it does not have, so deleted pods are not replaced."""
    assert warned(capsys, WORKLOAD) == ""
    start = "dump.yaml: new pods of Deployment shop/web"
    assert warned(capsys, MOUNTING) == f"{start} will be refused: spec.{HAS_NO_VOLUME}"
    other = MOUNTING.replace("name: web, namespace", "name: web-2, namespace")
    second = f"{start} and of 1 other workload will be refused: spec.{HAS_NO_VOLUME}"
    assert warned(capsys, MOUNTING, other) == second


def test_the_claim_templates_of_a_stateful_set_are_volumes_of_its_pods(capsys):
    claims = "volumeClaimTemplates: [{metadata: {name: v}}], serviceName: web, "
    claiming = MOUNTING.replace("kind: Deployment", "kind: StatefulSet")
    assert "StatefulSet shop/web will be refused" in warned(capsys, claiming)
    claiming = claiming.replace("spec: {", f"spec: {{{claims}", 1)
    assert claims in claiming
    assert warned(capsys, claiming) == ""


def test_the_template_of_a_cron_job_is_checked(capsys):
    pod = "restartPolicy: Never, containers: [{name: c, image: i, volumeMounts: [{name: v, "
    template = f"{{template: {{spec: {{{pod}mountPath: /v}}]}}]}}}}}}"
    text = (
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: web, namespace: shop}, spec: "
        f"{{schedule: '@daily', jobTemplate: {{spec: {template}}}}}}}"
    )
    start = "dump.yaml: new pods of CronJob shop/web will be refused: spec.jobTemplate.spec."
    assert warned(capsys, text) == start + HAS_NO_VOLUME


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("spec: {selector", "spec: {replicas: 0, selector", id="no pods are wanted"),
        pytest.param(
            "Deployment, metadata: {name: web, ",
            "ReplicaSet, metadata: {name: web, ownerReferences: [{apiVersion: argoproj.io/v1, "
            "kind: Rollout, name: r, uid: u-r, controller: true}], ",
            id="the controller has the template",
        ),
        pytest.param(
            "apps/v1, kind: Deployment",
            "batch/v1, kind: Job, status: {conditions: [{type: Complete, status: 'True'}]}",
            id="the Job is complete",
        ),
        pytest.param(
            "apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {",
            "batch/v1, kind: Job, metadata: {name: web, namespace: shop}, spec: {suspend: true, ",
            id="the Job is suspended",
        ),
    ],
)
def test_a_workload_that_needs_no_template_is_not_named(capsys, old, new):
    assert old in MOUNTING
    assert warned(capsys, MOUNTING.replace(old, new)) == ""


@pytest.mark.parametrize(
    ("age_days", "line"),
    [(28, "was taken 28d ago; with --keep-time, the clock starts at that time"), (0.9, "")],
    ids=["old", "of today"],
)
def test_the_age_of_an_old_dump_is_printed(capsys, age_days, line):
    node = NODE.replace("uid:", 'creationTimestamp: "2026-02-01T00:00:00Z", uid:')
    snapshot = parse_snapshot("dump.yaml", node.encode())
    print_age(snapshot, snapshot.taken_at + seconds(86_400 * age_days))
    assert capsys.readouterr().err == (f"dump.yaml: {line}\n" if line else "")
