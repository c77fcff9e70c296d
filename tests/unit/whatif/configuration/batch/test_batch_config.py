"""The batch scheduler in simulations and what-ifs: its pods and its configuration."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from fairlead.engine.batch.configuration_file import KUBE_BATCH_DEFAULT
from fairlead.engine.batch.scheduler_name import FAIRLEAD, KUBE_BATCH, SCHEDULER_NAMES, VOLCANO
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.comparison import Alternative, compare
from fairlead.whatif.conditions import DEFAULT_CONDITIONS
from fairlead.whatif.configuration.batch.batch_config import DEPLOYED_NOTE, batch_config
from fairlead.whatif.configuration.batch.batch_file import read_batch_config
from fairlead.whatif.configuration.batch.options import DEFAULT_BATCH_OPTIONS, BatchOptions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.jobs import NO_JOBS
from fairlead.whatif.question import what_if
from fairlead.whatif.run.experiment import Experiment, with_batch
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario


def group(name, members, api="scheduling.volcano.sh/v1beta1", **spec):
    meta = {"name": name, "namespace": "default"}
    body = {"minMember": members, **spec}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": body}


@pytest.fixture
def gang(make):
    """A group and its pods."""

    def made(name, members, scheduler="volcano", minimum=None, **pod):
        pods = [make.pod(f"{name}-{i}", schedulerName=scheduler, **pod) for i in range(members)]
        for one in pods:
            one["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
        return [group(name, members if minimum is None else minimum), *pods]

    return made


@pytest.fixture
def ask(snapshot, write):
    def ask_what_if(objects, apply=(), batch=None, **change):
        files = (write("change.json", *apply),) if apply else ()
        conditions = replace(DEFAULT_CONDITIONS, batch=BatchOptions(batch))
        return what_if(snapshot(*objects), ClusterChange(apply=files, **change), conditions)

    return ask_what_if


def placed(outcome):
    return sorted(pod.name for pod in outcome.placed)


# --- the configuration of the cluster ---------------------------------------------------------


VOLCANO_CONF = """\
actions: "enqueue, allocate, backfill"
tiers: [{plugins: [{name: gang, enablePreemptable: false}, {name: predicates}]}]
"""


def volcano_config_map(text=VOLCANO_CONF):
    meta = {"name": "volcano", "namespace": "volcano-system"}
    data = {"volcano.conf": text}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.mark.parametrize(
    ("maps", "offer"),
    [
        ([], "--batch-config volcano uses Volcano's default"),
        (
            [volcano_config_map()],
            "--batch-config configmap/volcano-system/volcano/volcano.conf uses that in the dump",
        ),
    ],
)
def test_a_note_says_that_the_configuration_of_the_clusters_volcano_is_not_used(
    ask, make, gang, maps, offer
):
    answer = ask([make.node("n"), *gang("a", 2, node_name="n"), *maps], cordon=("n",))
    assert answer.changed.notes[0] == (
        "Pods with schedulerName volcano follow Fairlead's own batch configuration here, not the "
        f"cluster's; {offer}."
    )
    assert answer.scheduler_words == "default scheduler, batch configuration fairlead"


@pytest.mark.parametrize(
    ("maps", "source"),
    [([], "volcano"), ([volcano_config_map()], "configmap/volcano-system/volcano/volcano.conf")],
)
def test_the_verdict_says_whose_rules_placed_the_pods(ask, make, gang, maps, source):
    """Volcano's own rules may reverse the verdict, so the note at the end would come too late."""
    nodes = [make.node("n"), make.node("m")]
    objects = [*nodes, *gang("a", 2, node_name="n"), *gang("b", 9), *maps]
    answer = ask(objects, drain=("n",))
    first = answer.verdict.first.sentence
    assert first.endswith(
        f" This is by Fairlead's own batch rules; Volcano may decide otherwise (--batch-config "
        f"{source})."
    )
    other = ask(objects, drain=("n",), batch="volcano").verdict.first.sentence
    assert "batch rules" not in other
    running = [*nodes, *gang("a", 2, node_name="n")]
    assert "batch rules" not in ask(running, cordon=("m",)).verdict.first.sentence


