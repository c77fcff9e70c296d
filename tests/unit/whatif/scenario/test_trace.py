"""Traces in openb's format: how rows become nodes, pods and arrival times."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.error import InputError
from fairlead.whatif.scenario.trace import Trace, read_trace

NODES = """sn,cpu_milli,memory_mib,gpu,model
a,32000,262144,0,
b,96000,393216,8,G2
c,8000,1024,1,T4
d,8000,1024,0,
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,460,,LS,Running,0,500,100
p1,6000,12288,2,1000,V100M16|V100M32|V100M32,BE,Pending,5,9,
p2,1000,0,0,0,,Guaranteed,Running,6,7,6
p3,1000,10,0,0,,Burstable,Failed,7,8,7
"""
NODE_SHAPES = "nodes,cpu_milli,memory_mib,gpu,model\n3,1000,1024,0,\n2,2000,2048,4,A10\n"
POD_SHAPES = "pods,qos,cpu_milli,memory_mib,num_gpu,gpu_milli\n30,BE,100,1,0,0\n10,LS,200,2,1,500\n"


@pytest.fixture
def read(tmp_path):
    def read_tables(nodes=NODES, pods=PODS, seed=0, **fields):
        (tmp_path / "n.csv").write_text(nodes)
        (tmp_path / "p.csv").write_text(pods)
        trace = Trace(nodes="n.csv", pods="p.csv", **fields)
        return read_trace(trace, scenario="s.yaml", folder=tmp_path, seed=seed, start=0)

    return read_tables


def nodes_of(cluster):
    return [value for value in cluster.objects if value["kind"] == "Node"]


def requests(arrival):
    return arrival.pod["spec"]["containers"][0]["resources"]["requests"]


def test_nodes_offer_cpu_memory_and_gpus_in_thousandths(read):
    nodes = nodes_of(read())
    assert [node["metadata"]["name"] for node in nodes] == ["a", "b", "c", "d"]
    assert nodes[1]["status"]["allocatable"] == {
        "cpu": "96000m",
        "memory": "393216Mi",
        "pods": "110",
        "openb/gpu-milli": "8000",
    }
    assert "openb/gpu-milli" not in nodes[0]["status"]["allocatable"]
    assert nodes[1]["metadata"]["labels"]["gpu-model"] == "G2"
    assert "gpu-model" not in nodes[0]["metadata"]["labels"]


def test_zones_are_assigned_round_robin_by_row_number(read):
    zones = [n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes_of(read())]
    assert zones == ["a", "b", "c", "a"]


def test_pods_ask_for_gpus_times_thousandths(read):
    arrivals = read().arrivals
    assert requests(arrivals[0]) == {"cpu": "12000m", "memory": "16384Mi", "openb/gpu-milli": "460"}
    assert requests(arrivals[1])["openb/gpu-milli"] == "2000"
    assert requests(arrivals[2]) == {"cpu": "1000m", "memory": "0Mi"}


def test_a_gpu_spec_is_required_affinity_to_the_models(read):
    affinity = read().arrivals[1].pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [
        {"matchExpressions": [
            {"key": "gpu-model", "operator": "In", "values": ["V100M16", "V100M32"]}
        ]}
    ]  # fmt: skip


def test_best_effort_pods_have_the_lower_class(read):
    cluster = read()
    values = {
        value["metadata"]["name"]: value["value"]
        for value in cluster.objects
        if value["kind"] == "PriorityClass"
    }
    classes = [arrival.pod["spec"]["priorityClassName"] for arrival in cluster.arrivals]
    assert [values[name] for name in classes] == [1000, 100, 1000, 1000]


def test_listed_pods_arrive_in_order_at_even_intervals(read):
    arrivals = read(arrivals="100s").arrivals
    assert [arrival.pod["metadata"]["name"] for arrival in arrivals] == ["p0", "p1", "p2", "p3"]
    assert [arrival.after for arrival in arrivals] == [seconds(25 * n) for n in range(4)]


def test_counted_pods_are_shuffled_by_the_seed(read):
    def order(seed):
        arrivals = read(NODE_SHAPES, POD_SHAPES, seed).arrivals
        return [arrival.pod["metadata"]["labels"]["qos"] for arrival in arrivals]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == ["BE"] * 30 + ["LS"] * 10


def test_counted_nodes_get_numbers(read):
    nodes = nodes_of(read(NODE_SHAPES, POD_SHAPES))
    assert [node["metadata"]["name"] for node in nodes] == [
        f"openb-node-000{number}" for number in range(5)
    ]


def test_pods_end_only_if_recorded_durations_are_enabled(read):
    def annotations(**fields):
        return [a.pod["metadata"].get("annotations") for a in read(**fields).arrivals]

    assert annotations() == [None] * 4
    recorded = annotations(durations="recorded")
    assert recorded[0] == {"fairlead.dev/run-duration": "400s"}
    assert recorded[1] is None  # the pod never ran


def test_a_table_may_state_the_usage_of_pods(read):
    """The usage has its own columns; an empty value is unknown."""
    columns = ",memory_used_mib,disk_used_mib"
    rows = zip(PODS.splitlines(), (columns, ",900,", ",,2048", ",1,2", ",,"), strict=True)
    pods = "".join(f"{line}{extra}\n" for line, extra in rows)
    arrivals = read(pods=pods, durations="recorded").arrivals
    found = [arrival.pod["metadata"].get("annotations", {}) for arrival in arrivals]
    assert [one.get("fairlead.dev/usage") for one in found] == [
        "memory=900Mi",
        "ephemeral-storage=2048Mi",
        "memory=1Mi,ephemeral-storage=2Mi",
        None,
    ]
    assert found[0]["fairlead.dev/run-duration"] == "400s"


def test_every_pod_has_an_owner_that_recreates_it(read):
    owners = [arrival.pod["metadata"]["ownerReferences"] for arrival in read().arrivals]
    assert all(owner[0]["controller"] for owner in owners)
    assert len({owner[0]["uid"] for owner in owners}) == 4


@pytest.mark.parametrize(
    ("nodes", "pods", "line"),
    [
        ("sn,cpu\na,1\n", PODS, "n.csv: line 1: the header must be sn,cpu_milli"),
        (NODES + "e,1\n", PODS, "n.csv: line 6: does not have 5 columns like the header"),
        (NODES + "e,1,2,3,x,y\n", PODS, "n.csv: line 6: does not have 5 columns like the header"),
        (NODES + "e,-1,2,3,x\n", PODS, "n.csv: line 6: cpu_milli: '-1' is not an integer"),
        (NODES + "e,1e9,2,3,x\n", PODS, "n.csv: line 6: cpu_milli: '1e9' is not an integer"),
        (NODES + "\ne,-1,2,3,x\n", PODS, "n.csv: line 7: cpu_milli: '-1' is not an integer"),
        (NODES + "\ne,1\n", PODS, "n.csv: line 7: does not have 5 columns like the header"),
        (NODES, PODS.replace("Burstable", "XS"), "p.csv: line 5: qos: 'XS' is not one of BE, LS"),
        (NODES, "", "p.csv: is empty"),
        (NODE_SHAPES.replace("3,1000", "9999999,1000"), PODS, "n.csv: line 2: more than 1000000"),
        (NODES + '"e,1\n', PODS, "is not CSV: unexpected end of data"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(read, nodes, pods, line):
    with pytest.raises(InputError) as refused:
        read(nodes, pods)
    assert line in str(refused.value)
