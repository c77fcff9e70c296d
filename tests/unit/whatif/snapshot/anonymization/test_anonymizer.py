"""Anonymised objects contain no text of a user, and keep all texts that decisions depend on."""

from __future__ import annotations

import json

import pytest

from fairlead.api.facts import facts_of
from fairlead.apiserver.schema.model import Type, schemas
from fairlead.whatif.snapshot.anonymization.anonymizer import (
    _DROPPED_FIELDS,
    DROPPED_KINDS,
    _Rewriter,
    _words,
    anonymised,
)
from fairlead.whatif.snapshot.anonymization.published_label import (
    is_published as is_published_key,
)
from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES

# Published texts that are kept: enumerations without a list of their values, names of
# resources, drivers, and what is known about devices.
KEPT = frozenset(
    _words("""
    apiVersion kind apiGroup resourceVersion operator status reason resource resourceName
    schedulerName driver provisioner attacher schedule timeZone accessModes ipFamilies scopes
    scopeName restartPolicy operatingSystem architecture kubeletVersion kubeProxyVersion
    containerRuntimeVersion
    completedIndexes failedIndexes succeededIndexes matchAttribute distinctAttribute
    extendedResourceName declaredFeatures expression string strings version versions fieldPath
    """)
)
# Maps whose keys are published: resources, attributes and counters of devices, field names of a
# template.
KEPT_KEYS = frozenset(
    _words("""
    requests limits capacity allocatable allocatedResources allocatedResourceStatuses hard used
    overhead podFixed max min default defaultRequest maxLimitRequestRatio attributes counters
    nodeAllocatableResourceMappings resources consumedCapacity
    """)
)
SCALARS = {
    Type.TIME: "2026-11-20T05:00:00Z",
    Type.MICRO_TIME: "2026-11-20T05:00:00Z",
    Type.QUANTITY: "1Gi",
    Type.BYTES: "",
    Type.BOOLEAN: True,
}
ANY = ("ControllerRevision", "basic")  # one case of a template, one of an empty type


class Marked:
    """An object of each kind, in which every free text is unique."""

    def __init__(self):
        self.paths = {}
        self.objects = []
        for resource in LIVE_RESOURCES:
            kind = resource.kind
            schema = schemas().of_kind(kind.api_version, kind.kind)
            if schema is not None and kind.kind not in DROPPED_KINDS:
                made = self.value(schema, (kind.kind,), ())
                self.objects.append({**made, "apiVersion": kind.api_version, "kind": kind.kind})

    def mark(self, *path):
        text = f"secret{len(self.paths):06}q"
        self.paths[text] = path
        return text

    def value(self, schema, path, within, values=()):
        match schema.type:
            case Type.OBJECT:
                return self.members(schema, path, within)
            case Type.LIST:
                found = self.value(schema.items, path, within, values)
                return [] if found is None else [found]
            case Type.MAP:
                return {self.mark(*path, "<key>"): self.value(schema.items, path, within)}
            case Type.ANY:
                return {self.mark(*path, "<any>"): self.mark(*path, "<any>")}
            case Type.STRING | Type.INT_OR_STRING:
                return values[0] if values else self.mark(*path)
            case _:
                return SCALARS.get(schema.type, 1)

    def members(self, schema, path, within):
        if within.count(schema.definition) > 1:
            return None
        facts = facts_of(".".join(schema.definition.split(".")[-3:])).fields
        found = {}
        for name, member in schema.fields.items():
            values = tuple(facts[name].values) if name in facts else ()
            inside = (*within, schema.definition)
            found[name] = self.value(member.schema, (*path, name), inside, values)
        return {name: one for name, one in found.items() if one is not None}


def is_published(path):
    if path[-1] == "<any>":
        return bool(set(path) & set(ANY))
    return path[-2] in KEPT_KEYS if path[-1] == "<key>" else path[-1] in KEPT


