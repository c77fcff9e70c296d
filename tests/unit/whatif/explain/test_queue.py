"""Explanations of the queues of kube-batch and Volcano."""

from __future__ import annotations

import pytest

from fairlead.cli.output.tabular_answer import print_tabular
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.input.error import InputError

API = "scheduling.volcano.sh/v1beta1"
GPU = "nvidia.com/gpu"


def queue(name, weight=1, *, state="Open", **spec):
    meta = {"name": name}
    spec = {"weight": weight, **spec}
    return {
        "apiVersion": API,
        "kind": "Queue",
        "metadata": meta,
        "spec": spec,
        "status": {"state": state},
    }


def gang(make, name, queue, gpus, nodes=("", ""), phase="Inqueue"):
    """Return a PodGroup and one pod for each of `nodes`, each with `gpus` GPUs."""
    meta = {"name": name, "namespace": "default"}
    spec = {"minMember": len(nodes), "queue": queue}
    group = {"apiVersion": API, "kind": "PodGroup", "metadata": meta, "spec": spec}
    pods = []
    for number, node in enumerate(nodes):
        pod = make.pod(f"{name}-{number}", node_name=node, schedulerName="volcano")
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
        resources = {"cpu": "1", GPU: str(gpus)}
        pod["spec"]["containers"][0]["resources"] = {"requests": resources, "limits": {GPU: gpus}}
        pods.append(pod)
    return [group | {"status": {"phase": phase}}, *pods]


def node(make, name, gpus):
    found = make.node(name, cpu="16")
    for part in ("allocatable", "capacity"):
        found["status"].setdefault(part, {})[GPU] = str(gpus)
    return found


@pytest.fixture
def explained(snapshot):
    def explain(target, *objects, batch=None):
        cluster = snapshot(*objects)
        options = BatchOptions(batch)
        return explain_object(cluster, target, SchedulerConfig(), NO_CHOICE, options)

    return explain


def table(answer, name):
    return next(one.rows for one in answer.tables if one.name == name)


@pytest.fixture
def shared(make):
    """A node with 8 GPUs: prod uses 6 and deserves 4; research uses 2 and deserves 4."""
    return [
        node(make, "n", 8),
        queue("prod"),
        queue("research"),
        *gang(make, "a", "prod", 2, ("n", "n", "n")),
        *gang(make, "b", "research", 2, ("n",)),
        *gang(make, "c", "research", 3, ("",)),
        *gang(make, "d", "prod", 1, ("",)),
    ]


def test_a_queue_above_its_share_says_what_it_borrows(explained, shared):
    answer = explained("queue/prod", *shared)
    assert answer.verdict == (
        f"queue/prod (weight 1) uses 6 {GPU} and deserves 4: it is above its share; 1 group waits."
    )
    borrows, less = answer.findings[:2]
    assert borrows == (
        f"It uses 2 {GPU} more than it deserves. Other queues that are below their shares can "
        "reclaim this."
    )
    why = "It deserves less, because other queues request resources, too."
    assert less == f"Its pods request 7 {GPU}. {why}"
    [holder] = table(answer, "holding")
    assert (holder["group"], holder["members"], holder["amounts"][GPU]) == ("default/a", 3, 6)
    amounts = next(row for row in table(answer, "resources") if row["resource"] == GPU)
    assert (amounts["requested"], amounts["allocated"], amounts["deserved"]) == (7, 6, 4)
    assert (amounts["capability"], amounts["cluster"]) == (None, 8)
    assert answer.facts["share"] == 1.5


def test_a_queue_below_its_share_says_why_its_groups_wait(explained, shared):
    answer = explained("queues/research", *shared)
    assert answer.verdict.endswith("and deserves 4: it is below its share; 1 group waits.")
    [waiting] = table(answer, "waiting")
    assert (waiting["group"], waiting["obstacle"]) == ("default/c", "NO_NODE")
    assert waiting["remedy"].startswith("room for 1 more member like default/c-0")
    assert any(text.startswith("default/c: The action reclaim evicts") for text in answer.findings)


def test_the_pods_that_the_next_session_reclaims_are_named(explained, make):
    """prod has four gangs of one pod, so reclaim can take two of them."""
    objects = [node(make, "n", 8), queue("prod"), queue("research")]
    for number in range(4):
        objects += gang(make, f"s{number}", "prod", 2, ("n",))
    objects += gang(make, "c", "research", 2, ("", ""))
    taken = "The next session evicts 2 pods for groups of this queue: default/s"
    lost = "The next session evicts 2 pods of this queue for other queues: default/s"
    assert any(text.startswith(taken) for text in explained("q/research", *objects).findings)
    assert any(text.startswith(lost) for text in explained("q/prod", *objects).findings)


