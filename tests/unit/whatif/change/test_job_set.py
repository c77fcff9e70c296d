"""An applied JobSet creates the Jobs that the JobSet controller would create."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.job_set import jobs_of, resumed_jobs
from fairlead.whatif.change.pod_priority import PodPriorities
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.manifest_reader import manifests

PRIORITY = "jobset.sigs.k8s.io/priority"
LONG = "w" * 60
TOO_LONG = f"the name train-{LONG}-9 of its Job is invalid: must be no more than 63 characters"
TOO_LONG_POD = (
    f"the name train-{LONG[:48]}-0-10-abcde of its pod is invalid: must be no more than 63 "
    "characters"
)
INDEXES = "must have completions and the completionMode Indexed"


def replicated(name, pods, **fields):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {
        "parallelism": pods,
        "completions": pods,
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
    }
    return {"name": name, "template": {"spec": spec}, **fields}


NOT_INDEXED = replicated("a", 1)
NOT_INDEXED["template"]["spec"]["completionMode"] = "NonIndexed"


def job_set(*jobs, **spec):
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def parts(value):
    (one,) = manifests([Document("set.yaml", value)])
    return [part.value for part in jobs_of(one, one.ref.name)]


def jobs_with(value, classes=()):
    """Return the parts of `value` in a cluster with these PriorityClasses."""
    (one,) = manifests([Document("set.yaml", value)])
    return [part.value for part in jobs_of(one, one.ref.name, PodPriorities(classes))]


def jobs(value):
    return [one for one in parts(value) if one["kind"] == "Job"]


def test_the_jobs_have_the_names_labels_and_defaults_of_the_controller():
    driver, first, second = jobs(job_set(replicated("driver", 1), replicated("w", 4, replicas=2)))
    names = [one["metadata"]["name"] for one in (driver, first, second)]
    assert names == ["train-driver-0", "train-w-0", "train-w-1"]
    spec = second["spec"]
    assert (spec["parallelism"], spec["completionMode"]) == (4, "Indexed")
    assert spec["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert spec["template"]["metadata"]["labels"] == {
        "a": "b",
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": "w",
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
        "jobset.sigs.k8s.io/global-replicas": "3",
        "jobset.sigs.k8s.io/job-index": "1",
        # printf default/train-w-1 | sha1sum
        "jobset.sigs.k8s.io/job-key": "31b7ffce1b3e7eb2e8e99d1c4d0300499023c5e3",
        "jobset.sigs.k8s.io/job-global-index": "2",
        "jobset.sigs.k8s.io/group-name": "default",
        "jobset.sigs.k8s.io/group-replicas": "3",
        "jobset.sigs.k8s.io/job-group-index": "2",
    }


def test_the_labels_name_the_coordinator_and_the_group():
    first, second = replicated("driver", 1), replicated("w", 4, replicas=2, groupName="workers")
    coordinator = {"replicatedJob": "driver"}
    _, worker, _ = jobs(job_set(first, second, coordinator=coordinator))
    found = worker["spec"]["template"]["metadata"]
    own = {
        "jobset.sigs.k8s.io/coordinator": "train-driver-0-0.train",
        "jobset.sigs.k8s.io/group-name": "workers",
        "jobset.sigs.k8s.io/group-replicas": "2",
        "jobset.sigs.k8s.io/job-group-index": "0",
    }
    assert own.items() <= found["labels"].items()
    assert own.items() <= found["annotations"].items()


def test_a_job_set_has_a_headless_service_unless_its_hostnames_are_off():
    network = {"subdomain": "net"}
    service, _ = parts(job_set(replicated("w", 1), network=network))
    assert (service["kind"], service["metadata"]["name"]) == ("Service", "net")
    selector = {"jobset.sigs.k8s.io/jobset-name": "train"}
    assert service["spec"] == {"clusterIP": "None", "selector": selector}
    (job,) = parts(job_set(replicated("w", 1), network={"enableDNSHostnames": False}))
    assert job["kind"] == "Job"


def test_the_service_spreads_the_pods_over_zones(snapshot, make):
    """Zone b has a small node. Without the Service, it gets no pods, because zone a has more room.

    By default, the scheduler spreads the pods of a Service over zones.
    """
    zone = "topology.kubernetes.io/zone"
    nodes = [make.node(f"a{n}", cpu="64", **{zone: "a"}) for n in range(2)]
    nodes.append(make.node("b0", cpu="8", **{zone: "b"}))
    zones = []
    for on in (True, False):
        applied = job_set(replicated("w", 6), network={"enableDNSHostnames": on})
        answer = what_if(snapshot(*nodes), ClusterChange(apply=(applied,)))
        zones.append({one.node[0] for one in answer.changed.placed})
    assert zones == [{"a", "b"}, {"a"}]


def test_an_existing_service_is_used(snapshot, make):
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": "None"}}
    service["metadata"] = {"name": "train", "namespace": "default"}
    applied = job_set(replicated("w", 1))
    for dump, files in ((snapshot(make.node("a"), service), (applied,)),
                        (snapshot(make.node("a")), (applied, service))):  # fmt: skip
        answer = what_if(dump, ClusterChange(apply=files))
        assert len(list(answer.changed.placed)) == 1


def test_job_sets_of_one_file_may_share_a_service(snapshot, make):
    first = job_set(replicated("w", 1), network={"subdomain": "net"})
    second = {**first, "metadata": {"name": "other", "namespace": "default"}}
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=(first, second)))
    assert len(list(answer.changed.placed)) == 2


def test_the_template_takes_precedence_over_the_defaults():
    one = replicated("w", 1)
    one["template"]["spec"] |= {"completionMode": "NonIndexed", "suspend": False}
    one["template"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    (job,) = jobs(job_set(one, suspend=True))
    assert job["spec"]["completionMode"] == "NonIndexed"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert job["spec"]["suspend"] is True


def test_a_job_set_that_is_not_suspended_resumes_its_jobs():
    one = replicated("w", 1)
    one["template"]["spec"]["suspend"] = True
    (job,) = jobs(job_set(one))
    assert job["spec"]["suspend"] is False


def test_other_objects_have_no_jobs():
    assert jobs(job_set(replicated("w", 1)) | {"apiVersion": "example.com/v1"}) == []


@pytest.mark.parametrize(
    ("controller", "count"),
    [("jobset.sigs.k8s.io/jobset-controller", 1), ("kueue.x-k8s.io/multikueue", 0)],
)
def test_a_job_set_of_another_controller_has_no_jobs(controller, count):
    assert len(jobs(job_set(replicated("w", 1), managedBy=controller))) == count


def test_too_many_jobs_are_an_error():
    with pytest.raises(InputError, match=r"spec.replicatedJobs: 100001 Jobs are more than 100000"):
        jobs(job_set(replicated("driver", 1), replicated("w", 1, replicas=100_000)))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            job_set(replicated("w", 1, replicas="many")),
            "spec.replicatedJobs[0].replicas: expected int, got str",
        ),
        (job_set(), "spec.replicatedJobs: expected array of length >= 1"),
        (job_set() | {"spec": {"replicatedjobs": []}}, "spec.replicatedJobs: is required"),
        (
            job_set(replicated("w", 1), replicated("w", 1)),
            "spec.replicatedJobs[1].name: 'w' appears twice",
        ),
        (
            job_set(replicated(LONG, 1, replicas=10)),
            f"spec.replicatedJobs[0].name: {TOO_LONG}",
        ),
        (
            job_set(replicated("a", 1), replicated("b", 1, dependsOn=[{"name": "c"}])),
            "spec.replicatedJobs[1].dependsOn[0].name: 'c' is not an earlier replicated job",
        ),
        (
            job_set(replicated("a", 1), coordinator={"replicatedJob": "b"}),
            "spec.coordinator.replicatedJob: there is no replicated job 'b'",
        ),
        (
            job_set(replicated("a", 1), coordinator={"replicatedJob": "a", "jobIndex": 1}),
            "spec.coordinator.jobIndex: 1 is not below the 1 replicas of a",
        ),
        (
            job_set(replicated("a", 2), coordinator={"replicatedJob": "a", "podIndex": 2}),
            "spec.coordinator.podIndex: 2 is not below the 2 completions of a",
        ),
        (
            job_set(NOT_INDEXED, coordinator={"replicatedJob": "a"}),
            f"spec.coordinator.replicatedJob: a {INDEXES}",
        ),
        (
            job_set(replicated("w" * 48, 11)),
            f"spec.replicatedJobs[0].name: {TOO_LONG_POD}",
        ),
        (
            job_set(replicated("a", 1, groupName="g" * 64)),
            "spec.replicatedJobs[0].groupName: must be no more than 63 characters",
        ),
    ],
)
def test_an_invalid_job_set_is_an_error(value, problem):
    with pytest.raises(InputError) as caught:
        jobs(value)
    assert str(caught.value) == f"set.yaml: JobSet default/train: {problem}"


def test_null_in_a_list_of_an_applied_job_set_is_an_error(snapshot, make):
    applied = job_set(replicated("w", 1), None)
    problem = "JobSet default/train: spec.replicatedJobs[1]: expected a value, got null"
    with pytest.raises(InputError, match=re.escape(problem)):
        what_if(snapshot(make.node("a")), ClusterChange(apply=(applied,)))


def test_an_error_in_a_job_names_the_field_of_the_job_set(snapshot, make):
    wrong = replicated("w", 1)
    wrong["template"]["spec"]["template"]["spec"] = {"containers": []}
    problem = (
        "JobSet default/train: spec.replicatedJobs[0].template: Job default/train-w-0: "
        "spec.template.spec.containers: Required value"
    )
    with pytest.raises(InputError, match=re.escape(problem)):
        what_if(snapshot(make.node("a")), ClusterChange(apply=(job_set(wrong),)))


@pytest.mark.parametrize(("suspend", "pods"), [(False, 3), (True, 0)])
def test_the_pods_of_an_applied_job_set_are_simulated(snapshot, make, suspend, pods):
    applied = job_set(replicated("driver", 1), replicated("w", 4), suspend=suspend)
    answer = what_if(snapshot(make.node("a", cpu="3")), ClusterChange(apply=(applied,)))
    assert len(list(answer.changed.placed)) == pods
    assert len(answer.difference.pending) == (0 if suspend else 2)
    assert answer.changed.notes[0].startswith("For JobSet default/train, all Jobs are created at")
    assert not [one for one in answer.changed.notes if one.startswith("No pods are created")]


def test_a_job_with_the_name_of_a_job_of_the_job_set_is_an_error(snapshot, make):
    (job,) = jobs(job_set(replicated("w", 1)))
    applied = (job, job_set(replicated("w", 1)))
    with pytest.raises(InputError, match="Job default/train-w-0: exists already"):
        what_if(snapshot(make.node("a")), ClusterChange(apply=applied))


EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"


def annotated(value, **annotations):
    value["metadata"] = {**value["metadata"], "annotations": annotations}
    return value


def test_an_exclusive_topology_gives_each_job_a_domain_of_its_own(snapshot, make):
    """There are two racks with room for both Jobs, but each Job gets its own rack."""
    nodes = [make.node(f"{rack}{n}", cpu="8", rack=rack) for rack in "ab" for n in range(2)]
    applied = annotated(job_set(replicated("w", 3, replicas=3)), **{EXCLUSIVE: "rack"})
    answer = what_if(snapshot(*nodes), ClusterChange(apply=(applied,)))
    racks = {}
    for one in answer.changed.placed:
        racks.setdefault(one.labels["jobset.sigs.k8s.io/job-index"], set()).add(one.node[0])
    assert sorted(map(sorted, racks.values())) == [["a"], ["b"]]
    assert len(answer.difference.pending) == 3


def test_the_affinities_of_an_exclusive_topology_are_added_to_those_of_the_template():
    one = replicated("w", 1)
    own = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {}, "podAffinity": {required: [own]}}
    one["template"]["spec"]["template"]["spec"]["affinity"] = affinity
    one["template"]["metadata"] = {"annotations": {EXCLUSIVE: "rack"}}
    (job,) = jobs(annotated(job_set(one), **{EXCLUSIVE: "zone"}))
    pods = job["spec"]["template"]
    assert pods["metadata"]["annotations"][EXCLUSIVE] == "rack"
    found = pods["spec"]["affinity"]
    key = pods["metadata"]["labels"]["jobset.sigs.k8s.io/job-key"]
    same = {"key": "jobset.sigs.k8s.io/job-key", "operator": "In", "values": [key]}
    assert found["nodeAffinity"] == {}
    assert found["podAffinity"][required] == [
        own,
        {
            "labelSelector": {"matchExpressions": [same]},
            "topologyKey": "rack",
            "namespaceSelector": {},
        },
    ]
    [term] = found["podAntiAffinity"][required]
    assert term["labelSelector"]["matchExpressions"] == [
        {"key": "jobset.sigs.k8s.io/job-key", "operator": "Exists"},
        same | {"operator": "NotIn"},
    ]


def test_labelled_nodes_of_an_exclusive_topology_are_selected():
    one = replicated("w", 1)
    spec = one["template"]["spec"]["template"]["spec"]
    spec |= {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}
    (job,) = jobs(annotated(job_set(one), **{EXCLUSIVE: "pool", BY_SELECTOR: "true"}))
    pods = job["spec"]["template"]["spec"]
    selector = {"a": "b", "alpha.jobset.sigs.k8s.io/namespaced-job": "default_train-w-0"}
    assert pods["nodeSelector"] == selector
    no_schedule = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "operator": "Exists"}
    assert pods["tolerations"] == [{"operator": "Exists"}, no_schedule | {"effect": "NoSchedule"}]
    assert "affinity" not in pods


@pytest.mark.parametrize(
    ("name", "label"), [("high", "9"), ("low", "n5"), (None, "3"), ("absent", None)]
)
def test_pods_have_the_label_of_their_priority(name, label):
    classes = [
        {"metadata": {"name": "high"}, "value": 9},
        {"metadata": {"name": "low"}, "value": -5},
        {"metadata": {"name": "standard"}, "value": 3, "globalDefault": True},
    ]
    one = replicated("w", 1)
    if name:
        one["template"]["spec"]["template"]["spec"]["priorityClassName"] = name
    parts = jobs_with(annotated(job_set(one), **{EXCLUSIVE: "rack"}), classes)
    [job] = [part for part in parts if part["kind"] == "Job"]
    pods = job["spec"]["template"]
    assert pods["metadata"]["labels"].get(PRIORITY) == label
    assert PRIORITY not in job["metadata"]["labels"]
    [term] = pods["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    same = {"key": PRIORITY, "operator": "In", "values": [label]}
    assert (same in term["labelSelector"]["matchExpressions"]) is (label is not None)


@pytest.mark.parametrize(("value", "preempts"), [(9, True), (0, False)])
def test_a_job_set_of_a_higher_priority_preempts_another_in_its_exclusive_domain(
    snapshot, make, value, preempts
):
    """There is one rack, which a JobSet of priority 0 uses."""
    nodes = [make.node(f"a{n}", cpu="1", rack="a") for n in range(2)]
    first = annotated(job_set(replicated("w", 2)), **{EXCLUSIVE: "rack"})
    [old] = [one for one in jobs_with(first) if one["kind"] == "Job"]
    pods = [make.pod(f"old-{n}", node_name=f"a{n}", priority=0) for n in range(2)]
    for pod in pods:
        pod["metadata"] |= old["spec"]["template"]["metadata"]
        pod["spec"]["affinity"] = old["spec"]["template"]["spec"]["affinity"]
    second = annotated(job_set(replicated("w", 2)), **{EXCLUSIVE: "rack"})
    second["metadata"]["name"] = "urgent"
    spec = second["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    spec["priorityClassName"] = "urgent"
    urgent = make.priority_class("urgent", value)
    answer = what_if(snapshot(*nodes, *pods, urgent), ClusterChange(apply=(second,)))
    assert len(answer.difference.pending) == (0 if preempts else 2)


@pytest.mark.parametrize("option", ["set", "apply"])
@pytest.mark.parametrize("suspended", [True, False])
def test_the_jobs_of_a_job_set_are_suspended_and_resumed_with_it(snapshot, make, option, suspended):
    """JobSet's controller does this, for example after Kueue has admitted the JobSet."""
    value = job_set(replicated("w", 2, replicas=2), suspend=suspended)
    value["metadata"]["uid"] = "s"
    owner = {"apiVersion": value["apiVersion"], "kind": "JobSet", "name": "train", "uid": "s"}
    owned = jobs(value)
    for number, one in enumerate(owned):
        one["metadata"] |= {"uid": f"j{number}", "ownerReferences": [owner | {"controller": True}]}
    text = str(not suspended).lower()
    applied = job_set(replicated("w", 2, replicas=2), suspend=not suspended)
    change = (
        ClusterChange(set=(f"jobset/train:spec.suspend={text}",))
        if option == "set"
        else ClusterChange(apply=(applied,))
    )
    answer = what_if(snapshot(make.node("a"), value, *owned), change)
    assert len(answer.changed.placed) == (4 if suspended else 0)
    notes = " ".join(answer.changed.notes)
    assert "No pods are created" not in notes
    assert "may undo" not in notes
    assert "only that of spec.suspend" not in notes


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_a_finished_job_of_a_resumed_job_set_stays_as_it_is(snapshot, make, end):
    """JobSet's controller suspends and resumes only active Jobs."""
    value = job_set(replicated("w", 1, replicas=2), suspend=True)
    value["metadata"]["uid"] = "s"
    owner = {"apiVersion": value["apiVersion"], "kind": "JobSet", "name": "train", "uid": "s"}
    owned = jobs(value)
    for number, one in enumerate(owned):
        one["metadata"] |= {"uid": f"j{number}", "ownerReferences": [owner | {"controller": True}]}
    owned[0]["status"] = {"conditions": [{"type": end, "status": "True"}]}
    inventory = snapshot(make.node("a"), value, *owned).inventory()
    before = inventory.find("", "jobset/train")
    spec = {**value["spec"], "suspend": False}
    after = replace(before, content={**before.value, "spec": spec})
    assert [one.ref.name for one in resumed_jobs(before, after, inventory)] == ["train-w-1"]


