"""Scenarios: how files become experiments, and which files are refused."""

from __future__ import annotations

import json

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.kubelet.config import StopAfter
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
from fairlead.whatif.snapshot.snapshot import DEFAULT_START

CLUSTER = "cluster: {generated: {nodes: 3, labels: {pool: x}}}\n"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"


TEMPLATE = "{spec: {containers: [{name: c, image: i}]}}"
VOLCANO_JOB = (
    "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: v, namespace: default}, "
    f"spec: {{tasks: [{{name: w, replicas: 2, template: {TEMPLATE}}}]}}}}"
)
JOB_SET = (
    "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s, namespace: default}, "
    "spec: {replicatedJobs: [{name: r, template: {spec: {parallelism: 2, completions: 2, template: "
    f"{TEMPLATE}}}}}}}]}}}}"
)


@pytest.fixture
def experiment(write):
    def read_experiment(text, seed=None):
        path = write("s.yaml", text)
        return experiment_of(path, read_scenario(path), seed)

    return read_experiment


def names(experiment):
    return [
        command.manifest["metadata"]["name"]
        for step in experiment.steps
        for command in step.commands
        if isinstance(command, CreateObject)
    ]


def test_a_minimal_scenario_runs_until_it_settles(experiment):
    found = experiment(CLUSTER)
    assert found.title == "s"
    assert len(found.initial) == 3
    assert found.duration is None
    assert found.start == DEFAULT_START


def test_time_starts_at_the_newest_timestamp_of_the_files(experiment, write, make):
    node = make.node()
    node["metadata"]["creationTimestamp"] = "2026-05-05T00:00:00Z"
    write("nodes.json", node)
    found = experiment("cluster: {files: [nodes.json]}")
    assert found.start == parse_timestamp("2026-05-05T00:00:00Z")


def test_a_pod_that_its_kubelet_cannot_stop_stays(experiment, write, make):
    """As in a what-if (`StuckPods`)."""
    node, pod = make.node("a"), make.pod("p", node_name="a")
    node["metadata"]["creationTimestamp"] = "2026-05-05T00:00:00Z"
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    pod["metadata"]["deletionTimestamp"] = "2026-05-04T23:00:00Z"
    write("dump.json", {"apiVersion": "v1", "kind": "List", "items": [node, pod]})
    outcome = run_experiment(experiment("cluster: {files: [dump.json]}")).outcome
    assert outcome.pods["default/p"].is_terminating
    assert any(note.startswith("1 pod has not stopped long after") for note in outcome.notes)


def test_settings_and_duration_are_read(experiment):
    found = experiment(
        CLUSTER + "duration: 1h\nseed: 7\n"
        "settings: {kubelet: {start-delay: 3s, ready-delay: 1m, stop-after: 2,"
        " removal-delay: 100ms, flags: {eviction-max-pod-grace-period: 9}}}"
    )
    assert found.duration == seconds(3600)
    assert found.seed == 7
    assert found.kubelet.start_delay == seconds(3)
    assert found.kubelet.stop == StopAfter(seconds(2))
    assert found.kubelet.removal_delay == seconds(0.1)
    assert found.kubelet.ready_delay == seconds(60)
    assert found.kubelet.eviction.max_pod_grace_s == 9


