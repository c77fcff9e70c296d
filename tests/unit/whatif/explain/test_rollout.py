"""The first sentence about a workload says that its rollout has yet to replace pods."""

from __future__ import annotations

import pytest
from tests.unit.whatif.rollout import NEW, OLD, at_rest, in_progress, pod, replica_set

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.deployment.revision import REVISION
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object

NODES = ("n0", "n1", "n2", "n5")


@pytest.fixture
def explained(snapshot, make):
    def explain(target, *objects):
        nodes = [make.node(name, cpu="64") for name in NODES]
        return explain_object(snapshot(*nodes, *objects), target, SchedulerConfig(), NO_CHOICE)

    return explain


def test_a_deployment_whose_old_pods_are_ready_has_an_unfinished_rollout(explained):
    """As many pods as wanted are ready, but most of them have the old template."""
    assert explained("deploy/web", *in_progress()).verdict == (
        "All 8 wanted pods of deploy/store/web are ready, but its rollout is not finished: "
        "6 with an old template, 2 not ready."
    )


def test_pending_pods_of_the_new_template_are_counted(explained):
    pods = [one for one in in_progress() if one["kind"] != "Pod"]
    pods += [pod("web", OLD, number, "n0") for number in range(7)]
    pods += [pod("web", NEW, 7, "", image="web:2", ready=False)]
    assert explained("deploy/web", *pods).verdict == (
        "7 of 8 wanted pods of deploy/store/web are ready, and its rollout is not finished: "
        "7 with an old template, 1 pending."
    )


def test_the_replica_set_of_the_revision_is_the_new_one_if_no_template_is_equal(explained):
    """As in a dump whose ReplicaSet has defaults that the Deployment lacks."""
    objects = in_progress()
    objects[0]["spec"]["template"]["spec"]["hostNetwork"] = True
    assert "6 with an old template" in explained("deploy/web", *objects).verdict


def test_a_rollout_that_is_finished_or_paused_is_not_mentioned(explained):
    paused = in_progress()
    paused[0]["spec"]["paused"] = True
    for objects in (at_rest(), paused):
        verdict = explained("deploy/web", *objects).verdict
        assert verdict == "All 8 wanted pods of deploy/store/web are ready."