def test_a_comparison_says_only_once_whose_rules_placed_the_pods(ask, make, gang):
    nodes = [make.node("n"), make.node("m")]
    objects = [*nodes, *gang("a", 2, node_name="n"), *gang("b", 9)]
    drain, cordon = (ask(objects, **{change: ("n",)}) for change in ("drain", "cordon"))
    words = "This is by Fairlead's own batch rules; Volcano may decide otherwise"
    assert words in cordon.verdict.first.sentence
    found = compare([Alternative("a", drain), Alternative("b", cordon)], is_choice=True)
    assert found.verdict.count(words) == 1
    assert found.verdict.endswith(f". {words} (--batch-config volcano).")
    rows = found.tables[0].rows
    assert [row["sentence"] for row in rows] == [
        one.verdict.first.sentence.partition(f" {words}")[0] for one in (drain, cordon)
    ]


def test_pods_that_no_scheduler_has_bound_need_no_note(ask, make, gang):
    answer = ask([make.node("n"), *gang("a", 2), volcano_config_map()], cordon=("n",))
    assert not any("batch configuration" in note for note in answer.changed.notes)


def coscheduled(make, **pod):
    """A bound pod of the plugin Coscheduling of scheduler-plugins."""
    found = make.pod("p", node_name="n", **pod)
    found["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    return found


@pytest.mark.parametrize("name", ["default-scheduler", "scheduler-plugins-scheduler"])
def test_a_note_says_that_pods_that_name_groups_are_scheduled_one_by_one(ask, tmp_path, make, name):
    objects = [make.node("n"), coscheduled(make, schedulerName=name)]
    note = (
        f"Pods with schedulerName {name} are scheduled one by one here, although they name "
        "PodGroups. If their scheduler starts them in gangs, name it under schedulerNames in a "
        "--batch-config file."
    )
    assert note in ask(objects).changed.notes
    file = tmp_path / "batch.yaml"
    file.write_text(f"{{actions: allocate, tiers: [], schedulerNames: [{name}]}}")
    assert note not in ask(objects, batch=str(file)).changed.notes
    assert note not in ask(objects, batch="single-pods").changed.notes
    assert note not in ask([make.node("n"), make.pod("p", schedulerName=name)]).changed.notes


@pytest.mark.parametrize(("method", "is_noted"), [("permit", False), ("filter", True)])
def test_a_plugin_with_permit_may_start_gangs_itself(snapshot, tmp_path, make, method, is_noted):
    file = tmp_path / "coscheduling.py"
    file.write_text(
        f"class Coscheduling:\n    name = 'Coscheduling'\n"
        f"    def {method}(self, *_):\n        pass\n"
    )
    conditions = replace(DEFAULT_CONDITIONS, plugin=(f"{file}:Coscheduling",))
    cluster = snapshot(make.node("n"), coscheduled(make))
    answer = what_if(cluster, ClusterChange(cordon=("n",)), conditions)
    assert any("one by one" in note for note in answer.changed.notes) == is_noted


def test_a_configuration_in_a_config_map_is_used_if_an_option_names_it(ask, make, gang):
    """This configuration places no pods."""
    nothing = volcano_config_map(VOLCANO_CONF.replace("allocate, backfill", "preempt"))
    objects = [make.node("n"), *gang("a", 2), nothing]
    assert placed(ask(objects).changed) == ["a-0", "a-1"]
    answer = ask(objects, batch="configmap/volcano-system/volcano")
    assert placed(answer.changed) == []
    words = "default scheduler, batch configuration configmap/volcano-system/volcano"
    assert answer.scheduler_words == words


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tiers: [", "volcano.conf: is not YAML: line 2: "),
        ("{actions: allocate, tiers: [{plugins: [{name: nope}]}]}", "volcano.conf.*nope"),
    ],
)
def test_an_unusable_configuration_in_a_config_map_is_refused(ask, make, gang, text, problem):
    objects = [make.node("n"), *gang("a", 2), volcano_config_map(text)]
    with pytest.raises(InputError, match=problem):
        ask(objects, batch="configmap/volcano-system/volcano")


