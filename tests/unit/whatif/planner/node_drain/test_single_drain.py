"""Which nodes can be drained alone, and why."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.whatif.planner.conftest import (
    budget,
    deployment,
    job_of,
    least_cpu,
    overprovisioned,
    pod_quota,
    with_priority,
)

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node_drain.drain_plan import order_findings, refusal_findings
from fairlead.whatif.planner.node_drain.drain_planner import (
    BlockCause,
    DrainPlanner,
)
from fairlead.whatif.planner.node_drain.single_drain import (
    check_alone,
    single_drain_answer,
)
from fairlead.whatif.planner.node_drain.unplaced_pod import unplaced_blockers
from fairlead.whatif.run.progress import NoProgress

NODES = ("a", "b", "c")


def rows_of(planner, **how):
    """Return {node: (drainable, why)} of the answer about all nodes."""
    plan = check_alone(planner, NODES, "dump.yaml", NoProgress(), **how)
    [table] = [one for one in single_drain_answer(plan, "", ()).tables if one.name == "nodes"]
    return {row["node"]: (row["drainable"], row["why"]) for row in table.rows}


@pytest.fixture
def full(planner, make):
    """Two nodes with a pod each; only one pod fits on the empty node c."""
    nodes = [make.node(name, cpu="4") for name in NODES]
    return planner(*nodes, *deployment(make, "web", ["a", "b"], cpu="3"))


def test_a_node_is_checked_while_all_others_are_in_service(full):
    """Node c has room for the pod of a or of b, but not for both."""
    assert rows_of(full) == {
        "a": ("yes", "1 pod moves to another node"),
        "b": ("yes", "1 pod moves to another node"),
        "c": ("yes", "no pod has to move"),
    }


def test_pods_that_tolerate_the_cordon_can_come_back_to_the_node(planner, make):
    """The drained node has the most room, so the scheduler prefers it for the new pods."""
    pods = deployment(make, "web", ["a", "a"], tolerations=[{"operator": "Exists"}])
    others = deployment(make, "full", ["b"], cpu="3")
    made = planner(make.node("a", cpu="4"), make.node("b", cpu="4"), *pods, *others)
    plan = check_alone(made, ("a",), "dump.yaml", NoProgress())
    [drain] = plan.drains
    assert [one.target for one in drain.returning] == ["a", "a"]
    [table] = [one for one in single_drain_answer(plan, "", ()).tables if one.name == "nodes"]
    assert table.rows[0]["why"] == "2 pods come back to the cordoned node"
    [sentence] = order_findings(plan.drains)
    assert sentence == (
        "2 pods of deploy/default/web come back to a, because they may run on cordoned nodes. "
        "kubectl drain does not wait for such pods."
    )


def test_the_check_does_not_change_the_model(full):
    before = {info.name: sorted(info.pods) for info in full.model.table.nodes()}
    rows_of(full)
    assert {info.name: sorted(info.pods) for info in full.model.table.nodes()} == before
    assert not full.model.table.unschedulable.any()


def test_drainable_nodes_with_the_least_effort_come_first(planner, make):
    pods = deployment(make, "web", ["a", "a", "b"])
    assert list(rows_of(planner(*map(make.node, NODES), *pods))) == ["c", "b", "a"]


def test_each_drainable_node_has_the_number_of_its_pods_with_a_budget(planner, make):
    """The nodes are sorted by this number."""
    pods = [*deployment(make, "web", ["a", "b"]), *deployment(make, "free", ["b", "b", "c", "c"])]
    made = planner(*map(make.node, NODES), *pods, budget("web", maxUnavailable=1))
    plan = check_alone(made, NODES, "dump.yaml", NoProgress())
    [table] = [one for one in single_drain_answer(plan, "", ()).tables if one.name == "nodes"]
    rows = [(row["node"], row["pods"], row["limited"]) for row in table.rows]
    assert rows == [("c", 2, 0), ("a", 1, 1), ("b", 3, 1)]


@pytest.mark.parametrize(
    ("limit", "a", "b"),
    [
        pytest.param(
            1,
            "1 pod moves to another node; Job default/j fails, because evicted pods count as "
            "failures",
            "1 pod moves to another node",
            id="two failures are too many",
        ),
        pytest.param(
            2, "3 pods move to another node", "1 pod moves to another node", id="enough retries"
        ),
    ],
)
def test_a_drain_that_fails_a_job_does_not_move_its_pods(planner, make, limit, a, b):
    web = deployment(make, "web", ["a"])
    nodes = [make.node("a"), make.node("b"), make.node("c", cpu="0")]
    made = planner(*nodes, *web, *job_of(make, "a", "a", "b", backoffLimit=limit))
    rows = rows_of(made)
    assert (rows["a"], rows["b"]) == (("yes", a), ("yes", b))
    answer = single_drain_answer(check_alone(made, NODES, "dump.yaml", NoProgress()), "", ())
    fails = "The drain of a makes Job default/j fail."
    assert (fails in answer.findings) is (limit == 1)
    [jobs] = [row["failing_jobs"] for row in answer.tables[0].rows if row["node"] == "a"]
    assert jobs == (["Job default/j"] if limit == 1 else [])


@pytest.mark.parametrize("return_again", [False, True])
def test_pods_of_a_job_that_fails_because_of_the_drain_need_no_room(planner, make, return_again):
    """The Job's pod would be placed first, and node b has room for only one pod."""
    job, pod = job_of(make, "a", backoffLimit=0)
    pod["spec"]["priority"] = 10
    web = deployment(make, "web", ["a"])
    made = planner(make.node("a", cpu="2"), make.node("b", cpu="1"), *web, job, pod)
    assert made.lacking_elsewhere("a") == ""
    drain = made.drained_alone("a", return_again=return_again)
    assert [(move.pod, move.target) for move in drain.moves] == [("default/web-1-0", "b")]
    assert (drain.failing, drain.waits) == ({"default/j-0": "Job default/j"}, {})