def test_a_rollout_says_what_it_changes_and_how_to_undo_it(explained):
    objects = in_progress()
    template = objects[0]["spec"]["template"]
    [container] = template["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "20"}, "limits": {"memory": "1Gi"}}
    container["env"] = [{"name": "A", "value": "b"}]
    container["terminationMessagePath"] = "/dev/termination-log"  # a default
    template["spec"]["priorityClassName"] = "high"
    template["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "now"}
    answer = explained("deploy/web", *objects)
    [found] = [one for one in answer.findings if one.startswith("Its rollout changes")]
    assert found == (
        "Its rollout changes: env of c, image of c web:1 → web:2, requests of c: cpu 1 → 20, "
        "limits of c: memory none → 1Gi, priorityClassName none → high and 1 more."
    )
    assert [one.command for one in answer.steps] == [
        "kubectl rollout undo -n store deploy/web --to-revision=1"
    ]
    answer = explained("deploy/web", *at_rest())
    assert not any(one.startswith("Its rollout changes") for one in answer.findings)
    assert answer.steps == ()


@pytest.mark.parametrize(
    ("field", "value", "change"),
    [
        ("resources", {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
         "resources.claims of c"),
        ("workingDir", "/srv", "workingDir of c none → /srv"),
        ("workingDir", "/srv" * 50, "workingDir of c"),
    ],
    ids=["only claims", "a short value", "a long value"],
)  # fmt: skip
def test_each_change_of_a_template_is_named_and_long_values_are_not_shown(
    explained, field, value, change
):
    objects = in_progress()
    for one in (objects[0], objects[2]):
        [container] = one["spec"]["template"]["spec"]["containers"]
        container |= {"image": "web:1", field: value}
    assert f"Its rollout changes: {change}." in explained("deploy/web", *objects).findings


def test_a_rollout_is_reverted_to_the_template_with_which_it_is_compared(explained):
    """A first correction did not work, and its ReplicaSet has no pods."""
    objects = in_progress()
    objects[0]["metadata"]["annotations"][REVISION] = "3"
    objects[2]["metadata"]["annotations"][REVISION] = "3"
    broken = replica_set("web", "ddddddddd", 0, image="web:broken", revision=2)
    answer = explained("deploy/web", *objects, broken)
    assert "Its rollout changes: image of c web:1 → web:2." in answer.findings
    [step] = answer.steps
    assert step.command == "kubectl rollout undo -n store deploy/web --to-revision=1"


def test_a_rollout_whose_new_pods_are_ready_is_not_undone(explained):
    objects = in_progress()
    for one in objects:
        if one["kind"] == "Pod":
            one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert explained("deploy/web", *objects).steps == ()
    objects[0]["status"]["conditions"] = [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    ]
    assert len(explained("deploy/web", *objects).steps) == 1


def stateful_set(make, strategy, *, updated=True, kind="StatefulSet"):
    """A workload whose last pod has the new revision and is not ready."""
    web = make.workload(kind, "web", replicas=3)
    web["metadata"] |= {"uid": "web", "generation": 2}
    web["spec"]["updateStrategy"] = strategy
    revision = "web-new" if updated else "web-old"
    web["status"] = {"updateRevision": revision, "observedGeneration": 2 if updated else 1}
    pods = []
    for number in range(3):
        made = make.pod(f"web-{number}", node_name="n0", owner="web")
        made["metadata"]["ownerReferences"][0]["kind"] = kind
        made["metadata"]["labels"] = {
            "app": "web",
            "controller-revision-hash": "web-old" if number < 2 else "web-new",
        }
        ready = "True" if number < 2 else "False"
        made["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        pods.append(made)
    return [web, *pods]


@pytest.mark.parametrize(
    ("strategy", "updated", "old"),
    [
        ({"type": "RollingUpdate"}, True, "2 with an old template, 1 not ready."),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}, True,
         "1 with an old template, 1 not ready."),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, True, ""),
        ({"type": "OnDelete"}, True, ""),
        ({"type": "RollingUpdate"}, False, ""),
    ],
    ids=["all pods", "a partition", "a partition that keeps all old pods", "OnDelete",
         "a status of an older generation"],
)  # fmt: skip
def test_a_stateful_set_counts_the_pods_that_it_will_replace(
    explained, make, strategy, updated, old
):
    verdict = explained("sts/web", *stateful_set(make, strategy, updated=updated)).verdict
    beginning = "2 of 3 wanted pods of sts/default/web are ready"
    rollout = f", and its rollout is not finished: {old}" if old else ": 1 not ready."
    assert verdict == beginning + rollout


def test_a_daemon_set_counts_the_pods_of_older_generations(explained, make):
    web = make.workload("DaemonSet", "web")
    web["metadata"] |= {
        "uid": "web",
        "annotations": {"deprecated.daemonset.template.generation": "2"},
    }
    pods = []
    for number, name in enumerate(NODES):
        made = make.pod(f"web-{number}", node_name=name, owner="web")
        made["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
        generation = "2" if name == "n0" else "1"
        made["metadata"]["labels"] = {"app": "web", "pod-template-generation": generation}
        made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(made)
    assert explained("ds/web", web, *pods).verdict == (
        "All 4 wanted pods of ds/default/web are ready, but its rollout is not finished: "
        "3 with an old template."
    )


@pytest.mark.parametrize(
    ("current", "beginning", "commands"),
    [
        (
            "web-new",
            "Its rollout waits until default/web-2 is ready (podManagementPolicy). If its new ",
            ["kubectl rollout undo -n default sts/web", "kubectl delete pod -n default web-2"],
        ),
        (
            "web-old",
            "Its rollout waits until default/web-2 is ready, although this pod has an old ",
            [
                "fairlead whatif {source} --delete pod/default/web-2",
                "kubectl delete pod -n default web-2",
            ],
        ),
    ],
    ids=["a broken template", "a template that was reverted"],
)
def test_the_pod_that_stops_a_rollout_is_named(explained, make, current, beginning, commands):
    """A StatefulSet with the policy OrderedReady does not replace this pod."""
    web, *pods = stateful_set(make, {"type": "RollingUpdate"})
    web["status"]["updateRevision"] = current
    answer = explained("sts/web", web, *pods)
    assert sum(one.startswith(beginning) for one in answer.findings) == 1
    assert [one.code for one in answer.steps] == [
        one.format(source=answer.source) for one in commands
    ]
    web["spec"]["podManagementPolicy"] = "Parallel"
    assert explained("sts/web", web, *pods).steps == ()


def revision(name, number):
    """A ControllerRevision of the StatefulSet web."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "web"}
    meta = {"name": name, "namespace": "default", "ownerReferences": [owner | {"controller": True}]}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number,
            "metadata": meta, "data": {}}  # fmt: skip


def test_a_stateful_set_is_reverted_to_the_revision_of_the_replaced_pods(explained, make):
    """The revision before the present one may be one that did not work either."""
    web, *pods = stateful_set(make, {"type": "RollingUpdate"})
    revisions = [revision("web-old", 3), revision("web-bad", 4), revision("web-new", 5)]
    answer = explained("sts/web", web, *pods, *revisions)
    assert answer.steps[0].command == "kubectl rollout undo -n default sts/web --to-revision=3"


@pytest.mark.parametrize("updated", [True, False], ids=["partition", "change not observed"])
def test_an_unready_pod_stops_no_rollout_that_replaces_no_pod(explained, make, updated):
    """The pods below the partition keep their revision."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2 if updated else 0}}
    web, *pods = stateful_set(make, strategy, updated=updated)
    answer = explained("sts/web", web, *pods)
    assert not any("rollout waits" in one for one in answer.findings)
    assert (answer.verdict, answer.steps) == (
        "2 of 3 wanted pods of sts/default/web are ready: 1 not ready.",
        (),
    )


def test_an_unready_pod_stops_no_rollout_if_all_pods_have_one_template(explained, make):
    web, *pods = stateful_set(make, {"type": "RollingUpdate"})
    for one in pods:
        one["metadata"]["labels"]["controller-revision-hash"] = "web-new"
    answer = explained("sts/web", web, *pods)
    assert (answer.verdict, answer.steps) == (
        "2 of 3 wanted pods of sts/default/web are ready: 1 not ready.",
        (),
    )