def test_events_happen_in_order_of_their_instants(experiment):
    found = experiment(
        CLUSTER
        + f"events:\n- {{at: 2m, delete: pod/p}}\n- {{at: 1m, create: {POD}}}\n"
        + "- {at: 3m, cordon: pool=x}\n- {at: 3m, uncordon: node-1}\n- {at: 4m, drain: node-0}\n"
        + "- {at: 5m, stop-node: node-0}\n- {at: 6m, return-node: node-0}"
    )
    assert [step.after // seconds(60) for step in found.steps] == [1, 2, 3, 3, 4, 5, 6]
    kinds = [type(step.commands[0]) for step in found.steps]
    assert kinds[:2] == [CreateObject, DeleteObject]
    assert len(found.steps[2].commands) == 3
    assert found.steps[5].commands[0].patch == {
        "metadata": {"annotations": {"fairlead.dev/kubelet": "stopped"}}
    }


@pytest.mark.parametrize(
    ("events", "behaviours"),
    [
        pytest.param(
            "{at: 1m, fail-node: node-0, for: 5m}, {at: 2m, fail-node: node-0, for: 10m}",
            [(1, "stopped"), (2, "stopped"), (12, None)],
            id="the longer of two failures determines the return",
        ),
        pytest.param(
            "{at: 1m, fail-node: node-0, for: 20m}, {at: 2m, flap: node-0@60s/60s, for: 4m}",
            [(1, "stopped"), (2, "flap 60s/60s"), (6, "stopped"), (21, None)],
            id="a failure continues after a shorter one",
        ),
        pytest.param(
            "{at: 1m, fail-node: node-0, for: 5m}, {at: 3m, stop-node: node-0}",
            [(1, "stopped"), (3, "stopped")],
            id="a stopped node stays down until return-node",
        ),
        pytest.param(
            "{at: 1m, fail-node: node-0, for: 5m}, {at: 6m, fail-node: node-0, for: 1m}",
            [(1, "stopped"), (6, "stopped"), (7, None)],
            id="a failure begins when another ends",
        ),
        pytest.param(
            "{at: 1m, stop-node: node-0}, {at: 2m, return-node: node-0}, "
            "{at: 3m, fail-node: node-0, for: 1m}",
            [(1, "stopped"), (2, "ready"), (3, "stopped"), (4, "ready")],
            id="a node that returned is not stopped again",
        ),
    ],
)
def test_a_node_behaves_as_in_its_last_failure_that_is_under_way(experiment, events, behaviours):
    steps = experiment(CLUSTER + f"events: [{events}]").steps
    assert [
        (step.after // seconds(60), one.patch["metadata"]["annotations"]["fairlead.dev/kubelet"])
        for step in steps
        for one in step.commands
    ] == behaviours


def test_an_object_is_created_again_after_its_deletion(experiment):
    """A workload with another selector has to be deleted and created again."""
    create = f"{{at: 2m, create: {POD}}}"
    found = experiment(CLUSTER + f"objects: [{POD}]\nevents: [{{at: 1m, delete: pod/p}}, {create}]")
    assert [type(step.commands[0]) for step in found.steps] == [DeleteObject, CreateObject]
    with pytest.raises(InputError, match="already exists"):
        experiment(CLUSTER + f"objects: [{POD}]\nevents: [{{at: 3m, delete: pod/p}}, {create}]")


def test_later_events_change_a_created_object_whose_file_has_a_uid(experiment, write, make):
    """`kubectl get -o yaml` prints a uid. The API server gives the new object another one."""
    new = make.workload(name="new", replicas=1)
    new["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111"
    write("new.json", new)
    events = "events: [{at: 1m, create: new.json}, {at: 2m, scale: deploy/new=3}]"
    found = run_experiment(experiment(CLUSTER + events)).outcome
    assert [one.workload.name for one in found.pods.values()] == ["new"] * 3


def test_an_error_in_a_created_file_names_the_event(experiment):
    with pytest.raises(InputError, match=r"events\[0\].create: .*none.yaml: cannot be read"):
        experiment(CLUSTER + "events: [{at: 1m, create: none.yaml}]")


def test_an_error_names_the_second_event_that_creates_an_object_of_a_file(experiment, tmp_path):
    (tmp_path / "p.yaml").write_text(POD)
    create = "{at: 1m, create: p.yaml, count: 2}"
    with pytest.raises(InputError, match=r"events\[1\].create: Pod default/p-0 already exists"):
        experiment(CLUSTER + f"events: [{create}, {create}]")


@pytest.mark.parametrize(
    ("owner", "created", "note"),
    [
        (VOLCANO_JOB, ["v-0", "v-0", "v-0-w", "v-1", "v-1", "v-1-w"], "Volcano's controller is"),
        # The Service has the name of the JobSet.
        (JOB_SET, ["s-0", "s-0", "s-0-r-0", "s-1", "s-1", "s-1-r-0"], "For JobSet default/s, all"),
    ],
)
def test_the_jobs_of_each_copy_of_a_created_custom_resource_are_created(
    experiment, owner, created, note
):
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}}"
    text = CLUSTER + f"objects: [{queue}]\nevents: [{{at: 1m, create: {owner}, count: 2}}]"
    found = experiment(text)
    assert names(found) == created
    outcome = run_experiment(found).outcome
    assert len(outcome.pods) == 4
    assert any(one.startswith(note) for one in outcome.notes)
    assert not [one for one in outcome.notes if one.startswith("No pods are created")]


def test_a_service_of_the_dump_outlives_a_created_job_set(experiment):
    service = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {}}"
    events = f"[{{at: 1m, create: {JOB_SET}}}, {{at: 5m, delete: jobset/s}}]"
    found = experiment(CLUSTER + f"objects: [{service}]\nevents: {events}")
    written = [one.target.kind for step in found.steps for one in step.commands]
    assert "Service" not in written