def test_a_job_that_fails_because_of_the_drain_does_not_block_it(planner, make):
    """Neither the Deployment's pod nor the Job's pod fits on node b."""
    job, pod = job_of(make, "a", backoffLimit=0)
    web = deployment(make, "web", ["a"])
    made = planner(make.node("a", cpu="2"), make.node("b", cpu="500m"), *web, job, pod)
    found = made.drained_alone("a", return_again=False)
    assert [one.owner for one in unplaced_blockers(made, found)] == ["deploy/default/web"]


def test_a_failed_index_does_not_keep_other_indexes_of_its_job_from_moving(planner, make):
    job, *pods = job_of(make, "a", "a", completionMode="Indexed", backoffLimitPerIndex=1)
    for index, pod in enumerate(pods):
        pod["metadata"]["annotations"] = {
            "batch.kubernetes.io/job-completion-index": str(index),
            "batch.kubernetes.io/job-index-failure-count": str(index),
        }
    made = planner(*(make.node(name) for name in NODES), job, *pods)
    drain = made.drained_alone("a", return_again=False)
    assert drain.failing == {"default/j-1": "Job default/j"}
    assert rows_of(made)["a"][1].startswith("1 pod moves to another node; Job default/j fails")


def test_the_answer_names_pods_that_are_not_created_again(planner, make):
    """The LimitRange is newer than the pods."""
    web = deployment(make, "web", ["a", "b"], cpu="100m")
    nodes = [make.node(name) for name in NODES]
    made = planner(*nodes, *web, *deployment(make, "large", ["a"]), least_cpu("200m"))
    answer = single_drain_answer(check_alone(made, NODES, "dump.yaml", NoProgress()), "", ())
    why = "minimum cpu usage per Container is 200m, but request is 100m"
    assert answer.verdict == (
        "Each of 3 nodes can be drained alone, while the others stay in service. On 2 of them, "
        "evicted pods would not be created again."
    )
    assert (
        "Do not evict 2 pods of deploy/default/web yet: the API server would refuse their "
        f"replacements, so nothing would create them again ({why})."
    ) in answer.findings
    [row] = [row for row in answer.tables[0].rows if row["node"] == "a"]
    assert row["refused"] == {"default/web-1-0": why}
    assert row["why"] == (
        "1 pod moves to another node; 1 pod is not created again, because the API server refuses "
        "its replacement"
    )


def test_blocked_nodes_name_pods_that_are_not_created_again(planner, make):
    """The budget refuses the eviction now; without the budget, the pod would be lost."""
    web = deployment(make, "web", ["a"], cpu="100m")
    never = budget("web", maxUnavailable=0)
    made = planner(*map(make.node, NODES), *web, never, least_cpu("200m"))
    plan = check_alone(made, NODES, "dump.yaml", NoProgress())
    assert plan.blocked == ["a"]
    [finding] = refusal_findings(plan)
    assert finding.startswith("Do not evict 1 pod of deploy/default/web yet: the API server would")


def test_refused_pods_are_not_evicted_first(planner, make):
    """Only on b is there room, for one pod of 1 cpu; the refused pod would take it."""
    web = deployment(make, "web", ["a"], cpu="100m", priority=10)
    large = deployment(make, "large", ["a"])
    nodes = [make.node("a", cpu="2"), make.node("b", cpu="1")]
    drain = planner(*nodes, *web, *large, least_cpu("200m")).drained_alone("a", return_again=False)
    assert [(move.pod, move.target) for move in drain.moves] == [("default/large-1-0", "b")]
    assert (drain.first, list(drain.refused)) == ((), ["default/web-1-0"])