def test_the_plugin_to_use_instead_of_capacity_is_named(ask, make, gang):
    text = "{actions: allocate, tiers: [{plugins: [{name: capacity}]}]}"
    with pytest.raises(InputError, match=r"'capacity' \(replace it by proportion"):
        ask(
            [make.node("n"), *gang("a", 2), volcano_config_map(text)],
            batch="configmap/volcano-system/volcano",
        )


# --- PodGroups of Volcano --------------------------------------------------------------------


def test_a_note_names_groups_whose_pods_volcano_has_not_created(ask, make, gang):
    running, waiting = group("running", 1), group("waiting", 1)
    running["status"], waiting["status"] = {"phase": "Running"}, {"phase": "Pending"}
    answer = ask([make.node("n"), *gang("a", 2), running, waiting], cordon=("n",))
    assert (
        "1 PodGroup has no pods yet (default/waiting). Volcano creates the pods of a Job after it "
        "has admitted the Job's PodGroup, so the requests of these pods are not counted here."
    ) in answer.changed.notes
    answer = ask([make.node("n"), *gang("a", 2), running], cordon=("n",))
    assert not any("no pods yet" in note for note in answer.changed.notes)


def test_groups_whose_pods_the_change_creates_are_not_said_to_lack_pods(ask, make, gang):
    (_, pod), (_, template) = gang("one", 1), gang("two", 1)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    template["spec"]["restartPolicy"] = "Never"
    job["spec"] = {"template": {field: template[field] for field in ("metadata", "spec")}}
    job["spec"]["template"]["metadata"].pop("uid", None)
    waiting = [
        {**group(name, 1), "status": {"phase": "Pending"}} for name in ("one", "two", "three")
    ]
    answer = ask([make.node("n"), *waiting], apply=(pod, job))
    assert [note for note in answer.changed.notes if "no pods yet (default/three)" in note]


def test_groups_whose_pods_a_workload_of_the_dump_creates_are_not_said_to_lack_pods(
    ask, make, gang
):
    _, template = gang("one", 1)
    template["spec"]["restartPolicy"] = "Never"
    pod = {"metadata": {"annotations": template["metadata"]["annotations"]}}
    pod["spec"] = template["spec"]
    meta = {"name": "j", "namespace": "default"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": pod}}
    waiting = [{**group(name, 1), "status": {"phase": "Pending"}} for name in ("one", "two")]
    answer = ask([make.node("n"), *waiting, job], cordon=("n",))
    assert [note for note in answer.changed.notes if "no pods yet (default/two)" in note]


@pytest.mark.parametrize("place", ["the dump", "an event"])
@pytest.mark.parametrize("runs", [True, False])
def test_pods_of_cron_jobs_count_if_the_simulation_runs_cron_jobs(write, make, gang, place, runs):
    waiting, template = gang("one", 1)
    waiting["status"] = {"phase": "Pending"}
    template["spec"]["restartPolicy"] = "Never"
    pod = {"metadata": {"annotations": template["metadata"]["annotations"]}}
    pod["spec"] = template["spec"]
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}}
    meta = {"name": "c", "namespace": "default"}
    cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec}
    in_dump = place == "the dump"
    write("dump.json", make.node("n"), waiting, *([cron_job] if in_dump else []))
    scenario = {
        "cluster": {"files": ["dump.json"]},
        "duration": "5m",
        "settings": {"cron-jobs": runs},
        "events": [] if in_dump else [{"at": "1m", "create": cron_job}],
    }
    path = write("s.yaml", json.dumps(scenario))
    notes = experiment_of(path, read_scenario(path)).notes
    assert any("no pods yet (default/one)" in note for note in notes) != runs


