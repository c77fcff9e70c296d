"""Runs: when they end, which records they make, and which commands they refuse."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import seconds, to_seconds
from fairlead.engine.core.reporter import NominationsWasted
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.comparison.difference import moves_within
from fairlead.whatif.run.experiment_run import ExperimentRun, run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

CLUSTER = "cluster: {generated: {nodes: 2, allocatable: {cpu: 2}}}\n"
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: %s}, spec: {containers: "
    "[{name: c, image: i, resources: {requests: {cpu: 1}}}]}}"
)


@pytest.fixture
def finish(write):
    def run_scenario(text, recurrences_max=None, **keywords):
        path = write("s.yaml", CLUSTER + text)
        experiment = experiment_of(path, read_scenario(path))
        experiment = replace(experiment, recurrences_max=recurrences_max)
        return run_experiment(experiment, "test", NoProgress(), **keywords)

    return run_scenario


def test_a_run_without_a_duration_ends_with_its_last_event(finish):
    outcome = finish(f"events: [{{at: 10s, create: {POD % '{}'}}}]").outcome
    assert outcome.settled
    assert outcome.virtual_seconds == 11  # the pod arrived at 10 s and ran a second later


def test_a_run_with_a_duration_ends_after_it(finish):
    outcome = finish(f"duration: 1h\nevents: [{{at: 10s, create: {POD % '{}'}}}]").outcome
    assert outcome.virtual_seconds == 3600


def test_pods_are_pending_running_and_completed(finish):
    ends = "{fairlead.dev/run-duration: 30s}"
    outcome = finish(
        f"duration: 10m\nevents: [{{at: 10s, create: {POD % ends}, count: 3}},"
        f" {{at: 5m, create: {(POD % '{}').replace('p,', 'q,')}, count: 5}}]"
    ).outcome
    assert sum(pod.is_completed for pod in outcome.pods.values()) == 3
    assert len(outcome.placed) == 4
    [waiting] = outcome.pending
    assert waiting.since == outcome.started_at + seconds(300)
    assert "Insufficient cpu" in waiting.reason
    [cpu] = [one for one in outcome.allocations if one.resource == "cpu"]
    assert (cpu.allocatable, cpu.requested_before, cpu.requested) == (4000, 0, 4000)


def test_pods_that_were_deleted_after_they_completed_are_listed(finish):
    ends = POD % "{fairlead.dev/run-duration: 30s}"
    outcome = finish(
        f"events: [{{at: 0s, create: {ends}}}, {{at: 1m, delete: pod/default/p}},"
        f" {{at: 2m, create: {ends.replace('p,', 'q,')}}},"
        f" {{at: 3m, create: {(POD % '{}').replace('p,', 'r,')}}},"
        " {at: 4m, delete: pod/default/r}]"
    ).outcome
    assert [pod.key for pod in outcome.completed] == ["default/p", "default/q"]


def test_the_times_of_a_failed_node_belong_to_the_failure_that_led_to_evictions(finish):
    """The node is paused for three minutes and returns, fails again later, and is then deleted."""
    zoned = "{metadata: {labels: {topology.kubernetes.io/zone: a}}}"
    outcome = finish(
        f"events: [{{at: 0s, patch: {{target: node/node-0, merge: {zoned}}}}},"
        f" {{at: 0s, cordon: node-1}}, {{at: 1m, create: {POD % '{}'}}},"
        " {at: 2m, uncordon: node-1}, {at: 10m, fail-node: node-0, how: paused, for: 3m},"
        " {at: 20m, fail-node: node-0, how: not-ready, for: 8m}, {at: 30m, delete: node/node-0}]"
    ).outcome
    assert outcome.outage is not None
    [one] = outcome.outage.nodes
    times = [to_seconds(outcome.after_start(at or 0)) for at in (one.quiet_at, one.tainted_at)]
    assert times == [1200, 1200.05]
    assert [round(to_seconds(outcome.after_start(e.at))) for e in outcome.evicted] == [1500]
    found = {one.name for one in outcome.outage.misconceptions}
    assert "five-minutes" not in found  # it is right: the pod left the node after five minutes
    assert one.zone.endswith("a")


def test_the_nodes_at_the_start_offer_what_is_allocatable_before(finish):
    outcome = finish("duration: 1m\nevents: [{at: 10s, delete: node/node-0}]").outcome
    [cpu] = [one for one in outcome.allocations if one.resource == "cpu"]
    assert (cpu.allocatable_before, cpu.allocatable) == (4000, 2000)


def test_samples_count_by_priority_over_time(finish):
    ends = "{fairlead.dev/run-duration: 60s}"
    outcome = finish(f"duration: 3m\nevents: [{{at: 10s, create: {POD % ends}, count: 6}}]").outcome
    start = outcome.started_at
    assert [((s.at - start) // seconds(1), s.pending, s.running) for s in outcome.samples] == [
        (10, 2, 4),
        (71, 0, 2),
        (132, 0, 0),
    ]


def test_a_terminating_pod_is_not_counted_beside_its_replacement(finish):
    """At most two replicas are running or pending, although the old ones terminate slowly."""
    replicas = (
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: 2,"
        " selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec:"
        " {containers: [{name: c, image: i}]}}}}"
    )
    outcome = finish(f"objects: [{replicas}]\nevents: [{{at: 1m, drain: node-0}}]").outcome
    assert outcome.evicted
    assert max(sample.running + sample.pending for sample in outcome.samples) == 2


def test_pods_of_a_stopped_node_do_not_change_until_it_returns(finish):
    ends = "{fairlead.dev/run-duration: 30s}"
    text = (
        f"duration: %s\nevents: [{{at: 0, stop-node: kubernetes.io/os!=x}},"
        f" {{at: 10s, create: {POD % ends}}}, {{at: 10m, return-node: kubernetes.io/os!=x}}]"
    )
    [frozen] = finish(text % "9m").outcome.pods.values()
    assert (frozen.phase, frozen.started_at) == ("Pending", None)
    [thawed] = finish(text % "20m").outcome.pods.values()
    assert thawed.is_completed


def test_an_event_about_a_deleted_object_is_skipped_and_reported(finish):
    outcome = finish(
        f"events: [{{at: 10s, create: {POD % '{}'}}}, {{at: 20s, delete: pod/p}},"
        " {at: 2m, delete: pod/p}]"
    ).outcome
    [skipped] = outcome.skipped
    assert skipped.what == "events[2].delete"
    assert skipped.at == outcome.started_at + seconds(120)
    assert skipped.why == 'pods "p" not found'


def test_a_write_that_the_api_refuses_ends_the_run_with_its_field(finish):
    bad = (POD % "{}").replace("cpu: 1", "cpu: -1")
    with pytest.raises(InputError) as refused:
        finish(f"events: [{{at: 10s, create: {bad}}}]")
    line = str(refused.value)
    assert "events[0].create: Pod default/p: spec.containers[0].resources.requests" in line
    assert "must be greater than or equal to 0" in line


def test_objects_that_controllers_cannot_create_are_reported(finish):
    outcome = finish(
        "objects: [{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: 1,"
        " selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec:"
        " {preemptionPolicy: Never, containers: [{name: c, image: i}]}}}}]"
    ).outcome
    [error] = outcome.errors
    assert error.subject == "ReplicaSet default/r"
    assert "PreemptionPolicy (Never) must not be provided" in error.message


def test_the_command_log_has_a_line_per_command(finish):
    lines = []
    finish(f"events: [{{at: 10s, create: {POD % '{}'}}}]", command_log=lines.append)
    at = parse_timestamp("2026-01-01T00:00:10Z")
    assert any(f'"t_ns":{at},"command":"Bind"' in line for line in lines)


def test_pods_that_were_displaced_and_placed_again_have_moved(finish):
    deployment = (
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: 2,"
        " selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec:"
        " {nodeSelector: {kubernetes.io/hostname: node-0}, containers: [{name: c, image: i}]}}}}"
    )
    outcome = finish(
        f"objects: [{deployment}]\n"
        "events: [{at: 1m, patch: {target: node/node-1, merge: {metadata: {labels:"
        " {kubernetes.io/hostname: node-0}}}}}, {at: 2m, drain: node-0}]"
    ).outcome
    assert [(move.origin, move.target) for move in moves_within(outcome)] == [
        ("node-0", "node-1"),
        ("node-0", "node-1"),
    ]


def waves(priority):
    """Objects and events of a scenario: each minute, a pod displaces a pod with `priority`."""
    low = (
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: low}, spec: {replicas: 2,"
        " selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec:"
        " {terminationGracePeriodSeconds: 0, priorityClassName: low, containers:"
        " [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}}"
    )
    lowest = (
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low},"
        f" value: {priority}}}"
    )
    urgent = (
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent},"
        " value: 9}"
    )
    wave = (
        "{apiVersion: v1, kind: Pod, metadata: {name: wave-%d, annotations:"
        " {fairlead.dev/run-duration: 10s}}, spec: {priorityClassName: urgent, containers:"
        " [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}"
    )
    events = ", ".join(f"{{at: {minute}m, create: {wave % minute}}}" for minute in range(1, 9))
    return f"objects: [{lowest}, {low}, {urgent}]\nevents: [{events}]"


@pytest.mark.parametrize("priority", [0, -10])
def test_a_workload_that_is_displaced_repeatedly_is_reported(finish, priority):
    """Pods with a negative priority exist to give way: their displacements are only recorded."""
    outcome = finish(f"duration: 10m\n{waves(priority)}").outcome
    assert len(outcome.preempted) == 8
    message = "pods of rs/default/low have been displaced 6 times"
    assert [(one.kind, one.message) for one in outcome.recurrences] == [("starving", message)]
    assert [one.message for one in outcome.loops] == ([] if priority < 0 else [message])


@pytest.mark.parametrize(("limit", "preempted"), [(None, 8), (1, 8), (0, 6)])
def test_a_run_ends_early_if_too_many_displacements_repeat(finish, limit, preempted):
    outcome = finish(waves(0), recurrences_max=limit).outcome
    assert len(outcome.preempted) == preempted


def test_a_workload_of_which_each_pod_is_displaced_once_does_not_starve(finish):
    low = (
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: low}, spec: {replicas: 8,"
        " selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec:"
        " {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources:"
        " {requests: {cpu: 500m}}}]}}}}"
    )
    urgent = (
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent},"
        " value: 9}"
    )
    high = low.replace("name: low", "name: high").replace("a: b", "a: c")
    high = high.replace("containers:", "priorityClassName: urgent, containers:")
    outcome = finish(
        f"duration: 10m\nobjects: [{low}, {urgent}]\nevents: [{{at: 1m, create: {high}}}]"
    ).outcome
    assert len(outcome.preempted) > 5
    assert outcome.recurrences == ()


def test_a_workload_that_two_waves_displace_does_not_starve(finish):
    """A sale displaces each pod once, and so does a second sale: this is not a loop."""
    low = (
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: low}, spec: {replicas: 8,"
        " selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec:"
        " {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources:"
        " {requests: {cpu: 500m}}}]}}}}"
    )
    urgent = (
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent},"
        " value: 9}"
    )
    high = low.replace("name: low", "name: high").replace("a: b", "a: c")
    high = high.replace("containers:", "priorityClassName: urgent, containers:")
    again = high.replace("name: high", "name: again").replace("a: c", "a: d")
    outcome = finish(
        f"duration: 10m\nobjects: [{low}, {urgent}]\nevents: [{{at: 1m, create: {high}}}, "
        f"{{at: 3m, delete: rs/high}}, {{at: 5m, create: {again}}}]"
    ).outcome
    assert 8 < len(outcome.preempted) <= 16
    assert outcome.recurrences == ()


def test_unused_nominations_are_reported_although_the_workload_has_more_pods(write):
    web = (
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web}, spec: {replicas: 4,"
        " selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec:"
        " {containers: [{name: c, image: i}]}}}}"
    )
    path = write("s.yaml", CLUSTER + f"duration: 1m\nobjects: [{web}]")
    run = ExperimentRun(experiment_of(path, read_scenario(path)), None)
    run.start("test", NoProgress())
    pod = next(iter(run._recorder.ends().values()))
    run._recorder.report(
        NominationsWasted(
            ObjectRef("Pod", pod.namespace, pod.name, "uid"), times=3, at=run._world.now
        )
    )
    [recurrence] = run.finish(NoProgress()).outcome.recurrences
    assert (recurrence.kind, recurrence.workload) == ("wasted", pod.owner)
    assert recurrence.message.startswith(f"preemption made room for pod {pod.key} 3 times")


def test_metrics_are_recorded_on_request(finish):
    event = f"events: [{{at: 10s, create: {POD % '{}'}}}]"
    assert finish(event).metrics == b""
    metrics = finish(event, metered=True).metrics.decode()
    attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'
    assert f"{attempts} 1.0" in metrics


CRON_JOB = (
    "objects: [{apiVersion: batch/v1, kind: CronJob, metadata: {name: c, namespace: default}, "
    "spec: {schedule: '*/5 * * * *', concurrencyPolicy: Forbid, jobTemplate: {spec: {template: "
    "{metadata: {annotations: {fairlead.dev/run-duration: 1m}}, spec: {restartPolicy: Never, "
    "containers: [{name: c, image: i}]}}}}}}]\nduration: 18m\n"
)


def test_cron_jobs_run_if_the_scenario_enables_them(finish):
    """Jobs do not overlap, so the controller observes that the previous Job has finished."""
    without = finish(CRON_JOB).outcome
    assert not without.pods
    assert without.notes == (
        "CronJob default/c creates no Jobs here; with settings.cron-jobs: true, it does.",
    )
    assert not finish(CRON_JOB.replace("18m", "4m")).outcome.notes
    found = finish(CRON_JOB + "settings: {cron-jobs: true}\n").outcome
    assert [pod.is_completed for pod in found.pods.values()] == [True] * 3
    assert not found.notes


def test_a_note_names_the_cron_jobs_whose_pods_never_end(finish):
    endless = CRON_JOB.replace("fairlead.dev/run-duration: 1m", "")
    deadline = endless.replace(
        "jobTemplate: {spec: {", "jobTemplate: {spec: {activeDeadlineSeconds: 9, "
    )
    settings = "settings: {cron-jobs: true}\n"
    [note] = finish(endless + settings).outcome.notes
    assert note == (
        "The pods of CronJob default/c never end here; the annotation fairlead.dev/run-duration in "
        "the pod template states how long they run."
    )
    assert not finish(deadline + settings).outcome.notes


UNKNOWN_OWNER = """objects:
- apiVersion: v1
  kind: Pod
  metadata:
    name: canary-1
    namespace: default
    ownerReferences:
    - {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: canary, uid: u1, controller: true}
  spec: {nodeName: node-0, containers: [{name: c, image: i}]}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-1
    namespace: default
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u2, controller: true}]
  spec: {nodeName: node-0, containers: [{name: c, image: i}]}
