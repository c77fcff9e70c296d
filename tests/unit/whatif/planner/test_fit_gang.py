"""fit of Volcano Jobs and JobSets: how many whole copies fit."""

from __future__ import annotations

import json

import pytest
from tests.unit.whatif.change.test_job_set import EXCLUSIVE, annotated, job_set, replicated
from tests.unit.whatif.change.test_volcano_job import task, volcano_job

from fairlead.cli.main import run


@pytest.fixture
def fitted(tmp_path, capsys):
    """Run `fairlead fit` of an object on a cluster of objects; return (answer, exit code)."""

    def fit(written, *objects, options=()):
        dump, file = tmp_path / "dump.json", tmp_path / "new.json"
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        file.write_text(json.dumps(written))
        code = run(["fit", str(dump), "--pod", str(file), "-o", "json", *options])
        captured = capsys.readouterr()
        return (json.loads(captured.out) if captured.out else captured.err), code

    return fit


def test_only_whole_gangs_are_counted(fitted, make):
    """The node has room for seven pods: two gangs of three."""
    gang = volcano_job(task("a", 1), task("b", 2), minAvailable=2, queue="prod")
    answer, code = fitted(gang, make.node("n", cpu="7"))
    assert code == 0
    assert answer["verdict"] == (
        "2 more whole copies of Job.batch.volcano.sh default/train (3 pods each) fit, on 1 node."
    )
    assert (answer["count"], answer["pods_each"], answer["placed_of_next"]) == (2, 3, 1)
    assert answer["nodes"] == [{"node": "n", "zone": "", "pods": 6}]
    stop, room, minimum, queue = answer["findings"]
    assert stop.endswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert room == "1 of the 3 pods of this copy would have room."
    assert minimum.startswith("It starts with 2 pods (minAvailable)")
    assert queue.startswith("The limits and the share of queue prod do not count here")


@pytest.mark.parametrize("written", [job_set(replicated("w", 3)), volcano_job(task("a", 3))])
def test_copies_of_an_object_of_the_cluster_are_counted(tmp_path, capsys, make, written):
    dump = tmp_path / "dump.json"
    items = [make.node("n", cpu="7"), written]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    target = "vcjob/train" if written["kind"] == "Job" else "jobset/default/train"
    assert run(["fit", str(dump), "--like", target, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["count"], answer["placed_of_next"]) == ("GangFit", 2, 1)


def test_a_gang_without_room_for_all_its_pods_does_not_fit(fitted, make):
    answer, code = fitted(volcano_job(task("a", 4)), make.node("n", cpu="3"))
    assert code == 1
    why = "3 of its 4 pods would have room."
    assert answer["verdict"] == (
        f"No further whole copy of Job.batch.volcano.sh default/train fits: {why}"
    )
    assert answer["nodes"] == []
    refusal = {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 1}
    assert answer["refusals"] == [refusal]


def test_each_job_of_each_copy_needs_an_exclusive_domain(fitted, make):
    nodes = [make.node(f"{rack}{n}", cpu="8", rack=rack) for rack in "abc" for n in range(2)]
    jobs = job_set(replicated("w", 2, replicas=2))
    assert fitted(jobs, *nodes)[0]["count"] == 12
    answer, _ = fitted(annotated(jobs, **{EXCLUSIVE: "rack"}), *nodes)
    assert (answer["count"], answer["placed_of_next"]) == (1, 2)


def affine(task):
    """`task` with pods that pod affinity keeps in one rack."""
    template = task["template"]
    template["metadata"] = {"labels": {"app": "w"}}
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "w"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    template["spec"]["affinity"] = {"podAffinity": required}
    return task


@pytest.mark.parametrize(
    "written",
    [
        annotated(job_set(replicated("w", 3)), **{EXCLUSIVE: "rack"}),
        volcano_job(affine(task("a", 3))),
    ],
    ids=["exclusive topology", "pod affinity"],
)
def test_a_domain_without_room_for_a_copy_is_passed_over(fitted, make, written):
    """kube-scheduler prefers rack a, whose only node is free, but the copy does not fit there."""
    nodes = [make.node(f"{rack}{n}", cpu="4", rack=rack) for rack in "bc" for n in range(3)]
    used = [make.pod(f"p{one['metadata']['name']}", node_name=one["metadata"]["name"], cpu="2")
            for one in nodes]  # fmt: skip
    answer, code = fitted(written, make.node("a", cpu="2", rack="a"), *nodes, *used)
    assert (answer["count"], code) == (2, 0)
    assert answer["small_domains"] == ["rack a"]
    said = "other pods (rack a); the copy then waits. The count assumes a domain with room."
    assert any(one.endswith(said) for one in answer["findings"])
    assert {one["node"][0] for one in answer["nodes"]} <= {"b", "c"}


def test_the_smallest_domain_without_room_is_passed_over(fitted, make):
    """The pods of a Job stay in one zone and in one rack. Rack b of the zone of rack a has room."""
    pinned = affine(task("a", 3))
    [required] = pinned["template"]["spec"]["affinity"]["podAffinity"].values()
    required.insert(0, {**required[0], "topologyKey": "zone"})
    nodes = [make.node(f"b{n}", cpu="4", rack="b", zone="z") for n in range(3)]
    used = [make.pod(f"p{n}", node_name=f"b{n}", cpu="2") for n in range(3)]
    small = make.node("a", cpu="2", rack="a", zone="z")
    answer, _ = fitted(volcano_job(pinned), small, *nodes, *used)
    assert answer["small_domains"] == ["rack a"]
    assert answer["count"] == 2


def test_the_reason_is_that_of_the_first_domain_if_no_domain_has_room(fitted, make):
    nodes = [make.node(rack, cpu="2", rack=rack) for rack in "ab"]
    answer, _ = fitted(annotated(job_set(replicated("w", 3)), **{EXCLUSIVE: "rack"}), *nodes)
    assert (answer["count"], answer["placed_of_next"], answer["small_domains"]) == (0, 2, [])
    assert "1 Insufficient cpu" in answer["stop"]["message"]


def test_a_long_name_does_not_prevent_copies(fitted, make):
    """The name of the longest pod has 63 characters; that of a copy has more."""
    answer, _ = fitted(job_set(replicated("w" * 47, 2)), make.node("n", cpu="5"))
    assert answer["count"] == 2


def test_a_quota_ends_the_count(fitted, make):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "5"}}}
    quota["metadata"] = {"name": "q", "namespace": "default"}
    answer, _ = fitted(job_set(replicated("w", 2)), make.node("n", cpu="64"), quota)
    assert (answer["count"], answer["stop"]["by"]) == (2, "admission")
    assert "exceeded quota: q" in answer["stop"]["message"]


