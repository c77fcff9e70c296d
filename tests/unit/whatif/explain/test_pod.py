"""Explanations of pods: each node's verdict, scores, equal nodes, and preemption candidates."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from fairlead.cli.commands.explain.run import print_explanation
from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import release_of
from fairlead.engine.framework.profile import PointPlugins, Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.evaluation import NEVER_PREEMPTS, NO_PREEMPTION
from fairlead.whatif.explain.pod import explain_pod, explanation_json
from fairlead.whatif.explain.pod_group import NewNodesForGroup
from fairlead.whatif.input.error import InputError


@pytest.fixture
def explained(snapshot):
    """Returns the explanation of `target` in a cluster of `objects`, as data."""

    def explain_target(target, *objects):
        return explanation_json(explain_pod(snapshot(*objects), target, SchedulerConfig()))

    return explain_target


def printed_lines(found):
    console = Console(file=StringIO(), width=200)
    print_explanation(found, console, all_nodes=False)
    return console.file.getvalue().splitlines()


def test_feasible_nodes_have_scores_and_the_best_nodes_are_equal(explained, make):
    found = explained(
        "pod/web", make.node("a"), make.node("b"), make.node("c", cpu="500m"), make.pod("web")
    )
    assert found["verdicts"] == {
        "a": None,
        "b": None,
        "c": {"plugin": "NodeResourcesFit", "code": "UnschedulableAndUnresolvable",
              "reasons": ["Insufficient cpu"]},
    }  # fmt: skip
    assert found["remedies"] == {}
    assert found["too_small"] == {"c": "the node is too small (500m cpu)"}
    assert found["via"] == "score"
    assert found["choices"] == ["a", "b"]
    assert set(found["scores"]["NodeResourcesFit"]) == {"a", "b"}
    assert found["totals"]["a"] == found["totals"]["b"]


def test_a_node_that_is_not_ready_has_no_remedy(explained, make):
    """The pod would not start on c even if it fitted or tolerated the taint."""
    dead = make.node("c", cpu="500m")
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    dead["spec"] = {"taints": [taint]}
    dead["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    other = make.pod("other", node_name="b", cpu="3500m")
    found = explained("pod/web", make.node("b"), other, dead, make.pod("web"))
    assert found["remedies"] == {"b": ["lower the cpu request from 1 to 500m"]}


def test_no_remedy_violates_a_limit_range(explained, make):
    limits = {"type": "Container", "min": {"cpu": "600m"}}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [limits]}}
    limit_range["metadata"] = {"name": "least", "namespace": "default"}
    other = make.pod("other", node_name="b", cpu="3500m")
    objects = (make.node("b"), other, make.pod("web"))
    lowered = {"b": ["lower the cpu request from 1 to 500m"]}
    assert explained("pod/web", *objects)["remedies"] == lowered
    found = explained("pod/web", *objects, limit_range)
    assert found["remedies"] == {"b": ["delete pod default/other"]}


def test_no_remedy_deletes_a_pod_that_needs_its_place_again(explained, make):
    """Its controller or kubelet would create it again, there or before the explained pod."""
    web = make.pod("web")
    for kind, priority, remedies in (
        ("ReplicaSet", 0, ["delete pod default/other"]),
        ("ReplicaSet", 1, None),
        ("DaemonSet", 0, None),
        ("Node", 0, None),
        ("", 1, ["delete pod default/other"]),
    ):
        other = make.pod("other", cpu="4", node_name="a", owner="x", priority=priority)
        other["metadata"]["ownerReferences"][0]["kind"] = kind
        if kind == "Node":
            other["metadata"]["annotations"] = {"kubernetes.io/config.source": "file"}
        elif not kind:
            del other["metadata"]["ownerReferences"]
        found = explained("pod/web", make.node("a"), other, web)
        assert found["remedies"].get("a") == remedies, (kind, priority)


def test_a_bound_pod_is_explained_as_if_it_were_pending(explained, make):
    found = explained(
        "pod/default/web", make.node("a"), make.node("b", cpu="1"),
        make.pod("web", cpu="3", node_name="a"),
    )  # fmt: skip
    assert found["node"] == "a"
    assert found["verdicts"]["a"] is None  # its current room is free for it
    assert found["choices"] == ["a"]
    assert found["via"] == "single"


def test_a_note_says_that_a_static_pod_stays_on_its_node(explained, make):
    static = make.pod("etcd-a", node_name="a")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    nodes = (make.node("a"), make.node("b"))
    [note] = explained("pod/etcd-a", *nodes, static)["notes"]
    assert "static pod" in note
    assert explained("pod/web", *nodes, make.pod("web", node_name="a"))["notes"] == []


def test_a_note_says_that_a_pod_waits_for_a_volume_on_another_node(explained, make):
    meta = {"name": "data", "namespace": "default"}
    modes = {"accessModes": ["ReadWriteOnce"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    claim["spec"] = {**modes, "volumeName": "pv", "storageClassName": "fast"}
    claim["status"] = {"phase": "Bound"}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}}
    volume["spec"] = {**modes, "csi": {"driver": "d", "volumeHandle": "h"}, "claimRef": meta}
    old, new = make.pod("old", node_name="a"), make.pod("new", node_name="b")
    for pod in (old, new):
        source = {"persistentVolumeClaim": {"claimName": "data"}}
        pod["spec"]["volumes"] = [{"name": "v", **source}]
    new["status"] = {"phase": "Pending"}
    objects = (make.node("a"), make.node("b"), claim, volume, old, new)
    [note] = explained("pod/new", *objects)["notes"]
    assert note == (
        'The pod has not started on b: Multi-Attach error for volume "pv" Volume is already used '
        "by pod(s) old on a."
    )
    assert explained("pod/old", *objects)["notes"] == []


def test_a_pending_resize_has_a_note(snapshot, make):
    """The pod asks for more than any node has, and runs with less."""
    big = make.pod("big", cpu="20", node_name="a")
    why = {"reason": "Infeasible", "message": "Node didn't have enough capacity: cpu"}
    big["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", **why}]
    found = explain_pod(snapshot(make.node("a"), big), "pod/big", SchedulerConfig())
    [note] = [one for one in found.notes if "resize" in one]
    assert note == (
        "The pod's resize is pending (Infeasible: Node didn't have enough capacity: cpu). This "
        "evaluation uses the requests of the resize; the pod runs with its former resources."
    )


@pytest.mark.parametrize(
    ("status", "ready", "note"),
    [
        ("False", True, "The pod is not ready: container c is not ready."),
        ("False", False, "The pod is not ready: its node is not Ready."),
        ("True", True, None),
    ],
)
def test_a_pod_that_is_not_ready_says_why_first(snapshot, make, status, ready, note):
    pod = make.pod("web", node_name="a")
    pod["status"] |= {
        "conditions": [{"type": "Ready", "status": status}],
        "containerStatuses": [{"name": "c", "ready": False, "state": {"running": {}}}],
    }
    node = make.node("a")
    node["status"]["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
    found = explain_pod(snapshot(node, pod), "pod/web", SchedulerConfig())
    assert found.state == ((note,) if note else ())
    if note:
        assert printed_lines(found)[1] == note


@pytest.mark.parametrize(
    ("toleration", "added", "note"),
    [
        (300, "2026-01-01T00:00:10Z", " for 5m00s. It is evicted at 2026-01-01T00:05:10Z, "),
        (300, None, " for 5m00s. It is evicted 5m00s after the taint was added, "),
        (None, None, " without limit, and stays."),
        (-1, None, ": it is evicted."),
    ],
)
def test_a_pod_says_when_a_taint_evicts_it(snapshot, make, toleration, added, note):
    node = make.node("a")
    taint = {"key": "x", "effect": "NoExecute", **({"timeAdded": added} if added else {})}
    node["spec"] = {"taints": [taint, {"key": "y", "effect": "NoSchedule"}]}
    one = {"key": "x", "operator": "Exists"}
    one |= {} if toleration is None else {"tolerationSeconds": toleration}
    spec = {} if toleration == -1 else {"tolerations": [{**one, "effect": "NoExecute"}]}
    pod = make.pod("web", node_name="a", **spec)
    [found] = explain_pod(snapshot(node, pod), "pod/web", SchedulerConfig()).state
    verb = "does not tolerate" if toleration == -1 else "tolerates"
    assert found.startswith(f"The pod {verb} the NoExecute taint x of its node{note}")


def test_a_pod_on_a_missing_node_says_so(snapshot, make):
    pod = make.pod("web", node_name="gone")
    found = explain_pod(snapshot(make.node("a"), pod), "pod/web", SchedulerConfig())
    assert found.state == ("Node gone does not exist, so pod garbage collection deletes the pod.",)


@pytest.mark.parametrize(
    ("finalizers", "ready", "note"),
    [
        ([], True, ""),
        (
            ["example.com/f"],
            True,
            "; finalizer example.com/f keeps it until another program removes the finalizer",
        ),
        (
            [],
            False,
            (
                "; it stays until the kubelet of its node answers, or the node is deleted or "
                "tainted node.kubernetes.io/out-of-service"
            ),
        ),
    ],
)
def test_a_terminating_pod_says_so(snapshot, make, finalizers, ready, note):
    note = f"The pod is terminating (deletionTimestamp 2026-01-01T00:00:00Z){note}."
    pod = make.pod("web", node_name="a")
    pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}
    node = make.node("a")
    node["status"]["conditions"] = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    assert explain_pod(snapshot(node, pod), "pod/web", SchedulerConfig()).state == (note,)


def test_preemption_shows_candidates_victims_and_the_rule(explained, make):
    pods = [
        make.pod("a1", cpu="3", node_name="a", priority=10),
        make.pod("b1", cpu="3", node_name="b", priority=20),
        make.pod("c1", cpu="3", node_name="c", priority=9000),
        make.pod("high", cpu="3", priority=1000),
    ]
    found = explained("pod/high", *(make.node(name) for name in "abc"), *pods)
    preemption = found["preemption"]
    assert preemption["candidates"] == {
        "a": {"victims": [{"pod": "default/a1", "priority": 10}], "pdb_violations": 0},
        "b": {"victims": [{"pod": "default/b1", "priority": 20}], "pdb_violations": 0},
    }
    assert preemption["nominated"] == ["a"]
    assert preemption["rule"] == "lowest highest victim priority"
    assert found["message"] == "0/3 nodes are available: 3 Insufficient cpu."
    assert preemption["rejected"]["c"]["reasons"] == [
        "No preemption victims found for incoming pod"
    ]


def preempted(make, name, node, **more):
    """A pod that the scheduler has preempted and that is still terminating."""
    pod = make.pod(name, node_name=node, cpu="2", priority=1, **more)
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:05:00Z"
    pod["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ]
    return pod


def test_the_pods_of_a_preemption_that_has_begun_name_each_other(snapshot, make):
    """The victims terminate, and the preemptor waits for them on its nominated node."""
    high = make.pod("high", cpu="4", priority=9)
    high["status"]["nominatedNodeName"] = "a"
    other = make.pod("other", cpu="4", priority=9)
    other["status"]["nominatedNodeName"] = "b"
    victims = [preempted(make, "v1", "a"), preempted(make, "v2", "a"), preempted(make, "v3", "c")]
    nodes = [make.node("a"), make.node("b", cpu="1"), make.node("c", cpu="2")]
    dump = snapshot(*nodes, high, other, *victims)
    [note] = explain_pod(dump, "pod/high", SchedulerConfig()).notes
    assert note == (
        "The scheduler has preempted 2 pods of lower priority for this pod on its nominated node "
        "a: default/v1, default/v2. This pod waits for the end of the preempted pods; their grace "
        "periods end by 2026-01-01T00:05:00Z."
    )
    assert explain_pod(dump, "pod/v1", SchedulerConfig()).notes[0] == (
        "The scheduler has preempted this pod for default/high (priority 9), which is nominated "
        "to its node."
    )
    assert explain_pod(dump, "pod/v3", SchedulerConfig()).notes[0] == (
        "The scheduler has preempted this pod for a pod of higher priority, which is no longer "
        "nominated to its node."
    )


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ({"phase": "Succeeded"}, "has completed"),
        ({"phase": "Failed"}, "has failed"),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory. "},
            "has failed (Evicted: The node was low on memory.)",
        ),
        (
            {
                "phase": "Failed",
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                        "message": "default-scheduler: preempting",
                    }
                ],
            },
            "has failed (PreemptionByScheduler: default-scheduler: preempting)",
        ),
    ],
)
def test_the_refusal_to_explain_an_ended_pod_says_how_it_ended(explained, make, status, end):
    pod = make.pod("web", node_name="a")
    pod["status"] = status
    with pytest.raises(InputError) as refused:
        explained("pod/web", make.node("a"), pod)
    assert refused.value.problem == f"{end} and is not scheduled again"


def test_the_explanation_of_a_gated_pod_names_its_scheduling_gates(explained, make):
    pod = make.pod("web", schedulingGates=[{"name": "quota"}])
    found = explained("pod/web", make.node(), pod)
    assert found["gated"]["reasons"] == ["waiting for scheduling gates: [quota]"]


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("pod/none", "explain: there is no Pod none; did you mean default/done? known: default/do"),
        ("default/done", "explain: unknown kind 'default'; did you mean pod/default/done?"),
        ("shop/web", "explain: unknown kind 'shop'; known: pod"),
        ("node/n", "explain: Node n is not a Pod"),
        ("web", "explain: 'web' is not KIND/NAME or KIND/NAMESPACE/NAME"),
        ("pod/done", "Pod default/done: status.phase: has completed"),
    ],
)
def test_unsupported_objects_are_refused(explained, make, target, line):
    done = make.pod("done", node_name="n")
    done["status"]["phase"] = "Succeeded"
    with pytest.raises(InputError) as refused:
        explained(target, make.node(), done)
    assert line in str(refused.value)


def test_a_pod_that_no_scheduler_takes_stays_pending(explained, make):
    """The overview of pods gives the same reason."""
    found = explained("pod/web", make.node(), make.pod("web", schedulerName="defalt-scheduler"))
    assert found["message"] == (
        'The pod stays pending: no scheduler has the name "defalt-scheduler"; did you mean '
        "default-scheduler? known: default-scheduler"
    )
    [note] = found["notes"]
    assert note == (
        "If the cluster has a scheduler with the name defalt-scheduler, add a profile with this "
        "name to the file of --config."
    )


def test_a_filter_that_fails_fails_the_cycle(snapshot, make):
    """As in a scheduling cycle, preemption does not run in this case."""
    points = {"PreFilter": PointPlugins(disabled=("PodTopologySpread",))}
    config = SchedulerConfig((Profile(points=points),))
    found = explanation_json(
        explain_pod(snapshot(make.node("a"), make.pod("web")), "pod/web", config)
    )
    assert found["message"].startswith("plugin 'PodTopologySpread' failed: ")
    assert "was not prepared" in found["verdicts"]["a"]["reasons"][0]
    assert (found["via"], found["preemption"]) == ("", None)


def daemon_set(make, cpu, **spec):
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {**make.pod(cpu=cpu)["spec"], **spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default", "uid": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }


def full(make, name, cpu, **labels):
    """A node without room."""
    node = make.node(name, cpu=cpu, **{"kubernetes.io/hostname": name}, **labels)
    return [node, make.pod(f"on-{name}", cpu=cpu, node_name=name, priority=10)]


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("1", {"like": "small", "refusal": ""}),
        ("3", {"like": "large", "refusal": ""}),
        ("7500m", {"like": "gpu", "refusal": ""}),
        ("8", {"like": "gpu", "refusal": "Insufficient cpu"}),
        ("9", {"like": "", "refusal": "no node is large enough; the largest has 8 cpu"}),
    ],
)
def test_the_smallest_node_of_which_one_more_would_take_a_pod(explained, make, cpu, expected):
    """Nodes with devices are last; the new nodes run the pod of the DaemonSet, too."""
    objects = [*full(make, "large", "4"), *full(make, "small", "2"), *full(make, "gpu", "8")]
    objects[4]["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    found = explained("pod/web", *objects, daemon_set(make, "500m"), make.pod("web", cpu=cpu))
    likes = [expected["like"]] if expected["like"] else []
    assert found["new_node"] == expected | {"likes": likes, "failed_zone": "", "count": 1}


def copies(like, failed_zone=""):
    """One copy of the node takes the pod."""
    return {"like": like, "likes": [like], "refusal": "", "failed_zone": failed_zone, "count": 1}


def test_one_more_node_helps_against_affinity_but_not_against_taints(explained, make):
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    node = make.node("a", **{"kubernetes.io/hostname": "a"})
    pods = [
        make.pod("other", node_name="a"),
        make.pod("web", affinity={"podAntiAffinity": terms}),
    ]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    found = explained("pod/web", node, *pods)
    assert found["new_node"] == copies("a")
    node["spec"] = {"taints": [{"key": "pool", "value": "db", "effect": "NoSchedule"}]}
    found = explained("pod/web", node, *pods)
    assert found["new_node"]["refusal"] == "node(s) had untolerated taint(s)"


def test_a_node_that_is_cordoned_or_failed_is_copied_in_service(explained, make):
    node = make.node("a")
    node["spec"] = {"unschedulable": True}
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    found = explained("pod/web", node, make.pod("web"))
    assert found["new_node"] == copies("a")


def test_a_node_of_a_zone_without_a_working_node_is_copied_last(explained, make):
    """A new node cannot help while the zone is down, and the answer says so."""
    zone = "topology.kubernetes.io/zone"
    failed = make.node("a", cpu="2", **{zone: "1"})
    failed["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    failed["spec"] = {"taints": [unreachable]}
    working = full(make, "b", "4", **{zone: "2"})
    found = explained("pod/web", failed, *working, make.pod("web"))
    assert found["new_node"] == copies("b")
    pinned = make.pod("web", nodeSelector={zone: "1"})
    found = explained("pod/web", failed, *working, pinned)
    assert found["new_node"] == copies("a", failed_zone="1")


@pytest.mark.parametrize("gates", [(), ({"name": "later"},)])
def test_no_new_node_is_tried_for_a_pod_that_fits_or_is_gated_or_placed(explained, make, gates):
    small, large = full(make, "a", "1"), make.node("b", cpu="4")
    nodes = small if gates else [*small, large]
    assert explained("pod/web", *nodes, make.pod("web", schedulingGates=gates))["new_node"] is None
    assert explained("pod/on-a", make.node("a", cpu="500m"), small[1])["new_node"] is None


@pytest.mark.parametrize(
    ("members", "cpu", "gated", "note"),
    [
        (2, "2", True, ""),
        (3, "2", False, "2 of them fit, and the group cannot start, so none of them is bound."),
        (3, "3", False, "3 of them fit, and the group can start."),
    ],
)
def test_a_pod_of_a_gang_is_tried_with_the_waiting_pods_of_the_gang(
    make, snapshot, members, cpu, gated, note
):
    """The explained pod is one of the three pods that the gang needs."""
    gang = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    named = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [make.pod(f"p{i}", **named) for i in range(members)]
    gates = {"GenericWorkload": True, "GangScheduling": True}
    config = default_config(release_of(gates=gates), {})
    found = explain_pod(snapshot(make.node("a", cpu=cpu), gang, *pods), "pod/p0", config)
    assert (found.evaluation.gated is not None) is gated
    assert [one.partition("preemption, ")[2] for one in found.notes] == ([note] if note else [])
    assert found.held_group == ("default/g" if "cannot" in note else "")
    lines = printed_lines(found)
    if found.held_group:
        assert lines[1] == "Not bound: its PodGroup default/g cannot start now."
        assert lines[2].startswith("One more node like a would let PodGroup default/g start.")
        assert lines[3].startswith("Next: ask what changes with this node: fairlead whatif ")
        assert lines[4] == "Without its group: Goes to a, the only node that fits."
    elif not gated:
        assert lines[1] == "Goes to a, the only node that fits."


@pytest.mark.parametrize(
    ("priority", "preemption"),
    [
        (1, "The group would preempt 2 pods: default/low0, default/low1."),
        (0, "Preemption does not help: No preemption victims found for incoming preemptor."),
    ],
)
def test_a_note_says_whether_a_gang_would_preempt_as_a_whole(make, snapshot, priority, preemption):
    gang = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": priority},
    }
    named = {"schedulingGroup": {"podGroupName": "g"}, "priority": priority}
    pods = [make.pod(f"p{i}", cpu="4", **named) for i in range(2)]
    lows = [make.pod(f"low{i}", cpu="4", node_name=node) for i, node in enumerate("ab")]
    gates = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
    config = default_config(release_of(gates=gates), {})
    dump = snapshot(make.node("a"), make.node("b"), gang, *pods, *lows)
    [note] = explain_pod(dump, "pod/p0", config).notes
    assert note.endswith(f"cannot start, so none of them is bound. {preemption}")


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize(
    ("running", "kind", "count"),
    [(0, {}, 2), (1, {}, 1), (0, {"nodeSelector": {"disk": "ssd"}}, 0)],
    ids=["all members wait", "one member runs", "the other members need other nodes"],
)
def test_as_many_new_nodes_are_named_as_the_gang_of_a_pod_needs(
    make, snapshot, is_full, running, kind, count
):
    """Each node has room for one of three members; if b is full, one more node is needed."""
    gang = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    named = {"cpu": "4", "schedulingGroup": {"podGroupName": "g"}}
    pods = [make.pod("p0", **named), *(make.pod(f"p{i}", **named, **kind) for i in (1, 2))]
    nodes = [make.node("a"), make.node("b")][1 - running :]
    for pod in pods[1 : 1 + running]:
        pod["spec"]["nodeName"] = "a"
    if is_full:
        pods.append(make.pod("web", cpu="4", node_name="b"))
    gates = {"GenericWorkload": True, "GangScheduling": True}
    config = default_config(release_of(gates=gates), {})
    found = explain_pod(snapshot(*nodes, gang, *pods), "pod/p0", config)
    wanted = count and count + is_full
    assert found.for_group == NewNodesForGroup("default/g", "b", wanted)
    more = "One more node" if wanted == 1 else f"{wanted} more nodes"
    text = f"{more} like b would let PodGroup default/g start."
    none = "More nodes like b alone would not let PodGroup default/g start."
    lines = printed_lines(found)
    assert any(line.startswith(text if wanted else none) for line in lines)
    commands = [line for line in lines if "fairlead whatif" in line]
    added = [line.partition("fairlead whatif SNAPSHOT ")[2] for line in commands]
    assert added == ([f"--add-nodes {wanted} --like b"] if wanted else [])


WOULD_GO = "If it were pending now, it would go to"
FITS = "Its own node fits too, with a score of {b} instead of {a}."
REFUSES = "Its own node would not take it: node(s) were unschedulable."
BEST = "which has the highest score."
BOUND = "The pod was bound at 2025-12-31T00:00:00Z."
DELETED = {"deletionTimestamp": "2026-01-01T02:00:00Z", "deletionGracePeriodSeconds": 7200}


@pytest.mark.parametrize(
    ("node", "metadata", "lines", "note"),
    [
        ("a", {}, [f"{WOULD_GO} its own node, {BEST}"], ""),
        ("b", {}, [f"{WOULD_GO} a, {BEST} {FITS}"], BOUND),
        ("c", {}, [f"{WOULD_GO} a, {BEST} {REFUSES}"], BOUND),
        (
            "a",
            DELETED,
            [
                "The pod is terminating (deletionTimestamp 2026-01-01T02:00:00Z).",
                "It is being deleted, and does not move to another node.",
                f"{WOULD_GO} its own node, {BEST}",
            ],
            "",
        ),
    ],
    ids=["chosen again", "another node is better", "own node is cordoned", "terminating"],
)
def test_a_bound_pod_is_compared_with_a_pending_one(make, snapshot, node, metadata, lines, note):
    cordoned = make.node("c")
    cordoned["spec"] = {"unschedulable": True}
    pod = make.pod("p", node_name=node)
    pod["metadata"] |= metadata
    scheduled = {"type": "PodScheduled", "status": "True"}
    pod["status"]["conditions"] = [scheduled | {"lastTransitionTime": "2025-12-31T00:00:00Z"}]
    nodes = (make.node("a", cpu="8"), make.node("b"), cordoned)
    dump = snapshot(*nodes, make.pod("q", node_name="b"), pod)
    found = explain_pod(dump, "pod/p", SchedulerConfig())
    printed = printed_lines(found)
    assert printed[0].startswith(f"default/p: priority 0, on node {node}")
    wanted = [line.format(**found.evaluation.totals) for line in lines]
    assert printed[1 : len(wanted) + 1] == wanted
    assert " ".join(found.notes).partition(" This evaluation")[0] == note


def test_a_static_pod_is_not_evaluated_by_the_scheduler(make, snapshot):
    """The kubelet starts it, so no other node is better, and no node refuses it."""
    pod = make.pod("etcd-a", node_name="a")
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    found = explain_pod(snapshot(*map(make.node, "ab"), pod), "pod/etcd-a", SchedulerConfig())
    title, note = printed_lines(found)
    assert title == "default/etcd-a: priority 0, on node a"
    assert note.startswith("Note: This is a static pod.")


def test_a_pod_of_a_daemonset_has_no_change_for_the_nodes_of_other_pods(make, snapshot):
    agent = make.workload("DaemonSet", "agent")
    agent["metadata"]["uid"] = "agent"
    pod = make.pod("agent-1", node_name="a", owner="agent", cpu="2")
    pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    other = make.pod("other", node_name="a", cpu="3")
    objects = (*map(make.node, "ab"), agent, pod, other)
    found = explain_pod(snapshot(*objects), "pod/agent-1", SchedulerConfig())
    assert list(found.remedies) == ["a"]


def test_the_default_configuration_is_used_if_none_is_given(snapshot, make):
    """Users of the Python API pass None to the other functions for a default."""
    found = snapshot(make.node("a"), make.pod("p"))
    chosen = [explain_pod(found, "pod/p", *config).evaluation.choices for config in ((), (None,))]
    assert chosen == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("disabled", "cpu", "is_noted"),
    [
        pytest.param((), "3", False, id="the profile has DefaultPreemption"),
        pytest.param(("*",), "3", True, id="the profile has no PostFilter plugin"),
        pytest.param(("DefaultPreemption",), "3", True, id="DynamicResources preempts no pods"),
        pytest.param(("*",), "8", False, id="preemption would not help"),
    ],
)
def test_a_note_says_that_the_profile_does_not_preempt(snapshot, make, disabled, cpu, is_noted):
    """The column "preemption may help" says no, although the removal of pods would help."""
    read = snapshot(make.node("a"), make.pod("old", node_name="a", cpu="2"), make.pod("p", cpu=cpu))
    profile = Profile(points={"PostFilter": PointPlugins((), disabled)})
    found = explain_pod(read, "pod/p", SchedulerConfig((profile,)))
    assert found.evaluation.fit_error
    assert (NO_PREEMPTION in found.notes) is is_noted


def test_preemption_does_not_help_on_a_node_without_pods_of_lower_priority(snapshot, make):
    """On node a, the pod would preempt; the pod of node b has the same priority."""
    nodes = [make.node(name, cpu="2") for name in "ab"]
    low = make.pod("low", node_name="a", cpu="2")
    equal = make.pod("equal", node_name="b", cpu="2", priority=9)
    found = explain_pod(snapshot(*nodes, low, equal, make.pod("p", cpu="2", priority=9)), "pod/p")
    rows = [line.split() for line in printed_lines(found) if "NodeResourcesFit" in line]
    assert {row[0]: row[4] for row in rows} == {"a": "yes", "b": "no"}


@pytest.mark.parametrize("node_name", ["", "b"], ids=["pending", "on a node"])
def test_no_node_is_said_to_become_free_for_a_pod_that_never_preempts(snapshot, make, node_name):
    """The pod preempts nothing, so the column says no and the text says why."""
    nodes = [make.node("a"), make.node("b", cpu="4" if node_name else "1")]
    old = make.pod("old", node_name="a", cpu="2")
    never = make.pod("p", cpu="3", priority=9, node_name=node_name, preemptionPolicy="Never")
    found = explain_pod(snapshot(*nodes, old, never), "pod/p")
    assert found.evaluation.verdicts["a"].code.value == "Unschedulable"
    lines = printed_lines(found)
    rows = [line.split() for line in lines if line.startswith("a ")]
    assert rows[0][4] == "no"
    never = "Cannot preempt: not eligible due to preemptionPolicy=Never."
    assert (f"Note: {NEVER_PREEMPTS}" if node_name else never) in lines