events: [{at: 1m, drain: node-0}]
"""


def test_cron_jobs_do_not_change_the_pods_of_missing_owners(finish):
    """A dump may lack owners, so their pods stay, and are replaced under their names."""
    found = finish(UNKNOWN_OWNER + "settings: {cron-jobs: true}\n").outcome
    assert {key: pod.node for key, pod in found.pods.items()} == {
        "default/canary-1": "node-1",
        "default/web-1": "node-1",
    }


FAILING_JOBS = """objects:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: late, namespace: default}
  spec:
    activeDeadlineSeconds: 60
    template: &template
      spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
- apiVersion: batch/v1
  kind: Job
  metadata: {name: failed, namespace: default}
  spec: {template: *template}
  status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}
duration: 5m
"""


@pytest.mark.parametrize("writes_status", ["false", "true"])
def test_the_jobs_that_fail_during_a_run_are_errors(finish, writes_status):
    """With CronJobs, the status of a Job is written, and says that the Job has failed."""
    found = finish(FAILING_JOBS + f"settings: {{cron-jobs: {writes_status}}}\n").outcome.errors
    assert [one.subject for one in found] == ["Job default/late"]


def test_failed_jobs_are_errors_even_if_their_cron_job_deletes_them(finish):
    """A CronJob keeps one failed Job; the Jobs of minutes 5, 10 and 15 fail."""
    late = CRON_JOB.replace(
        "jobTemplate: {spec: {", "jobTemplate: {spec: {activeDeadlineSeconds: 30, "
    )
    outcome = finish(late + "settings: {cron-jobs: true}\n").outcome
    assert len({one.subject for one in outcome.errors}) == len(outcome.errors) == 3
    deadline = "Job was active longer than specified deadline (DeadlineExceeded)"
    assert {one.message for one in outcome.errors} == {deadline}


def test_a_pod_that_is_bound_at_once_has_not_waited(finish):
    """The Jobs are created 0.1 s after a full second, which their creationTimestamp omits."""
    waits = finish(CRON_JOB + "settings: {cron-jobs: true}\n").outcome.waits
    assert [one.until - one.since for one in waits] == [0, 0, 0]


def test_a_run_without_a_duration_names_the_cron_jobs_that_it_did_not_wait_for(finish):
    """The run ends with its last event, or six minutes after the last change."""
    settings = "settings: {cron-jobs: true}\n"
    rare = CRON_JOB.replace("*/5 *", "30 12").replace("duration: 18m\n", settings)
    [note] = finish(rare).outcome.notes
    assert note == (
        "CronJob default/c created no Job, because the simulation ended before it was due, first "
        "at 2026-01-01T12:30:00Z. Set duration: without it, a simulation does not wait for "
        "CronJobs."
    )
    assert not finish(rare.replace("jobTemplate", "suspend: true, jobTemplate")).outcome.notes
    event = "events: [{at: 12h32m, cordon: node-0}]\n"
    assert not finish(rare + event).outcome.notes


def test_a_cron_job_that_had_missed_a_time_is_not_said_to_have_created_no_job(finish):
    """The CronJob is due again after the end, but creates the Job of the missed time at once."""
    old = CRON_JOB.replace("name: c, n", "name: c, creationTimestamp: '2025-12-31T12:00:00Z', n")
    old = old.replace("*/5 *", "30 12").replace("duration: 18m\n", "settings: {cron-jobs: true}\n")
    outcome = finish(old).outcome
    assert len(outcome.waits) == 1
    assert not outcome.notes


def test_pods_that_fail_when_their_node_returns_are_not_back_with_it(finish):
    """Their containers ended with the machine, and restartPolicy Never does not restart them."""
    pod = "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: default}}, spec: {}}}"
    spec = "{nodeName: node-0, restartPolicy: %s, containers: [{name: c, image: i}]}"
    pods = f"{pod.format('once', spec % 'Never')}, {pod.format('always', spec % 'Always')}"
    outage = finish(
        f"objects: [{pods}]\nevents: [{{at: 1m, fail-node: node-0, for: 2m}}]\nduration: 5m\n"
    ).outcome.outage
    assert (outage.replaced, outage.back_with_node) == (0, 1)
    assert [one.pod for one in outage.lost] == ["default/once"]


QUOTA = """objects:
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: q, namespace: default}
  spec: {hard: {pods: "2"}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web, namespace: default}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