def test_job_sets_of_one_event_may_share_a_service(experiment):
    shared = JOB_SET.replace("{replicatedJobs", "{network: {subdomain: net}, replicatedJobs")
    other = shared.replace("name: s,", "name: t,")
    found = experiment(CLUSTER + f"events: [{{at: 1m, create: [{shared}, {other}]}}]")
    assert names(found) == ["s", "net", "s-r-0", "t", "t-r-0"]


@pytest.mark.parametrize(
    ("owner", "name"), [(VOLCANO_JOB, "jobs.batch.volcano.sh/v"), (JOB_SET, "jobset/s")]
)
def test_the_jobs_of_a_deleted_custom_resource_are_deleted(experiment, owner, name):
    """They can then be created again."""
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}}"
    create, delete = f"{{at: 1m, create: {owner}}}", f"{{at: 5m, delete: {name}}}"
    again = create.replace("1m", "9m")
    for events, pods in (([create], 2), ([create, delete], 0), ([create, delete, again], 2)):
        found = experiment(CLUSTER + f"objects: [{queue}]\nevents: [{', '.join(events)}]")
        assert len(run_experiment(found).outcome.pods) == pods


def test_a_job_of_a_created_job_set_must_not_exist(experiment):
    job = (
        "{apiVersion: batch/v1, kind: Job, metadata: {name: s-r-0}, spec: {template: {spec: "
        "{restartPolicy: Never, containers: [{name: c, image: i}]}}}}"
    )
    with pytest.raises(InputError, match=r"Job default/s-r-0 already exists"):
        experiment(CLUSTER + f"objects: [{job}]\nevents: [{{at: 1m, create: {JOB_SET}}}]")


def test_every_needs_count(experiment):
    """Without a count, there is one copy, and the interval has no effect."""
    with pytest.raises(InputError, match=r"events\[0\].every: needs count"):
        experiment(CLUSTER + f"events: [{{at: 1m, create: {POD}, every: 30s}}]")


def test_objects_are_deleted_by_label(experiment):
    """An upgrade deletes its old pool when the pool is empty."""
    (step,) = experiment(CLUSTER + "events: [{at: 1h, delete: node/pool=x}]").steps
    assert [one.target.kind for one in step.commands] == ["Node"] * 3


def test_a_patch_reaches_spec_and_status(experiment):
    found = experiment(
        CLUSTER + "events: [{at: 1s, patch: {target: node/node-1, "
        "merge: {metadata: {labels: {a: b}}, status: {allocatable: {cpu: 1}}}}}]"
    )
    patch, status = found.steps[0].commands
    assert patch == PatchObject(patch.target, {"metadata": {"labels": {"a": "b"}}})
    assert status == PatchStatus(patch.target, {"allocatable": {"cpu": 1}})


