"""The rows of the report that say what to do now: links and next steps."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.question import what_if
from fairlead.whatif.report.next_step_row import next_step_rows


@pytest.fixture
def web(make):
    """A ReplicaSet with a pod on node a and one on node b, and a budget that needs both pods."""
    replicaset = make.workload("ReplicaSet", "web", replicas=2)
    replicaset["metadata"]["uid"] = "web"
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 2},
    }
    pods = []
    for name, node in (("web-1", "a"), ("web-2", "b")):
        pod = make.pod(name, node_name=node, owner="web")
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    return [replicaset, *pods, budget]


def test_steps_follow_the_link_to_the_part_that_explains_their_finding(snapshot, make, web):
    failures = Failures(fail_node=("a", "b"))
    answer = what_if(snapshot(*map(make.node, "abcd"), *web), ClusterChange(failures=failures))
    assert next_step_rows(answer, ()) == [
        {
            "words": "See what happens to the pods of rs/default/web.",
            "place": "pod=rs/default/web",
        },
        {
            "words": "See which pods were displaced against default/web, and by what.",
            "place": "tab=pdb_breaches&row=default/web",
        },
        {
            "words": "See why budgets do not keep pods from leaving failed nodes.",
            "place": "misconceptions",
        },
        {
            "words": (
                "Ask again with 2 more replicas of rs/default/web, created 10m before the failure:"
            ),
            "options": "--scale rs/default/web=4 --at 10m",
        },
        {"words": "See every displaced pod and its cause.", "place": "changes"},
    ]


def test_steps_about_the_whole_answer_come_last(snapshot, make, web):
    cluster = snapshot(make.node("a"), make.node("b"), *web[:-1])
    answer = what_if(cluster, ClusterChange(drain=("a",)))
    link = {"words": "See every displaced pod and its cause.", "place": "changes"}
    drain = {"words": "Drain the node:", "command": "kubectl drain a"}
    assert next_step_rows(answer, ()) == [link, drain]
    holds = check(parse_fail_on("moved>0"), answer.effect)
    assert next_step_rows(answer, [holds]) == [link]