events:
- {at: 30s, patch: {target: resourcequota/default/q, merge: {spec: {hard: {pods: "1"}}}}}
- {at: 1m, stop-node: node-0}
duration: 15m
"""


def test_a_pod_that_a_quota_keeps_from_being_replaced_is_not_replaced(finish):
    """A ReplicaSet does not wait until the old pod is gone, so its deletion is not the cause."""
    [lost] = finish(QUOTA).outcome.outage.lost
    assert lost.cause == "not-replaced"
    assert lost.why.startswith("ReplicaSet web creates no replacement: Error creating: pods ")
    assert "is forbidden: exceeded quota: q" in lost.why


FULL_QUOTA = """objects:
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: q, namespace: default}
  spec: {hard: {pods: "1"}}
"""
JOB_BEYOND_QUOTA = (
    FULL_QUOTA
    + """- apiVersion: batch/v1
  kind: Job
  metadata: {name: all, namespace: default}
  spec:
    completions: 2
    parallelism: 2
    template:
      metadata: {annotations: {fairlead.dev/run-duration: 1m}}
      spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
duration: %s
"""
)


def test_a_quota_without_status_limits_the_pods_that_workloads_create_at_the_start(finish):
    """In a cluster, the quota's controller writes the status before a user creates the workload."""
    assert len(finish(JOB_BEYOND_QUOTA % "30s").outcome.pods) == 1