@pytest.mark.parametrize(
    ("pods", "refused"),
    [("4", 0), ("3", 1), ("2", 2), ("0", 2)],
    ids=["room for all", "room for all but one", "no room for two", "no room at all"],
)
def test_a_quota_has_room_again_after_the_pods_of_the_node_have_stopped(
    planner, make, pods, refused
):
    """Two of the four pods are on a."""
    web = deployment(make, "web", ["a", "a", "b", "c"])
    made = planner(*(make.node(name, cpu="8") for name in NODES), *web, pod_quota(pods))
    assert len(made.drained_alone("a", return_again=False).refused) == refused
    assert len(made.drained_alone("a", return_again=False).refused) == refused, "the usage is back"


def test_the_template_of_the_next_pod_decides_about_its_admission(planner, make):
    """A LimitRange gives the next pod the request that the old pod lacks."""
    web = deployment(make, "web", ["a"])
    for one in web:
        spec = one["spec"].get("template", one)["spec"]
        spec["containers"][0].pop("resources", None)
    limits = least_cpu("200m")
    limits["spec"]["limits"][0]["defaultRequest"] = {"cpu": "300m"}
    made = planner(*map(make.node, NODES), *web, limits)
    assert made.drained_alone("a", return_again=False).refused == {}


def test_blocked_nodes_name_the_reason(planner, make):
    nodes = [make.node(name, cpu="4") for name in NODES]
    web = deployment(make, "web", ["a"], cpu="1")
    large = deployment(make, "large", ["b"], cpu="4")
    filled = deployment(make, "filled", ["c"], cpu="2")
    made = planner(*nodes, *web, *large, *filled, budget("web", minAvailable=1))
    rows = rows_of(made)
    assert rows["a"][0] == "no"
    assert rows["a"][1].startswith("pdb/default/web: minAvailable 1 with 1 wanted")
    assert rows["b"][0] == "no"
    assert rows["b"][1].startswith("deploy/default/large: Insufficient cpu")
    assert rows["c"] == ("yes", "1 pod moves to another node")
    answer = single_drain_answer(check_alone(made, NODES, "dump.yaml", NoProgress()), "", ())
    assert answer.verdict == "1 of 3 nodes can be drained alone, while the others stay in service."
    assert not answer.is_no


def test_a_pod_that_fits_no_other_node_waits_until_its_node_returns(planner, make):
    nodes = [make.node("a", cpu="4"), make.node("b", cpu="1"), make.node("c", cpu="1")]
    made = planner(*nodes, *deployment(make, "web", ["a"], cpu="3"))
    assert rows_of(made)["a"][0] == "no"
    returned = rows_of(made, return_again=True)
    assert returned["a"] == ("yes", "1 pod waits until the node is back")


def test_a_pod_that_preempts_does_not_wait_until_its_node_returns(planner, make):
    nodes = [make.node("a", cpu="4"), make.node("b", cpu="4"), make.node("c", cpu="1")]
    pods = deployment(make, "db", ["a"], cpu="3", priorityClassName="high")
    pods[-1]["spec"]["priority"] = 9
    objects = [*nodes, make.priority_class("high", 9), *pods]
    made = planner(*objects, *deployment(make, "web", ["b"], cpu="2"))
    returned = rows_of(made, return_again=True)
    assert returned["a"] == ("yes", "1 pod preempts pods of lower priority")


def test_a_pod_without_a_controller_is_named_as_lost(planner, make):
    made = planner(*map(make.node, NODES), make.pod("bare", node_name="a"))
    assert rows_of(made)["a"] == ("yes", "1 pod has no controller and is gone for good")


def test_the_error_for_a_dump_without_nodes_to_drain_names_the_dump(planner, make):
    """The option --nodes was not given."""
    virtual = make.node("a")
    virtual["metadata"]["labels"] = {"type": "virtual-kubelet"}
    with pytest.raises(InputError, match="no node is left to drain; a: ") as error:
        check_alone(planner(virtual), ["a"], "dump.yaml", NoProgress())
    assert error.value.source == "dump.yaml"


def test_no_is_the_answer_if_no_node_can_be_drained(planner, make):
    pods = deployment(make, "web", NODES, cpu="3")
    made = planner(*(make.node(name, cpu="4") for name in NODES), *pods)
    plan = check_alone(made, NODES, "dump.yaml", NoProgress())
    assert {one.cause for one in plan.blockers} == {BlockCause.NO_PLACE}
    answer = single_drain_answer(plan, "", ())
    assert answer.is_no
    assert answer.verdict == "None of 3 nodes can be drained."


