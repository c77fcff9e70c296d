"""When waiting pods start, from runtimes of completed pods or of a file."""

from __future__ import annotations

import json

import pytest
from tests.unit.whatif.test_answer import text_of

from fairlead.cli.main import run
from fairlead.cli.output.markdown import markdown_answer
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if
from fairlead.whatif.report.page_data import packed
from fairlead.whatif.report.report_builder import Heading, whatif_report
from fairlead.whatif.result.result_json import whatif_result

TAKEN = "2026-11-20T05:00:00Z"
NO_CHANGE = ClusterChange()
NOT_ESTIMATED = (
    "Start times are not estimated, because no runtime is known for any of the 1 running pods. A "
    "known runtime does not count if the pod has already run longer."
)


def job_pod(name, job, *, cpu="3", started="", finished="", node="n", **spec):
    """A pod of a Job: pending, running since `started`, or completed at `finished` (05:00 on)."""
    status = {"phase": "Pending"}
    if started:
        status = {"phase": "Running", "startTime": f"2026-11-20T{started}Z"}
    if finished:
        ended = {"exitCode": 0, "finishedAt": f"2026-11-20T{finished}Z"}
        status |= {
            "phase": "Succeeded",
            "containerStatuses": [{"name": "c", "state": {"terminated": ended}}],
        }
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True,
    }  # fmt: skip
    bound = {"nodeName": node} if started else {}
    container = {"name": "c", "image": f"{job}:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "ownerReferences": [owner],
            "creationTimestamp": TAKEN,
        },
        "spec": {"containers": [container], "restartPolicy": "Never", **bound, **spec},
        "status": status,
    }  # fmt: skip


@pytest.fixture
def completed():
    """Runs of `import`: 10, 20 and 40 minutes."""
    ends = ("04:10:00", "04:20:00", "04:40:00")
    return [
        job_pod(f"done-{number}", "import", started="04:00:00", finished=end)
        for number, end in enumerate(ends)
    ]


@pytest.fixture
def busy(make):
    """A full node, on which `import` has run for 15 minutes, and a pending pod."""
    running = job_pod("running", "import", started="04:45:00")
    return [make.node("n"), running, job_pod("waiting", "report")]


def seconds_of(row):
    return [None if row[name] is None else round(row[name]) for name in ("p10_s", "p50_s", "p90_s")]


def test_a_waiting_pod_starts_when_a_drawn_runtime_ends(snapshot, busy, completed):
    """After 15 minutes, runs of 20 and 40 minutes are left: 5 or 25 minutes more."""
    answer = what_if(snapshot(*busy, *completed), NO_CHANGE, Conditions(seeds=6))
    result = whatif_result(answer)
    rows = {row["subject"]: row for row in result["start_times"]}
    assert list(rows) == ["job/default/report", "pod/default/waiting"]
    found = rows["pod/default/waiting"]
    assert seconds_of(found)[0] == pytest.approx(300, abs=2)
    assert seconds_of(found)[2] == pytest.approx(1500, abs=2)
    assert (found["started"], found["pods"]) == (6, 1)
    assert result["start_times_basis"] == {
        "draws": 6, "running": 1, "known": 1, "known_from_file": 0, "simulated_s": 86400,
    }  # fmt: skip


def test_pods_that_the_change_creates_start_in_all_draws(snapshot, make, completed):
    """In each simulation, the new pod has the name that the answer has."""
    running = job_pod("running", "import", started="04:45:00")
    objects = [make.node("n"), running, make.workload(replicas=0, cpu="3"), *completed]
    change = ClusterChange(scale=("deploy/web=1",))
    answer = what_if(snapshot(*objects), change, Conditions(seeds=6))
    rows = whatif_result(answer)["start_times"]
    assert [row["started"] for row in rows] == [6, 6]
    assert seconds_of(rows[-1])[0] == pytest.approx(300, abs=2)


def test_all_outputs_have_the_start_times(snapshot, busy, completed):
    answer = what_if(snapshot(*busy, *completed), NO_CHANGE, Conditions(seeds=2))
    sentence = (
        "Start times come from 2 simulations with random remaining runtimes. Runtimes are known "
        "for 1 of 1 running pods (100%). Pods without a known runtime keep running, including pods "
        "that start later."
    )
    text = text_of(answer)
    assert "START TIMES (2)" in text
    assert sentence in " ".join(text.split())
    assert "Start times (2)" in markdown_answer(answer, (), "")
    page = packed(whatif_report(Heading("t", "s", 0, 0.0), answer))
    assert page["start_times"]["length"] == 2