@pytest.mark.parametrize(
    ("minimum", "field", "noted"),
    [
        (1, {"minTaskMember": {"worker": 1, "launcher": 1}}, "minTaskMember"),
        (2, {"minTaskMember": {"worker": 1, "launcher": 1}}, ""),
        (1, {"minTaskMember": {"worker": 1}}, ""),
        (2, {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}, "networkTopology"),
        (2, {"subGroupPolicy": [{"name": "a"}]}, "subGroupPolicy"),
    ],
)
def test_a_note_names_the_fields_of_waiting_groups_that_have_no_effect(
    ask, make, gang, minimum, field, noted
):
    objects = [make.node("n"), *gang("a", 2, minimum=minimum)]
    next(one for one in objects if one["kind"] == "PodGroup")["spec"].update(field)
    notes = [note for note in ask(objects, cordon=("n",)).changed.notes if "no effect" in note]
    assert notes == (
        [f"These fields of PodGroups have no effect here: {noted} (default/a)."] if noted else []
    )


# --- which configuration ---------------------------------------------------------------------


def test_without_gang_pods_there_is_no_batch_configuration(found, make):
    assert (
        batch_config(DEFAULT_BATCH_OPTIONS, SchedulerConfig(), found(make.node("n"), make.pod("p")))
        is None
    )


@pytest.mark.parametrize("name", [KUBE_BATCH, VOLCANO])
def test_one_pod_with_a_batch_scheduler_name_enables_the_batch_scheduler(found, make, name):
    config = batch_config(
        DEFAULT_BATCH_OPTIONS, SchedulerConfig(), found(make.pod("p", schedulerName=name))
    )
    assert config.ownership.scheduler_names == SCHEDULER_NAMES
    assert "preempt" in config.actions


def deployed(make, name, *, template=False, **metadata):
    """A pod, or a Deployment, of the scheduler that the manifests deploy."""
    if template:
        workload = make.workload(schedulerName=FAIRLEAD)
        workload["spec"]["template"].setdefault("metadata", {}).update(metadata)
        return workload
    pod = make.pod(name, schedulerName=FAIRLEAD)
    pod["metadata"].update(metadata)
    return pod


GROUPED = {"annotations": {"scheduling.k8s.io/group-name": "g"}}


def test_pods_of_the_deployed_scheduler_without_groups_are_not_gangs(found, make):
    objects = found(make.node("n"), deployed(make, "p"))
    assert batch_config(DEFAULT_BATCH_OPTIONS, SchedulerConfig(), objects) is None


def test_gangs_of_other_schedulers_do_not_affect_the_deployed_scheduler(found, make):
    objects = found(deployed(make, "p"), make.pod("q", schedulerName=VOLCANO))
    config = batch_config(DEFAULT_BATCH_OPTIONS, SchedulerConfig(), objects)
    assert config.ownership.scheduler_names == (KUBE_BATCH, VOLCANO)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(lambda _: [group("g", 2)], id="a PodGroup"),
        pytest.param(lambda make: [deployed(make, "q", **GROUPED)], id="a pod names its group"),
        pytest.param(
            lambda make: [deployed(make, "q", template=True, **GROUPED)],
            id="a pod template names a group",
        ),
    ],
)
def test_pod_groups_make_pods_of_the_deployed_scheduler_gangs(found, make, more):
    objects = found(deployed(make, "p"), *more(make))
    config = batch_config(DEFAULT_BATCH_OPTIONS, SchedulerConfig(), objects)
    assert FAIRLEAD in config.ownership.scheduler_names


def test_a_what_if_schedules_pods_without_groups_one_by_one_and_a_note_says_so(ask, make):
    answer = ask([make.node("n"), make.node("m"), deployed(make, "p")], drain=("m",))
    assert placed(answer.changed) == ["p"]
    assert answer.changed.notes.count(DEPLOYED_NOTE) == 1


