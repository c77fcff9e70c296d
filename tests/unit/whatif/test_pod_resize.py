"""What-ifs that resize a pod in place."""

from __future__ import annotations

import pytest

from fairlead.cli.output.markdown import markdown_answer
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

LINUX = {"kubernetes.io/os": "linux"}
RESTART = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def container(name, cpu, memory="1Gi", **fields):
    requests = {"cpu": cpu, "memory": memory}
    return {"name": name, "image": "i", "resources": {"requests": requests}, **fields}


def pod_of(make, *containers, reports=True, **fields):
    """Return the running pod x on node a; its kubelet reports the containers' resources."""
    found = make.pod("x", node_name="a", containers=list(containers), **fields)
    found["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    if reports:
        found["status"]["containerStatuses"] = [
            {
                "name": one["name"],
                "restartCount": 3,
                "allocatedResources": one["resources"]["requests"],
                "resources": one["resources"],
            }
            for one in containers
        ]
    return found


@pytest.fixture
def ask(snapshot, make):
    """Returns the answer about `change` in a cluster of node a, which has 4 CPUs, and `objects`."""

    def ask_what_if(*objects, **change):
        found = snapshot(make.node("a", **LINUX), *objects)
        return what_if(found, ClusterChange(**change))

    return ask_what_if


def sentences(answer):
    return [one.sentence for one in answer.verdict.findings]


def other(make, cpu):
    return make.pod("other", node_name="a", cpu=cpu)


@pytest.mark.parametrize(
    "change",
    [
        {"set_resources": ("pod/x=cpu=3",)},
        {"set_resources": ("pod/x:c=cpu=+200%",)},
        {"set": ("pod/x:spec.containers[c].resources.requests.cpu=3",)},
    ],
)
@pytest.mark.parametrize("reports", [True, False])
def test_a_pod_that_fits_its_node_is_resized(ask, make, change, reports):
    answer = ask(pod_of(make, container("c", "1"), reports=reports), other(make, "1"), **change)
    assert sentences(answer) == ["pod/default/x is resized in place."]
    [update] = answer.difference.updated
    assert (update.before.requests["cpu"], update.pod.requests["cpu"]) == (1000, 3000)
    [shown] = whatif_result(answer)["updated"]
    assert shown == {"pod": "default/x", "node": "a", "instead_of": None}
    assert "| default/x | a | (resized in place) |" in markdown_answer(answer, (), "")
    is_assumed = any("does not report the resources" in note for note in answer.changed.notes)
    assert is_assumed is not reports


def test_a_resize_without_room_is_deferred(ask, make):
    """The scheduler counts the wanted amounts nevertheless, so new pods find less room."""
    pods = pod_of(make, container("c", "1")), other(make, "2")
    answer = ask(*pods, set_resources=("pod/x=cpu=3",))
    assert answer.verdict.first.kind is OutcomeKind.ERROR
    assert answer.verdict.first.sentence == (
        "Pod default/x keeps its former resources, because its resize is deferred: Node didn't "
        "have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    )
    assert not answer.difference.updated
    [node] = answer.changed.nodes
    assert node.requested["cpu"] == 5000


def test_a_deferred_resize_happens_when_another_pod_leaves(ask, make):
    pods = pod_of(make, container("c", "1")), other(make, "2")
    answer = ask(*pods, set_resources=("pod/x=cpu=3",), delete=("pod/other",))
    assert "pod/default/x is resized in place." in sentences(answer)
    assert not answer.changed.errors


def test_a_sidecar_is_resized_only_if_it_fits(ask, make):
    sidecar = container("s", "1", restartPolicy="Always")
    pods = pod_of(make, container("c", "1"), initContainers=[sidecar]), other(make, "1")
    answer = ask(*pods, set_resources=("pod/x:s=cpu=2",))
    assert sentences(answer) == ["pod/default/x is resized in place."]
    answer = ask(*pods, set_resources=("pod/x:s=cpu=3",))
    assert "its resize is deferred" in answer.verdict.first.sentence


def test_only_the_first_of_two_resizes_fits(ask, make):
    """The kubelet decides about one after the other; an undecided pod has its former resources."""
    pods = pod_of(make, container("c", "1")), other(make, "1")
    answer = ask(*pods, set_resources=("pod/x=cpu=3", "pod/other=cpu=3"))
    assert [one.subject for one in answer.changed.errors] == ["Pod default/other"]


@pytest.mark.parametrize("reports", [True, False])
def test_a_deferred_resize_in_two_steps_leaves_its_room_to_other_pods(ask, make, reports):
    pod = pod_of(make, container("c", "1"), container("d", "1"), reports=reports)
    steps = "pod/x:c=cpu=3", "pod/x:d=cpu=500m", "pod/other=cpu=2"
    answer = ask(pod, other(make, "1"), set_resources=steps)
    assert [one.subject for one in answer.changed.errors] == ["Pod default/x"]
    assert "pod/default/other is resized in place." in sentences(answer)
    notes = answer.changed.notes
    assert len(notes) == len(set(notes))


def test_a_pod_that_started_before_the_change_has_the_resources_of_its_spec(ask, make):
    """The kubelets of a simulation do not report these resources when they start a pod."""
    pods = pod_of(make, container("c", "1")), other(make, "2")
    answer = ask(*pods, set_resources=("pod/x=cpu=3",), reschedule="all")
    assert "its resize is deferred" in answer.verdict.first.sentence


def test_an_infeasible_resize_is_decided_again_with_new_amounts(ask, make):
    """While the kubelet has not decided, the former amounts count for the scheduler."""
    pod = pod_of(make, container("c", "1"))
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    pod["status"]["containerStatuses"][0] |= {
        "allocatedResources": {"cpu": "1", "memory": "1Gi"},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    pod["status"]["conditions"].append(infeasible)
    answer = ask(pod, other(make, "2"), set_resources=("pod/x=cpu=3",))
    assert "requested: 3000, used: 2000, capacity: 4000" in answer.verdict.first.sentence
    answer = ask(pod, other(make, "2"), set_resources=("pod/x=cpu=2",))
    assert sentences(answer)[0] == "pod/default/x is resized in place."


def test_a_kubelet_that_does_not_answer_resizes_no_pod(ask, make):
    pod = pod_of(make, container("c", "1"), tolerations=[{"operator": "Exists"}])
    change = {"set_resources": ("pod/x=cpu=3",), "failures": Failures(fail_node=("a",))}
    answer = ask(pod, **change)
    [error] = answer.changed.errors
    assert error.message == (
        "its resize is not carried out: the kubelet of its node does not answer"
    )
    assert not answer.difference.updated
    answer = ask(pod, **change, lasts="30s")
    assert "pod/default/x is resized in place." in sentences(answer)


def test_a_smaller_pod_makes_room_for_a_pending_one(ask, make):
    pods = pod_of(make, container("c", "3")), make.pod("waiting", cpu="2")
    answer = ask(*pods, set_resources=("pod/x=cpu=2",))
    assert sentences(answer)[0] == "pod/default/x is resized in place."
    assert [one.key for one in answer.difference.placed] == ["default/waiting"]


def test_several_resizes_of_one_pod_are_made(ask, make):
    pod = pod_of(make, container("c", "1"), container("d", "1"))
    answer = ask(
        pod,
        set=("pod/x:metadata.labels.a=b",),
        set_resources=("pod/x:c=cpu=2", "pod/x:d=memory=2Gi"),
    )
    [update] = answer.difference.updated
    assert update.pod.requests == {"cpu": 3000, "memory": 3 << 30}


def test_the_answer_says_what_a_resize_leaves_as_it_was(ask, make):
    pod = pod_of(make, container("c", "1", resizePolicy=RESTART), owner="web-1")
    notes = ask(pod, set_resources=("pod/x=memory=2Gi",)).changed.notes
    assert (
        "Pod default/x: the resize does not change ReplicaSet web-1, so a replacement of the pod "
        "has the resources of the pod template."
    ) in notes
    assert (
        "Pod default/x: a kubelet would restart c (resizePolicy). The simulation does not."
    ) in notes
    for unchanged in ("cpu=2", "memory=1024Mi"):
        notes = ask(pod, set_resources=(f"pod/x={unchanged}",)).changed.notes
        assert not any("restart" in note for note in notes)


@pytest.mark.parametrize("policy", [5, [5], [{"restartPolicy": "RestartContainer"}]])
def test_a_malformed_resize_policy_in_a_dump_is_ignored(ask, make, policy):
    pod = pod_of(make, container("c", "1", resizePolicy=policy))
    answer = ask(pod, set_resources=("pod/x=memory=2Gi",))
    assert sentences(answer) == ["pod/default/x is resized in place."]


def test_a_malformed_amount_or_owner_is_an_input_error(ask, make):
    pod = pod_of(make, container("c", "1", resizePolicy=RESTART))
    with pytest.raises(InputError, match=r"--set: Pod default/x: .*limits\[cpu\]: Expected"):
        ask(pod, set=("pod/x:spec.containers[c].resources.limits={cpu: [1]}",))
    pod["metadata"]["ownerReferences"] = [{"controller": True}]
    with pytest.raises(InputError, match=r"Pod default/x: metadata\.ownerReferences\.kind"):
        ask(pod, set_resources=("pod/x=cpu=2",))


@pytest.mark.parametrize(
    ("amounts", "problem"),
    [
        ("cpu=5", "allocatable resources: cpu, requested: 5000, allocatable: 4000"),
        ("nvidia.com/gpu=1", "only cpu and memory resources are mutable"),
        ("limits.cpu=1,cpu=1,limits.memory=1Gi", "Pod QOS Class may not change"),
    ],
)
def test_a_resize_that_the_api_server_refuses_is_an_input_error(ask, make, amounts, problem):
    with pytest.raises(InputError, match=f"^--set-resources: Pod default/x: .*{problem}"):
        ask(pod_of(make, container("c", "1")), set_resources=(f"pod/x={amounts}",))


@pytest.mark.parametrize("field", ["spec={}", "spec.containers=[]"])
def test_other_fields_of_a_pod_cannot_be_set(ask, make, field):
    with pytest.raises(InputError, match=r"x: spec\.containers: Required value"):
        ask(pod_of(make, container("c", "1")), set=(f"pod/x:{field}",))


def test_a_completed_pod_cannot_be_resized(ask, make):
    pod = pod_of(make, container("c", "1"))
    pod["status"]["phase"] = "Succeeded"
    with pytest.raises(InputError, match="Pod default/x: its phase is Succeeded, so it cannot"):
        ask(pod, set_resources=("pod/x=cpu=2",))