@pytest.mark.parametrize("option", ["set", "apply"])
def test_other_changes_of_a_resumed_job_set_are_said_to_have_no_effect(snapshot, make, option):
    value = job_set(replicated("w", 2), suspend=True)
    value["metadata"]["uid"] = "s"
    owner = {"apiVersion": value["apiVersion"], "kind": "JobSet", "name": "train", "uid": "s"}
    [job] = jobs(value)
    job["metadata"] |= {"uid": "j", "ownerReferences": [owner | {"controller": True}]}
    path = "replicatedJobs[0].template.spec.template.spec.nodeSelector"
    edits = ("suspend=false", path + '={"pool":"a"}')
    resumed = job_set(replicated("w", 2), suspend=False)
    pod = resumed["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"pool": "a"}
    change = (
        ClusterChange(set=tuple(f"jobset/train:spec.{edit}" for edit in edits))
        if option == "set"
        else ClusterChange(apply=(resumed,))
    )
    answer = what_if(snapshot(make.node("a"), value, job), change)
    assert len(answer.changed.placed) == 2
    assert (
        "Of the changes of JobSet default/train, only that of spec.suspend has an effect; JobSet's "
        "controller is not simulated otherwise."
    ) in answer.changed.notes


def test_jobs_without_indexes_are_refused_in_an_exclusive_topology():
    """JobSet's webhook refuses their pods for ever, unless nodes are selected by a label."""
    one = replicated("w", 1)
    one["template"]["spec"]["completionMode"] = "NonIndexed"
    jobs(annotated(job_set(one), **{EXCLUSIVE: "pool", BY_SELECTOR: "true"}))
    problem = (
        r"replicatedJobs\[0\]\.template\.spec\.completionMode: with an exclusive topology, Job"
    )
    with pytest.raises(InputError, match=problem):
        jobs(annotated(job_set(one), **{EXCLUSIVE: "pool"}))


@pytest.mark.parametrize(
    ("network", "subdomain"),
    [(None, "train"), ({"subdomain": "net"}, "net"), ({"enableDNSHostnames": False}, None)],
)
def test_the_pods_have_the_subdomain_of_the_service(network, subdomain):
    value = job_set(replicated("w", 1), **({} if network is None else {"network": network}))
    [job] = jobs(value)
    assert job["spec"]["template"]["spec"].get("subdomain") == subdomain


@pytest.mark.parametrize("affinity", ["text", {"podAffinity": "text"}])
def test_an_affinity_of_a_wrong_type_is_an_error_despite_an_exclusive_topology(
    snapshot, make, affinity
):
    one = replicated("w", 1)
    one["template"]["spec"]["template"]["spec"]["affinity"] = affinity
    applied = annotated(job_set(one), **{EXCLUSIVE: "rack"})
    with pytest.raises(InputError, match=r"spec\.template\.spec\.affinity.*got `str`"):
        what_if(snapshot(make.node("a")), ClusterChange(apply=(applied,)))


def test_defaults_are_no_change_of_an_applied_job_set(snapshot, make):
    """The API server and JobSet's webhook have added defaults to the JobSet in the dump."""
    existing = job_set(
        replicated("w", 1), network={"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    )
    spec = existing["spec"]["replicatedJobs"][0]["template"]["spec"]
    spec |= {"completionMode": "Indexed", "backoffLimit": 6}
    pod = spec["template"]["spec"]
    pod |= {"restartPolicy": "OnFailure", "dnsPolicy": "ClusterFirst"}
    pod["containers"][0]["resources"] = {"requests": {"cpu": "1000m"}}
    applied = ClusterChange(apply=(job_set(replicated("w", 1)),))
    assert not what_if(snapshot(make.node("a"), existing), applied).difference.pending


@pytest.mark.parametrize(
    ("path", "value"), [("nodeSelector", "{pool: b}"), ("tolerations", "[{operator: Exists}]")]
)
def test_some_fields_of_the_pods_of_a_suspended_job_set_may_change(snapshot, make, path, value):
    existing = job_set(replicated("w", 1), suspend=True)
    field = f"spec.replicatedJobs[w].template.spec.template.spec.{path}"
    what_if(
        snapshot(make.node("a"), existing), ClusterChange(set=(f"jobset/train:{field}={value}",))
    )
    existing["spec"]["suspend"] = False
    with pytest.raises(InputError, match="replicatedJobs: field is immutable"):
        what_if(
            snapshot(make.node("a"), existing),
            ClusterChange(set=(f"jobset/train:{field}={value}",)),
        )