def test_an_unknown_annotation_in_a_patch_is_named(experiment):
    """A misspelled annotation has no effect, so the node would silently not fail."""
    found = experiment(
        CLUSTER + "events: [{at: 1s, patch: {target: node/node-1, "
        "merge: {metadata: {annotations: {fairlead.dev/kublet: stopped}}}}}]"
    )
    (note,) = found.notes
    assert note == (
        "The annotation fairlead.dev/kublet of Node node-1 is unknown and has no effect; "
        "did you mean fairlead.dev/kubelet?"
    )


def test_copies_are_numbered_and_spread(experiment):
    every = experiment(CLUSTER + f"events: [{{at: 1m, create: {POD}, count: 3, every: 10s}}]")
    assert names(every) == ["p-0", "p-1", "p-2"]
    assert [step.after // seconds(1) for step in every.steps] == [60, 70, 80]
    at_once = experiment(CLUSTER + f"events: [{{at: 1m, create: {POD}, count: 11}}]")
    assert names(at_once)[:2] == ["p-00", "p-01"]
    assert {step.after for step in at_once.steps} == {seconds(60)}


def test_the_seed_determines_the_random_times_within_a_span(experiment):
    text = CLUSTER + f"events: [{{at: 1m, create: {POD}, count: 50, over: 10m}}]"

    def instants(seed):
        return [step.after for step in experiment(text, seed).steps]

    assert instants(1) == instants(1)
    assert instants(1) != instants(2)
    assert instants(1) == sorted(instants(1))
    assert all(seconds(60) <= instant <= seconds(660) for instant in instants(1))
    assert len(set(instants(1))) == 50


def test_objects_may_come_from_a_file(experiment, write, make):
    write("pods.json", make.pod("a"), make.pod("b"))
    found = experiment(CLUSTER + "events: [{at: 1m, create: pods.json, count: 2}]")
    assert names(found) == ["a-0", "b-0", "a-1", "b-1"]


def test_the_pods_of_a_trace_become_steps(experiment, write):
    write("n.csv", "nodes,cpu_milli,memory_mib,gpu,model\n2,1000,1024,0,\n")
    write("p.csv", "pods,qos,cpu_milli,memory_mib,num_gpu,gpu_milli\n3,LS,100,1,0,0\n")
    found = experiment("cluster: {trace: {nodes: n.csv, pods: p.csv, arrivals: 30s}}")
    assert [step.after // seconds(1) for step in found.steps] == [0, 10, 20]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[]", "s.yaml: expected object, got array"),
        ("seed: 1", "s.yaml: line 1: cluster: is required"),
        ("cluster: {}", "s.yaml: cluster: needs files, a trace, an audit log or"),
        (CLUSTER + "hue: red", "s.yaml: line 2: hue: unknown field; known: cluster, duration"),
        (CLUSTER + "duration: soon", "s.yaml: duration: 'soon' is not a duration"),
        (CLUSTER + "seed: x", "s.yaml: line 2: seed: expected int, got str"),
        (CLUSTER + "settings: {kubelet: {start-dealy: 1s}}",
         "s.yaml: line 2: settings.kubelet.start-dealy: unknown field; did you mean start-delay?"),
        (CLUSTER + "settings: {kubelet: {stop-share: 2}}",
         "s.yaml: settings.kubelet.stop-share: 2.0 is not from 0 to 1"),
        (CLUSTER + "settings: {kubelet: {stop-share: 1, stop-after: 2s}}",
         "s.yaml: settings.kubelet.stop-share: cannot be combined with stop-after"),
        (CLUSTER + "settings: {kubelet: {flags: {eviction-soft: x}}}",
         "s.yaml: settings.kubelet.flags.eviction-soft: 'x' is not of the form signal<value"),
        (CLUSTER + "settings: {kubelet: {start-delay: -2s}}",
         "s.yaml: settings.kubelet.start-delay: -2s is negative"),
        ("cluster: {generated: {nodes: 0}}", "s.yaml: cluster: has no node"),
        ("cluster: {generated: {nodes: 1, groups: [{nodes: 1, taint: x}]}}",
         "s.yaml: line 1: cluster.generated.groups[0].taint: unknown field; did you mean taints?"),
        ("cluster: {generated: {nodes: 1, labels: {a: b, x: y}}}",
         "s.yaml: line 1: cluster.generated.labels[x]: expected str, got bool; put it in quotes"),
        ("cluster: {generated: {nodes: 1, labels: {a: b, x: null}}}",
         "s.yaml: line 1: cluster.generated.labels[x]: expected str, got null"),
        ("cluster: {files: [none.yaml]}", "none.yaml: cannot be read: No such file or directory"),
        (CLUSTER + "objects: [{kind: Pod}]", "s.yaml: (unnamed): apiVersion: is required"),
        (CLUSTER + "objects: [{apiVersion: v1, kind: Node, metadata: {name: node-0}}]",
         "s.yaml: Node node-0: metadata.name: appears twice"),
        (CLUSTER + "events: [{at: 1m}]", "s.yaml: events[0]: has no verb"),
        (CLUSTER + "events: [{cordon: node-0}]", "s.yaml: line 2: events[0].at: is required"),
        (CLUSTER + "events: [{at: 1m, cordon: node-0, drain: node-1}]",
         "s.yaml: events[0]: has cordon and drain; expected exactly one of"),
        (CLUSTER + "events: [{at: -1, cordon: node-0}]", "s.yaml: events[0].at: -1 is negative"),
        (CLUSTER + "events: [{at: 1m, cordon: node-7}]",
         "s.yaml: events[0].cordon: there is no Node node-7"),
        (CLUSTER + "events: [{at: 1m, cordon: node-0, count: 2}]",
         "s.yaml: events[0].count: is only allowed with create"),
        (CLUSTER + "events: [{at: 1m, delete: []}]", "s.yaml: events[0].delete: names no object"),
        (CLUSTER + "events: [{at: 1m, create: []}]",
         "s.yaml: events[0].create: contains no object"),
        (CLUSTER + f"events: [{{at: 1m, create: {POD}, count: 0}}]",
         "s.yaml: events[0].count: 0 is not from 1"),
        (CLUSTER + f"events: [{{at: 1m, create: {POD}, every: 1s, over: 2s}}]",
         "s.yaml: events[0].every: cannot be combined with over"),
        (CLUSTER + f"events: [{{at: 1m, create: {POD}}}, {{at: 2m, create: {POD}}}]",
         "s.yaml: events[1].create: Pod default/p already exists"),
        (CLUSTER + "events: [{at: 1m, patch: {target: node/node-0}}]",
         "s.yaml: line 2: events[0].patch.merge: is required"),
        (CLUSTER + "events: [{at: 1m, scale: deploy/web=2}]",
         "s.yaml: events[0].scale: there is no Deployment web"),
    ],
)  # fmt: skip
def test_a_scenario_that_cannot_be_run_is_refused(experiment, text, line):
    with pytest.raises(InputError) as refused:
        experiment(text)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