def test_the_batch_option_makes_pods_of_the_deployed_scheduler_gangs(ask, make):
    objects = [make.node("n"), make.node("m"), deployed(make, "p")]
    answer = ask(objects, batch="fairlead", drain=("m",))
    assert DEPLOYED_NOTE not in answer.changed.notes
    assert answer.changed.jobs != NO_JOBS


def test_one_pod_template_with_a_batch_scheduler_name_enables_the_batch_scheduler(found, make):
    objects = found(make.workload(schedulerName="volcano"))
    assert batch_config(DEFAULT_BATCH_OPTIONS, SchedulerConfig(), objects) is not None


def test_a_profile_with_a_batch_scheduler_name_schedules_its_own_pods(found, make):
    scheduler = SchedulerConfig((Profile("volcano"),))
    volcano = found(make.pod("p", schedulerName="volcano"))
    assert batch_config(DEFAULT_BATCH_OPTIONS, scheduler, volcano) is None
    other = found(make.pod("p", schedulerName="kube-batch"))
    names = batch_config(DEFAULT_BATCH_OPTIONS, scheduler, other).ownership.scheduler_names
    assert names == ("kube-batch", "fairlead")


def test_a_scheduler_name_of_both_a_profile_and_the_batch_scheduler_is_refused(found):
    scheduler = SchedulerConfig((Profile("volcano"),))
    with pytest.raises(InputError, match="schedulerNames: volcano is also a profile"):
        batch_config(BatchOptions("fairlead"), scheduler, found())


def test_built_in_configurations_are_selected_by_name():
    assert read_batch_config("kube-batch").actions == ("allocate", "backfill")
    assert read_batch_config("fairlead").actions == ("allocate", "reclaim", "backfill", "preempt")


def test_a_configuration_is_read_from_a_file(tmp_path):
    path = tmp_path / "batch.yaml"
    extra = "schedulerNames: [mine]\ndefaultQueue: main\nschedulePeriod: 5s\n"
    path.write_text(KUBE_BATCH_DEFAULT + extra)
    config = read_batch_config(str(path))
    assert config.ownership.scheduler_names == ("mine",)
    assert config.ownership.default_queue == "main"
    assert config.schedule_period_s == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('actions: "alocate"', "actions: no action 'alocate'; known: allocate, backfill"),
        ("tiers:\n- plugins:\n  - name: gangs", r"tiers\[0\].plugins: no plugin 'gangs'; known"),
        ("tires: []", "configuration: no field 'tires'; known: actions"),
        ("schedulerNames: volcano", "schedulerNames: expected a list of names"),
        ("defaultQueue: [a]", "defaultQueue: expected the name of a queue"),
        ("schedulePeriod: 5", "schedulePeriod: expected a duration such as 10m, found 5"),
        ("actions: [", "not YAML"),
    ],
)
def test_an_invalid_file_is_refused_in_one_line(tmp_path, text, problem):
    path = tmp_path / "batch.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"batch.yaml: {problem}"):
        read_batch_config(str(path))


def test_a_path_without_a_file_is_refused_with_the_known_names(tmp_path):
    with pytest.raises(InputError, match="known: fairlead, kube-batch, "):
        read_batch_config(str(tmp_path / "none"))


# --- in runs ---------------------------------------------------------------------------------


def test_a_gang_starts_as_a_whole_or_not_at_all(ask, make, gang):
    answer = ask([make.node("n"), *gang("a", 3), *gang("b", 3)])
    assert answer.difference.is_empty
    assert placed(answer.changed) == ["a-0", "a-1", "a-2"]
    (reason,) = {pod.reason for pod in answer.changed.pending}
    assert "1 Insufficient cpu" in reason


def test_a_gang_of_the_change_is_placed(ask, make, gang):
    answer = ask([make.node("n"), make.pod("p", node_name="n")], apply=gang("a", 3))
    assert placed(answer.changed) == ["a-0", "a-1", "a-2", "p"]


