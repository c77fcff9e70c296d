"""The answers of all commands have exactly the fields of docs/answer-schema.json.

The cases are chosen so that every table of every answer has a row in at least one case. A field
that a row gets later is then not in the schema, and the test of the case fails.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import typing
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import msgspec
import pytest
from msgspec import UNSET, Struct, structs
from tests.unit.whatif.change.test_volcano_job import task, volcano_job
from tests.unit.whatif.conftest import node, pod, priority_class, workload
from tests.unit.whatif.explain import test_batch_job as batch_job
from tests.unit.whatif.explain import test_kueue_queue as kueue
from tests.unit.whatif.explain import test_pod_autoscaler as autoscaler
from tests.unit.whatif.explain import test_queue as queue
from tests.unit.whatif.explain import test_resource_quota as quota
from tests.unit.whatif.planner.conftest import budget, deployment

from fairlead.cli.main import run
from fairlead.whatif.result.form.every_form import EveryForm

ROOT = Path(__file__).parents[4]
ZONE = "topology.kubernetes.io/zone"
# test_consolidate.py compares this object with its form.
NOT_SEEN = {"TooManyForm"}


def unready(pods):
    """Return `pods` with the state not ready."""
    for one in pods:
        if one["kind"] == "Pod":
            one["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    return pods


def group(make):
    gang = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    named = {"cpu": "4", "schedulingGroup": {"podGroupName": "g"}}
    pods = [make.pod(f"p{at}", **named) for at in range(3)]
    return [gang, make.node("b"), *pods, make.pod("full", cpu="4", node_name="b")]


def shop(make):
    """A cluster in which drains move, block, stop and lose pods."""
    return [
        make.node("a", **{ZONE: "z1", "pool": "db"}),
        make.node("b", **{ZONE: "z2"}),
        make.node("c", **{ZONE: "z3"}),
        *deployment(make, "web", ["a", "b"]),
        *deployment(make, "one", ["b"]),
        *deployment(make, "db", ["a"], nodeSelector={"pool": "db"}),
        make.pod("bare", node_name="c"),
        *deployment(make, "strict", ["c"]),
        budget("web", maxUnavailable=1),
        budget("strict", maxUnavailable=0),
    ]


def half_full(make):
    """Three nodes, one of which can be removed; the others then have no room for one another."""
    return [*map(make.node, "abc"), *deployment(make, "web", ["a", "b", "c"], cpu="2")]


def crowded(make):
    """A cluster with pods that wait, lack a node, are not ready, or can be preempted."""
    lost = make.node("lost")
    lost["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    ]
    return [
        make.node("a"),
        lost,
        make.priority_class("high", 1000),
        make.priority_class("low", 10),
        *unready(deployment(make, "low", ["a", "a"], priorityClassName="low", priority=10)),
        *deployment(make, "web", ["a", ""]),
        *deployment(make, "high", [""], cpu="4", priorityClassName="high", priority=1000),
        budget("low", maxUnavailable=0),
        budget("web", maxUnavailable=1),
        make.pod("local", node_name="a", cpu="100m", volumes=[{"name": "v", "emptyDir": {}}]),
        make.pod("gone", node_name="lost"),
        quota.failing(make, quota.EXCESS) | {"metadata": {"name": "few", "namespace": "default"}},
        quota.quota(hard={"requests.cpu": "2"}, used={"requests.cpu": "2"}),
    ]


def preempted(make):
    """A cluster in which new pods preempt more pods of a budget than it allows."""
    return [
        make.node("n"),
        *deployment(make, "app", ["n", "n"], cpu="2"),
        budget("app", maxUnavailable=1),
        make.priority_class("high", 1000),
        make.workload(replicas=0, priorityClassName="high"),
    ]


def scaled(make):
    """A deployment whose autoscaler proposes more replicas than fit."""
    ready = autoscaler.condition("AbleToScale", "ReadyForNewScale")
    web = make.workload(replicas=4)
    return [make.node("n"), web, autoscaler.autoscaler(autoscaler.percent(100), conditions=[ready])]


def cron_job(make):
    template = {"spec": {"template": make.workload()["spec"]["template"]}}
    spec = {"schedule": "0 3 * * *", "jobTemplate": template}
    return [make.node("n"), batch_job.custom("batch/v1", "CronJob", "nightly", **spec)]


def gangs(make):
    node = queue.node(make, "n", 8)
    return [
        node,
        queue.queue("prod", weight=2, capability={queue.GPU: "6"}),
        queue.queue("research"),
        *queue.gang(make, "a", "prod", 2, ("n", "n", "n")),
        *queue.gang(make, "d", "prod", 2, ("", "")),
        *queue.gang(make, "x", "absent", 1, ("",)),
    ]


def kueued(make):
    return [make.node("n"), kueue.cluster_queue(), kueue.local_queue(), *kueue.WORKLOADS]


def waiting_job(make):
    """A Volcano Job whose group waits."""
    default = {"apiVersion": queue.API, "kind": "Queue", "metadata": {"name": "default"}}
    objects = [batch_job.volcano_job(), batch_job.pod_group(), *batch_job.members(make)]
    return [make.node("a", cpu="3"), default, *objects]


def zones(make):
    """Two zones, and a pod that only one of them takes."""
    return [
        make.node("a", **{ZONE: "z1"}),
        make.node("b", **{ZONE: "z2"}),
        *deployment(make, "db", ["a"], nodeSelector={ZONE: "z1"}),
        *deployment(make, "web", ["a", "b"]),
    ]


def huge(make):
    """A pod that fits on no node."""
    return [*zones(make), make.pod("huge", cpu="40")]


def blocked(make):
    """So many nodes with the same obstacle that a cell names only their number."""
    names = [f"node-{at}" for at in range(9)]
    return [
        *map(make.node, names),
        *deployment(make, "strict", names),
        budget("strict", maxUnavailable=0),
    ]


def roomy(make):
    """Two pods of a budget that allows one eviction at a time."""
    return [
        *map(make.node, "abcd"),
        *deployment(make, "web", ["a", "b"]),
        budget("web", maxUnavailable=1),
    ]


def overcommitted(make):
    """A node that does not take back all its pods."""
    return [make.node("a"), *deployment(make, "web", list("aaaaa"))]


def uneven(make):
    return [make.node("a"), make.node("b"), *deployment(make, "web", list("aaaa"))]


CASES = (
    (preempted, "fit DUMP --like deploy/web"),
    (preempted, "fit DUMP --like deploy/web --preempt"),
    (shop, "fit DUMP --like deploy/db --autoscale cluster-autoscaler --node-groups groups.json"),
    (lambda make: [make.node(), volcano_job(task("a", 3))], "fit DUMP --like vcjob/train"),
    (zones, "size DUMP --survive zone"),
    (huge, "size DUMP"),
    (shop, "consolidate DUMP"),
    (half_full, "consolidate DUMP"),
    (blocked, "consolidate DUMP"),
    (
        lambda make: [make.node(), make.pod(owner="train", schedulerName="volcano")],
        "consolidate DUMP",
    ),
    (shop, "drain-plan DUMP"),
    (shop, "drain-plan DUMP --nodes a --nodes b --nodes c"),
    (shop, "drain-plan DUMP --nodes a --for 5m"),
    (blocked, "drain-plan DUMP --nodes kubernetes.io/os!=x"),
    (roomy, "consolidate DUMP"),
    (roomy, "drain-plan DUMP --nodes a --nodes b --max-unavailable 2"),
    (shop, "upgrade-check DUMP --surge 0"),
    (overcommitted, "upgrade-check DUMP --surge 1"),
    (uneven, "rebalance DUMP"),
    (shop, "sweep scenario.json --vary seed=0..1 --fail-on pending>0 --out sweep"),
    (shop, "replay AUDIT --snapshot STORE"),
    (shop, "replay TRACE --snapshot NODES"),
    (shop, "whatif DUMP --change 'a:--drain a' --change 'b:--fail-node b' --fail-on moved>0"),
    (shop, "whatif DUMP --against-snapshot other.json"),
    (crowded, "explain DUMP pods"),
    (crowded, "explain DUMP nodes"),
    (crowded, "explain DUMP node/a"),
    (crowded, "explain DUMP deploy/default/web --seeds 2 --runtimes runtimes.yaml"),
    (preempted, "explain DUMP deploy/default/app"),
    (crowded, "explain DUMP deploy/default/low"),
    (cron_job, "explain DUMP cronjob/default/nightly"),
    (lambda make: [make.node("a"), *batch_job.job_set_with_jobs(make)], "explain DUMP jobset/sim"),
    (waiting_job, "explain DUMP vcjob/default/train"),
    (
        crowded,
        "explain DUMP pod/default/high-1-0 --runtimes runtimes.yaml --seeds 2 --behave-like 1.19",
    ),
    (crowded, "explain DUMP pod/default/web-1-0"),
    (group, "explain DUMP pod/default/p0 --feature-gates GenericWorkload=true,GangScheduling=true"),
    (gangs, "explain DUMP podgroup/default/d --seeds 2 --behave-like 1.19"),
    (gangs, "explain DUMP queues"),
    (gangs, "explain DUMP queue/prod"),
    (crowded, "explain DUMP pdb/default/low"),
    (crowded, "explain DUMP priorityclasses"),
    (crowded, "explain DUMP pc/low"),
    (crowded, "explain DUMP quotas"),
    (crowded, "explain DUMP quota/default/q"),
    (scaled, "explain DUMP hpa/default/web"),
    (kueued, "explain DUMP clusterqueues"),
    (kueued, "explain DUMP clusterqueue/gpus"),
)
EXAMPLES = {
    "AUDIT": "incident/audit.log",
    "STORE": "store/store.yaml",
    "TRACE": "replay/simkube-trace.json",
    "NODES": "replay/simkube-nodes.yaml",
}
GROUPS = {
    "node-groups": [{"name": "db", "min": 1, "max": 2, "labels": {"pool": "db"}, "price": 0.5}]
}
RUNTIMES = "runtimes: [{workload: '*/*/*', durations: [10m]}]"
SCENARIO = {
    "title": "t",
    "cluster": {"generated": {"nodes": 1}},
    "events": [{"at": "10s", "create": "pods.json", "count": 9}],
    "duration": "2m",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A pair (command, JSON answer) for each case."""
    folder = tmp_path_factory.mktemp("answers")
    make = SimpleNamespace(node=node, pod=pod, workload=workload, priority_class=priority_class)
    files = {
        "groups.json": GROUPS,
        "scenario.json": SCENARIO,
        "pods.json": make.pod("p", cpu="1"),
        "other.json": listed(
            make.node("a", "9"), make.node("d", pool="x"), budget("web", minAvailable=1)
        ),
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    (folder / "runtimes.yaml").write_text(RUNTIMES)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for objects, command in CASES:
            (folder / "DUMP").write_text(json.dumps(listed(*objects(make))))
            words = [str(ROOT / "examples" / EXAMPLES[one]) if one in EXAMPLES else one
                     for one in shlex.split(command)]  # fmt: skip
            found.append((command, printed(*words, "-o", "json")))
    return found


def listed(*objects):
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def printed(*words):
    """Return what a command prints to standard output."""
    output = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(output):
        run(words)
    output.flush()
    return output.buffer.getvalue()


def forms_in(hint, found):
    """Add the forms that `hint` contains to `found`, with the fields that they can lack."""
    if isinstance(hint, type) and issubclass(hint, Struct) and hint not in found:
        hints, fields = typing.get_type_hints(hint), structs.fields(hint)
        found[hint] = {one.name for one in fields if one.default is UNSET}
        for one in fields:
            forms_in(hints[one.name], found)
    for inner in typing.get_args(hint):
        forms_in(inner, found)


def parts_of(value):
    """Yield each object in `value`, at any depth."""
    if isinstance(value, Struct):
        yield value
        for one in structs.fields(value):
            yield from parts_of(getattr(value, one.name))
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from parts_of(one)


@pytest.mark.long
def test_every_answer_conforms_to_the_schema(answers):
    schema = json.loads((ROOT / "docs" / "answer-schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for command, answer in answers:
        assert answer, command
        # An error of msgspec names the field.
        msgspec.json.decode(answer, type=EveryForm)
        validator.validate(json.loads(answer))


def test_every_object_of_the_schema_is_in_an_answer(answers):
    """So is every field that an object can lack."""
    lacking = {}
    forms_in(EveryForm, lacking)
    seen = set()
    for _, answer in answers:
        for one in parts_of(msgspec.json.decode(answer, type=EveryForm)):
            seen.add(type(one))
            lacking[type(one)] -= {
                name for name in lacking[type(one)] if getattr(one, name) is not UNSET
            }
    assert {one.__name__ for one in lacking if one not in seen} == NOT_SEEN
    assert {one.__name__: names for one, names in lacking.items() if names and one in seen} == {}


def test_an_unknown_field_does_not_conform(answers):
    schema = json.loads((ROOT / "docs" / "answer-schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    answer = json.loads(dict(answers)["rebalance DUMP"])
    answer["moves"][0]["colour"] = "red"
    assert not validator.is_valid(answer)