@pytest.mark.parametrize(
    ("duration", "missing"),
    [
        pytest.param("30s", 1, id="A Job lacks a pod while a quota refuses the pod"),
        pytest.param("15m", 0, id="A Job that has succeeded lacks no pods"),
    ],
)
def test_the_missing_pods_of_a_job_are_those_that_should_run_now(finish, duration, missing):
    [error] = finish(JOB_BEYOND_QUOTA % duration).outcome.errors
    assert (error.missing, error.is_over) == (missing, not missing)


def test_a_deleted_workload_lacks_no_pods(finish):
    outcome = finish(
        FULL_QUOTA
        + """- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web, namespace: default}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
events:
- {at: 1m, delete: rs/default/web}
"""
    ).outcome
    [error] = outcome.errors
    assert error.is_over


UPDATED_DAEMON_SET = """objects:
- apiVersion: apps/v1
  kind: DaemonSet
  metadata: {name: agent, namespace: default}
  spec:
    selector: {matchLabels: {app: agent}}
    template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: "i:1"}]}}
events:
- {at: 1m, fail-node: node-0, for: 10m}
- {at: 5m, patch: {target: ds/default/agent, merge: {spec: {template: {spec:
    {containers: [{name: c, image: "i:2"}]}}}}}}
duration: 20m
"""