def test_without_known_runtimes_there_are_no_start_times(snapshot, busy):
    answer = what_if(snapshot(*busy), NO_CHANGE, Conditions(seeds=2))
    assert (answer.start_times, answer.changed.notes[:-1]) == (None, ())


def test_runtimes_that_the_running_pods_exceed_are_not_silently_ignored(snapshot, busy, tmp_path):
    """`running` has run for 15 minutes already, longer than the runtime in the file."""
    file = tmp_path / "runtimes.yaml"
    file.write_text("runtimes: [{workload: job/default/import, durations: 5m}]")
    answer = what_if(snapshot(*busy), NO_CHANGE, Conditions(runtimes=str(file)))
    assert whatif_result(answer)["start_times_basis"] is None
    assert answer.changed.notes[:-1] == (NOT_ESTIMATED,)


@pytest.mark.parametrize("target", ["pod/waiting", "job/report"])
def test_an_explanation_says_why_it_has_no_start_times(write, busy, target, capsys):
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "report", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "report:1"}]}}},
    }
    assert run(["explain", write("dump.json", *busy, job), target, "--seeds", "3"]) == 0
    assert NOT_ESTIMATED in " ".join(capsys.readouterr().out.split())


def test_without_seeds_a_note_tells_how_to_get_start_times(snapshot, busy, completed):
    answer = what_if(snapshot(*busy, *completed), NO_CHANGE)
    assert answer.start_times is None
    note = (
        "1 pod waits at the end. --seeds 20 estimates its start time, because 1 of 1 running pods "
        "have a known runtime."
    )
    assert answer.changed.notes[:-1] == (note,)


def test_a_pod_that_no_runtime_frees_room_for_does_not_start(snapshot, make, completed):
    huge = job_pod("huge", "report", cpu="40")
    running = job_pod("running", "import", started="04:45:00")
    answer = what_if(snapshot(make.node("n"), running, huge, *completed), NO_CHANGE,
                     Conditions(seeds=2))  # fmt: skip
    assert seconds_of(whatif_result(answer)["start_times"][0]) == [None, None, None]
    assert "> 24h00m" in text_of(answer)


def test_runtimes_of_a_file_count_before_those_of_the_dump(snapshot, busy, completed, tmp_path):
    path = tmp_path / "runtimes.yaml"
    path.write_text(
        json.dumps(
            {
                "runtimes": [
                    {"image": "import:1", "durations": "1h"},
                    {"label": "app=none", "durations": "1h"},
                ]
            }
        )
    )
    answer = what_if(snapshot(*busy, *completed), NO_CHANGE, Conditions(runtimes=str(path)))
    result = whatif_result(answer)
    assert result["start_times_basis"]["draws"] == 20
    assert seconds_of(result["start_times"][0]) == [pytest.approx(2700, abs=2)] * 3
    assert "No pod of the dump matches app=none of --runtimes." in result["notes"]


def test_the_explanation_of_a_job_says_when_it_starts(write, busy, completed, capsys):
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "report", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "report:1"}]}}},
    }
    path = write("dump.json", *busy, *completed, job)
    assert run(["explain", path, "job/report", "--seeds", "3", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["start_times"][0]["subject"] == "job/default/report"
    assert found["start_times"][0]["p10_s"] == pytest.approx(300, abs=2)
    assert found["start_times_basis"]["known"] == 1


def test_a_stage_ends_pods_without_a_known_runtime(snapshot, make, completed):
    """`waiting` needs the 2 cores of `other`, which a KWOK Stage completes."""
    stage = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "complete"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchExpressions": [
                    {"key": ".status.phase", "operator": "In", "values": ["Running"]},
                    {
                        "key": ".metadata.ownerReferences.[].name",
                        "operator": "In",
                        "values": ["other"],
                    },
                ]
            },
            "delay": {"durationMilliseconds": 3_600_000},
            "next": {"statusTemplate": "phase: Succeeded"},
        },
    }
    running = job_pod("running", "import", cpu="1", started="04:45:00")
    other = job_pod("other", "other", cpu="2", started="04:45:00")
    waiting = job_pod("waiting", "report")
    dump = snapshot(make.node("n"), running, other, waiting, stage, *completed)
    result = whatif_result(what_if(dump, NO_CHANGE, Conditions(seeds=3)))
    (found,) = (row for row in result["start_times"] if row["kind"] == "pod")
    assert found["started"] == 3