def test_the_limit_ends_the_count(fitted, make):
    limit = ("--max-limit", "2")
    answer, code = fitted(job_set(replicated("w", 1)), make.node("n", cpu="9"), options=limit)
    assert (answer["count"], answer["stop"]["by"], code) == (2, "limit", 0)
    assert answer["verdict"].startswith("At least 2 more whole copies of JobSet default/train")


@pytest.mark.parametrize(
    ("written", "options", "problem"),
    [
        (
            job_set(replicated("w", 1)),
            ("--preempt",),
            "--preempt: JobSet default/train: cannot be used with a JobSet; use a Pod or another",
        ),
        (
            volcano_job(task("a", 1)),
            ("--autoscale", "karpenter"),
            "--autoscale: Job.batch.volcano.sh default/train: cannot be used with a Job",
        ),
        (job_set(), (), "JobSet default/train: spec.replicatedJobs: expected array of length"),
        (
            volcano_job(task("a", 0)),
            (),
            "Job.batch.volcano.sh default/train: has 0 pods; expected 1 to 100,000",
        ),
    ],
)
def test_bad_input_is_one_line(fitted, make, written, options, problem):
    error, code = fitted(written, make.node("n"), options=options)
    assert code == 2
    assert problem in error


def test_a_job_set_of_another_controller_does_not_fit_here(fitted, make):
    elsewhere = job_set(replicated("w", 1), managedBy="kueue.x-k8s.io/multikueue")
    message, code = fitted(elsewhere, make.node("n"))
    assert code == 2
    assert (
        "spec.managedBy: names another controller, so no pods are created in this cluster"
        in message
    )


@pytest.mark.parametrize("written", [job_set(replicated("w", 1)), volcano_job(task("a", 1))])
def test_preemption_is_refused_for_objects_of_the_cluster_without_pods(
    tmp_path, capsys, make, written
):
    dump = tmp_path / "dump.json"
    items = [make.node("n"), written]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    target = "vcjob/train" if written["kind"] == "Job" else "jobset/train"
    assert run(["fit", str(dump), "--like", target, "--preempt"]) == 2
    assert "--preempt: " in capsys.readouterr().err