@pytest.mark.parametrize(
    ("batch", "spec", "said"),
    [
        ("volcano", {}, "It keeps this until its pods end: the configuration has no action recla"),
        (None, {"reclaimable": False}, "Other queues cannot reclaim this (reclaimable: false)."),
    ],
)
def test_borrowed_resources_that_cannot_be_reclaimed_are_kept(explained, shared, batch, spec, said):
    shared[1] = queue("prod", **spec)
    assert said in explained("queue/prod", *shared, batch=batch).findings[0]


def test_a_queue_at_its_capability_says_so(explained, shared):
    shared[1] = queue("prod", capability={GPU: "6"}, parent="root")
    answer = explained("queue/prod", *shared)
    assert f"It is at its capability: 6 {GPU}." in answer.findings
    [waiting] = table(answer, "waiting")
    assert waiting["remedy"] == (
        "room for 1 more member like default/d-0 and "
        f"a higher capability of queue prod (at least 7 {GPU}, now 6)"
    )


def test_other_states_of_queues(explained, make):
    objects = [node(make, "n", 8), queue("idle"), queue("shut", state="Closed")]
    objects += [*gang(make, "e", "shut", 1), *gang(make, "f", "absent", 1)]
    uncreated = gang(make, "g", "late", 1, phase="Pending")[:1]
    objects += [queue("late"), *uncreated]
    verdicts = [explained(f"queue/{name}", *objects).verdict for name in ("idle", "shut", "absent")]
    assert verdicts == [
        "queue/idle (weight 1) has no pods.",
        "queue/shut is closed, so none of its waiting groups starts (1 group waits).",
        "queue/absent does not exist, so 1 group waits.",
    ]
    [waiting] = table(explained("queue/late", *objects, batch="fairlead"), "waiting")
    assert (waiting["obstacle"], waiting["remedy"]) == ("NO_PODS_YET", "")
    answer = explained("queue/late", *objects, batch="volcano")
    assert answer.verdict == "queue/late (weight 1) has no pods yet; 1 group waits."
    assert [row["group"] for row in table(answer, "waiting")] == ["default/g"]
    with pytest.raises(InputError, match="there is no Queue none; known: idle, late, shut"):
        explained("queue/none", *objects)


def test_all_queues_are_listed_with_their_waiting_groups(explained, shared, make):
    answer = explained("queues", *shared, queue("idle"), *gang(make, "f", "absent", 1))
    assert answer.verdict == "3 queues; 3 groups wait."
    assert answer.findings == ("Queue absent does not exist, so 1 group waits for it.",)
    rows = [(row["queue"], row["share"], row["waiting"]) for row in table(answer, "queues")]
    assert rows == [("idle", 0.0, 0), ("prod", 1.5, 1), ("research", 0.5, 1)]
    amounts = [
        (row["queue"], row["requested"], row["allocated"], row["deserved"])
        for row in table(answer, "amounts")
        if row["resource"] == GPU
    ]
    assert amounts == [("prod", 7, 6, 4), ("research", 5, 2, 4)]


