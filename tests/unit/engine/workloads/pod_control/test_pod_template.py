"""Pod templates: the manifests created from them, and which templates are equal."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.objects import OwnerReference, Pod
from fairlead.engine.workloads.pod_control.pod_template import (
    pod_manifest,
    read_template,
    resembles,
    same_template,
    template_of,
)

OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="u1")
PLAIN = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}


def test_a_pod_carries_its_template_and_its_owner():
    manifest = pod_manifest(
        PLAIN, name="web-abcde", namespace="ns", owner=OWNER, replaces="web-old"
    )
    assert manifest == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-abcde",
            "namespace": "ns",
            "labels": {"app": "web"},
            "annotations": {"fairlead.dev/replaces": "web-old"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "c"}]},
    }


def test_changes_of_a_manifest_do_not_change_its_template():
    template = {"metadata": {"annotations": {"a": "b"}}, "spec": {}}
    pod_manifest(template, name="p", namespace="ns", owner=OWNER, replaces="q")
    assert template == {"metadata": {"annotations": {"a": "b"}}, "spec": {}}


STORED = {
    "metadata": {"labels": {"app": "web", "pod-template-hash": "54df9554fd"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
}


def with_spec(**spec):
    return PLAIN | {"spec": PLAIN["spec"] | spec}


def requesting(cpu, memory):
    resources = {"requests": {"cpu": cpu}, "limits": {"memory": memory}}
    volume = {"name": "v", "emptyDir": {"sizeLimit": memory}}
    return with_spec(containers=[{"name": "c", "resources": resources}], volumes=[volume])


@pytest.mark.parametrize(
    ("case", "one", "other", "same"),
    [
        ("defaults and the hash do not count", PLAIN, STORED, True),
        ("another grace period does", with_spec(terminationGracePeriodSeconds=5), STORED, False),
        ("another restart policy does", with_spec(restartPolicy="Never"), STORED, False),
        (
            "a sidecar is not an init container",
            with_spec(initContainers=[{"name": "i", "restartPolicy": "Always"}]),
            with_spec(initContainers=[{"name": "i"}]),
            False,
        ),
        ("labels count", PLAIN | {"metadata": {"labels": {"app": "x"}}}, PLAIN, False),
        ("nulls do not count", with_spec(nodeSelector=None), PLAIN, True),
        (
            "an image counts",
            with_spec(containers=[{"name": "c", "image": "a"}]),
            with_spec(containers=[{"name": "c", "image": "b"}]),
            False,
        ),
        (
            "an image that is null does not",
            with_spec(containers=[{"name": "c", "image": None}]),
            with_spec(containers=[{"name": "c"}]),
            True,
        ),
        (
            "the notation of quantities does not",
            requesting("1", "1Gi"),
            requesting(1, "1024Mi"),
            True,
        ),
        ("their amounts count", requesting("1", "1Gi"), requesting("1", "1G"), False),
        ("a malformed quantity counts", requesting("1", "1Gi"), requesting("1", []), False),
        ("malformed containers count", with_spec(containers="c"), PLAIN, False),
        ("a malformed container counts", with_spec(containers=["c"]), PLAIN, False),
    ],
)
def test_which_templates_are_equal(case, one, other, same):
    assert same_template(one, other) is same, case
    assert same_template(other, one) is same, case


def placed():
    return {
        "metadata": {
            "name": "web-1",
            "namespace": "ns",
            "labels": {"app": "web", "topology.kubernetes.io/zone": "a"},
            "annotations": {"fairlead.dev/replaces": "web-0", "keep": "this"},
        },
        "spec": {
            "nodeName": "n1",
            "priority": 0,
            "priorityClassName": "nightly",
            "preemptionPolicy": "Never",
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"requests": {"cpu": "2"}, "claims": [{"name": "gpu"}]},
                    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}],
                }
            ],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 300}],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
                    ]
                }
            },
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            ],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        },
        "status": {"phase": "Running", "nominatedNodeName": "n1"},
    }


def test_a_replacement_has_the_original_specification():
    """Fields that the scheduler and admission set are left out, because they will be set again."""
    original = placed()
    template = template_of(decode_as(Pod, original))
    decided = ("nodeName", "priority", "preemptionPolicy")
    spec = {key: part for key, part in original["spec"].items() if key not in decided}
    assert template["spec"] == spec
    assert template["metadata"] == {"labels": {"app": "web"}, "annotations": {"keep": "this"}}


def test_a_replacement_is_decoded_like_its_original():
    """Through JSON and back, the specification is the same."""
    original = decode_as(Pod, placed())
    successor = decode_as(Pod, without_nulls(template_of(original)))
    assert successor.spec.containers == original.spec.containers
    assert successor.spec.affinity == original.spec.affinity
    assert successor.spec.node_name == ""


def test_similar_pods_have_equal_scheduling_constraints():
    pod = decode_as(Pod, placed())
    same = template_of(pod)
    assert resembles(same, pod)
    assert not resembles(same | {"spec": same["spec"] | {"nodeSelector": {"pool": "x"}}}, pod)
    assert not resembles({"spec": {"containers": [{"name": "c", "image": "other"}]}}, pod)


def test_an_invalid_template_is_refused():
    assert read_template({"spec": {"containers": "none"}}) is None
    assert read_template({}) is not None
