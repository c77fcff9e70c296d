"""What-ifs with an autoscaler: nodes by group, reasons, the text and the JSON of the answer."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from fairlead.api.timestamp import parse_timestamp
from fairlead.cli.output.answer import print_answer
from fairlead.cli.output.console.screen import Rank, Section, print_screen
from fairlead.cli.output.markdown import markdown_answer
from fairlead.cli.output.summary import autoscaling as autoscaling_summary
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.autoscaling.autoscaler import AutoscaleOptions
from fairlead.whatif.question import what_if
from fairlead.whatif.report.page_data import packed
from fairlead.whatif.report.report_builder import Heading, whatif_report
from fairlead.whatif.result.result_json import whatif_result

SCHEMA = Path(__file__).parents[3] / "docs" / "result-schema.json"
ZONE = "topology.kubernetes.io/zone"
CAPI_MAX = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
GROUPS = {
    "node-groups": [{"name": "general", "min": 1, "max": 4, "labels": {"pool": "a"}, "price": 0.5}]
}


@pytest.fixture
def answer(snapshot, make, write):
    """Returns the answer if a Deployment of two pods is scaled, with an autoscaler."""

    def ask(replicas):
        nodes = [make.node(name, pool="a") for name in ("a", "b")]
        for node in nodes:
            node["status"]["capacity"] = node["status"]["allocatable"]
        groups = str(write("groups.yaml", json.dumps(GROUPS)))
        return what_if(
            snapshot(*nodes, make.workload(replicas=2, cpu="3")),
            ClusterChange(scale=(f"deploy/web={replicas}",)),
            Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", groups)),
        )

    return ask


def text_of(answer):
    out = StringIO()
    print_answer(answer, console=Console(file=out, width=120))
    return out.getvalue()


def test_nodes_are_added_for_pending_pods_up_to_the_maximum(answer):
    found = answer(6)
    autoscaling = found.changed.autoscaling
    assert (autoscaling.added, autoscaling.nodes_after) == (2, 4)
    assert {one.reason for one in autoscaling.transitions} == {""}
    assert len(found.difference.placed) == 2
    assert set(autoscaling.waiting.values()) == {
        "pod didn't trigger scale-up: 1 max node group size reached"
    }
    assert found.without.autoscaling.added == 0
    assert autoscaling.cost_per_hour == 2.0
    assert (
        "The limit of node group general allows no further node: 4 nodes."
        in found.verdict.first.sentence
    )
    [step] = [one for one in found.next_steps if "maximum" in one.words]
    # The autoscaler added two nodes; in the trial, their places count against the limit.
    assert step.words == (
        "raise the maximum of node group general from 4 to 6 nodes, and ask again with 4 more "
        "nodes like a; no pod then stays pending"
    )
    assert step.options == "--add-nodes 4 --like a"


def test_only_limits_of_groups_whose_nodes_suit_the_pods_are_named(snapshot, make, write):
    """Scale-up does not compare pods with groups at their maximum size."""
    sizes = {"a": "4", "b": "4", "c": "1"}
    nodes = [make.node(name, cpu=cpu, pool=name) for name, cpu in sizes.items()]
    groups = [{"name": one, "min": 1, "max": 1, "labels": {"pool": one}} for one in sizes]
    found = what_if(
        snapshot(*nodes, make.workload(replicas=1, cpu="3", nodeSelector={"pool": "b"})),
        ClusterChange(scale=("deploy/web=3",)),
        Conditions(
            autoscale=AutoscaleOptions(
                "cluster-autoscaler", str(write("g.yaml", json.dumps({"node-groups": groups})))
            )
        ),
    )
    [reason] = set(found.changed.autoscaling.waiting.values())
    assert reason == "pod didn't trigger scale-up: 3 max node group size reached"
    assert (
        "The limit of node group b allows no further node: 1 node." in found.verdict.first.sentence
    )


def limited(write, *names, maximum=1):
    """Conditions with Cluster Autoscaler and a group for each of `names`, with these labels."""
    groups = [{"name": one, "min": 0, "max": maximum, "labels": {"pool": one}} for one in names]
    path = str(write("g.yaml", json.dumps({"node-groups": groups})))
    return Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", path))


def test_the_maximum_of_each_zonal_group_is_raised_for_spread_pods(snapshot, make, write):
    """Nodes of one zone alone would not help pods that are spread over the zones."""
    zones = {"a": "z1", "b": "z2", "c": "z3"}
    nodes = [make.node(name, pool=name, **{ZONE: zone}) for name, zone in zones.items()]
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    found = what_if(
        snapshot(*nodes, make.workload(replicas=3, cpu="3", topologySpreadConstraints=[spread])),
        ClusterChange(scale=("deploy/web=9",)),
        limited(write, *zones),
    )
    [step] = [one for one in found.next_steps if "raise" in one.words]
    assert step.words == (
        "raise the maximum of node group a from 1 to 3 nodes, the maximum of node group b from 1 "
        "to 3 nodes and the maximum of node group c from 1 to 3 nodes, and ask again with 6 more "
        "nodes like a, b, c; no pod then stays pending"
    )
    assert step.options == "--add-nodes 6 --like a,b,c"


def test_the_maximum_of_a_tainted_group_is_raised_for_new_pods(snapshot, make, write):
    """The nodes of the group run no such pods yet, but the limit shows that they would suit."""
    node = make.node("a", pool="gpu")
    node["spec"] = {"taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]}
    new = make.workload(name="job", replicas=2, cpu="3", tolerations=[{"operator": "Exists"}])
    path = str(write("new.yaml", json.dumps(new)))
    found = what_if(snapshot(node), ClusterChange(apply=(path,)), limited(write, "gpu"))
    [step] = [one for one in found.next_steps if "raise" in one.words]
    assert step.words.startswith("raise the maximum of node group gpu from 1 to 2 nodes")
    assert step.words.endswith("; no pod then stays pending")


def test_limits_concern_pods_that_replace_preempted_pods(snapshot, make, write):
    """Answers list a replacement under the name of the preempted pod."""
    low, high = (
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("low", 0), ("high", 10))
    )
    owner = make.workload("ReplicaSet", "spare", replicas=1, cpu="3", priorityClassName="low")
    owner["metadata"]["uid"] = "spare"
    pod = make.pod("spare-0", cpu="3", node_name="a", owner="spare", priority=0)
    pod["metadata"]["labels"] = {"app": "spare"}
    pod["metadata"]["ownerReferences"][0]["uid"] = "spare"
    path = str(write("new.yaml", json.dumps(make.workload(cpu="3", priorityClassName="high"))))
    found = what_if(
        snapshot(make.node("a", pool="g"), low, high, owner, pod),
        ClusterChange(apply=(path,)),
        limited(write, "g"),
    )
    assert [one.key for one in found.difference.pending] == ["default/spare-0"]
    assert list(found.changed.autoscaling.waiting) == ["default/spare-0"]
    limit = "The limit of node group g allows no further node: 1 node."
    assert any(limit in one.sentence for one in found.verdict.findings)


def test_daemon_set_pods_on_a_node_that_the_change_keeps_are_not_new(snapshot, make, write):
    """Without the change, the autoscaler removes the node b, which has no other pods."""
    daemon_set = make.workload("DaemonSet", "agent", cpu="0")
    daemon_set["metadata"]["uid"] = "agent"
    agents = []
    for node in "ab":
        pod = make.pod(f"agent-{node}", cpu="0", node_name=node, owner="agent")
        kind = {"kind": "DaemonSet", "apiVersion": "apps/v1", "name": "agent", "uid": "agent"}
        pod["metadata"]["ownerReferences"] = [{**kind, "controller": True}]
        pod["metadata"]["labels"] = {"app": "agent"}
        agents.append(pod)
    nodes = [make.node(name, pool="g") for name in "ab"]
    found = what_if(
        snapshot(*nodes, daemon_set, *agents, make.workload(replicas=1, cpu="3")),
        ClusterChange(scale=("deploy/web=2",)),
        limited(write, "g", maximum=2),
    )
    assert (found.without.autoscaling.removed, found.changed.autoscaling.removed) == (1, 0)
    [finding] = [one for one in found.verdict.findings if one.kind == "started"]
    assert finding.sentence.endswith(
        "1 DaemonSet pod stays on 1 node, removed only without the change."
    )
    [agent] = [one for one in found.effect.workloads if one.workload.name == "agent"]
    assert agent.words == "1 removed only without the change"


def test_the_limit_on_the_number_of_all_nodes_is_named(snapshot, make, write):
    groups = json.dumps(GROUPS | {"flags": {"max-nodes-total": 1}})
    found = what_if(
        snapshot(make.node("a", pool="a"), make.workload(replicas=2, cpu="3")),
        ClusterChange(scale=("deploy/web=3",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", str(write("g.yaml", groups)))),
    )
    text = "The limit of flag --max-nodes-total allows no further node: 1 node."
    assert text in found.verdict.first.sentence
    [step] = [one for one in found.next_steps if "--max-nodes-total" in one.words]
    assert step.words.startswith("raise --max-nodes-total from 1 to 3 nodes, and ask again with 2 ")


def test_a_trial_of_a_higher_limit_keeps_the_nodes_of_other_groups(snapshot, make, write):
    """In the trial, the autoscaler adds no node, so copies replace the nodes that it added.

    It added one node of group big and one of group small. Two nodes of group small would not do.
    """
    groups = [
        {"name": one, "min": 0, "max": most, "labels": {"pool": one}}
        for one, most in (("small", 9), ("big", 2))
    ]
    flags = {"max-nodes-total": 4, "expander": "priority"}
    path = str(write("g.yaml", json.dumps({"node-groups": groups, "flags": flags})))
    priorities = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "cluster-autoscaler-priority-expander",
            "namespace": "kube-system",
        },
        "data": {"priorities": "9: [big]\n1: [small]\n"},
    }
    present = [make.node("s", "4", pool="small"), make.node("b", "16", pool="big")]
    found = what_if(
        snapshot(*present, priorities, make.workload(replicas=1, cpu="3")),
        ClusterChange(scale=("deploy/web=13",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", path)),
    )
    assert {one.group: one.added for one in found.changed.autoscaling.groups} == {
        "small": 1,
        "big": 1,
    }
    [step] = [one for one in found.next_steps if "raise" in one.words]
    assert step.words == (
        "raise --max-nodes-total from 4 to 5 nodes, and ask again with 2 more nodes like s and "
        "one more node like b; no pod then stays pending"
    )
    assert step.options == "--add-nodes 3 --like s:2,b"


@pytest.mark.parametrize(
    ("nodes", "limits", "higher"),
    [
        ("ab", (1, 0), ("the maximum of node group general from 1 to 4",)),
        ("a", (1, 1), ("--max-nodes-total from 1 to 4",
                       "the maximum of node group general from 1 to 4")),
        ("a", (2, 3), ("--max-nodes-total from 3 to 4",
                       "the maximum of node group general from 2 to 4")),
        ("a", (9, 2), ("--max-nodes-total from 2 to 4",)),
    ],
)  # fmt: skip
def test_all_limits_that_the_new_nodes_exceed_are_raised(
    snapshot, make, write, nodes, limits, higher
):
    """A group may already be larger than its maximum. Each node has room for one pod."""
    maximum, total = limits
    group = {**GROUPS["node-groups"][0], "max": maximum}
    groups = {"node-groups": [group], "flags": {"max-nodes-total": total}}
    present = [make.node(name, pool="a") for name in nodes]
    path = str(write("g.yaml", json.dumps(groups)))
    found = what_if(
        snapshot(*present, make.workload(replicas=1, cpu="3")),
        ClusterChange(scale=("deploy/web=4",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", path)),
    )
    [step] = [one for one in found.next_steps if "raise" in one.words]
    words = " and ".join(f"{one} nodes" for one in higher)
    assert step.words.startswith(f"raise {words}, and ask again with ")


@pytest.mark.parametrize(
    ("limits", "named", "raised"),
    [
        ((9, {"cores-total": "0:8"}), "flag --cores-total allows no further node: 8 cores",
         "--cores-total from 8 to 16 cores"),
        ((9, {"memory-total": "0:40"}), "flag --memory-total allows no further node: 40 GiB",
         "--memory-total from 40 to 64 GiB"),
        ((2, {"cores-total": "0:8"}), "node group general allows no further node: 2 nodes",
         ("the maximum of node group general from 2 to 4 nodes and "
          "--cores-total from 8 to 16 cores")),
        ((9, {"cores-total": "0:8", "max-nodes-total": 2}),
         "2 flags allow no further node: --max-nodes-total (2 nodes), --cores-total (8",
         "--max-nodes-total from 2 to 4 nodes and --cores-total from 8 to 16 cores"),
        ((9, {"cores-total": "0:99", "max-nodes-total": 2}),
         "flag --max-nodes-total allows no further node: 2 nodes",
         "--max-nodes-total from 2 to 4 nodes"),
    ],
    ids=["cores", "memory", "a maximum, and cores", "all nodes, and cores", "only all nodes"],
)  # fmt: skip
def test_limits_on_cores_and_memory_are_named_and_raised(
    snapshot, make, write, limits, named, raised
):
    """The autoscaler adds one node of 4 cores and 16 GiB; then it has reached the limits."""
    maximum, flags = limits
    group = {**GROUPS["node-groups"][0], "max": maximum}
    path = str(write("g.yaml", json.dumps({"node-groups": [group], "flags": flags})))
    node = make.node("a", pool="a")
    node["status"]["capacity"] = node["status"]["allocatable"]
    found = what_if(
        snapshot(node, make.workload(replicas=1, cpu="3")),
        ClusterChange(scale=("deploy/web=4",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", path)),
    )
    assert found.changed.autoscaling.added == 1
    assert named in found.verdict.first.sentence
    [step] = [one for one in found.next_steps if "raise" in one.words]
    assert step.words == (
        f"raise {raised}, and ask again with 3 more nodes like a; no pod then stays pending"
    )


@pytest.mark.parametrize(
    ("limits", "options"),
    [((9, 2), "--add-nodes 2 --like z"), ((1, 0), "--add-nodes 2 --like z"), ((0, 0), None)],
)
def test_only_nodes_of_groups_that_the_limit_concerns_are_copied(
    snapshot, make, write, limits, options
):
    """Node m is in no group. It is smaller than node z, but no autoscaler adds such a node.

    A group whose maximum is 0 has no node that can be copied.
    """
    (maximum, total), size = limits, {"cpu": "8", "memory": "16Gi", "pods": "110"}
    group = {"name": "g", "min": 0, "max": maximum, "labels": {"pool": "a"}}
    group |= {"template": {"capacity": size}}
    groups = {"node-groups": [group], "flags": {"max-nodes-total": total}}
    grouped = [make.node("z", "8", pool="a")] if maximum else []
    path = str(write("g.yaml", json.dumps(groups)))
    found = what_if(
        snapshot(make.node("m"), *grouped, make.workload(replicas=1, cpu="3")),
        ClusterChange(scale=("deploy/web=6",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", path)),
    )
    assert found.changed.autoscaling.limits
    steps = [one.options for one in found.next_steps if "raise" in one.words]
    assert steps == ([options] if options else [])


def test_a_higher_limit_is_tried_with_copies_of_nodes_of_the_dump(snapshot, make, write):
    """The autoscaler adds a node in both runs; its name is before z."""
    groups = json.dumps({"node-groups": [{**GROUPS["node-groups"][0], "max": 2}]})
    found = what_if(
        snapshot(make.node("z", pool="a"), make.workload(replicas=2, cpu="3")),
        ClusterChange(scale=("deploy/web=3",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", str(write("g.yaml", groups)))),
    )
    assert len(found.without.nodes) == 2
    [step] = [one for one in found.next_steps if "maximum" in one.words]
    assert step.words.startswith("raise the maximum of node group general from 2 to 3 nodes")
    assert step.options.endswith("--like z")


def test_the_verdict_says_why_the_autoscaler_ignores_pods(snapshot, make, write):
    """The group could grow, but no loop of Cluster Autoscaler looks at expendable pods."""
    groups = json.dumps(GROUPS | {"flags": {"expendable-pods-priority-cutoff": "1"}})
    found = what_if(
        snapshot(make.node("a", pool="a"), make.workload(replicas=1, cpu="3")),
        ClusterChange(scale=("deploy/web=3",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", str(write("g.yaml", groups)))),
    )
    assert found.verdict.first.sentence == (
        "2 pods of deploy/default/web stay pending: Insufficient cpu. For these pods, "
        "cluster-autoscaler adds no node: priority 0 is below --expendable-pods-priority-cutoff "
        "(1)."
    )


@pytest.mark.parametrize(
    ("cpu", "maximum", "limits"),
    [
        ("3", 4, ["--max-nodes-total"]),
        ("3", 1, ["--max-nodes-total", "general"]),
        ("30", 4, []),  # larger than the nodes of the only group
    ],
)
def test_the_limit_on_all_nodes_is_named_only_for_pods_that_a_group_suits(
    snapshot, make, write, cpu, maximum, limits
):
    """At this limit, scale-up compares no pod with any group."""
    [group] = GROUPS["node-groups"]
    groups = {"node-groups": [group | {"max": maximum}], "flags": {"max-nodes-total": 1}}
    small, web = (
        make.workload(name="other", replicas=1, cpu="3"),
        make.workload(replicas=1, cpu=cpu),
    )
    options = AutoscaleOptions("cluster-autoscaler", str(write("g.yaml", json.dumps(groups))))
    found = what_if(
        snapshot(make.node("a", pool="a"), small, web),
        ClusterChange(scale=("deploy/web=2",)),
        Conditions(autoscale=options),
    )
    named = found.changed.autoscaling.limits
    waiting = {key for key in found.changed.autoscaling.waiting if "/web-" in key}
    assert waiting
    assert [[one.name for one in named.get(key, ())] for key in waiting] == [limits] * len(waiting)


def test_each_node_of_a_group_costs_the_price_of_its_type(snapshot, make, write):
    group, kind = {"kops.k8s.io/instancegroup": "ig"}, "node.kubernetes.io/instance-type"
    nodes = [make.node(name, **group, **{kind: name}) for name in ("a", "b")]
    types = str(write("types.csv", "name,cpu,memory,price\na,4,16Gi,0.25\nb,4,16Gi,1\n"))
    found = what_if(
        snapshot(*nodes, make.workload(replicas=2, cpu="3")),
        ClusterChange(scale=("deploy/web=3",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", instance_types=types)),
    )
    assert found.without.autoscaling.cost_per_hour == 1.25
    assert (found.changed.autoscaling.added, found.changed.autoscaling.cost_per_hour) == (1, 1.5)


def test_node_hours_of_both_runs_are_counted_over_the_same_time(answer):
    found = answer(6)
    hours = found.changed.virtual_seconds / 3600
    assert found.without.virtual_seconds / 3600 < hours
    assert found.without.autoscaling.node_hours == pytest.approx(2 * hours)


def test_a_run_settles_only_after_unneeded_nodes_are_removed(answer):
    found = answer(1)
    autoscaling = found.changed.autoscaling
    assert (autoscaling.removed, autoscaling.nodes_after) == (1, 1)
    assert found.changed.settled
    [gone] = autoscaling.transitions
    assert gone.reason == ""
    assert gone.at - found.changed.started_at > 600 * 10**9


def test_a_run_that_ends_before_nodes_may_be_removed_says_when(snapshot, make, write):
    groups = json.dumps(GROUPS | {"flags": {"scale-down-unneeded-time": "2h"}})
    nodes = [make.node(name, pool="a") for name in ("a", "b")]
    nodes[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    found = what_if(
        snapshot(*nodes, make.workload(replicas=1)),
        ClusterChange(),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", str(write("g.yaml", groups)))),
    )
    assert found.changed.unsettled("--horizon") == (
        "When the run ended (--horizon), only the autoscaler waited: 1 node will have been "
        "unneeded for long enough at 2026-01-01T02:00:20Z. A longer run shows which nodes it then "
        "removes."
    )


@pytest.mark.parametrize(
    ("tainted", "added", "process", "minutes"),
    [
        ("11:52", "08:00", (), 2),
        ("11:30", "08:00", (), 0),
        ("soon", "08:00", (), 10),
        ("13:00", "08:00", (), 10),
        ("11:52", "11:57", (), 7),
        ("11:52", "08:00", ("09:00",), 2),
        ("11:52", "08:00", ("11:58",), 8),
        ("11:52", "11:57", ("11:58",), 8),
        ("11:52", "08:00", ("11:58", "--node-deletion-candidate-ttl=10m"), 2),
        ("11:52", "08:00", ("11:58", "--node-deletion-candidate-ttl=5m"), 8),
        ("11:52", "08:00", (5,), 2),  # not a timestamp
    ],
)
def test_the_time_for_which_a_node_is_unneeded_begins_at_its_taint(
    snapshot, make, tainted, added, process, minutes
):
    """At 12:00, with delays of 10 minutes; nodes and the autoscaler's process can be younger."""
    labels = {"kops.k8s.io/instancegroup": "ig"}
    needed, idle = (make.node(name, **labels) for name in ("a", "b"))
    hour = "2026-01-01T{}:00Z".format
    at = str(parse_timestamp(hour(tainted)) // 10**9) if ":" in tainted else tainted
    taint = {"key": "DeletionCandidateOfClusterAutoscaler", "value": at}
    idle["spec"] = {"taints": [taint | {"effect": "PreferNoSchedule"}]}
    needed["metadata"]["creationTimestamp"] = hour(added)
    dumped = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    dumped["metadata"] |= {"namespace": "default", "creationTimestamp": hour("12:00")}
    objects = [needed, idle, dumped, make.pod(cpu="2", node_name="a", owner="web")]
    if process:
        started, *flags = process
        deployment = make.workload(name="ca")
        spec = deployment["spec"]["template"]["spec"]
        spec["containers"][0] |= {
            "image": "cluster-autoscaler:v1.36.0",
            "args": ["--nodes=1:9:ig", *flags],
        }
        at = hour(started) if isinstance(started, str) else started
        running = {"name": "c", "state": {"running": {"startedAt": at}}}
        pod = make.pod("ca", node_name="a", owner="ca")
        pod |= {"spec": spec | {"nodeName": "a"}}
        objects += [
            deployment,
            pod | {"status": {"phase": "Running", "containerStatuses": [running]}},
        ]
    found = what_if(
        snapshot(*objects),
        ClusterChange(),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler")),
    ).without.autoscaling
    assert found is not None
    [gone] = list(found.earlier) + list(found.transitions)
    removal = timedelta(seconds=(gone.at - parse_timestamp(hour("12:00"))) / 10**9)
    assert timedelta(minutes=minutes) < removal < timedelta(minutes=minutes + 2)


def test_a_node_that_a_user_adds_is_not_added_by_the_autoscaler(snapshot, make, write):
    groups = str(write("groups.yaml", json.dumps(GROUPS)))
    found = what_if(
        snapshot(make.node("a", pool="a"), make.workload(replicas=2)),
        ClusterChange(add_nodes=1, like="a"),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", groups)),
    )
    came, gone = found.changed.autoscaling.transitions
    assert (came.came, came.reason) == (True, "Created by a user")
    assert (gone.came, gone.reason) == (False, "")


def test_a_node_that_a_user_deletes_is_not_removed_by_the_autoscaler(snapshot, make, write):
    nodes = [make.node(name, pool="a") for name in ("a", "b")]
    groups = str(write("groups.yaml", json.dumps(GROUPS)))
    found = what_if(
        snapshot(*nodes, make.workload(replicas=2)),
        ClusterChange(delete=("node/b",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", groups)),
    )
    [gone] = found.changed.autoscaling.transitions
    assert (gone.node, gone.came, gone.reason) == ("b", False, "Deleted")


def test_a_node_that_the_change_names_is_kept_until_the_change(snapshot, make, write):
    """Without the annotation, the autoscaler removes one of the nodes before the change."""
    nodes = [make.node(name, pool="a") for name in ("a", "b")]
    groups = str(write("groups.yaml", json.dumps(GROUPS)))
    cluster = snapshot(*nodes, make.workload(replicas=1))
    conditions = Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", groups))
    unchanged = what_if(cluster, ClusterChange(), conditions).without.autoscaling
    [removed] = unchanged.earlier or unchanged.transitions
    found = what_if(cluster, ClusterChange(delete=(f"node/{removed.node}",)), conditions)
    assert not found.changed.skipped
    [gone] = found.changed.autoscaling.transitions
    assert (gone.node, gone.reason) == (removed.node, "Deleted")
    [without] = found.without.autoscaling.transitions
    assert (without.node, without.reason) == (removed.node, "")


@pytest.fixture
def fail_zone(snapshot, make, write):
    """Returns the answer if one of two full nodes, which are in zones z-a and z-b, fails.

    The node groups have no nodes yet; new nodes in z-a are cheaper.
    """

    def ask(failures, lasts="", zones=("z-a", "z-b"), scale=()):
        size = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        stated = [
            {
                "name": zone,
                "min": 0,
                "max": 3,
                "labels": {"pool": zone},
                "price": {"z-a": 0.2, "z-b": 0.3}[zone],
                "template": {"labels": {ZONE: zone}, "capacity": size, "allocatable": size},
            }
            for zone in zones
        ]
        content = {"node-groups": stated, "flags": {"expander": "price"}}
        path = str(write("groups.yaml", json.dumps(content)))
        return what_if(
            snapshot(
                *(make.node(f"node-{zone}", **{ZONE: zone}) for zone in ("z-a", "z-b")),
                make.workload(replicas=2, cpu="3"),
            ),
            ClusterChange(failures=failures, lasts=lasts, scale=scale),
            Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", path)),
        )

    return ask


def test_no_node_is_created_in_a_failed_zone(fail_zone):
    """The group of the failed zone is cheaper, so it is tried first, and backs off."""
    found = fail_zone(Failures(fail_zone=("z-a",)))
    autoscaling = found.changed.autoscaling
    [came] = [one for one in autoscaling.transitions if one.came]
    assert came.group == "z-b"
    assert autoscaling.undelivered == {"z-a": 1}
    assert {one.name: one.zone for one in found.changed.nodes}[came.node] == "z-b"
    [note] = [one for one in found.changed.notes if "zone z-a is down" in one]
    assert note == (
        "While zone z-a is down, Cluster Autoscaler gets no machines there; "
        f"--fail-node {ZONE}=z-a fails only the zone's present nodes."
    )


@pytest.mark.parametrize(("failed", "notes"), [("a", 1), ("b", 0)])
def test_a_note_says_that_the_autoscaler_itself_does_not_run(snapshot, make, failed, notes):
    """It runs on node a; while its pod is down, the simulated autoscaler still acts."""
    nodes = [make.node(one, **{"eks.amazonaws.com/nodegroup": "w", "pool": one}) for one in "ab"]
    deployment = make.workload(name="ca", nodeSelector={"pool": "a"})
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "r/cluster-autoscaler:v1.34"
    found = what_if(
        snapshot(*nodes, deployment),
        ClusterChange(failures=Failures(fail_node=(failed,)), lasts="10m"),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler")),
    )
    said = [one for one in found.changed.notes if "acts in this time too" in one]
    assert len(said) == notes


@pytest.fixture
def installed(snapshot, make):
    """Returns the answer for a cluster that runs Cluster Autoscaler, with a MachineDeployment."""
    deployment = make.workload(name="ca")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "r/cluster-autoscaler:v1.36.0", "args": ["--scan-interval=20s"]}
    machines = {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineDeployment",
        "metadata": {
            "name": "w",
            "namespace": "default",
            "annotations": {
                CAPI_MAX.replace("max", "min"): "1",
                CAPI_MAX: "3",
            },
        },
        "spec": {},
    }
    node = make.node("n", **{"cluster.x-k8s.io/deployment-name": "w"})

    def ask(**change):
        return what_if(
            snapshot(node, deployment, machines),
            ClusterChange(**change),
            Conditions(autoscale=AutoscaleOptions("cluster-autoscaler")),
        )

    return ask


@pytest.mark.parametrize(
    "change", [{"scale": ("deploy/ca=0",)}, {"delete": ("deploy/ca",)}], ids=["scale", "delete"]
)
def test_a_note_says_that_the_change_stops_the_autoscaler_itself(installed, change):
    found = installed(**change)
    [note] = [one for one in found.changed.notes if "acts in this time too" in one]
    assert note == (
        "deploy/default/ca has no ready pod to the end, but the simulated cluster-autoscaler acts "
        "in this time too."
    )


@pytest.mark.parametrize(
    ("field", "named"),
    [
        (
            "deploy/ca:spec.template.spec.containers[0].args[0]=--scan-interval=60s",
            "Deployment default/ca",
        ),
        (
            f'machinedeployment/w:metadata.annotations[{CAPI_MAX}]="9"',
            "MachineDeployment default/w",
        ),
        ("deploy/ca:spec.template.spec.containers[0].image=r/cluster-autoscaler:v1.37.0", ""),
        ("machinedeployment/w:metadata.annotations.team=a", ""),
    ],
)
def test_a_note_says_that_changed_settings_of_the_autoscaler_have_no_effect(
    installed, field, named
):
    found = installed(set=(field,))
    notes = [one for one in found.changed.notes if "keeps its settings" in one]
    expected = (
        f"The settings of the autoscaler in {named} change, but the simulated cluster-autoscaler "
        "keeps its settings. To simulate other settings, state them in the dump or in the file of "
        "--node-groups."
    )
    assert notes == ([expected] if named else [])


def test_a_group_of_several_zones_uses_the_zones_that_work(snapshot, make):
    """The group of EKS has three zones; the nodes that replace a failed zone are in the others."""
    size = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    nodes = [
        make.node(f"n-{zone}", **{"eks.amazonaws.com/nodegroup": "w", ZONE: zone}) for zone in "abc"
    ]
    for node in nodes:
        node["status"]["capacity"] = node["status"]["allocatable"] = size
    found = what_if(
        snapshot(*nodes, make.workload(replicas=3, cpu="3")),
        ClusterChange(failures=Failures(fail_zone=("a",)), scale=("deploy/web=4",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler")),
    )
    new = [one.zone for one in found.changed.nodes if "-new-" in one.name]
    assert sorted(new) == ["b", "c"]
    assert not found.difference.pending


def test_a_failed_zone_has_capacity_again_when_it_returns(fail_zone):
    """The third pod waits for the end of the outage and of the group's backoff."""
    failures = Failures(fail_zone=("z-a",))
    found = fail_zone(failures, lasts="3m", zones=("z-a",), scale=("deploy/web=3",))
    autoscaling = found.changed.autoscaling
    [came] = [one for one in autoscaling.transitions if one.came]
    assert came.group == "z-a"
    assert came.at - found.changed.started_at > 5 * 60 * 10**9
    assert autoscaling.undelivered == {"z-a": 1}


def test_a_run_lasts_until_the_failure_is_over(snapshot, make):
    """The autoscaler has removed the failed node, so the end of the failure changes nothing."""
    nodes = [make.node(one, **{"eks.amazonaws.com/nodegroup": "w"}) for one in "ab"]
    pods = [make.pod(f"p-{one}", cpu="3", node_name=one) for one in "ab"]
    found = what_if(
        snapshot(*nodes, *pods),
        ClusterChange(failures=Failures(fail_node=("a",)), lasts="3h"),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler")),
    )
    assert "a" not in found.changed.node_names
    assert found.changed.ended_at - found.changed.started_at == 3 * 3600 * 10**9


@pytest.mark.parametrize(
    "failures",
    [
        Failures(fail_node=(f"{ZONE}=z-a",)),
        Failures(fail_fraction=("100%@z-a",)),
        Failures(fail_zone=("z-a",), how="not-ready"),
    ],
    ids=["nodes", "fraction", "condition"],
)
def test_if_only_nodes_fail_new_nodes_can_be_created_in_their_zone(fail_zone, failures):
    autoscaling = fail_zone(failures).changed.autoscaling
    assert {one.group for one in autoscaling.transitions if one.came} == {"z-a"}
    assert autoscaling.undelivered == {}


@pytest.fixture
def fail_half(snapshot, make, write):
    """Returns the answer if the full nodes of one of two zones fail, four in each zone."""

    def ask(lasts="", flags=None, maximum=20):
        nodes = [make.node(f"{zone}{n}", pool="a", **{ZONE: zone}) for zone in "xy" for n in "0123"]
        for node in nodes:
            node["status"]["capacity"] = node["status"]["allocatable"]
            node["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
        groups = {
            "node-groups": [{"name": "general", "min": 1, "max": maximum, "labels": {"pool": "a"}}],
            "flags": flags or {},
        }
        path = str(write("groups.yaml", json.dumps(groups)))
        deployment = make.workload(replicas=8, cpu="3")  # created long after the nodes
        deployment["metadata"]["creationTimestamp"] = "2025-02-01T00:00:00Z"
        return what_if(
            snapshot(*nodes, deployment),
            ClusterChange(failures=Failures(fail_zone=("x",)), lasts=lasts),
            Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", path)),
        )

    return ask


def test_the_first_note_says_that_unready_nodes_stop_the_autoscaler(fail_half):
    """Pods wait for nodes that the autoscaler would add if fewer nodes were unready."""
    found = fail_half(lasts="20m")
    assert found.changed.autoscaling.added == 0
    assert found.changed.notes[0] == (
        "From 58s to 20m03s, Cluster Autoscaler adds and removes no nodes, because 4 of 8 nodes "
        "are not ready. It stops if more than 3 nodes (--ok-total-unready-count) and more than 45% "
        "of all nodes (--max-total-unready-percentage) are not ready."
    )
    assert found.causes == found.changed.notes[:1]
    assert not found.without.autoscaling.pauses


def test_pods_that_still_wait_name_the_unready_nodes(fail_half):
    found = fail_half()
    assert "From 58s to the end, Cluster Autoscaler adds" in found.changed.notes[0]
    assert len(found.changed.autoscaling.waiting) == 4
    assert set(found.changed.autoscaling.waiting.values()) == {
        "Cluster is unhealthy: 4 of 8 nodes are not ready, so Cluster Autoscaler adds no nodes"
    }


def test_a_note_says_why_no_node_was_added_for_pods_that_are_bound_at_the_end(fail_half):
    """The pods are bound when their zone returns, and then the reason no longer applies."""
    found = fail_half(lasts="20m", flags={"ok-total-unready-count": 4}, maximum=8)
    assert not found.changed.autoscaling.waiting
    assert found.causes == found.changed.notes[:1]
    assert re.fullmatch(
        r"For up to 13m\d\ds, cluster-autoscaler adds no node for 4 pods of deploy/default/web: "
        r"pod didn't trigger scale-up: 1 max node group size reached\.",
        found.causes[0],
    )


def test_unready_nodes_that_the_flags_tolerate_do_not_stop_the_autoscaler(fail_half):
    found = fail_half(flags={"ok-total-unready-count": 4})
    assert not found.changed.autoscaling.pauses
    assert not found.causes


def test_pods_of_a_removed_node_are_evicted(snapshot, make, write):
    """Each pod is listed once, as evicted, although its node is deleted afterwards."""
    nodes = [make.node(name, pool="a") for name in ("a", "b")]
    for node in nodes:
        node["status"]["capacity"] = node["status"]["allocatable"]
    found = what_if(
        snapshot(*nodes, make.workload(replicas=2), make.workload(name="big", replicas=2, cpu="2")),
        ClusterChange(scale=("deploy/big=0",)),
        Conditions(
            autoscale=AutoscaleOptions(
                "cluster-autoscaler", str(write("groups.yaml", json.dumps(GROUPS)))
            )
        ),
    )
    [evicted] = found.difference.evicted
    assert found.changed.autoscaling.removed == 1
    assert (evicted.pod.key, evicted.node, evicted.why) == (
        found.difference.moved[0].pod.key,
        found.difference.moved[0].origin,
        "node scale down",
    )
    effects = {str(one.workload): one.short_words for one in found.effect.workloads}
    assert effects["deploy/default/web"] == "1 moved (node scale down)"
    text = text_of(found)
    assert "EVICTED (1), MOVED (1)" in text
    assert "node deleted" not in text


def test_the_json_conforms_to_the_schema(answer):
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    result = whatif_result(answer(6))
    schema.validate(result)
    assert [group["nodes_after"] for group in result["autoscaling"]["groups"]] == [4]
    assert result["autoscaling"]["without"]["added"] == 0
    waiting = result["waiting_times"]
    assert (waiting["bound"], waiting["still_waiting"]) == (2, 2)
    assert 60 < waiting["median_s"] <= waiting["p95_s"] <= waiting["longest_s"] < 180
    assert [one["workload"] for one in waiting["by_workload"]] == ["deploy/default/web"]
    assert waiting["without"]["still_waiting"] == 0


def test_shares_of_each_run_refer_to_its_own_nodes(answer):
    """Two nodes without the change, and four with it."""
    found = answer(6)
    [cpu] = [one for one in whatif_result(found)["allocation"] if one["resource"] == "cpu"]
    assert (cpu["requested_without"], cpu["allocatable_without"]) == (6000, 8000)
    assert (cpu["requested"], cpu["allocatable"]) == (12000, 16000)
    report = whatif_report(Heading("t", "s", 0, 0.0), found)
    [row] = [one for one in report["resources"] if one["name"] == "cpu"]
    assert (row["before"], row["allocatable_before"]) == (6000, 8000)


def test_the_text_states_the_added_nodes_and_why_no_more_were_added(answer):
    text = text_of(answer(6))
    totals = r"2 added after [0-9ms]+( to [0-9ms]+)?, 0 removed, 4 at the\s+end"
    assert re.search(f"nodes by cluster-autoscaler: {totals}", text)
    assert "- general: 2 → 4 nodes (1 to 4), 2 added after " in text
    assert "pods that trigger no scale-up: 2" in text
    assert "at the end for 2.00 per hour (1,460 per month)" in text
    assert re.search(r"node hours in \d+m\d\ds, which cost ", text)
    assert "pods waited for a node: 2 bound, median " in text
    assert "- deploy/default/web: 2 bound" in text


def test_the_cost_of_the_nodes_follows_the_verdict(answer):
    """In each form of the answer; four nodes remain, and two without the change."""
    found = answer(6)
    sentence = (
        "The autoscaled nodes cost 1,460 per month at the end, 730 more than without the change."
    )
    head = text_of(found).partition("WORKLOAD")[0]
    assert sentence in re.sub(r"\s+", " ", head)
    assert f"- {sentence}" in markdown_answer(found, (), "").splitlines()
    page = packed(whatif_report(Heading("t", "s", 0, 0.0), found))
    assert page["node_cost"] == sentence


def test_a_short_screen_says_why_pods_trigger_no_scale_up(answer):
    """The head fills the screen."""
    filler = Section("", 32, lambda out, n: out.print("\n" * (n - 1)), Rank.HEAD)
    sections = [filler, *autoscaling_summary.autoscaling(answer(6).changed)]
    text = StringIO()
    print_screen(Console(file=text, width=120), sections, has_details=False)
    assert "1 max node group size reached" in text.getvalue()
    assert "what the autoscaler did" in text.getvalue().splitlines()[-1]


def test_without_an_autoscaler_the_answer_does_not_mention_one(snapshot, make):
    found = what_if(snapshot(make.node("a")), ClusterChange())
    assert found.changed.autoscaling is None
    assert "autoscaling" not in whatif_result(found)


def test_the_static_pod_of_a_node_that_stays_only_with_the_change_is_ready(snapshot, make, write):
    """Without the change, two empty nodes are removed; with it, the second pod keeps one of them.

    The static pod of the other node, which both runs remove, is not affected.
    """
    nodes = [make.node(name, pool="a") for name in ("a", "b", "c")]
    for node in nodes:
        node["status"]["capacity"] = node["status"]["allocatable"]
    static = [make.pod(f"proxy-{name}", cpu="100m", node_name=name) for name in ("a", "b", "c")]
    for pod in static:
        pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    groups = str(write("groups.yaml", json.dumps(GROUPS)))
    found = what_if(
        snapshot(*nodes, *static, make.workload(replicas=1, cpu="3")),
        ClusterChange(scale=("deploy/web=2",)),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", groups)),
    )
    rows = {row.workload.name: row for row in found.effect.workloads}
    [name] = rows.keys() - {"web"}
    ready = rows[name].readiness
    assert (ready.wanted, ready.lowest, ready.at_end) == (1, 1, 1)


def test_a_scale_down_that_a_budget_stops_is_not_a_drain_of_the_change(snapshot, make, write):
    """The quota keeps the first evicted pod from coming back, so the budget refuses the second."""
    web = make.workload(kind="ReplicaSet", replicas=2)
    web["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{i}", node_name="a", owner="web") for i in range(2)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    pods.append(make.pod("stays", node_name="b"))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": "1"}},
    }
    nodes = [make.node(name, pool="a") for name in ("a", "b")]
    found = what_if(
        snapshot(*nodes, web, *pods, budget, quota),
        ClusterChange(),
        Conditions(
            autoscale=AutoscaleOptions(
                "cluster-autoscaler", str(write("groups.yaml", json.dumps(GROUPS)))
            )
        ),
    )
    assert [one.why for one in found.changed.evicted] == ["node scale down"]
    assert found.verdict.findings[0].sentence == "Nothing changes for any pod."


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_note_says_that_the_priority_expander_has_no_config_map(
    snapshot, make, write, is_applied
):
    """Cluster Autoscaler reads the ConfigMap each time, so the change may create it."""
    groups = json.dumps(GROUPS | {"flags": {"expander": "priority"}})
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"},
        "data": {"priorities": "10: ['.*']"},
    }
    applied = (str(write("map.json", json.dumps(config_map))),) if is_applied else ()
    found = what_if(
        snapshot(make.node("a", pool="a"), make.workload(replicas=1)),
        ClusterChange(scale=("deploy/web=2",), apply=applied),
        Conditions(autoscale=AutoscaleOptions("cluster-autoscaler", str(write("g.yaml", groups)))),
    )
    note = (
        "There is no ConfigMap cluster-autoscaler-priority-expander in namespace kube-system; "
        "without it, the expander priority has no effect."
    )
    assert (note in found.changed.notes) is not is_applied
