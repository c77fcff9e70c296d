"""Gangs on the command line: queues before and after, waiting groups, and reasons."""

from __future__ import annotations

import json

import pytest

from fairlead.api.codec import as_json
from fairlead.cli.main import run
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)

VOLCANO = "scheduling.volcano.sh/v1beta1"


def node(name, **spec):
    offered = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    status = {"allocatable": offered}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def queue(name, weight=1):
    meta, spec = {"name": name}, {"weight": weight}
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": meta, "spec": spec}


def gang(name, members, queue="default", runs="", cpu="1", namespace="default"):
    """Return a PodGroup, and a pod for each member."""
    marks = {"scheduling.k8s.io/group-name": name}
    marks |= {"fairlead.dev/run-duration": runs} if runs else {}
    group = {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": members, "queue": queue},
    }
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{i}", "namespace": namespace, "annotations": marks},
            "spec": {"schedulerName": "volcano", "containers": [container]},
        }
        for i in range(members)
    ]
    return [group, *pods]


@pytest.fixture
def dump(tmp_path):
    """Writes a dump and returns its path."""

    def written(*objects, name="dump.json"):
        flat = [one for part in objects for one in (part if isinstance(part, list) else [part])]
        path = tmp_path / name
        path.write_text(json.dumps({"kind": "List", "items": flat}))
        return str(path)

    return written


@pytest.fixture
def busy(dump):
    """Queue a uses its share, three quarters, for half an hour, and a gang of b waits."""
    queues = [queue("a", 3), queue("b")]
    return dump(node("n1"), queues, gang("g", 3, "a", runs="30m"), gang("h", 3, "b"))


def lines(capsys):
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def words(line):
    """Return `line` with single spaces, whatever the widths of its columns."""
    return " ".join(line.split())


def test_a_what_if_shows_queues_before_and_after(busy, dump, capsys):
    more = dump(gang("i", 1, "b"), name="more.json")
    assert run(["whatif", busy, "--apply", more, "--no-report"]) == 1
    shown = lines(capsys)
    at = shown.index("queues")
    assert words(shown[at + 1]).startswith("queue weight deserved allocated before share before")
    assert words(shown[at + 2]) == "b 1 1 cpu nothing 0.00 1 cpu 1.00 4 cpu"
    assert words(shown[at + 3]) == "a 3 3 cpu 3 cpu 1.00 3 cpu 1.00 3 cpu"


def test_a_queue_may_deserve_a_fraction_of_a_device(dump, capsys):
    """Of two GPUs, the queue with two thirds of the weight deserves 1.333, not 1."""
    gpus = {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "2"}
    one = {**node("n1"), "status": {"allocatable": gpus, "capacity": gpus}}
    gangs = [gang(f"g-{name}", 2, name, cpu="1") for name in "ab"]
    for pod in [one for group in gangs for one in group[1:]]:
        resources = pod["spec"]["containers"][0]["resources"]
        resources["requests"]["nvidia.com/gpu"] = "1"
        resources["limits"] = {"nvidia.com/gpu": "1"}
    run(["explain", "podgroup/g-a", "--snapshot", dump(one, queue("a", 2), queue("b", 1), *gangs)])
    shown = lines(capsys)
    at = shown.index("its queue")
    assert words(shown[at + 2]).startswith("a 2 2 cpu, 1.333 gpu nothing 2 cpu, 2 gpu")


def test_a_what_if_shows_waiting_groups_and_their_expected_start(busy, capsys):
    assert run(["whatif", busy, "--no-report"]) == 0
    shown = lines(capsys)
    at = shown.index("waiting groups (1)")
    assert words(shown[at + 2]) == "default/h b 0 of 3 Insufficient cpu 30m00s"


def test_a_gang_that_falls_below_its_minimum_is_named_first(dump, capsys):
    """Without the change, only the gang `h` waits, which is expected to start earlier."""
    running = gang("g", 2, cpu="3")
    for one, name in zip(running[1:], ("n1", "n2"), strict=True):
        one["spec"]["nodeName"], one["status"] = name, {"phase": "Running"}
        one["metadata"]["ownerReferences"] = [
            {"apiVersion": "example.com/v1", "kind": "Train", "name": "g", "uid": "u"}
            | {"controller": True}
        ]
    snapshot = dump(queue("default"), node("n1"), node("n2"), running, gang("h", 3, cpu="2"))
    command = ["whatif", snapshot, "--drain", "n2", "--no-report", "--batch-config", "volcano"]
    run(command)
    shown = lines(capsys)
    text = words(" ".join(shown))
    assert "Gang default/g (1 of 2 members) has fewer running members than the minimum." in text
    at = shown.index("waiting groups (2, 1 because of the change)")
    assert words(shown[at + 2]).startswith("default/g default 1 of 2")


