"""Remedies: proposed changes have been tried, and are as small as possible."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path

import pytest

from fairlead.api.objects import CSINode, PersistentVolume, PersistentVolumeClaim
from fairlead.api.well_known_label import ARCH, OS, ZONE
from fairlead.conformance.scheduling.pod import build, pod_info
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.remedy.change import Remedy
from fairlead.engine.scheduling.remedy.search import find_remedy, verdict_after

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
GOLDEN = Path(__file__).parents[4] / "golden" / "data" / "scheduling"


def node(name="n1", labels=None, taints=(), cpu="4", memory="8Gi", pods="10", **spec):
    """A node as JSON."""
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), **spec},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
    }


def pod(name="p", cpu="1", memory="1Gi", labels=None, priority=0, ports=(), **spec):
    """A pod as JSON."""
    container = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "ports": [{"containerPort": p, "hostPort": p} for p in ports],
    }
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels or {}},
        "spec": {"containers": [container], "priority": priority, **spec},
    }


def bound(name, to="n1", **more):
    """A running pod as JSON."""
    obj = pod(name, **more)
    obj["spec"]["nodeName"] = to
    obj["status"] = {"phase": "Running"}
    return obj


def leaving(obj):
    """Return the pod `obj` with a deletionTimestamp."""
    obj["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:30Z"}
    return obj


def remedy(case, name="n1", kinds=None, profile=Profile(), **how) -> Remedy | None:  # noqa: B008
    """Return the remedy for the node `name`, on which the pod must not fit."""
    served = build(case, kinds, profile=profile)
    pending = pod_info(served, case["pending"])
    found = find_nodes_that_fit(served.plans, pending)
    info = served.framework.cluster.table.find(name)
    assert info is not None
    assert not found.is_feasible(info)
    status = found.diagnosis().status_of(info.row)
    return find_remedy(served.framework, pending, info, status, **how)


ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "q"}}, "topologyKey": "zone"}
        ]
    }
}
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "w"}},
    }
]
HOSTED_BY_N2 = {"key": "metadata.name", "operator": "In", "values": ["n2"]}


def on_nodes(*expressions, fields=()):
    """Required node affinity with one term."""
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


ZONED = [node(labels={"zone": "a"}), node("n2", labels={"zone": "b"})]

CASES = {
    "a little too much cpu: ask for that much less": (
        {"nodes": [node()], "pods": [bound("b", cpu="3500m")], "pending": pod(cpu="750m")},
        "lower the cpu request from 750m to 500m",
    ),
    "a pod with overhead: the overhead stays": (
        {
            "nodes": [node()],
            "pods": [bound("b", cpu="3")],
            "pending": pod(cpu="1", overhead={"cpu": "250m"}),
        },
        "lower the cpu request from 1 to 750m",
    ),
    "too much of two resources: lower both": (
        {
            "nodes": [node()],
            "pods": [bound("b", cpu="3", memory="7Gi")],
            "pending": pod(cpu="2", memory="2Gi"),
        },
        "lower the cpu request from 2 to 1 and the memory request from 2Gi to 1Gi",
    ),
    "a full node: the least important pod that makes room": (
        {
            "nodes": [node()],
            "pods": [bound("big", cpu="3", priority=5), bound("low", cpu="1", priority=1)],
            "pending": pod(cpu="1"),
        },
        "delete pod ns/low",
    ),
    "a full node where one pod is not enough: several": (
        {
            "nodes": [node()],
            "pods": [bound(f"b{i}", priority=i) for i in range(4)],
            "pending": pod(cpu="2"),
        },
        "delete pods ns/b0, ns/b1",
    ),
    "a full node with a pod that is being deleted: wait": (
        {
            "nodes": [node()],
            "pods": [bound("b", cpu="3"), leaving(bound("old", cpu="1", priority=5))],
            "pending": pod(cpu="1"),
        },
        "wait for the end of the terminating pod ns/old",
    ),
    "a cordoned node: uncordon it": (
        {"nodes": [node(unschedulable=True)], "pods": [], "pending": pod()},
        "uncordon node n1",
    ),
    "a cordoned node with its taint: uncordoning removes both": (
        {"nodes": [node(unschedulable=True, taints=[CORDON])], "pods": [], "pending": pod()},
        "uncordon node n1",
    ),
    "one taint: tolerate it": (
        {
            "nodes": [node(taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])],
            "pods": [],
            "pending": pod(),
        },
        "tolerate taint gpu=yes:NoSchedule",
    ),
    "two taints: one toleration for all is still one change": (
        {
            "nodes": [
                node(
                    taints=[
                        {"key": "a", "effect": "NoSchedule"},
                        {"key": "b", "effect": "NoExecute"},
                    ]
                )
            ],
            "pods": [],
            "pending": pod(),
        },
        "tolerate every taint",
    ),
    "a missing label: label the node": (
        {"nodes": [node()], "pods": [], "pending": pod(nodeSelector={"disk": "ssd"})},
        "label node n1 disk=ssd",
    ),
    "another zone: drop the requirement, because a label moves no machine": (
        {
            "nodes": [node(labels={ZONE: "z1"})],
            "pods": [],
            "pending": pod(nodeSelector={ZONE: "z2"}),
        },
        f"drop {ZONE} from the pod's nodeSelector",
    ),
    "no zone: label the node": (
        {"nodes": [node()], "pods": [], "pending": pod(nodeSelector={ZONE: "z2"})},
        f"label node n1 {ZONE}=z2",
    ),
    "no spot machine: drop the requirement, because a label makes no spot machine": (
        {
            "nodes": [node()],
            "pods": [],
            "pending": pod(nodeSelector={"karpenter.sh/capacity-type": "spot"}),
        },
        "drop karpenter.sh/capacity-type from the pod's nodeSelector",
    ),
    "another zone in a term: drop the affinity": (
        {
            "nodes": [node(labels={ZONE: "z1"})],
            "pods": [],
            "pending": pod(affinity=on_nodes({"key": ZONE, "operator": "In", "values": ["z2"]})),
        },
        "drop the pod's node affinity",
    ),
    "a taken host port: the pod that uses it": (
        {"nodes": [node()], "pods": [bound("b", ports=[80])], "pending": pod(ports=[80])},
        "delete pod ns/b (host port TCP 80)",
    ),
    "a taken host port beside a pod without ports: only the pod that uses it": (
        {
            "nodes": [node()],
            "pods": [bound("a"), bound("b", ports=[80]), bound("c", ports=[81])],
            "pending": pod(ports=[80]),
        },
        "delete pod ns/b (host port TCP 80)",
    ),
    "a label that must be greater: drop the affinity, because no value is known": (
        {
            "nodes": [node(labels={"cores": "4"})],
            "pods": [],
            "pending": pod(affinity=on_nodes({"key": "cores", "operator": "Gt", "values": ["8"]})),
        },
        "drop the pod's node affinity",
    ),
    "a node excluded by name and by a label: label it, then drop the affinity": (
        {
            "nodes": [node(), node("n2")],
            "pods": [],
            "pending": pod(
                nodeSelector={"disk": "ssd"},
                affinity=on_nodes(fields=[HOSTED_BY_N2]),
            ),
        },
        "label node n1 disk=ssd, then drop the pod's node affinity",
    ),
    "anti-affinity within a zone: the pod in the way, by name and node": (
        {
            "nodes": ZONED,
            "pods": [bound("q", to="n1", labels={"app": "q"})],
            "pending": pod(affinity=ANTI),
        },
        "delete pod ns/q on node n1",
    ),
    "an existing pod's anti-affinity against ours: that pod": (
        {
            "nodes": ZONED,
            "pods": [bound("hermit", to="n1", affinity=ANTI)],
            "pending": pod(labels={"app": "q"}),
        },
        "delete pod ns/hermit on node n1",
    ),
    "too much skew: as much more as is needed": (
        {
            "nodes": ZONED,
            "pods": [bound(f"w{i}", labels={"app": "w"}, cpu="100m") for i in range(3)],
            "pending": pod(labels={"app": "w"}, topologySpreadConstraints=SPREAD),
        },
        "raise maxSkew on zone from 1 to 4",
    ),
    "fewer domains than minDomains: the number of domains": (
        {
            "nodes": ZONED,
            "pods": [bound("w1", labels={"app": "w"}), bound("w2", to="n2", labels={"app": "w"})],
            "pending": pod(
                labels={"app": "w"}, topologySpreadConstraints=[{**SPREAD[0], "minDomains": 4}]
            ),
        },
        "lower minDomains on zone from 4 to 2",
    ),
    "far fewer domains than minDomains: the number of domains": (
        {
            "nodes": ZONED,
            "pods": [bound("w1", labels={"app": "w"}), bound("w2", to="n2", labels={"app": "w"})],
            "pending": pod(
                labels={"app": "w"}, topologySpreadConstraints=[{**SPREAD[0], "minDomains": 30}]
            ),
        },
        "lower minDomains on zone from 30 to 2",
    ),
    "two plugins object: one change after the other": (
        {
            "nodes": [node(unschedulable=True)],
            "pods": [bound("b", cpu="3500m")],
            "pending": pod(cpu="750m"),
        },
        "uncordon node n1, then lower the cpu request from 750m to 500m",
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_the_remedy_is_the_smallest_change(title):
    """Each rejection has the remedy that an administrator would name."""
    case, expected = CASES[title]
    found = remedy(case)
    assert found is not None
    assert found.what == expected


@pytest.mark.parametrize(
    ("blocker", "pending"),
    [
        (bound("b", labels={"app": "q"}, priority=1), pod(cpu="10m", affinity=ANTI)),
        (bound("b", affinity=ANTI, priority=1), pod(cpu="10m", labels={"app": "q"})),
    ],
    ids=["our anti-affinity", "the anti-affinity of the pod in the way"],
)
def test_pods_with_unrelated_anti_affinity_are_not_tried(blocker, pending):
    """Hundreds of less important pods have anti-affinity: against other pods, or elsewhere."""
    apart = copy.deepcopy(ANTI)
    required = apart["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required[0]["labelSelector"]["matchLabels"] = {"app": "other"}
    others = [bound(f"o{i}", cpu="1m", memory="1Mi", affinity=apart) for i in range(300)]
    hermits = [
        bound(f"h{i}", to="n2", cpu="1m", memory="1Mi", affinity=ANTI, labels={"app": "q"})
        for i in range(300)
    ]
    nodes = [node(labels={"zone": "a"}, pods="999"), node("n2", labels={"zone": "b"}, pods="999")]
    case = {"nodes": nodes, "pods": [blocker, *others, *hermits], "pending": pending}
    found = remedy(case)
    assert found is not None
    assert found.what == "delete pod ns/b on node n1"


def test_protected_pods_are_not_deleted():
    """Other pods are deleted if they suffice."""
    pods = [bound(f"b{i}", priority=i) for i in range(4)]
    case = {"nodes": [node()], "pods": pods, "pending": pod(cpu="2")}
    found = remedy(case, keeps=lambda other: other.key == "ns/b0")
    assert found is not None
    assert found.what == "delete pods ns/b1, ns/b2"
    assert remedy(case, keeps=lambda _: True) is None


def test_without_deletions_only_the_pod_or_the_node_changes():
    """Other pods on the node would be deleted for the first and the last case."""
    other = bound("b", cpu="1500m", labels={"app": "q"}, ports=[80])
    pending = [pod(cpu="10m", affinity=ANTI), pod(), pod(cpu="10m", ports=[80])]
    nodes = [node(labels={"zone": "a"}, cpu="2")]
    cases = [{"nodes": nodes, "pods": [other], "pending": one} for one in pending]
    found = [remedy(case, keeps=None) for case in cases]
    assert [one and one.what for one in found] == [
        "drop the pod's required anti-affinity on zone",
        "lower the cpu request from 1 to 500m",
        None,
    ]


DISK = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]}
UNMOUNTABLE = {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "missing"}}]}


@pytest.mark.parametrize(
    ("pods", "pending"),
    [
        ([bound("b", cpu="4", nodeName="n1")], pod(cpu="1", **UNMOUNTABLE)),
        ([], pod(nodeSelector={"disk": "ssd"}, **UNMOUNTABLE)),
    ],
    ids=["a missing claim on a full node", "a missing claim"],
)
def test_without_a_change_that_helps_there_is_no_remedy(pods, pending):
    assert remedy({"nodes": [node()], "pods": pods, "pending": pending}) is None


KINDS = {"claims": PersistentVolumeClaim, "volumes": PersistentVolume, "csinodes": CSINode}


def with_claim(name):
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


def storage(*names, mode="ReadWriteOnce", most=None):
    """Return bound claims and their CSI volumes; n1 attaches at most `most` volumes."""
    size = {"storage": "1Gi"}
    return {
        "claims": [
            {
                "metadata": {
                    "name": name,
                    "namespace": "ns",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {
                    "accessModes": [mode],
                    "volumeName": f"pv-{name}",
                    "resources": {"requests": size},
                },
                "status": {"phase": "Bound"},
            }
            for name in names
        ],
        "volumes": [
            {
                "metadata": {"name": f"pv-{name}"},
                "spec": {
                    "capacity": size,
                    "accessModes": [mode],
                    "csi": {"driver": "d", "volumeHandle": name},
                },
            }
            for name in names
        ],
        "csinodes": [
            {
                "metadata": {"name": "n1"},
                "spec": {
                    "drivers": [{"name": "d", "nodeID": "n1", "allocatable": {"count": most}}]
                },
            }
        ]
        if most
        else [],
    }


@pytest.mark.parametrize(
    ("case", "what", "deleted"),
    [
        (
            {"pods": [bound("b", **DISK), bound("c")], "pending": pod(**DISK)},
            "delete pod ns/b (its disk)",
            ["b"],
        ),
        (
            {
                "pods": [bound("b", to="n2", **with_claim("a")), bound("c", **with_claim("x"))],
                "pending": pod(**with_claim("a")),
                **storage("a", "x", mode="ReadWriteOncePod"),
            },
            "delete pod ns/b (ReadWriteOncePod claim a)",
            ["b"],
        ),
        (
            {
                "pods": [leaving(bound("b", to="n2", **with_claim("a")))],
                "pending": pod(**with_claim("a")),
                **storage("a", mode="ReadWriteOncePod"),
            },
            "wait for the end of the terminating pod ns/b (ReadWriteOncePod claim a)",
            ["b"],
        ),
        (
            {
                "pods": [
                    bound("b", priority=5, **with_claim("b")),
                    bound("c", **with_claim("c")),
                    bound("d"),
                ],
                "pending": pod(**with_claim("a")),
                **storage("a", "b", "c", most=2),
            },
            "delete pod ns/c on node n1",
            ["c"],
        ),
        (
            {
                "pods": [bound(name, **with_claim("b")) for name in ("b", "c")],
                "pending": pod(**with_claim("a")),
                **storage("a", "b", most=1),
            },
            "delete pods ns/c, ns/b on node n1",
            ["b", "c"],
        ),
    ],
    ids=["a disk", "an exclusive claim", "a terminating user", "a limit", "a shared volume"],
)
def test_the_pods_whose_volumes_are_in_the_way_are_named(case, what, deleted):
    """The pod fits a cluster without the named pods, and not one with any of them."""
    case = {"nodes": [node(), node("n2")], **case}
    found = remedy(case, kinds=KINDS)
    assert found is not None
    assert found.what == what
    for kept in ("", *deleted):
        gone = [one for one in deleted if one != kept]
        left = [one for one in case["pods"] if one["metadata"]["name"] not in gone]
        served = build({**case, "pods": left}, KINDS)
        fits = find_nodes_that_fit(served.plans, pod_info(served, case["pending"]))
        assert fits.is_feasible(served.framework.cluster.table.find("n1")) is not bool(kept)


@pytest.mark.parametrize("label", [{}, {"pool": "red"}])
def test_a_node_is_labelled_for_the_affinity_that_the_profile_adds(label):
    required = on_nodes({"key": "pool", "operator": "In", "values": ["red"]})["nodeAffinity"]
    profile = Profile(args={"NodeAffinity": {"addedAffinity": required}})
    case = {"nodes": [node(labels=label)], "pending": pod()}
    if label:
        served = build(case, profile=profile)
        found = find_nodes_that_fit(served.plans, pod_info(served, case["pending"]))
        assert found.is_feasible(served.framework.cluster.table.find("n1"))
        return
    found = remedy(case, profile=profile)
    assert found is not None
    assert found.what == "label node n1 pool=red"


@pytest.mark.parametrize(
    ("zones", "what"),
    [
        (("a", "b"), "give the pod its own spread constraint on zone with ScheduleAnyway"),
        ((None, "b"), "label node n1 zone=b"),
    ],
)
def test_a_pod_is_freed_from_the_default_constraints_of_the_profile(zones, what):
    """Two pods of the Service run in zone a, none in zone b, or n1 has no zone."""
    default = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [default]}
    labels = {"app": "w"}
    pods = [bound(f"w{i}", cpu="100m", labels=labels) for i in range(2 if zones[0] else 0)]
    nodes = [
        node(name, labels={"zone": zone} if zone else {})
        for name, zone in zip(("n1", "n2"), zones, strict=True)
    ]
    service = {"metadata": {"name": "w", "namespace": "ns"}, "spec": {"selector": labels}}
    case = {"nodes": nodes, "services": [service], "pods": pods, "pending": pod(labels=labels)}
    found = remedy(case, profile=Profile(args={"PodTopologySpread": args}))
    assert found is not None
    assert found.what == what


WINDOWS = {"kubernetes.io/os": "windows"}
OS_TAINT = {"key": "node.kubernetes.io/os", "value": "windows", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({}, None),
        ({"nodeSelector": {"kubernetes.io/os": "linux"}}, None),
        (
            {"nodeSelector": WINDOWS},
            "tolerate taint node.kubernetes.io/os=windows:NoSchedule",
        ),
        (
            {"affinity": on_nodes({"key": OS, "operator": "In", "values": ["windows"]})},
            "tolerate taint node.kubernetes.io/os=windows:NoSchedule",
        ),
    ],
)
def test_only_a_pod_for_windows_is_advised_to_use_a_windows_node(spec, what):
    nodes = [node(labels=WINDOWS, taints=[OS_TAINT])]
    found = remedy({"nodes": nodes, "pending": pod(**spec)})
    assert (found and found.what) == what


ARM_TAINT = {"key": "arch", "value": "arm64", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({}, "tolerate taint arch=arm64:NoSchedule"),
        ({"nodeSelector": {ARCH: "arm64"}}, "tolerate taint arch=arm64:NoSchedule"),
        ({"nodeSelector": {ARCH: "amd64"}}, None),
        ({"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}}, None),
        ({"affinity": on_nodes({"key": ARCH, "operator": "In", "values": ["amd64"]})}, None),
    ],
)
def test_a_pod_that_requires_an_architecture_is_not_advised_to_use_another(spec, what):
    """Its images may not exist for the other architecture."""
    nodes = [node(labels={ARCH: "arm64"}, taints=[ARM_TAINT])]
    found = remedy({"nodes": nodes, "pending": pod(**spec)})
    assert (found and found.what) == what


@pytest.mark.parametrize("label", [ARCH, "beta.kubernetes.io/arch"])
def test_no_remedy_changes_a_label_that_states_the_architecture(label):
    """The kubelet would correct it at its next start."""
    nodes = [node(labels={label: "amd64"})]
    found = remedy({"nodes": nodes, "pending": pod(nodeSelector={label: "arm64"})})
    assert found is None or "label node" not in found.what


def test_the_search_does_not_change_the_cluster():
    """All hypothetical changes are reverted."""
    case, _ = CASES["anti-affinity within a zone: the pod in the way, by name and node"]
    served = build(case)
    pending = pod_info(served, case["pending"])
    table = served.framework.cluster.table
    before = (table.requested.copy(), sorted(table.at(0).pods), table.at(0).node)
    found = find_nodes_that_fit(served.plans, pending)
    find_remedy(served.framework, pending, table.at(0), found.diagnosis().status_of(0))
    assert (table.requested == before[0]).all()
    assert (sorted(table.at(0).pods), table.at(0).node) == before[1:]
    table.validate()


@pytest.mark.parametrize("family", ["resources", "taints", "interpod", "spread", "mix"])
def test_every_remedy_works(family):
    """On recorded cases: the proposed changes, applied to a new cluster, make the pod fit."""
    with gzip.open(GOLDEN / f"{family}.jsonl.gz") as lines:
        cases = [json.loads(line)["case"] for line, _ in zip(lines, range(12), strict=False)]
    tried = 0
    for case in cases:
        served = build(case)
        pending = pod_info(served, case["pending"])
        found = find_nodes_that_fit(served.plans, pending)
        diagnosis = found.diagnosis()
        for info in served.framework.cluster.table.nodes():
            if found.is_feasible(info):
                continue
            cure = find_remedy(served.framework, pending, info, diagnosis.status_of(info.row))
            if cure is not None:
                tried += 1
                fresh = build(case)
                again = pod_info(fresh, case["pending"])
                assert verdict_after(fresh.framework, again, info.name, cure.changes) is None
    assert tried > 10


def test_no_remedy_removes_a_device_request():
    """A node without the device would accept the pod, but the pod could not work there."""
    pending = pod()
    pending["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    assert remedy({"nodes": [node()], "pods": [], "pending": pending}) is None