def test_a_waiting_gang_keeps_the_reason_that_the_dump_states(ask, make, gang):
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    first = ask([make.node("n"), *gang("a", 5)]).changed.pending[0].reason
    waiting = gang("a", 5)
    for one in waiting[1:]:
        one["status"]["conditions"] = [{**condition, "message": first}]
    (reason,) = {pod.reason for pod in ask([make.node("n"), *waiting]).changed.pending}
    assert reason == first


def test_the_change_can_replace_the_batch_configuration(ask, make, gang):
    """kube-batch's default never preempts; Fairlead's does."""
    classes = [make.priority_class("high", 1000)]
    low = gang("low", 4, minimum=0, node_name="n", owner="rs")
    high = gang("high", 2, priorityClassName="high")
    high[0]["spec"]["priorityClassName"] = "high"
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1},
    }
    objects = [make.node("n"), *classes, queue, *low, *high]
    answer = ask(objects, batch="kube-batch", new_batch_config="fairlead")
    assert [pod.name for pod in answer.without.pending] == ["high-0", "high-1"]
    assert placed(answer.changed)[:2] == ["high-0", "high-1"]
    assert answer.change.words == ["--new-batch-config fairlead"]


def test_a_scenario_sets_its_batch_configuration_and_an_option_overrides_it(write_scenario):
    path = write_scenario(
        "objects", settings={"batch": "batch.yaml"}, batch='actions: "allocate"\ntiers: []\n'
    )
    experiment = experiment_of(path, read_scenario(path))
    assert experiment.batch.actions == ("allocate",)
    assert (
        experiment_of(path, read_scenario(path), batch=BatchOptions("fairlead")).batch.actions[-1]
        == "preempt"
    )


@pytest.mark.parametrize("options", [DEFAULT_BATCH_OPTIONS, BatchOptions("kube-batch")])
def test_a_scenario_notes_pods_that_are_scheduled_one_by_one(write_scenario, make, options):
    path = write_scenario("objects", more=[coscheduled(make)])
    notes = experiment_of(path, read_scenario(path), batch=options).notes
    assert any("default-scheduler are scheduled one by one here" in note for note in notes)


def test_a_run_continues_while_a_gang_may_get_a_reservation(write_scenario):
    path = write_scenario("objects", settings={"batch": "fairlead"})
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "x", NoProgress()).outcome
    assert outcome.settled
    assert len(outcome.pending) == 5


@pytest.fixture
def write_scenario(tmp_path, make, gang):
    """Writes a scenario of a node and a gang too large for it."""

    def written(name, settings=None, batch="", more=()):
        from json import dumps  # noqa: PLC0415

        (tmp_path / f"{name}.json").write_text(
            dumps({"kind": "List", "items": [make.node("n"), *gang("a", 5), *more]})
        )
        (tmp_path / "batch.yaml").write_text(batch)
        path = tmp_path / "scenario.yaml"
        path.write_text(dumps({"cluster": {"files": [f"{name}.json"]}, "settings": settings or {}}))
        return str(path)

    return written


def test_single_pods_mode_ignores_groups(ask, make, gang):
    answer = ask([make.node("n"), *gang("a", 5)], batch="single-pods")
    assert len(placed(answer.changed)) == 4
    assert answer.difference.is_empty


def test_single_pods_mode_does_not_override_a_profile(found):
    scheduler = SchedulerConfig((Profile(), Profile("volcano", plugins=DEFAULT_PLUGINS[:-1])))
    experiment = Experiment(title="", source="", initial=tuple(found()), start=0)
    both = with_batch(replace(experiment, scheduler=scheduler), BatchOptions("single-pods"), ())
    plugins = {one.scheduler_name: len(one.plugins) for one in both.scheduler.profiles}
    assert plugins["volcano"] == plugins["kube-batch"] - 1
    assert both.batch is None