@pytest.mark.parametrize(
    ("cpu", "does"),
    [
        pytest.param("1", "simulates the drain", id="drainable"),
        pytest.param("3", "looks for changes that would unblock a node", id="blocked"),
        pytest.param(
            "4",
            "simulates the drain or looks for changes that would unblock the node",
            id="one is drainable",
        ),
    ],
)
def test_the_command_for_one_node_names_the_dump(snapshot, make, cpu, does):
    nodes = (make.node(name, cpu="4") for name in NODES)
    web = deployment(make, "web", NODES if cpu != "4" else ["a"], cpu=cpu)
    small = deployment(make, "small", ["b", "c"]) if cpu == "4" else ()
    objects = snapshot(*nodes, *web, *small)
    model = ClusterModel(replace(objects, arguments=("prod.json",)), SchedulerConfig())
    made = DrainPlanner(model, BudgetRoom(model.objects, model.now))
    answer = single_drain_answer(check_alone(made, NODES, "prod.json", NoProgress()), "", ())
    assert f"fairlead drain-plan prod.json --nodes NODE also {does}." in answer.findings[0]


def test_a_reason_says_that_the_pod_would_preempt(planner, make):
    """A drain of node a succeeds, but ends the pod on node b."""
    nodes = [make.node(name, cpu="4", pool="db") for name in "ab"]
    spec = {"nodeSelector": {"pool": "db"}, "priorityClassName": "high"}
    db = [make.priority_class("high", 9), *deployment(make, "db", ["a"], cpu="3", **spec)]
    db[-1]["spec"]["priority"] = 9
    made = planner(*nodes, make.node("c", cpu="1"), *db, *deployment(make, "web", ["b"], cpu="2"))
    drainable, why = rows_of(made)["a"]
    assert drainable == "no"
    assert why.endswith("(cordoned); it would preempt pods of lower priority")
    assert "preempt" not in rows_of(made)["b"][1]


@pytest.mark.parametrize(
    ("bare", "ending"),
    [
        (["spare-1-0", "spare-1-1"], "lower priority that no controller replaces"),
        (["spare-1-1"], "lower priority, and no controller replaces some of them"),
    ],
)
def test_a_reason_says_that_a_preempted_pod_would_be_lost(planner, make, bare, ending):
    """The pod of web needs the room of both placeholders of node b."""
    nodes = [make.node("a"), make.node("b", cpu="2"), make.node("c", cpu="1")]
    spare = with_priority(deployment(make, "spare", ["b", "b"]), -10)
    for one in spare:
        if one["metadata"]["name"] in bare:
            del one["metadata"]["ownerReferences"]
    made = planner(*nodes, *deployment(make, "web", ["a"], cpu="2"), *spare)
    drainable, why = rows_of(made)["a"]
    assert drainable == "no"
    assert why.endswith(ending)


@pytest.mark.parametrize(("limit", "drainable"), [(0, "no"), (1, "yes")])
def test_no_drain_makes_a_job_fail_by_preemption(planner, make, limit, drainable):
    """The pod of web needs the room of a pod with a negative priority, which belongs to a Job."""
    nodes = [make.node("a"), make.node("b", cpu="2"), make.node("c", cpu="1")]
    job = with_priority(job_of(make, "b", backoffLimit=limit), -10)
    made = planner(*nodes, *deployment(make, "web", ["a"], cpu="2"), *job)
    found, why = rows_of(made)["a"]
    assert found == drainable
    assert why.endswith("that no controller replaces") == (drainable == "no")


def test_the_row_says_that_preempted_pods_are_on_other_nodes(planner, make):
    """The pod of web needs the room of both placeholders of node b."""
    nodes = [make.node("a"), make.node("b", cpu="2"), make.node("c", cpu="0")]
    spare = with_priority(deployment(make, "spare", ["b", "b"]), -10)
    made = planner(*nodes, *deployment(make, "web", ["a"], cpu="2"), *spare)
    drainable, why = rows_of(made)["a"]
    assert drainable == "yes"
    assert why == (
        "1 pod moves to another node; 2 pods with a negative priority on other nodes are preempted "
        "and fit nowhere else"
    )


def test_pods_with_a_negative_priority_may_give_way(planner, make):
    """The pod of web preempts a placeholder of another node, which does not count as leaving."""
    why = (
        "1 pod moves to another node; 1 pod with a negative priority fits on no other node; "
        "1 such pod on another node is preempted and fits nowhere else"
    )
    made = planner(*overprovisioned(make, -10))
    before = {info.name: sorted(info.pods) for info in made.model.table.nodes()}
    assert rows_of(made) == dict.fromkeys(NODES, ("yes", why))
    assert {info.name: sorted(info.pods) for info in made.model.table.nodes()} == before
