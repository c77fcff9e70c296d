"""Warnings about accepted objects."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import DEPLOYMENT, POD, SERVICE, kind_of
from fairlead.apiserver.registry.strategies.table import strategy_of
from fairlead.apiserver.registry.warning.pod import COMPARISONS_MAX

CONTAINER = {"name": "c", "image": "i"}


def warnings_of(kind, old, new):
    """Return the warnings of the strategy of `kind`, or () if it has none."""
    warnings = strategy_of(kind).warnings
    return warnings(old, new) if warnings else ()


def pod(name="a", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], **spec}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, []),
        (
            {"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}},
            [
                (
                    "spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; "
                    'use "kubernetes.io/arch" instead'
                )
            ],
        ),
        (
            {"containers": [{**CONTAINER, "env": [{"name": "A"}, {"name": "A"}]}]},
            [
                (
                    'spec.containers[0].env[1]: hides previous definition of "A", '
                    "which may be dropped when using apply"
                )
            ],
        ),
        (
            {"containers": [{**CONTAINER, "resources": {"requests": {"memory": "100m"}}}]},
            [
                (
                    "spec.containers[0].resources.requests[memory]: "
                    'fractional byte value "100m" is invalid, must be an integer'
                )
            ],
        ),
        (
            {"containers": [{**CONTAINER, "ports": [{"containerPort": 1}] * 2}]},
            [
                (
                    "spec.containers[0].ports[1]: duplicate port definition with "
                    "spec.containers[0].ports[0]"
                )
            ],
        ),
        (
            {"hostAliases": [{"ip": "1.1.1.1"}] * 2},
            ['spec.hostAliases[1].ip: duplicate ip "1.1.1.1"'],
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}]},
            [
                (
                    "spec.topologySpreadConstraints[0].labelSelector: "
                    "a null labelSelector results in matching no pod"
                )
            ],
        ),
    ],
)
def test_warnings_about_pods(spec, said):
    """A pod with an unusual field gets a warning."""
    assert list(warnings_of(POD, None, pod(**spec))) == said


def test_a_pod_name_with_a_dot_gets_a_warning():
    (said,) = warnings_of(POD, None, pod("a.b"))
    assert said.endswith("a DNS label is recommended: [must not contain dots]")


def test_warnings_about_a_pod_template_have_its_path():
    template = {"spec": {"containers": [CONTAINER], "imagePullSecrets": [{"name": ""}]}}
    obj = {"metadata": {"name": "a"}, "spec": {"template": template}}
    said = 'spec.template.spec.imagePullSecrets[0].name: invalid empty name ""'
    assert list(warnings_of(DEPLOYMENT, None, obj)) == [said]


def test_an_unchanged_object_gets_no_warning():
    obj = pod(hostAliases=[{"ip": "1.1.1.1"}] * 2)
    assert list(warnings_of(POD, obj, obj)) == []


def test_warnings_about_services():
    obj = {"metadata": {"name": "s"}, "spec": {"trafficDistribution": "PreferClose"}}
    said = 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
    assert list(warnings_of(SERVICE, None, obj)) == [said]


OLD_KEY = "beta.kubernetes.io/os"
OLD_WARNING = 'deprecated since v1.14; use "kubernetes.io/os" instead'
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SAME = {"name": "A", "value": "$(A)b"}
PORT = "spec.containers[0].ports"
PORTS = [
    {"containerPort": 1, "hostIP": "1.1.1.1"},
    {"containerPort": 1, "hostPort": 2},
    {"containerPort": 1, "hostPort": 2, "hostIP": "1.1.1.1"},
]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"containers": [{**CONTAINER, "ports": PORTS}]},
            [
                (
                    "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 "
                    "ContainerPort:1 Protocol: HostIP:1.1.1.1}"
                ),
                f"{PORT}[1]: overlapping port definition with {PORT}[0]",
                f"{PORT}[2]: overlapping port definition with {PORT}[0]",
                f"{PORT}[2]: dangerously ambiguous port definition with {PORT}[1]",
            ],
        ),
        (
            {"containers": [{**CONTAINER, "env": [{"name": "A"}, SAME]}]},
            [],
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            [
                (
                    "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid "
                    "and will be treated as 1"
                )
            ],
        ),
        (
            {"volumes": [{"name": "v", "rbd": {}}, {"name": "w", "gitRepo": {}}]},
            [
                "spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+",
                "spec.volumes[1].gitRepo: deprecated in v1.11",
            ],
        ),
        (
            {
                "volumes": [
                    {"name": "v", "secret": {"secretName": "s", "items": [
                        {"path": "a"}, {"path": "a/b"}, {"path": "c"},
                    ]}}
                ]
            },
            ['volume "v" (Secret "s"): overlapping paths: "a/b" with "a"'],
        ),
        (
            {
                "volumes": [
                    {"name": "v", "projected": {"sources": [
                        {}, {"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "c",
                        "items": [{"path": "t"}]}},
                    ]}}
                ]
            },
            [
                'volume "v" (Projected) has no sources provided',
                'volume "v" (Projected ConfigMap "c"): overlapping paths: "t" with "t"',
            ],
        ),
        (
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"preference": {"matchExpressions": [{"key": OLD_KEY}]}}
            ]}}},
            [
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
                    f".preference.matchExpressions[0].key: {OLD_KEY} is {OLD_WARNING}"
                )
            ],
        ),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}], "overhead": {"memory": "1m"}},
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.overhead[memory]: fractional byte value "1m" is invalid, must be an integer',
            ],
        ),
    ],
)  # fmt: skip
def test_more_warnings_about_pods_in_upstreams_order(spec, said):
    """The warnings are in upstream's order."""
    assert list(warnings_of(POD, None, pod(**spec))) == said