def test_a_narrow_terminal_shows_what_queues_request(explained, shared, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    print_tabular(explained("queues", *shared), "text")
    lines = capsys.readouterr().out.splitlines()
    assert "QUEUE     RESOURCE        REQUESTED  ALLOCATED  DESERVED" in lines
    assert "research  nvidia.com/gpu          5          2         4" in lines


@pytest.mark.parametrize("batch", [None, "single-pods"])
def test_the_answer_about_all_pods_names_missing_queues(explained, shared, make, batch):
    answer = explained("pods", *shared, *gang(make, "f", "absent", 1), batch=batch)
    said = "Queue absent does not exist, so 1 group waits for it."
    assert (said in answer.findings) is (batch is None)


@pytest.mark.parametrize(
    ("batch", "missing"),
    [(None, ()), ("volcano", ("Queue default does not exist, so 1 group waits for it.",))],
    ids=["the configuration fairlead", "the configuration of Volcano"],
)
def test_the_default_queue_needs_no_object_with_some_configurations(
    explained, shared, make, batch, missing
):
    answer = explained("queues", *shared, *gang(make, "f", "default", 1), batch=batch)
    assert answer.findings == missing
    waiting = {row["queue"]: row["waiting"] for row in table(answer, "queues")}
    assert waiting.get("default") == (None if missing else 1)
    assert explained("pods", *shared, *gang(make, "f", "default", 1), batch=batch).findings == (
        missing
    )


def test_the_answer_about_all_pods_says_why_groups_wait(explained, make):
    objects = [node(make, "n", 8), queue("prod"), *gang(make, "a", "absent", 1)]
    objects += [*gang(make, "b", "prod", 3), *gang(make, "c", "prod", 3)]
    objects += [*gang(make, "d", "prod", 9), *gang(make, "e", "prod", 1)[1:]]
    objects += [*gang(make, "f", "prod", 1, ("n", "n"))]
    objects[-3]["spec"]["minMember"] = 1
    del objects[-1]["spec"]["nodeName"]
    why = {
        row["pod"].partition("-")[0]: row["why"].partition(": explain")[0]
        for row in table(explained("pods", *objects), "pending")
    }
    assert why == {
        "default/a": "its queue absent does not exist",
        "default/b": "its group starts with the next session",
        "default/c": (
            "its group waits (other groups come first and take the resources in the next session)"
        ),
        "default/d": "its group waits (no node can take the next member)",
        "default/e": "its PodGroup does not exist",
        "default/f": "its group has its minimum of members without it",
    }


def test_the_answer_about_all_pods_names_groups_for_which_pods_are_evicted(explained, make):
    """prod uses the whole node, and research deserves half of it."""
    objects = [node(make, "n", 8), queue("prod"), queue("research")]
    for name in ("a", "c"):
        objects += gang(make, name, "prod", 4, ("n",))
    objects += gang(make, "b", "research", 4, ("",))
    for batch, why in ((None, "the next session evicts pods for its group"), ("volcano", "its g")):
        [row] = table(explained("pods", *objects, batch=batch), "pending")
        assert row["why"].startswith(why)


def test_a_cluster_without_queues_says_so(explained, make):
    verdict = explained("queues", make.node("n")).verdict
    assert verdict == "The cluster has no queues of kube-batch or Volcano."


def test_a_configuration_without_shares_says_so(explained, shared, tmp_path):
    config = tmp_path / "batch.yaml"
    config.write_text('actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]')
    answer = explained("queue/prod", *shared, batch=str(config))
    said = "the configuration does not divide the cluster between queues; 1 group waits."
    assert answer.verdict == f"queue/prod (weight 1): {said}"


def test_single_pods_have_no_queues(explained, shared):
    with pytest.raises(InputError, match="--batch-config: single-pods ignores queues"):
        explained("queue/prod", *shared, batch="single-pods")


def test_a_queue_of_another_api_is_not_a_queue_of_the_batch_scheduler(explained, make):
    other = {"apiVersion": "rabbitmq.com/v1beta1", "kind": "Queue"}
    other["metadata"] = {"name": "mail", "namespace": "default"}
    with pytest.raises(
        InputError, match=r"Queue\.rabbitmq\.com default/mail has no pods to explain"
    ):
        explained("queue/mail", make.node("n"), other)


def test_a_queue_may_have_its_share_of_one_resource_only(explained, make):
    """Queue a holds the 4 GPUs that it deserves, but no cpu for the pod that waits for more."""
    held, waiting = gang(make, "a", "a", 4, ("n",)), gang(make, "b", "a", 1, ("",))
    other = gang(make, "c", "b", 8, ("",))
    answer = explained(
        "queue/a", node(make, "n", 8), queue("a"), queue("b"), *held, *waiting, *other
    )
    assert answer.verdict == (
        "queue/a (weight 1) uses 4 nvidia.com/gpu and deserves 4: it has its share of "
        "nvidia.com/gpu, but not of all resources; 1 group waits."
    )


def test_a_queue_uses_what_the_queues_below_it_use(explained, make):
    team = [queue("team", capability={GPU: "6"}), queue("a", parent="team")]
    answer = explained("queue/team", node(make, "n", 8), *team, *gang(make, "g", "a", 2, ("n",)))
    assert answer.verdict.startswith(f"queue/team (weight 1) uses 2 {GPU} and deserves 2: ")
    assert (
        "What it uses includes what the queues below it use (a); what it requests does not include "
        "their requests."
    ) in answer.findings


def test_the_verdict_names_a_resource_that_the_pods_request(explained, make):
    """The nodes have GPUs, but the pods request none of them."""
    pods = gang(make, "g", "a", 0, ("",))
    for config in (None, "kube-batch"):
        verdict = explained("queue/a", node(make, "n", 8), queue("a"), *pods, batch=config).verdict
        assert verdict.startswith("queue/a (weight 1) uses 0 cpu and deserves 1: it is below its")


def test_a_queue_without_a_name_is_an_error(explained, shared):
    with pytest.raises(InputError, match="'queue/' is not KIND/NAME"):
        explained("queue/", *shared)


@pytest.mark.parametrize(
    ("parents", "problem"),
    [
        pytest.param({"a": "none"}, "(none) does not exist", id="a missing parent"),
        pytest.param({"a": "a"}, "(a) is the queue itself", id="the queue itself"),
        pytest.param({"a": "b", "b": "a"}, "(b) is in a cycle", id="a cycle"),
    ],
)
def test_a_queue_whose_parent_does_not_count_says_why(explained, make, parents, problem):
    queues = [queue(name, parent=parent) for name, parent in parents.items()]
    answer = explained("queue/a", node(make, "n", 8), *queues, *gang(make, "g", "a", 1))
    assert answer.findings == (
        f"It counts as a queue without a parent, because its parent {problem}.",
    )


def test_a_queue_is_said_to_be_below_an_existing_parent(explained, make):
    queues = [queue("top"), queue("a", parent="top")]
    answer = explained("queue/a", node(make, "n", 8), *queues, *gang(make, "g", "a", 1))
    assert answer.findings == ("Its parent is queue top, whose limits count, too.",)