def test_a_daemon_pod_that_an_update_replaced_is_not_needed(finish):
    """The update deletes the old pod; its failed node confirms the deletion when it returns."""
    outage = finish(UPDATED_DAEMON_SET).outcome.outage
    [lost] = outage.lost
    assert (lost.cause, lost.why) == (
        "not-needed",
        "ds/default/agent has another pod on node-0",
    )
    down = [(one.at - outage.nodes[0].quiet_at, one.down) for one in outage.pod_samples]
    assert (down[0], down[-1]) == ((0, 1), (seconds(600), 0))


def test_preemptions_before_a_failure_do_not_make_room_for_replacements(finish):
    important = (POD % "{}").replace("{name: p,", "{name: important,")
    important = important.replace("{containers:", "{priorityClassName: high, containers:")
    outcome = finish(
        "objects: [{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, "
        "metadata: {name: high}, value: 9}]\n"
        f"events: [{{at: 1s, create: {POD % '{}'}, count: 4}}, {{at: 1m, create: {important}}},"
        " {at: 5m, fail-node: node-0, for: 30s}, {at: 5m, fail-node: node-1, for: 30s}]\n"
        "duration: 10m\n"
    ).outcome
    assert [one.by for one in outcome.preempted] == ["default/important"]
    assert (outcome.outage.concerned, outcome.outage.preempted) == (4, ())