CRON_JOB = """
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: c}
    spec:
      schedule: "* * * * *"
      jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}
"""
UNKNOWN_NOTE = POD.replace("name: p", "name: p, annotations: {fairlead.dev/run-duratoin: 1m}")
UNKNOWN_GROUP = "{apiVersion: app/v1, kind: Deployment, metadata: {name: d}}"
UNKNOWN_KIND = "{apiVersion: v1, kind: Foo, metadata: {name: f}}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(f"objects: [{UNKNOWN_KIND}]", "v1 has no kind Foo", id="an unknown kind"),
        pytest.param(
            f"events: [{{at: 1m, count: 3, create: {UNKNOWN_NOTE}}}]",
            "fairlead.dev/run-duratoin of Pod default/p is unknown",
            id="an unknown annotation of a created object",
        ),
        pytest.param(
            f"events: [{{at: 1m, create: {UNKNOWN_GROUP}}}]",
            "it has no effect: Deployment d (app/v1, not apps/v1)",
            id="a created object of a wrong group",
        ),
        pytest.param(
            f"events:\n- at: 1m\n  create:{CRON_JOB}",
            "No pods are created for CronJob default/c",
            id="a created CronJob",
        ),
    ],
)
def test_a_note_names_fields_without_effect(experiment, text, says):
    [note] = experiment(f"{CLUSTER}{text}").notes
    assert says in note


