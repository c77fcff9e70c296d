"""Next steps for rollouts of StatefulSets that wait for a pod that is not ready."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

REVERT = "sts/db:spec.template.spec.containers[c].image=i"


def db(make, policy="OrderedReady", image="broken"):
    """A StatefulSet with a broken template, whose last pod has this template and does not start."""
    owner = make.workload("StatefulSet", "db", replicas=3)
    owner["metadata"] |= {"uid": "db", "generation": 2}
    owner["spec"]["podManagementPolicy"] = policy
    owner["spec"]["template"]["spec"]["containers"][0]["image"] = image
    pods = []
    for number in range(3):
        pod = make.pod(f"db-{number}", node_name="a", owner="db")
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        is_new = number == 2
        pod["metadata"]["labels"] = {
            "app": "db",
            "controller-revision-hash": "db-new" if is_new else "db-old",
        }
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False" if is_new else "True"}]
        if is_new:
            pod["spec"]["containers"][0]["image"] = image
            waiting = {"waiting": {"reason": "ImagePullBackOff"}}
            pod["status"] |= {
                "phase": "Pending",
                "containerStatuses": [{"name": "c", "state": waiting}],
            }
        pods.append(pod)
    owner["status"] = {
        "currentRevision": "db-old",
        "updateRevision": "db-new",
        "observedGeneration": 2,
    }
    template = {**owner["spec"]["template"], "$patch": "replace"}
    old = {**template, "spec": make.workload()["spec"]["template"]["spec"]}
    history = [revision("db-old", 1, old), revision("db-new", 2, template)]
    return [make.node("a", cpu="16"), owner, *pods, *history]


def revision(name, number, template):
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "db"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "name": "db",
                    "uid": "db",
                    "controller": True,
                }
            ],
        },
        "revision": number,
        "data": {"spec": {"template": template}},
    }


def codes(answer):
    return [step.code for step in answer.next_steps]


def test_a_reverted_template_suggests_the_deletion_of_the_broken_pod(snapshot, make):
    """The StatefulSet waits for the broken pod, which it does not replace ("forced rollback")."""
    answer = what_if(snapshot(*db(make)), ClusterChange(set=(REVERT,)))
    assert answer.effect.is_none
    [step] = answer.next_steps
    assert step.words == "ask again, and delete default/db-2, for which the rollout waits"
    assert step.code == "--delete pod/default/db-2"
    followed = ClusterChange(set=(REVERT,), delete=("pod/default/db-2",))
    ended = what_if(snapshot(*db(make)), followed)
    assert [one.at_end for one in ended.changed.workloads.values()] == [3]
    assert "--delete pod/default/db-2" not in codes(ended)


@pytest.mark.parametrize(
    ("policy", "change"),
    [
        ("Parallel", {"set": (REVERT,)}),
        ("OrderedReady", {"set_resources": ("sts/db=cpu=64",)}),
        ("OrderedReady", {"set": ("sts/db:spec.replicas=4",)}),
    ],
    ids=["a StatefulSet that does not wait", "a pod that fits no node", "no new template"],
)
def test_a_deletion_that_does_not_help_is_not_suggested(snapshot, make, policy, change):
    answer = what_if(snapshot(*db(make, policy)), ClusterChange(**change))
    assert not any("--delete" in code for code in codes(answer))


def test_an_answer_says_how_to_undo_a_rollout_that_stops(snapshot, make):
    """The new pod fits no node. A reverted template alone would not replace it."""
    objects = db(make, image="i")
    objects[4]["status"] = objects[3]["status"]
    for pod in objects[2:5]:
        pod["metadata"]["labels"]["controller-revision-hash"] = "db-new"
    change = ClusterChange(set_resources=("sts/db=cpu=64",))
    note = (
        "To undo the rollout of sts/default/db, revert the template, and then delete "
        "default/db-2: the StatefulSet does not replace this pod before it is ready "
        "(podManagementPolicy)."
    )
    assert note in what_if(snapshot(*objects), change).changed.notes
    objects[1]["spec"]["podManagementPolicy"] = "Parallel"
    assert note not in what_if(snapshot(*objects), change).changed.notes