SAME_FILES = [{"serviceAccountToken": {"path": "a/" * at}} for at in range(1, 1_000)]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{**CONTAINER, "ports": [{"containerPort": 1}] * 1_000}]},
        {"volumes": [{"name": "v", "projected": {"sources": SAME_FILES}}]},
    ],
)
def test_the_number_of_warnings_is_limited(spec):
    """The number of comparisons is limited; there could be half a million warnings."""
    count = sum(1 for _ in warnings_of(POD, None, pod(**spec)))
    assert 1_000 < count < COMPARISONS_MAX


def test_ignored_annotations_get_warnings():
    """Each warning names the field."""
    notes = {SECCOMP: "x", "container.apparmor.security.beta.kubernetes.io/c": "y"}
    obj = pod()
    obj["metadata"]["annotations"] = notes
    said = list(warnings_of(POD, None, obj))
    assert [one.partition(": ")[0] for one in said] == [
        f"metadata.annotations[{key}]" for key in notes
    ]


@pytest.mark.parametrize(
    ("kind", "version", "fields", "said"),
    [
        (
            "Service",
            "v1",
            {"spec": {"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP",
                      "externalIPs": ["FD00::1"]}},
            [
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
                (
                    'spec.externalIPs[0]: IPv6 address "FD00::1" should be in RFC 5952 canonical '
                    'format ("fd00::1")'
                ),
                (
                    "spec.externalIPs is deprecated and may no longer be implemented in some "
                    "clusters"
                ),
            ],
        ),
        (
            "NetworkPolicy",
            "networking.k8s.io/v1",
            {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]}},
            [
                (
                    'spec.egress[0].to[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in '
                    'this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'
                )
            ],
        ),
        (
            "PersistentVolume",
            "v1",
            {"spec": {"persistentVolumeReclaimPolicy": "Recycle", "storageos": {}}},
            [
                (
                    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
                    "Instead, the recommended approach is to use dynamic provisioning."
                ),
                "spec.storageOS: deprecated in v1.22, non-functional in v1.25+",
            ],
        ),
        (
            "PersistentVolumeClaim",
            "v1",
            {"spec": {"resources": {"requests": {"storage": "1500m"}}}},
            [
                (
                    'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, '
                    "must be an integer"
                )
            ],
        ),
        (
            "StorageClass",
            "storage.k8s.io/v1",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": OLD_KEY}]}]},
            [f"allowedTopologies[0].matchLabelExpressions[0].key: {OLD_KEY} is {OLD_WARNING}"],
        ),
        (
            "RuntimeClass",
            "node.k8s.io/v1",
            {"scheduling": {"nodeSelector": {OLD_KEY: "x"}}},
            [f"scheduling.nodeSelector: {OLD_KEY} is {OLD_WARNING}"],
        ),
    ],
)  # fmt: skip
def test_warnings_about_other_kinds(kind, version, fields, said):
    """The warnings are the same for a create and for an update."""
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **fields}
    for old in (None, obj):
        assert list(warnings_of(kind_of(obj), old, obj)) == said