def test_a_created_cron_job_that_runs_needs_no_note(experiment):
    text = f"settings: {{cron-jobs: true}}\nevents:\n- at: 1m\n  create:{CRON_JOB}"
    assert experiment(f"{CLUSTER}{text}").notes == ()


def test_events_after_the_end_are_named(experiment):
    """An event at the end happens."""
    events = "events: [{at: 10m, cordon: node-0}, {at: 50m, drain: node-0}]\n"
    [note] = experiment(f"{CLUSTER}duration: 10m\n{events}").notes
    assert note == "events[1] at 50m does not happen: the scenario ends before (duration: 10m)."


def dumped(make):
    """Return the text of a dump with a NodePool and two pods of a custom resource.

    The pod `over` has completed, and the pod `p` completes after a minute.
    """
    node = make.node("a")
    node["metadata"]["uid"] = "a"
    node["status"]["nodeInfo"] = {"kubeletVersion": "v1.34.0"}
    owner = {"apiVersion": "a.io/v1", "kind": "Thing", "name": "x", "uid": "x", "controller": True}
    pods = [make.pod(name, node_name="a", restartPolicy="Never") for name in ("over", "p")]
    for pod in pods:
        pod["metadata"] |= {"uid": pod["metadata"]["name"], "ownerReferences": [owner]}
        pod["metadata"]["annotations"] = {"fairlead.dev/run-duration": "1m"}
        pod["status"] = {"phase": "Running"}
    pods[0]["status"] = {"phase": "Succeeded"}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}}
    metadata = {"annotations": {"fairlead.dev/unreadable": "resourcequotas"}}
    items = [node, *pods, pool]
    found = {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items}
    return json.dumps(found)


@pytest.mark.parametrize(
    ("setting", "is_noted"), [("", True), ("settings: {autoscale: off}\n", False)]
)
def test_the_notes_about_a_dump_are_those_of_a_what_if(experiment, write, make, setting, is_noted):
    """What is not simulated, and what the dump lacks, matters as much in a scenario."""
    write("dump.json", dumped(make))
    notes = "\n".join(experiment(f"{setting}cluster: {{files: [dump.json]}}").notes)
    for beginning in (
        "no resourcequotas could be read",
        "The dump has no poddisruptionbudgets",
        "Controllers of custom resources are not simulated (Thing). An equal pod replaces each",
        "The cluster runs Kubernetes 1.34",
    ):
        assert beginning in notes
    karpenter = "has NodePools of Karpenter, which is not simulated; settings.autoscale: karpenter"
    assert (karpenter in notes) == is_noted


def test_generated_nodes_have_no_notes_of_a_dump(experiment):
    assert experiment(CLUSTER).notes == ()


def test_pods_that_had_completed_before_the_dump_do_not_count_as_completed(experiment, write, make):
    write("dump.json", dumped(make))
    outcome = run_experiment(experiment("duration: 5m\ncluster: {files: [dump.json]}")).outcome
    assert [pod.name for pod in outcome.completed] == ["p"]
    assert len(outcome.pods) == 2