def test_no_user_text_remains_in_any_field():
    marked = Marked()
    assert len(marked.paths) > 3_000
    text = json.dumps(anonymised(marked.objects).objects)
    left = {".".join(path[-3:]) for mark, path in marked.paths.items() if mark in text}
    names = {".".join(path[-3:]) for path in marked.paths.values() if is_published(path)}
    # Metrics of a HorizontalPodAutoscaler name a resource, and these two objects name drivers.
    published = ("esource.name", "CSIDriver.metadata.name", "spec.drivers.name")
    assert {one for one in left if not one.endswith(published)} <= names


def enumerated():
    """Every value of an enumerated field, with its type and its field."""
    kinds = [one.kind for one in LIVE_RESOURCES if one.kind.kind not in DROPPED_KINDS]
    waiting = [schemas().of_kind(one.api_version, one.kind) for one in kinds]
    found, seen = set(), set()
    while waiting:
        schema = waiting.pop()
        if schema is None or schema.definition in seen:
            continue
        if schema.type in (Type.LIST, Type.MAP):
            waiting.append(schema.items)
        elif schema.type is Type.OBJECT:
            seen.add(schema.definition)
            facts = facts_of(".".join(schema.definition.split(".")[-3:])).fields
            kept = schema.fields.keys() - _DROPPED_FIELDS
            waiting += [schema.fields[name].schema for name in kept]
            for name in kept & facts.keys():
                is_list = schema.fields[name].schema.type is Type.LIST
                found |= {(schema.short_name, name, value, is_list) for value in facts[name].values}
    return found


def test_values_of_enumerations_are_kept():
    rewriter = _Rewriter("<{}>".format, frozenset())
    found = enumerated()
    assert len(found) > 100
    changed = {
        (kind, name, value)
        for kind, name, value, is_list in found
        if "<" in str(rewriter.object({name: [value] if is_list else value}))
    }
    assert {one for one in changed if one[0] != "v1.PodOS"} == set()
    assert rewriter.object({"os": {"name": "windows"}}) == {"os": {"name": "windows"}}


def rewritten(kind, fields):
    (found,) = anonymised([{**kind, "metadata": {"name": "one"}, **fields}]).objects
    return found


POD = {"apiVersion": "v1", "kind": "Pod"}
ZONE = "topology.kubernetes.io/zone"


def test_label_keys_have_the_same_pseudonym_in_all_fields():
    """In lists of keys, and in requirements without an operator, as in a StorageClass."""
    keys = [ZONE, "pod-template-hash", "team"]
    spread = {"topologyKey": ZONE, "matchLabelKeys": keys}
    pod = {"labels": {"team": "alice", ZONE: "eu-1a"}, "spec": {"spread": [spread]}}
    found = rewritten(POD, pod)
    (spread,) = found["spec"]["spread"]
    assert spread["topologyKey"] == ZONE
    assert spread["matchLabelKeys"][:2] == keys[:2]
    assert spread["matchLabelKeys"][2] in found["labels"]
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    term = {"matchLabelExpressions": [{"key": ZONE, "values": ["eu-1a"]}]}
    assert rewritten(storage, {"allowedTopologies": [term]})["allowedTopologies"] == [term]
    node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    drivers = [{"name": "ebs", "topologyKeys": [ZONE]}]
    (driver,) = rewritten(node, {"spec": {"drivers": drivers}})["spec"]["drivers"]
    assert driver["topologyKeys"] == [ZONE]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"extendedResourceName": "example.com/gpu"}, id="a DeviceClass"),
        pytest.param({"constraints": [{"matchAttribute": "example.com/numa"}]}, id="a claim"),
        pytest.param({"status": {"declaredFeatures": ["InPlaceResize"]}}, id="a node"),
        pytest.param({"status": {"completedIndexes": "0-2,5"}}, id="a Job"),
        pytest.param(
            {
                "disruption": {
                    "consolidateAfter": "1m30s",
                    "budgets": [{"nodes": "10%", "reasons": ["Empty"], "duration": "8h30m"}],
                },
                "spec": {
                    "expireAfter": "Never",
                    "price": "+10%",
                    "terminationGracePeriod": "24h0m0s",
                },
            },
            id="a NodePool",
        ),
        pytest.param({"status": {"subnets": [{"zone": "eu-1a"}]}}, id="an EC2NodeClass"),
        pytest.param({"schedulingConstraints": {"topology": [{"key": ZONE}]}}, id="a PodGroup"),
        pytest.param({"containerPolicies": [{"containerName": "*", "mode": "Off"}]}, id="a VPA"),
        pytest.param({"bindingConditions": ["Prepared", "node.k8s.io/up"]}, id="a device"),
    ],
)
def test_fields_that_decisions_depend_on_are_kept(fields):
    assert {**rewritten(POD, fields), "metadata": None} == {**POD, **fields, "metadata": None}