def test_warnings_about_stateful_sets():
    """The warnings are about storage requests and revisionHistoryLimit."""
    claim = {"spec": {"resources": {"requests": {"storage": "1m"}}}}
    spec = {"template": pod(), "volumeClaimTemplates": [claim], "revisionHistoryLimit": -1}
    obj = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "spec": spec}
    said = list(warnings_of(kind_of(obj), None, obj))
    assert [one.partition(": ")[0] for one in said] == [
        "spec.volumeClaimTemplates[0].resources.requests[storage]",
        "spec.revisionHistoryLimit",
    ]
    again = list(warnings_of(kind_of(obj), obj, obj))
    assert [one.partition(": ")[0] for one in again] == [
        "spec.volumeClaimTemplates[0].Spec.resources.requests[storage]",
        "spec.revisionHistoryLimit",
    ]


def test_a_new_ingress_class_annotation_gets_a_warning():
    """The warning is given when the annotation is added, and not later."""
    note = {"kubernetes.io/ingress.class": "x"}
    meta = {"name": "a", "annotations": note}
    obj = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": {}}
    (said,) = warnings_of(kind_of(obj), None, obj)
    assert said.endswith("is deprecated, please use 'spec.ingressClassName' instead")
    assert list(warnings_of(kind_of(obj), obj, obj)) == []


def warnings_for(api_version, kind, old=None, /, name="a", labels=None, annotations=None, **fields):
    """Return the warnings about a write of these fields; `old` are the fields of the old object."""
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    obj = {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}
    before = None if old is None else {**obj, **old}
    return list(warnings_of(kind_of(obj), before, obj))


LONG = {"ip": "2001:0db8::1"}
CANONICAL = 'IPv6 address "2001:0db8::1" should be in RFC 5952 canonical format ("2001:db8::1")'
MARKED = {"kubernetes.io/enforce-mountable-secrets": "false"}
ASKING = {"tokenRequests": [{"audience": "a"}]}


@pytest.mark.parametrize(
    ("warnings", "said"),
    [
        (
            warnings_for("v1", "Service", spec={"externalIPs": ["1.1.1.1"]}),
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
        ),
        (
            warnings_for("v1", "Node", spec={"configSource": {}, "externalID": "x"}),
            [
                "spec.configSource: the feature is removed",
                "spec.externalID: this field is deprecated, and is unused by Kubernetes",
            ],
        ),
        (
            warnings_for(
                "v1", "Endpoints", subsets=[{"addresses": [LONG], "notReadyAddresses": [LONG]}]
            ),
            [
                f"subsets[0].addresses[0].ip: {CANONICAL}",
                f"subsets[0].notReadyAddresses[0].ip: {CANONICAL}",
            ],
        ),
        (
            warnings_for(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                addressType="FQDN",
                endpoints=[{"addresses": [LONG["ip"]]}],
            ),
            [
                "spec.addressType: FQDN endpoints are deprecated",
                f"endpoints[0].addresses[0]: {CANONICAL}",
            ],
        ),
        (
            warnings_for(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                labels={
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"
                },
                endpoints=[{"addresses": [LONG["ip"]]}],
            ),
            [],
        ),
        (warnings_for("v1", "ServiceAccount", {}, annotations=MARKED), []),
        (warnings_for("storage.k8s.io/v1", "CSIDriver", {}, spec=ASKING), []),
    ],
)
def test_deprecated_fields_get_warnings(warnings, said):
    assert warnings == said


@pytest.mark.parametrize(
    ("warnings", "beginning"),
    [
        (
            warnings_for("v1", "ServiceAccount", annotations=MARKED),
            "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; ",
        ),
        (
            warnings_for("storage.k8s.io/v1", "CSIDriver", {"spec": {}}, spec=ASKING),
            "spec.serviceAccountTokenInSecrets is unset; ",
        ),
        (
            warnings_for("batch/v1", "CronJob", name="a.b", spec={}),
            "metadata.name: this is used in Pod names and hostnames, ",
        ),
        (
            warnings_for("v1", "ReplicationController", name="a.b", spec={}),
            "metadata.name: this is used in Pod names and hostnames, ",
        ),
    ],
)
def test_surprising_fields_get_warnings(warnings, beginning):
    (said,) = warnings
    assert said.startswith(beginning)