BELOW = "Gang default/g (1 of 2 members) has fewer running members than the minimum."


def test_a_gang_is_named_if_nothing_replaces_its_evicted_member(dump, capsys):
    running = gang("g", 2, cpu="3")
    for one, name in zip(running[1:], ("n1", "n2"), strict=True):
        one["spec"]["nodeName"], one["status"] = name, {"phase": "Running"}
    snapshot = dump(queue("default"), node("n1"), node("n2"), running)
    run(["whatif", snapshot, "--drain", "n2", "--no-report", "--batch-config", "volcano"])
    assert f"nothing replaces default/g-1. {BELOW}" in words(" ".join(lines(capsys)))


def test_a_gang_of_the_default_scheduler_is_named_if_a_member_stays_pending(dump, capsys):
    meta = {"name": "g", "namespace": "default"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    api = "scheduling.k8s.io/v1alpha2"
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}
    owner = {"apiVersion": "example.com/v1", "kind": "Train", "name": "g", "uid": "u"}
    members = gang("g", 2, cpu="3")[1:]
    for one, name in zip(members, ("n1", "n2"), strict=True):
        del one["metadata"]["annotations"], one["spec"]["schedulerName"]
        one["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        one["spec"] |= {"nodeName": name, "schedulingGroup": {"podGroupName": "g"}}
        one["status"] = {"phase": "Running"}
    gates = "GenericWorkload=true,GangScheduling=true"
    command = ["whatif", dump(node("n1"), node("n2"), group, members), "--drain", "n2"]
    run([*command, "--no-report", "--feature-gates", gates])
    assert BELOW in words(" ".join(lines(capsys)))


def test_the_start_of_a_gang_that_lacks_devices_is_unknown(dump, capsys):
    """The running pod that uses the device ends after an hour."""
    status = make_claim_status("n1", "gpu-0", reserved_for=["h-0"])
    claims = [make_resource_claim("used", status=status), make_resource_claim("wanted")]
    devices = [
        {"apiVersion": "resource.k8s.io/v1", "kind": type(one).__name__, **as_json(one)}
        for one in (make_device_class(), make_slice("n1"), *claims)
    ]
    waiting, running = gang("g", 1), gang("h", 1, runs="1h")
    waiting[1]["spec"] |= make_pod_resource_claims("wanted")
    running[1]["spec"] |= {"nodeName": "n1", **make_pod_resource_claims("used")}
    running[1]["metadata"]["uid"], running[1]["status"] = "h-0", {"phase": "Running"}
    run(["explain", dump(queue("default"), node("n1"), devices, running, waiting), "podgroup/g"])
    shown = lines(capsys)
    assert "Its start is unknown: it lacks more than the resources that its pods request." in shown


def test_size_counts_the_waiting_members_of_gangs(dump, capsys):
    snapshot = dump(node("n1"), queue("default"), gang("g", 4), gang("h", 2))
    run(["size", snapshot])
    shown = words(" ".join(lines(capsys)))
    assert shown.startswith("2 nodes run everything (today 1).")
    assert (
        "6 waiting pods of the batch scheduler count here, although the limits of queues may keep "
        "them waiting." in shown
    )
    assert "are not placed here" not in shown


def test_size_counts_the_pods_that_a_gang_lacks_in_the_dump(dump, capsys):
    """Before it plans, size creates the second pod of the Job."""
    template = {"spec": gang("g", 1)[1]["spec"]}
    spec = {"parallelism": 2, "completions": 2, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "uid": "j"}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    pods = gang("g", 1)
    pods[1]["metadata"] |= {"ownerReferences": [owner]}
    run(["size", dump(node("n1"), queue("default"), job | {"spec": spec}, pods)])
    shown = words(" ".join(lines(capsys)))
    assert "of the batch scheduler counts here" in shown
    assert "not placed here" not in shown


def test_an_unknown_runtime_gives_an_unknown_start(dump, capsys):
    run(["whatif", dump(node("n1"), gang("g", 3), gang("h", 3)), "--no-report"])
    assert any(line.split()[-1:] == ["unknown"] for line in lines(capsys))


def test_the_json_result_has_queues_and_waiting_groups(busy, capsys):
    run(["whatif", busy, "--no-report", "-o", "json"])
    result = json.loads(capsys.readouterr().out)
    a, b = result["queues"]
    assert (a["queue"], a["allocated"]["cpu"], a["without"]["share"]) == ("a", 3000, 1.0)
    assert (b["deserved"]["cpu"], b["requested"]["cpu"]) == (1000, 3000)
    (group,) = result["waiting_groups"]
    assert (group["group"], group["obstacle"], group["starts_at_s"]) == (
        "default/h",
        "NO_NODE",
        1800,
    )


def test_a_simulation_shows_queues_and_waiting_groups(busy, tmp_path, capsys):
    scenario = tmp_path / "s.yaml"
    scenario.write_text("cluster: {files: [dump.json]}\nduration: 1h\n")
    run(["simulate", str(scenario), "--no-report", "--batch-config", "kube-batch"])
    shown = lines(capsys)
    assert "waiting groups (0)" not in shown
    assert shown[shown.index("queues") + 3].split()[:2] == ["b", "1"]


def test_remaining_members_of_a_gang_below_its_minimum_are_listed(dump, capsys):
    group, *pods = gang("g", 2)
    for pod, name in zip(pods, ("n1", "n2"), strict=True):
        pod["spec"]["nodeName"], pod["status"] = name, {"phase": "Running"}
    run(["whatif", dump(node("n1"), node("n2"), group, pods), "--drain", "n1", "--no-report"])
    (row,) = [line for line in lines(capsys) if line.startswith("default/g-1") and "1m" in line]
    assert words(row) == "default/g-1 n2 1m01s gang below its minimum"


def test_without_gangs_no_queues_are_shown(dump, capsys):
    run(["whatif", dump(node("n1")), "--no-report"])
    assert not {"queues", "waiting groups (0)"} & set(lines(capsys))


# --- explain -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["podgroup/g", "podgroups/default/g", "pg/g", "pod/g-1"])
def test_a_group_is_explained(dump, capsys, target):
    path = dump(
        node("n1"), node("n2", unschedulable=True), queue("a"), gang("g", 3, "a", cpu="1.5")
    )
    assert run(["explain", target, "--snapshot", path]) == 0
    shown = lines(capsys)
    members = "needs 3 of its 3 members, 0 are on nodes, nodes have room for 2 more"
    assert shown[0] == f"default/g: {members}"
    assert shown[1].startswith("Blocked: no node can take the next member (default/g-")
    assert "a           1  4.5 cpu   nothing    4.5 cpu     0.00  no" in shown
    assert "n1    Insufficient cpu (after the 2 members that fit here)  500m cpu" in shown
    assert "n2    node(s) were unschedulable" in shown
    assert shown[-1] == "What would let it start: 500m cpu more on node n1"


def test_a_running_group_with_a_pending_member_is_explained(dump, capsys):
    group, first, *rest = gang("g", 6)
    group["spec"]["minMember"] = 1
    first["spec"]["nodeName"], first["status"] = "n1", {"phase": "Running"}
    run(["explain", "pod/g-5", "--snapshot", dump(node("n1"), [group, first, *rest])])
    shown = lines(capsys)
    assert shown[1].startswith("The group runs, but its next member is blocked: no node can take")
    assert any(line.startswith("What would let the next member start: ") for line in shown)
    assert "Note: Pods with schedulerName volcano follow Fairlead's own" in " ".join(shown)
    assert not [line for line in shown if "may start after" in line or "start is unknown" in line]


def test_a_group_with_too_few_members_is_explained(dump, capsys):
    group, *pods = gang("g", 3)
    run(["explain", "podgroup/g", "--snapshot", dump(node("n1"), group, pods[:2])])
    assert lines(capsys)[0] == "default/g: needs 3 members and has 2, 0 are on nodes"


def test_simulated_start_times_replace_the_estimate_from_declared_run_times(dump, capsys, tmp_path):
    """Without --runtimes, the start is unknown, because the running pods declare no run time."""
    running = gang("g", 3)
    for one in running[1:]:
        one["spec"] |= {"nodeName": "n1", "restartPolicy": "Never"}
        one["status"] = {"phase": "Running"}
    runtimes = tmp_path / "runtimes.yaml"
    runtimes.write_text("runtimes: [{image: i, durations: 10m}]")
    snapshot = dump(node("n1"), running, gang("h", 3))
    asked = ["explain", "podgroup/h", "--snapshot", snapshot]
    run(asked)
    unknown = "Its start is unknown: the running pods declare no run time."
    assert unknown in lines(capsys)
    run([*asked, "--runtimes", str(runtimes)])
    shown = lines(capsys)
    assert unknown not in shown
    assert any("podgroup/default/h" in line and "10m" in line for line in shown)
    run(["whatif", snapshot, "--runtimes", str(runtimes), "--no-report", "-o", "details"])
    shown = lines(capsys)
    assert not any("may start after" in line for line in shown)
    assert any("podgroup/default/h" in line and "10m" in line for line in shown)


def test_the_explanation_of_a_group_states_its_expected_start(dump, capsys):
    running = gang("g", 3, runs="30m")
    for one in running[1:]:
        one["spec"]["nodeName"], one["status"] = "n1", {"phase": "Running"}
    run(["explain", "podgroup/h", "--snapshot", dump(node("n1"), running, gang("h", 3))])
    assert "It may start after 30m00s, unless other jobs start first." in lines(capsys)


@pytest.mark.parametrize(
    ("bound", "sentence"),
    [
        (1, "Not blocked: it starts with the next session."),
        (2, "Not blocked: it runs, and its next members start with the next session."),
        (3, "Not blocked: it runs."),
    ],
)
def test_the_explanation_of_a_group_says_whether_it_runs(dump, capsys, bound, sentence):
    one = gang("g", 3)
    one[0]["spec"]["minMember"] = 2
    for pod in one[1 : bound + 1]:
        pod["spec"]["nodeName"], pod["status"] = "n1", {"phase": "Running"}
    run(["explain", "podgroup/g", "--snapshot", dump(node("n1"), one)])
    assert lines(capsys)[1] == sentence


def test_a_pod_without_a_group_is_explained_as_a_group_of_one_pod(dump, capsys):
    alone = gang("alone", 1)[1]
    del alone["metadata"]["annotations"]
    run(["explain", "pod/alone-0", "--snapshot", dump(node("n1"), alone)])
    assert lines(capsys)[:2] == [
        "Pod/default/alone-0: needs 1 of its 1 member, 0 are on nodes, nodes have room for 1 more",
        "Not blocked: it starts with the next session.",
    ]


def test_the_explanation_of_a_group_can_be_printed_as_json(dump, capsys):
    path = dump(node("n1"), gang("g", 6))
    assert run(["explain", "podgroup/g", "--snapshot", path, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "GroupExplanation"
    assert (found["obstacle"], found["placeable"], found["starts_after_s"]) == ("NO_NODE", 4, None)
    assert found["queue"]["requested"]["cpu"] == 6000
    assert found["nodes"] == [
        {"node": "n1", "reason": "Insufficient cpu", "lacking": {"cpu": 1000}, "members": 4}
    ]


def test_pods_of_the_default_scheduler_have_the_usual_explanation(dump, capsys):
    pod = gang("g", 1)[1]
    pod["spec"]["schedulerName"] = "default-scheduler"
    run(["explain", "pod/g-0", "--snapshot", dump(node("n1"), gang("h", 1), pod)])
    assert "feasible nodes" in "\n".join(lines(capsys))


def test_a_group_of_the_default_scheduler_is_not_explained_as_a_job(dump, capsys):
    """With the feature gate, it belongs to the default scheduler; without it, to the batch one."""
    meta = {"name": "g", "namespace": "default"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    api = "scheduling.k8s.io/v1alpha2"
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}
    command = ["explain", "podgroup/g", "--snapshot", dump(node("n1"), group)]
    assert run(command) == 0
    capsys.readouterr()
    assert run([*command, "--feature-gates", "GenericWorkload=true"]) == 2
    assert "podgroup/g is scheduled by the default scheduler" in capsys.readouterr().err


def test_a_group_of_the_default_scheduler_is_explained_by_a_waiting_pod(dump, capsys):
    """One of two members runs; the other, and so the group, lacks a node."""
    api, spec = "scheduling.k8s.io/v1alpha2", {"schedulingPolicy": {"gang": {"minCount": 2}}}
    meta = {"name": "train", "namespace": "default"}
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}
    pods = gang("g", 2)[1:]
    for pod, where in zip(pods, ("n1", ""), strict=True):
        pod["metadata"].pop("annotations", None)
        requests = pod["spec"]["containers"][0]["resources"]
        pod["spec"] |= {
            "schedulerName": "default-scheduler", "schedulingGroup": {"podGroupName": "train"},
            "nodeName": where, "containers": [{"name": "c", "resources": requests}],
        }  # fmt: skip
        requests["requests"] = {"cpu": "3"}
    path = dump(node("n1"), group, *pods)
    command = ["explain", "podgroup/train", "--snapshot", path]
    assert run([*command, "--feature-gates", "GenericWorkload=true,GangScheduling=true"]) == 0
    found = lines(capsys)
    assert found[1].startswith("default/g-1: ")
    assert found[2].startswith("0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("podgroup/x", "there is no PodGroup x; known: "),
        ("podgroup/g", "podgroup/g is in several namespaces (default, other); name one of them"),
    ],
)
def test_an_absent_or_ambiguous_group_is_refused(dump, capsys, target, problem):
    path = dump(node("n1"), gang("g", 1), gang("g", 1, namespace="other"))
    assert run(["explain", target, "--snapshot", path]) == 2
    assert capsys.readouterr().err.startswith(f"fairlead: explain: {problem}")


def test_an_invalid_batch_configuration_is_refused(busy, tmp_path, capsys):
    path = tmp_path / "batch.yaml"
    path.write_text("actions: allocat")
    assert run(["whatif", busy, "--no-report", "--batch-config", str(path)]) == 2
    assert "batch.yaml: actions: no action 'allocat'; known:" in capsys.readouterr().err
    assert run(["explain", "podgroup/g", "--snapshot", busy, "--batch-config", "none"]) == 2
    assert "none: is neither a file nor a built-in configuration; known:" in capsys.readouterr().err


def completed(pod, minutes):
    """Return a pod like `pod` that has run for this many minutes."""
    ended = {"exitCode": 0, "finishedAt": f"2026-11-20T05:{minutes}:00Z"}
    states = [{"name": "c", "state": {"terminated": ended}}]
    status = {"phase": "Succeeded", "startTime": "2026-11-20T05:00:00Z"}
    name = f"{pod['metadata']['name']}-{minutes}"
    return {
        **pod,
        "metadata": {"name": name, "namespace": "default"},
        "status": {**status, "containerStatuses": states},
    }


@pytest.fixture
def waits(dump):
    """A dump in which gang h waits for g, whose pods run for 30 minutes like two completed pods."""
    running = gang("g", 4)[1:]
    for one in running:
        one["spec"] |= {"nodeName": "n1", "restartPolicy": "Never"}
        one["status"] = {"phase": "Running"}
    return dump(node("n1"), gang("g", 4)[:1], running, completed(running[0], 30), gang("h", 3))


def test_known_runtimes_determine_when_a_gang_starts(waits, capsys):
    assert run(["explain", "podgroup/h", "--snapshot", waits, "--seeds", "2"]) == 0
    shown = lines(capsys)
    at = next(n for n, line in enumerate(shown) if line.startswith("START TIMES"))
    assert shown[at + 1].split() == [
        "podgroup/default/h", "3", "30m00s", "30m00s", "30m00s", "2/2", "simulations",
    ]  # fmt: skip
    assert any("known for 4 of 4 running pods (100%)" in line for line in shown)


def test_the_start_time_of_a_gang_pod_can_be_printed_as_json(waits, capsys):
    run(["explain", "pod/h-0", "--snapshot", waits, "--seeds", "2", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert [one["p50_s"] for one in found["start_times"]] == [1800]
    assert found["start_times_basis"]["draws"] == 2


def test_start_times_are_refused_for_objects_that_cannot_wait(waits, capsys):
    assert run(["explain", "node/n1", "--snapshot", waits, "--seeds", "2"]) == 2
    assert "--seeds: needs a pod, a workload or a pod group" in capsys.readouterr().err


@pytest.mark.parametrize("target", [["podgroup/new"], ["job/new"], []])
@pytest.mark.parametrize(("size", "state"), [(2, "Not blocked"), (3, "Blocked")])
def test_a_gang_of_a_new_job_is_explained_with_its_pods(dump, capsys, target, size, state):
    """The node has two idle cores."""
    group, pod = gang("new", size)[:2]
    template = {"metadata": pod["metadata"], "spec": pod["spec"] | {"restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "new", "namespace": "default"},
        "spec": {"parallelism": size, "completions": size, "template": template},
    }
    running = gang("old", 2)
    for one in running[1:]:
        one["spec"]["nodeName"], one["status"] = "n1", {"phase": "Running"}
    cluster = dump(node("n1"), queue("default"), running)
    new = dump(group, job, name="new.json")
    assert run(["explain", cluster, "--apply", new, *target]) == 0
    first, second, *_ = lines(capsys)
    assert first.startswith(f"default/new: needs {size} of its {size} members, 0 are on nodes")
    assert second.startswith(state)