SECOND_FAILURE = """events:
- {at: 0s, cordon: node-1}
- at: 1s
  create:
    apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: web, namespace: default}
    spec:
      replicas: 1
      selector: {matchLabels: {app: web}}
      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
- {at: 1m, uncordon: node-1}
- {at: 2m, fail-node: node-0, for: 20m}
- {at: 15m, fail-node: node-1, for: 30s}
duration: 30m
"""


def test_an_evicted_pod_is_back_as_a_new_pod_if_the_node_of_the_new_pod_fails_as_well(finish):
    """The new pod comes back with its node, the original pod does not."""
    outage = finish(SECOND_FAILURE).outcome.outage
    assert (outage.concerned, outage.evicted) == (1, 1)
    assert (outage.replaced, outage.back_with_node) == (1, 0)


def test_nodes_that_were_not_tainted_are_no_evidence_about_the_rate_of_taints(finish):
    """The zone is in full disruption for a minute, but its node was tainted before the run."""
    taint = "{key: node.kubernetes.io/unreachable, effect: NoExecute}"
    ready = "conditions: [{type: Ready, status: Unknown}]"
    failed = (
        "{apiVersion: v1, kind: Node, metadata: {name: failed, labels: "
        f"{{topology.kubernetes.io/zone: b}}}}, spec: {{taints: [{taint}]}}, "
        f"status: {{allocatable: {{cpu: 1}}, {ready}}}}}"
    )
    outage = finish(f"objects: [{failed}]\nduration: 10m\n").outcome.outage
    assert [one.node for one in outage.nodes] == ["failed"]
    assert outage.misconceptions == ()


def test_the_deletion_of_a_completed_pod_from_a_failed_node_is_no_eviction(finish):
    """The kubelet is not ready, but its containers run; the pod ends before its toleration does."""
    ends = POD % "{fairlead.dev/run-duration: 2m}"
    outcome = finish(
        f"events: [{{at: 0s, cordon: node-1}}, {{at: 1s, create: {ends}}},"
        " {at: 1m, fail-node: node-0, how: not-ready, for: 20m}]\nduration: 30m\n"
    ).outcome
    assert (outcome.outage.concerned, outcome.outage.evicted) == (1, 0)
    assert (outcome.outage.replaced, outcome.outage.back_with_node) == (0, 1)