@pytest.mark.parametrize("name", ["10.0.0.1", "2026", "5m", "2026-11-20T05:00:00Z"])
def test_names_that_look_like_numbers_are_names(name):
    """They are replaced as in the object they refer to."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    hashes = {"metadata": {"labels": {"pod-template-hash": name, "karpenter.sh/nodepool": name}}}
    spec = {"nodeName": name, "volumes": [{"nfs": {"server": name, "path": "/"}}], "queue": name}
    found, labelled, pod = anonymised([node, {**POD, **hashes}, {**POD, "spec": spec}]).objects
    pseudonym = found["metadata"]["name"]
    assert set(labelled["metadata"]["labels"].values()) == {pseudonym}
    assert pod["spec"]["nodeName"] == pod["spec"]["queue"] == pseudonym
    assert name not in str((found, labelled, pod))


def test_drivers_have_the_same_name_in_all_kinds():
    """Otherwise no volume would count towards the limit of its driver on a node."""
    driver, storage = "ebs.csi.aws.com", {"apiVersion": "storage.k8s.io/v1"}
    limit = {"name": driver, "nodeID": "10.0.0.1", "allocatable": {"count": 3}}
    objects = [
        {**storage, "kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": [limit]}},
        {**storage, "kind": "CSIDriver", "metadata": {"name": driver}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "spec": {"csi": {"driver": driver}}},
    ]
    node, info, volume = anonymised(objects).objects
    (limit,) = node["spec"]["drivers"]
    assert limit["name"] == info["metadata"]["name"] == volume["spec"]["csi"]["driver"] == driver
    assert limit["nodeID"] != "10.0.0.1"


def test_the_controller_name_of_a_job_is_kept():
    own = {"spec": {"managedBy": "kubernetes.io/job-controller"}}
    assert rewritten(POD, own)["spec"] == own["spec"]


def test_a_reference_keeps_its_group():
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "alice"}
    found = rewritten(POD, {"nodeClassRef": reference, "quobyte": {"group": "alice"}})
    assert found["nodeClassRef"]["group"] == reference["group"]
    assert "alice" not in str(found)


def test_names_of_classes_in_resources_follow_the_classes():
    quota = {
        "gold.storageclass.storage.k8s.io/requests.storage": "5Ti",
        "gpu.deviceclass.resource.k8s.io/devices": "4",
        "requests.deviceclass.resource.kubernetes.io/gpu": "4",
        "requests.cpu": "8",
    }
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    devices = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    objects = [
        {**storage, "metadata": {"name": "gold"}},
        {**devices, "metadata": {"name": "gpu"}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": quota}},
    ]
    gold, gpu, found = anonymised(objects).objects
    gold, gpu = gold["metadata"]["name"], gpu["metadata"]["name"]
    assert list(found["spec"]["hard"]) == [
        f"{gold}.storageclass.storage.k8s.io/requests.storage",
        f"{gpu}.deviceclass.resource.k8s.io/devices",
        f"requests.deviceclass.resource.kubernetes.io/{gpu}",
        "requests.cpu",
    ]


def test_the_user_defined_part_of_a_well_known_key_is_replaced():
    role, other = "node-role.kubernetes.io/payments", "node-role.kubernetes.io/control-plane"
    labels = {role: "", other: "", "fraud.node-restriction.kubernetes.io/team": "x"}
    armor = {"container.apparmor.security.beta.kubernetes.io/ledger": "runtime/default"}
    pod = {
        "labels": labels,
        "annotations": armor,
        "tolerations": [{"key": role, "operator": "Exists"}],
        "volumes": [{"fieldRef": {"fieldPath": f"metadata.labels['{role}']"}}],
    }
    found = rewritten(POD, pod)
    assert "payments" not in str(found)
    assert "ledger" not in str(found)
    assert "fraud" not in str(found)
    assert other in found["labels"]
    (toleration,) = found["tolerations"]
    assert toleration["key"] in found["labels"]
    path = found["volumes"][0]["fieldRef"]["fieldPath"]
    assert path == f"metadata.labels['{toleration['key']}']"


@pytest.mark.parametrize(
    "key",
    [
        "startup-taint.cluster-autoscaler.kubernetes.io/acme",
        "status-taint.cluster-autoscaler.kubernetes.io/acme",
        "readiness.k8s.io/acme",
        "target-health.elbv2.k8s.aws/k8s-acme-web-0123456789",
        "acme.tree.hnc.x-k8s.io/depth",
    ],
)
def test_names_in_published_keys_are_replaced(key):
    found = rewritten(POD, {"labels": {key: "0"}, "readinessGates": [{"conditionType": key}]})
    assert list(found["labels"]) == [found["readinessGates"][0]["conditionType"]]
    assert "acme" not in str(found)
    assert any(is_published_key(one) for one in found["labels"])


def test_names_that_are_keys_of_maps_are_replaced():
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    status = {"disruptedPods": {"web-0": "2026-11-20T05:00:00Z"}}
    found = rewritten(budget, {"status": status})
    assert list(found["status"]["disruptedPods"].values()) == ["2026-11-20T05:00:00Z"]
    assert "web" not in str(found)


def test_kinds_that_no_command_reads_are_dropped():
    """Each key of their maps may be a name."""
    database = {"apiVersion": "acme.com/v1", "kind": "Database", "spec": {"owners": {"alice": 1}}}
    queue = {"apiVersion": "acme.com/v1", "kind": "Queue", "spec": {"owners": {"alice": 1}}}
    old = {"apiVersion": "extensions/v1beta1", "kind": "Deployment"}
    found = anonymised([database, queue, old])
    assert [one["kind"] for one in found.objects] == ["Deployment"]
    assert found.dropped == {"Database": 1, "Queue": 1}


def test_the_policies_of_a_job_set_are_kept_and_the_names_of_its_jobs_are_not():
    rules = [{"action": "RestartJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]
    written = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {
            "replicatedJobs": [{"name": "workers", "replicas": 2}],
            "startupPolicy": {"startupPolicyOrder": "InOrder"},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["workers"]},
            "failurePolicy": {
                "maxRestarts": 3,
                "restartStrategy": "BlockingRecreate",
                "rules": rules,
            },
        },
    }
    spec = anonymised([written]).objects[0]["spec"]
    assert spec["startupPolicy"] == written["spec"]["startupPolicy"]
    assert spec["failurePolicy"] == written["spec"]["failurePolicy"]
    name = spec["replicatedJobs"][0]["name"]
    assert name != "workers"
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": [name]}


def test_the_enumerations_of_a_job_of_volcano_are_kept():
    """Their values begin with a small letter. The same texts are replaced in other fields."""
    task = {"topologyPolicy": "single-numa-node", "dependsOn": {"iteration": "any"}}
    kept = {"networkTopology": {"mode": "hard"}, "tasks": [task]}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}}
    spec = anonymised([{**job, "spec": {**kept, "queue": "hard"}}]).objects[0]["spec"]
    assert spec.pop("queue") != "hard"
    assert spec == kept
