"""Answers as users see them: text, JSON, Markdown, JUnit and the report have the same content."""

from __future__ import annotations

import io
import json
import re
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.unit.whatif import rollout
from tests.unit.whatif.planner.conftest import job_of

from fairlead.cli.commands.whatif.junit import JunitSuite, junit_report
from fairlead.cli.output.answer import print_answer
from fairlead.cli.output.console.screen import LINES_MAX
from fairlead.cli.output.markdown import markdown_answer
from fairlead.cli.output.markdown_limit import CHARACTERS_MAX
from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult, check, parse_fail_on
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.outcome.outage import LossCause
from fairlead.whatif.outcome.run_outcome import UNSTOPPED
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.question import what_if
from fairlead.whatif.report.page_data import packed
from fairlead.whatif.report.report_builder import Heading, whatif_report
from fairlead.whatif.result.result_json import whatif_result
from fairlead.whatif.result.table import TABLES

# Names of the report's lists that differ from those in the JSON.
IN_REPORT = {"preempted": "preemptions", "evicted": "evictions", "allocation": "resources"}
# The places of lists without their own heading in the text.
IN_TEXT = {
    "workloads": "WORKLOAD",
    "node_pools": "NODES",
    "allocation": "CPU",
    "budgets": "BUDGET ",
    "pdb_breaches": "BUDGET BREACHED FOR",
    "placed": "NEWLY PLACED",
    "gone": "GONE FOR GOOD",
    "not_created": "NOT CREATED AGAIN",
    "undrained": "NOT DRAINED",
    "certainty": "IN 3 SEEDS",
    "packing": "PACKING",
    "drain_flags": "FLAGS THAT KUBECTL DRAIN NEEDS",
    "drain_refused": "REFUSED BY KUBECTL DRAIN",
    "errors": "ERRORS",
    "skipped": "EVENTS WITHOUT EFFECT",
    "recurrences": "REPEATEDLY DISPLACED",
    "fail_on": "--fail-on",
    "notes": "Note: ",
    "rest.under_way": "Under way",
    "drains": "ROLLING DRAIN",
    "outage.nodes": "FAILED NODES",
    "outage.zones": "ZONE OF FAILED NODES",
    "outage.lost": "not back",
    "outage.misconceptions": "common misconceptions, checked against this run",
    "outage.preempted": "preempted to make room",
}


def budget(name, app, minimum):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "store"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": app}}},
    }


@pytest.fixture
def nodes(make):
    return [make.node(f"n{number}", cpu="8") for number in range(6)]


@pytest.fixture
def drained(snapshot, nodes, make):
    """Two nodes are drained: a budget refuses two pods, one pod has no owner, three move."""
    bare = make.pod("bare", "store", node_name="n5")
    objects = [*nodes, *rollout.at_rest(), budget("api", "api", 2), bare]
    return what_if(snapshot(*objects), ClusterChange(drain=("n5", "n0")))


@pytest.fixture
def crowded(snapshot, nodes, make, write):
    """A more important workload preempts pods of another one, in a rollout, against a budget."""
    urgent = make.priority_class("urgent", 1000)
    high = make.workload(
        "Deployment", "high", "store", replicas=6, cpu="7", priorityClassName="urgent"
    )
    refused = make.workload("ReplicaSet", "refused", preemptionPolicy="Never")
    huge = make.pod("huge", cpu="30")
    change = ClusterChange(
        apply=(write("change.json", urgent, high, refused, huge),), scale=("deploy/api=1",)
    )
    return what_if(snapshot(*nodes, *rollout.in_progress(), budget("web", "web", 8)), change)


@pytest.fixture
def failed(snapshot, make):
    zone = "topology.kubernetes.io/zone"
    objects = [
        *(make.node(name, **{zone: name}) for name in "ab"),
        make.pod("bare", cpu="1", node_name="a"),
        make.pod("owned", cpu="3", node_name="a", owner="rs"),
    ]
    return what_if(snapshot(*objects), ClusterChange(failures=Failures(fail_node=("a",))))


@pytest.fixture
def ordered(snapshot, make):
    """The only node for an ordered StatefulSet is drained; its first pod stays pending."""
    db = make.workload("StatefulSet", "db", replicas=2, nodeSelector={"disk": "ssd"})
    return what_if(
        snapshot(make.node("a", disk="ssd"), make.node("b"), db), ClusterChange(drain=("a",))
    )


@pytest.fixture
def refused(snapshot, nodes, make):
    """kubectl refuses to drain a node with a bare pod and a pod with an emptyDir."""
    scratch = make.pod("scratch", "store", node_name="n5", volumes=[{"name": "v", "emptyDir": {}}])
    bare = make.pod("bare", "store", node_name="n5")
    change = ClusterChange(drain=("n5", "n0"), drain_as_kubectl=True)
    moved = make.pod("moved", "store", node_name="n0", owner="rs")
    return what_if(snapshot(*nodes, bare, scratch, moved), change)


@pytest.fixture
def uncertain(snapshot, make):
    """Half of two nodes fail, which one depends on the seed; three seeds are tried."""
    nodes = [make.node("a"), make.node("b")]
    change = ClusterChange(failures=Failures(fail_fraction=("0.5",)))
    pods = [make.pod(name, node_name=name, owner=name) for name in "ab"]
    return what_if(snapshot(*nodes, *pods), change, Conditions(seeds=3))


def text_of(answer, results=(), width=80, *, group_by="", has_details=False, **terminal):
    stream = io.StringIO()
    console = Console(file=stream, width=width, **terminal)
    print_answer(answer, results, group_by, console, has_details=has_details)
    return stream.getvalue()


def test_errors_that_the_change_does_not_cause_are_marked(snapshot, make):
    """One Job exceeds its deadline in both runs; the quota is full only with the change."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"activeDeadlineSeconds": 60, "template": template},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    web = make.workload("Deployment", "web", replicas=0)
    cluster = snapshot(make.node("a"), job, quota, web)
    answer = what_if(cluster, ClusterChange(scale=("deploy/web=3",)))
    text = text_of(answer, width=300)
    rows = {line.split("  ")[0]: line for line in text.partition("ERRORS")[2].splitlines()}
    marked = [name for name, line in rows.items() if "(also without the change)" in line]
    assert marked == ["Job default/j"]
    assert any(name.startswith("ReplicaSet default/web") for name in rows)
    errors = whatif_result(answer)["errors"]
    assert [one["object"] for one in errors if one["also_without"]] == ["Job default/j"]
    assert len(errors) == 2
    shown = whatif_report(Heading("", "", 0, 0), answer)["errors"]
    assert [one["object"] for one in shown if one["also_without"] == "yes"] == ["Job default/j"]


def test_a_job_that_the_change_fails_before_its_deadline_is_an_effect(snapshot, make):
    """Without the change, the Job exceeds its deadline, because its pods run until then."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "j"},
        "spec": {"activeDeadlineSeconds": 1200, "backoffLimit": 0, "template": template},
    }
    pod = make.pod("j-a", node_name="a", owner="j", restartPolicy="Never")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="1h")
    answer = what_if(snapshot(make.node("a"), make.node("b"), job, pod), change)
    assert [one.subject for one in answer.effect.errors] == ["Job default/j"]
    assert answer.verdict.findings[0].sentence.startswith("Job default/j fails: Job has reached")


def test_an_error_that_the_change_ends_is_marked(snapshot, make):
    """The controller tries to create the pods again after the quota has been raised."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
        "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}},
    }
    cluster = snapshot(make.node("a"), quota, make.workload("ReplicaSet", "web", replicas=2))
    answer = what_if(cluster, ClusterChange(set=("quota/q:spec.hard.pods=2",)))
    line = text_of(answer, width=300).partition("ERRORS")[2].splitlines()[1]
    assert line.startswith("ReplicaSet default/web")
    assert line.endswith("limited: pods=1 (no longer at the end)")


@pytest.mark.parametrize(("pods", "says"), [(0, ""), (1, "1 pod is"), (3, "3 pods are")])
def test_pods_that_are_pending_with_and_without_the_change_have_one_line(
    snapshot, make, pods, says
):
    """A pod that is pending only with the change does not count."""
    huge = [make.pod(f"huge-{number}", cpu="60") for number in range(pods)]
    large = make.pod("large", node_name="b", owner="rs", cpu="3")
    web = make.pod("web", node_name="a", owner="rs", cpu="3")
    cluster = snapshot(make.node("a"), make.node("b"), large, web, *huge)
    answer = what_if(cluster, ClusterChange(drain=("b",)))
    still = whatif_result(answer)["still_pending"]
    assert [one["pod"] for one in still] == [f"default/huge-{number}" for number in range(pods)]
    line = next((one for one in text_of(answer).splitlines() if "with and without" in one), "")
    assert line.startswith(
        f"{says} pending with and without the change: default/huge-0" if says else ""
    )
    assert bool(line) == bool(says)


@pytest.mark.parametrize(
    "change",
    [
        ClusterChange(drain=("pool=z",)),
        ClusterChange(drain=("pool=z",), max_unavailable=1),
        ClusterChange(failures=Failures(fail_node=("pool=z",)), lasts="20m"),
    ],
    ids=["drained", "drained one after another", "failed for a time"],
)
def test_pools_whose_nodes_the_change_affects_come_first(snapshot, make, change):
    """The evicted pods go to nodes of the other pools, whose names come first."""
    nodes = [make.node(f"{name}-0", cpu="2", pool=name) for name in "abcdefgh"]
    set_of_z = make.workload("ReplicaSet", "web", replicas=8)
    pods = [make.pod(f"web-{number}", node_name="z-0", owner="web") for number in range(8)]
    last = make.node("z-0", cpu="9", pool="z")
    answer = what_if(snapshot(*nodes, last, set_of_z, *pods), change)
    text = text_of(answer, group_by="pool")
    assert text.partition("NODE POOL (pool)")[2].splitlines()[1].startswith("z ")
    assert whatif_result(answer, group_by="pool")["node_pools"][0]["pool"] == "z"


def test_hidden_workloads_that_are_harmed_are_named(snapshot, make):
    pods = [make.pod(f"p{number}", node_name="a", owner=f"rs-{number}") for number in range(60)]
    cluster = snapshot(make.node("a", cpu="100"), *pods)
    text = text_of(what_if(cluster, ClusterChange(drain=("a",))), width=200)
    line = next(one for one in text.splitlines() if "harmed" in one)
    assert line.startswith("... and ")
    assert " all harmed: rs/default/rs-" in line
    assert line.endswith(" more")


def test_an_outage_that_the_change_does_not_cause_has_one_line(snapshot, make):
    silent = make.node("a")
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    pods = [make.pod("owned", node_name="a", owner="rs")]
    cluster = snapshot(silent, make.node("b"), make.node("c"), *pods)
    answer = what_if(cluster, ClusterChange(cordon=("b",)))
    assert "\nWithout the change, too, a is not in service.\n" in text_of(answer)
    assert "1 node failed" not in text_of(answer, has_details=True)
    more = text_of(what_if(cluster, ClusterChange(failures=Failures(fail_node=("b",)))))
    assert "\nWithout the change, too, a is not in service.\n" in more
    assert "1 node failed" in more


@pytest.mark.parametrize(
    "name", ["drained", "crowded", "failed", "ordered", "refused", "uncertain"]
)
def test_every_list_is_in_text_json_markdown_and_report(request, name):
    """All outputs contain every list of the JSON, field by field."""
    answer = request.getfixturevalue(name)
    results = [check(parse_fail_on("displaced>0"), answer.effect)]
    result = whatif_result(answer, results)
    lists = [field for field, value in result.items() if isinstance(value, list)]
    assert set(lists) - {"changes", "next_steps"} <= {table.name for table in TABLES}
    page = packed(whatif_report(Heading("t", "s", 0, 0.0), answer, results))
    text = text_of(answer, results, has_details=True)
    markdown = markdown_answer(answer, results, "")
    for table in TABLES:
        rows = table.rows(result)
        if not rows:
            continue
        assert IN_TEXT.get(table.name, f"{table.title.upper()} (") in text, table.name
        assert (table.title in markdown) or table.name == "workloads", table.name
        assert _length(page, table.name) == len(rows), table.name


def _length(page, name):
    found = page
    for part in IN_REPORT.get(name, name.removeprefix("rest.")).split("."):
        found = found[part]
    return found["length"] if isinstance(found, dict) else len(found)


def test_the_lists_of_these_answers_cover_all_kinds_of_pods(drained, crowded, ordered):
    both = [whatif_result(drained), whatif_result(crowded), whatif_result(ordered)]
    wanted = (
        "undrained", "gone", "not_created", "evicted", "moved", "preempted", "pending", "placed",
        "removed",
    )  # fmt: skip
    more = ("pdb_breaches", "errors", "budgets", "workloads", "node_pools")
    assert [name for name in (*wanted, *more) if not any(one[name] for one in both)] == []
    assert both[1]["rest"]["under_way"]


def test_details_name_all_workloads_that_were_under_way(snapshot, make):
    names = [f"web-{number}" for number in range(9)]
    workloads = [make.workload(name=name, replicas=1, cpu="10m") for name in names]
    answer = what_if(snapshot(make.node("a"), make.node("b"), *workloads), ClusterChange())
    details = " ".join(text_of(answer, width=200, has_details=True).split())
    assert all(f"deploy/default/{name}: 1 pod created" in details for name in names)
    assert "more workloads. The change" in text_of(answer, width=200)


def test_markdown_has_the_amounts_of_the_text(drained):
    """Amounts have units, and node pools have the shares that pods request."""
    markdown = markdown_answer(drained, (), "")
    [pool] = [line for line in markdown.splitlines() if line.startswith("| all nodes |")]
    share = pool.split("|")[8].strip().removeprefix("cpu ")
    assert share.endswith("%")
    assert f"  {share}" in text_of(drained)
    assert "| cpu | 48 | 48 |" in markdown


def test_markdown_has_the_times_of_the_text(failed):
    """Times have units, so no column of a table is in seconds."""
    markdown = markdown_answer(failed, (), "")
    assert "| pod | node | why | after |" in markdown
    [evicted] = [
        line for line in markdown.splitlines() if line.startswith("| default/owned | a | t")
    ]
    assert evicted.endswith(" | 5m50s |")
    assert "(s) |" not in markdown


def test_markdown_counts_the_evidence_that_it_does_not_name(drained):
    """A condition of --fail-on names three pods or workloads, and the number of the others."""
    results = [ConditionResult("displaced>0", ("a/p", "a/q", "a/r", "a/s", "a/t"))]
    line = "- :x: `--fail-on displaced>0`: a/p, a/q, a/r and 2 more\n"
    assert line in markdown_answer(drained, results, "")


def test_markdown_fits_a_comment_on_github(drained):
    """Tables are cut to fewer rows until the text fits; the notes remain, outside of <details>."""
    results = [ConditionResult(f"{number}{'x' * 450}", ()) for number in range(100)]
    changed = replace(drained.effect.changed, notes=("y" * 20_000,))
    noted = replace(drained, effect=replace(drained.effect, changed=changed))
    markdown = markdown_answer(noted, results, "")
    assert 20_000 < len(markdown) <= CHARACTERS_MAX
    assert "\n... and 70 more\n" in markdown
    assert "yyy" in markdown.rpartition("</details>")[2]


def test_markdown_says_when_the_change_is_made(crowded):
    """The change is made when the cluster is at rest, or immediately if it never is."""
    settled = markdown_answer(crowded, (), "")
    without = replace(crowded.without, rest=replace(crowded.without.rest, after=None))
    endless = replace(crowded, effect=replace(crowded.effect, without=without))
    assert "- The change is made after 3s, when the cluster has settled." in settled
    assert "- The cluster does not settle, so the change is made at once." in markdown_answer(
        endless, (), ""
    )


def test_the_text_fits_80_columns_and_breaks_no_name(drained, crowded):
    for answer in (drained, crowded):
        text = text_of(answer)
        assert max(map(len, text.splitlines())) <= 80
        for row in whatif_result(answer)["workloads"]:
            assert row["workload"] in text


def test_every_output_has_the_next_steps(drained):
    """A command that is longer than a line continues on the next line, as in a shell."""
    steps = drained.next_steps
    assert [bool(one.options) for one in steps] == [True, False, True]
    more, plan, seeds = (one.code for one in steps)
    found = [one["options"] or one["command"] for one in whatif_result(drained)["next_steps"]]
    assert found == [more, plan, seeds]
    page = packed(whatif_report(Heading("t", "s", 0, 0.0), drained))
    shown = [one.get("options") or one.get("command") for one in page["next_steps"]]
    assert [code for code in shown if code] == [more, plan]  # a link or two are before them
    markdown = markdown_answer(drained, (), "")
    assert all(f": `{code}`" in markdown for code in (more, plan, seeds))
    text = text_of(drained, has_details=True)
    assert text.count("Next: ") == 3
    words = text.rpartition("unblock it:")[2].partition("Next:")[0].replace("\\\n", " ").split()
    assert words == plan.split()


@pytest.fixture
def large(snapshot, make):
    """A pool of 40 nodes with 80 workloads is drained; nine workloads fit nowhere else."""
    nodes = [make.node(f"old-{at}", cpu="8", pool="old") for at in range(40)]
    nodes += [make.node(f"new-{at}", cpu="64", pods="500", pool="new") for at in range(4)]
    workloads = [
        make.workload("Deployment", f"web-{at}", "shop", replicas=3, cpu="10m") for at in range(71)
    ]
    workloads += [
        make.workload(
            "Deployment", f"pinned-{at}", "shop", replicas=2, nodeSelector={"pool": "old"}
        )
        for at in range(9)
    ]
    return what_if(snapshot(*nodes, *workloads), ClusterChange(drain=("pool=old",)))


def test_the_first_next_step_is_shown_even_if_hardly_anything_fits(large):
    terminal = {"height": 24, "force_terminal": True, "no_color": True}
    text = text_of(large, **terminal)
    assert "Next: " in text
    assert large.next_steps[0].code.split()[0] in text
    assert "next step" not in text.partition("Not shown: ")[2]


def test_an_answer_about_many_workloads_fits_one_screen(large):
    """Harmed workloads are first and complete; the last line names the omitted ones."""
    text = text_of(large)
    lines = text.splitlines()
    assert len(lines) <= LINES_MAX
    assert max(map(len, lines)) <= 80
    assert all(f"deploy/shop/pinned-{at}" in text for at in range(9))
    assert text.index("WORKLOAD") < text.index("NODES  CORDONED")
    pending, evicted = len(large.difference.pending), len(large.difference.evicted)
    left_out = text[text.index("Not shown: ") :]
    assert f"{evicted:,} pods evicted" in left_out, text
    assert "-o details prints everything" in " ".join(left_out.split())
    assert f"{pending:,} pods of 9 workloads stay pending" in text


def test_a_small_terminal_shows_harmed_workloads_before_other_tables(snapshot, make):
    pods = [
        make.pod(f"p{at}", node_name="a", owner=f"rs-{at}", nodeSelector={"pool": "a"})
        for at in range(8)
    ]
    cluster = snapshot(make.node("a", pool="a"), make.node("b", pool="b"), *pods)
    answer = what_if(cluster, ClusterChange(drain=("a",)))
    text = text_of(answer, height=24, force_terminal=True, no_color=True)
    assert len(text.splitlines()) <= 24
    lines = text.partition("WORKLOAD")[2].splitlines()
    shown = {line.split()[0] for line in lines if line.startswith("rs/")}
    assert shown == {f"{one.workload}" for one in answer.effect.workloads if one.is_harmed}
    assert len(shown) == 8


def test_a_long_next_step_has_only_words_if_there_is_no_room(large):
    words, options = "ask again with a long option", f"--set {'x' * 300}"
    answer = replace(large, next_steps=(NextStep(words, options),))
    text = text_of(answer, height=24, force_terminal=True, no_color=True)
    assert f"Next: {words}. -o details prints the options." in text
    assert "x" * 300 not in text
    assert f"Next: {words}:" in text_of(answer, height=60, force_terminal=True, no_color=True)
    assert "x" * 300 in text_of(answer, has_details=True)


def test_a_long_reason_is_printed_once(large):
    """The verdict has it; the rows of workloads and pods refer to it."""
    [reason] = {short_reason(pod.reason) for pod in large.difference.pending}
    assert " ".join(text_of(large).split()).count(reason) == 1


def test_with_details_all_rows_are_printed(large):
    text = text_of(large, has_details=True)
    assert "-o details" not in text
    assert "Not shown" not in text
    assert all(one.pod.key in text for one in large.difference.evicted)


@pytest.mark.parametrize(
    ("alone", "words"),
    [
        (0, "1 workload is untouched."),
        (2, "3 workloads are untouched (2 of them pods without a controller)."),
    ],
)
def test_untouched_pods_without_a_controller_are_counted_apart(snapshot, make, alone, words):
    pods = [make.pod(f"alone-{at}", node_name="a") for at in range(alone)]
    read = snapshot(make.node("a"), make.node("b"), make.pod(node_name="a", owner="web"), *pods)
    assert words in " ".join(text_of(what_if(read, ClusterChange(cordon=("b",)))).split())


def test_each_untouched_static_pod_is_counted_apart(snapshot, make):
    """A Node owns its static pods, but they are no replicas of each other."""
    node = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "a", "controller": True}
    pods = [make.pod(name, "kube-system", node_name="a") for name in ("etcd-a", "scheduler-a")]
    for one in pods:
        one["metadata"] |= {
            "annotations": {"kubernetes.io/config.mirror": "1"},
            "ownerReferences": [node],
        }
    read = snapshot(make.node("a"), make.node("b"), make.pod(node_name="a", owner="web"), *pods)
    words = "3 workloads are untouched (2 of them static pods)."
    assert words in " ".join(text_of(what_if(read, ClusterChange(cordon=("b",)))).split())


def test_an_answer_begins_with_the_budget_that_blocks_the_drain(drained):
    first = drained.verdict.first
    assert first.sentence == (
        "The drain does not complete: 2 pods on 1 node cannot be evicted because of budget "
        "store/api."
    )
    assert text_of(drained, width=200).splitlines()[1] == first.sentence
    assert whatif_result(drained)["verdict"]["sentence"] == first.sentence
    assert markdown_answer(drained, (), "").startswith("### The drain does not complete")


def test_a_budget_that_a_drain_respects_is_listed_as_held(snapshot, nodes):
    """This holds even if the budget already counts the evicted pod as disrupted."""
    objects = [*nodes, *rollout.at_rest(), budget("web", "web", 1)]
    result = whatif_result(what_if(snapshot(*objects), ClusterChange(drain=("n0",))))
    assert [(one["pdb"], one["state"]) for one in result["budgets"]] == [("store/web", "held")]
    budgets = {one["workload"]: one["budget"] for one in result["workloads"]}
    assert budgets["deploy/store/web"] == "held"


@pytest.mark.parametrize(
    ("needed", "state", "breaches"), [(5, "held", 0), (6, "breached", 1), (8, "breached", 3)]
)
def test_a_budget_counts_the_pods_of_deleted_nodes(snapshot, nodes, needed, state, breaches):
    """Pod garbage collection deletes three of eight pods in one pass, and ignores the budget."""
    objects = [*nodes, *rollout.at_rest(), budget("web", "web", needed)]
    answer = what_if(snapshot(*objects), ClusterChange(delete=("node/n0", "node/n5")))
    result = whatif_result(answer)
    assert [(one["state"], one["breaches"]) for one in result["budgets"]] == [(state, breaches)]
    assert [one["by"] for one in result["pdb_breaches"]] == ["node deleted"] * breaches
    assert text_of(answer, has_details=True).count("node deleted") >= 3


def test_a_pod_that_is_evicted_again_and_again_counts_once(snapshot, make):
    """Its replacements return to the taint, which they tolerate for a while."""
    pods = [make.pod(f"web-{n}", "store", node_name="a", owner="web") for n in range(2)]
    tolerations = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    for pod in pods:
        pod["spec"]["tolerations"] = tolerations
    web = make.workload("ReplicaSet", "web", "store", replicas=2, tolerations=tolerations)
    web["metadata"]["uid"] = "web"
    taint = "node/a:spec.taints=[{key: bad, effect: NoExecute}]"
    answer = what_if(snapshot(make.node("a"), web, *pods), ClusterChange(set=(taint,)))
    assert len(answer.difference.evicted) > 2
    [row] = whatif_result(answer)["workloads"]
    assert row["evicted"] == 2
    assert not check(parse_fail_on("evicted>2"), answer.effect).holds


def test_workloads_that_lose_the_most_pods_are_listed_first(drained):
    rows = {row["workload"]: row for row in whatif_result(drained)["workloads"]}
    assert list(rows) == ["deploy/store/api", "pod/store/bare", "deploy/store/web"]
    web = rows["deploy/store/web"]
    assert (web["wanted"], web["lowest"], web["at_end"]) == (8, 5, 8)
    assert web["what"] == "3 evicted (drain), 3 moved"
    assert rows["deploy/store/api"]["budget"] == "blocks"
    assert rows["pod/store/bare"]["gone"] == 1


def test_a_workload_that_cannot_be_drained_counts_with_all_its_pods(snapshot, make):
    pods = [make.pod(f"web-{n}", "store", node_name=f"n{n}", owner="web") for n in range(3)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    web = make.workload("ReplicaSet", "web", "store", replicas=3)
    web["metadata"]["uid"] = "web"
    nodes = [make.node(f"n{n}") for n in range(3)]
    answer = what_if(
        snapshot(*nodes, web, *pods, budget("web", "web", 3)), ClusterChange(drain=("n1",))
    )
    result = whatif_result(answer)
    [row] = result["workloads"]
    assert (row["wanted"], row["lowest"], row["at_end"], row["undrained"]) == (3, 3, 3, 1)
    assert answer.difference.is_empty  # no pod moves
    assert result["difference"]


def test_pods_of_an_ordered_stateful_set_wait_for_the_first(ordered):
    """They are neither pending, as they do not exist, nor gone for good."""
    result = whatif_result(ordered)
    assert [pod["pod"] for pod in result["pending"]] == ["default/db-0"]
    assert result["gone"] == []
    waiting = {"pod": "default/db-1", "node": "a", "waits_for": "default/db-0"}
    assert result["not_created"] == [waiting]
    sentence = (
        "1 pod of sts/default/db is not created again: the StatefulSet waits for default/db-0."
    )
    assert sentence in [one["sentence"] for one in result["verdict"]["findings"]]


def test_a_deleted_pod_that_a_quota_refuses_to_its_stateful_set_is_not_created_again(
    snapshot, make
):
    """The pod is not removed, because the StatefulSet still wants it."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    db = make.workload("StatefulSet", "db", replicas=2)
    db["metadata"]["uid"] = "db-uid"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-uid"}
    pods = [make.pod(f"db-{number}", node_name="a") for number in range(2)]
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        pod["metadata"]["labels"] = {"app": "db"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    given = snapshot(make.node("a"), db, quota, *pods)
    result = whatif_result(what_if(given, ClusterChange(delete=("pod/default/db-1",))))
    assert [one["pod"] for one in result["not_created"]] == ["default/db-1"]
    assert result["removed"] == []
    refusal, sentence = (one["sentence"] for one in result["verdict"]["findings"])
    assert "exceeded quota: q" in refusal
    assert sentence.startswith("1 pod of sts/default/db is not created again.")


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("undrained", True),
        ("gone>0", True),
        ("pending>0", False),
        ("pdb-breached", False),
        ("loop", False),
        ("workload-below=80%", True),
        ("workload-below=60%", True),
        ("evicted>=5", False),
    ],
)
def test_a_condition_of_fail_on_holds(drained, condition, holds):
    assert check(parse_fail_on(condition), drained.effect).holds is holds


def test_a_breached_budget_is_a_condition(crowded):
    result = check(parse_fail_on("pdb-breached"), crowded.effect)
    assert result.evidence == ("store/web",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ClusterChange(set=("pdb/store/api:spec.minAvailable=2",)),
            (
                "Budget store/api allows 0 disruptions instead of 1, and nothing changes for any "
                "pod. It needs all its pods, so the eviction of a ready pod is never allowed, and "
                "a drain of its node blocks."
            ),
        ),
        (
            ClusterChange(delete=("pdb/store/api",)),
            (
                "Budget store/api is deleted (it allowed 1 disruption), and nothing changes for "
                "any pod."
            ),
        ),
        (
            ClusterChange(
                set=(
                    "pdb/store/api:spec.minAvailable=null",
                    "pdb/store/api:spec.maxUnavailable=1",
                )
            ),
            "Budget store/api still allows 1 disruption, and nothing changes for any pod.",
        ),
    ],
)
def test_a_change_of_a_budget_says_what_it_allows(snapshot, nodes, change, words):
    """No pod is displaced now, but the budget limits the next drain."""
    answer = what_if(snapshot(*nodes, *rollout.at_rest(), budget("api", "api", 1)), change)
    assert answer.verdict.first.sentence == words
    [row] = whatif_result(answer)["budgets"]
    assert words.startswith(f"Budget store/api {row['what']}")
    assert row["allowed_without"] == 1
    assert row["what"] in text_of(answer, width=120)


def test_junit_has_a_case_for_each_condition(drained):
    """The message of each failure is the evidence of its own condition."""
    texts = ("undrained", "pending>0", "displaced>0", "data-deleted")
    results = [check(parse_fail_on(text), drained.effect) for text in texts]
    suite = ET.fromstring(junit_report([JunitSuite(drained, results)]))
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    assert [case.get("name") for case in suite.iter("testcase")] == [
        f"--fail-on {text}" for text in texts
    ]
    assert [one.get("message") for one in suite.iter("failure")] == [
        "store/api-ccccccccc-0 on n5, store/api-ccccccccc-1 on n5",
        "store/bare, store/web-aaaaaaaaa-0, store/web-aaaaaaaaa-3 and 1 more",
    ]
    last = list(suite.iter("failure"))[-1]
    assert last.text.splitlines() == list(results[2].evidence)


def test_node_pools_are_recognised_or_named(snapshot, make):
    eks = "eks.amazonaws.com/nodegroup"
    objects = [make.node("a", **{eks: "blue", "disk": "ssd"}), make.node("b", **{eks: "green"})]
    answer = what_if(snapshot(*objects), ClusterChange(cordon=("a",)))
    result = whatif_result(answer)
    assert result["group_by"] == eks
    assert [(one["pool"], one["cordoned"]) for one in result["node_pools"]] == [
        ("blue", 1),
        ("green", 0),
    ]
    named = whatif_result(answer, (), "disk")["node_pools"]
    assert [one["pool"] for one in named] == ["ssd", "no pool"]


def test_a_cluster_has_pools_of_several_kinds(snapshot, make):
    """Karpenter itself often runs on a node group."""
    eks, karpenter = "eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool"
    labels = [{eks: "system"}, {karpenter: "web"}, {karpenter: "web", eks: "x"}, {}]
    nodes = [make.node(f"n{at}", **one) for at, one in enumerate(labels)]
    answer = what_if(snapshot(*nodes), ClusterChange(cordon=("n0",)))
    result = whatif_result(answer)
    assert result["group_by"] == f"{karpenter},{eks}"
    assert [(one["pool"], one["nodes"]) for one in result["node_pools"]] == [
        ("system", 1),
        ("no pool", 1),
        ("web", 2),
    ]
    assert "NODE POOL (nodepool, nodegroup)" in text_of(answer)
    same = [make.node("a", **{eks: "web"}), make.node("b", **{karpenter: "web"})]
    pools = whatif_result(what_if(snapshot(*same), ClusterChange(cordon=("a",))))["node_pools"]
    assert [one["pool"] for one in pools] == ["nodegroup=web", "nodepool=web"]


def test_nodes_that_are_selected_by_a_label_are_grouped_by_it(snapshot, make):
    managed = {"eks.amazonaws.com/nodegroup": "blue"}
    nodes = [make.node("a", pool="mem", **managed), make.node("b", pool="web", **managed)]
    for change in (
        ClusterChange(drain=("pool=mem",)),
        ClusterChange(drain=("b", "pool in (mem)")),
        ClusterChange(cordon=("pool=mem",)),
        ClusterChange(delete=("no/pool=mem",)),
    ):
        result = whatif_result(what_if(snapshot(*nodes), change))
        assert result["group_by"] == "pool"
        assert [one["pool"] for one in result["node_pools"]] == ["mem", "web"]
    by_name = ClusterChange(drain=("kubernetes.io/hostname=a",), delete=("pod/default/pool=x",))
    assert by_name.node_label == ""


def test_a_node_pool_counts_pods_on_ready_nodes(snapshot, make):
    """The lost zone's pods stay bound to their nodes while their replacements run elsewhere."""
    zone = "topology.kubernetes.io/zone"
    nodes = [make.node(name, **{zone: place}) for name, place in (("a", "x"), ("b", "y"))]
    pods = [make.pod(f"p{n}", node_name="a", owner="rs") for n in range(2)]
    web = make.workload("ReplicaSet", "rs", replicas=2)
    web["metadata"]["uid"] = "rs"
    change = ClusterChange(failures=Failures(fail_zone=("x",)))
    answer = what_if(snapshot(*nodes, web, *pods), change)
    lost, left = whatif_result(answer)["node_pools"]
    assert (lost["pool"], lost["nodes"], lost["not_ready"], lost["not_ready_without"]) == (
        "x", 1, 1, 0,
    )  # fmt: skip
    assert (lost["pods_without"], lost["pods"]) == (2, 0)
    assert (left["pool"], left["not_ready"], left["pods_without"], left["pods"]) == ("y", 0, 0, 2)
    assert [one["resource"] for one in left["resources"] if one["requested"]] == ["cpu"]
    [everything] = whatif_result(answer, (), "none")["node_pools"]
    assert (everything["nodes"], everything["pods_without"], everything["pods"]) == (2, 2, 2)


def test_the_resources_of_a_node_pool_do_not_depend_on_the_order_in_the_dump(snapshot, make):
    """In a handwritten dump, the resources of nodes and pods can have any order."""
    amounts = {"vendor.io/z": "2", "memory": "16Gi", "pods": "110", "a.io/b": "2", "cpu": "4"}
    requests = {"vendor.io/z": "1", "a.io/b": "1", "memory": "1Gi", "cpu": "1"}
    answers = []
    for order in (list, reversed):
        node, pod = make.node("a"), make.pod(node_name="a")
        node["status"]["allocatable"] = dict(order(list(amounts.items())))
        ordered = dict(order(list(requests.items())))
        pod["spec"]["containers"][0]["resources"] = {"limits": ordered, "requests": ordered}
        dump = snapshot(node, pod, make.node("b"))
        answers.append(what_if(dump, ClusterChange(cordon=("b",))))
    first, second = (whatif_result(one)["node_pools"] for one in answers)
    [pool] = first
    named = [one["resource"] for one in pool["resources"]]
    assert named == ["cpu", "memory", "a.io/b", "vendor.io/z"]
    assert second == first
    assert len({text_of(one) for one in answers}) == 1


@pytest.mark.parametrize("unavailable", [1, "40%"])
def test_a_rolling_drain_that_waits_for_a_budget_is_not_complete(snapshot, nodes, unavailable):
    """One node has returned, one waits for a budget, and the third has not been drained."""
    objects = [*nodes, *rollout.at_rest(), budget("api", "api", 2)]
    change = ClusterChange(drain=("n0", "n5", "n1"), max_unavailable=unavailable)
    answer = what_if(snapshot(*objects), change)
    assert answer.verdict.first.sentence == (
        "The rolling drain does not complete: 1 of 3 nodes is back, 1 is not empty because "
        "of budget store/api, 1 waits for its turn."
    )
    assert check(parse_fail_on("undrained"), answer.effect).holds


def test_a_node_of_a_rolling_drain_may_be_down_for_longer_than_a_quiet_run(snapshot, nodes):
    """Nothing changes while an empty node is down, but the run does not end before it returns."""
    objects = [*nodes, *rollout.at_rest()]
    change = ClusterChange(drain=("n0", "n5"), max_unavailable=1, lasts="20m")
    answer = what_if(snapshot(*objects), change)
    drains = answer.changed.drains
    assert len(drains) == 2
    assert all(one.back_at - one.empty_at == seconds(1200) for one in drains)
    [displaced] = [one for one in answer.verdict.findings if "displaced" in one.sentence]
    assert re.fullmatch(
        r".* displaced and all run again, the last one 20m\d\ds after the change\.",
        displaced.sentence,
    )


def test_a_drained_node_may_return_as_soon_as_it_is_empty(snapshot, nodes):
    """This is also the default; only an outage must last for some time."""
    read = snapshot(*nodes, *rollout.at_rest())
    drained = ClusterChange(drain=("n0", "n5"), max_unavailable=1)
    ends = [
        what_if(read, replace(drained, lasts=lasts)).changed.ended_at for lasts in ("", "0s", "1m")
    ]
    assert ends[0] == ends[1] < ends[2]
    failed = ClusterChange(failures=Failures(fail_node=("n0",)), lasts="0s")
    with pytest.raises(InputError, match="an outage of length 0 has no effect"):
        what_if(read, failed)


def test_a_rollout_may_wait_long_for_its_pods_to_become_available(snapshot, nodes):
    """Nothing changes while ready pods become available; then the rollout continues."""
    objects = [*nodes, *rollout.at_rest()]
    web = "deploy/store/api:spec"
    edits = (
        "minReadySeconds=600",
        "progressDeadlineSeconds=900",
        "template.spec.containers[c].image=x",
    )
    change = ClusterChange(set=tuple(f"{web}.{edit}" for edit in edits))
    answer = what_if(snapshot(*objects), change)
    [api] = [one for one in answer.effect.workloads if one.workload.name == "api"]
    assert (api.updated, api.placed, answer.changed.settled) == (api.readiness.wanted, 0, True)


def test_a_flapping_node_fails_again_after_a_long_time_in_service(snapshot, nodes):
    change = ClusterChange(failures=Failures(flap=("n0@3m/10m",)))
    answer = what_if(snapshot(*nodes, *rollout.at_rest()), change)
    assert answer.changed.outage.nodes[0].back_at - answer.changed.started_at > seconds(3000)


def test_a_flapping_node_does_not_fail_in_the_last_instant(snapshot, nodes):
    """The horizon is 20 times the period of the flapping machine."""
    flap = ClusterChange(failures=Failures(flap=("n0@60s/120s",)))
    conditions = Conditions(horizon=seconds(3600))
    answer = what_if(snapshot(*nodes, *rollout.at_rest()), flap, conditions)
    outage, run = answer.changed.outage, answer.changed
    assert (outage.lost, run.settled, run.ended_at - run.started_at) == ((), False, seconds(3600))
    assert outage.nodes[0].back_at > run.started_at + seconds(3600 - 121)


def test_a_flapping_node_is_down_even_if_the_control_plane_does_not_notice(snapshot, nodes):
    flap = ClusterChange(failures=Failures(flap=("n0@30s/30s",)))
    conditions = Conditions(horizon=seconds(140))
    answer = what_if(snapshot(*nodes, *rollout.at_rest()), flap, conditions)
    outage, (node,) = answer.changed.outage, answer.changed.outage.nodes
    assert (node.quiet_at, node.unready_at) == (answer.changed.started_at, None)
    (lost,) = {one.cause for one in outage.lost}
    assert lost is LossCause.FLAPPING
    downs = [one.down > 0 for one in outage.pod_samples]
    assert downs == [True, False, False, True, False, False, True]  # down, starting again, back
    assert "The control plane did not notice the failure" in text_of(answer)


@pytest.mark.parametrize(
    ("startup", "words"),
    [
        (10, "come back each time, the last time after"),
        (45, "come back after 10m45s: the node fails again each time before the pods run"),
    ],
)
def test_pods_of_a_flapping_node_come_back_if_they_start_while_it_is_up(
    snapshot, nodes, startup, words
):
    flap = ClusterChange(failures=Failures(flap=("n0@60s/30s",)), lasts="10m")
    conditions = Conditions(startup=seconds(startup))
    answer = what_if(snapshot(*nodes, *rollout.at_rest()), flap, conditions)
    assert words in answer.verdict.first.sentence


def test_the_answer_can_be_printed_as_json(drained):
    assert json.loads(json.dumps(whatif_result(drained)))["kind"] == "WhatIfResult"


@pytest.mark.parametrize(
    ("drain", "sentence"),
    [
        (
            {},
            f"The drain does not complete: 1 pod on 1 node never stops ({UNSTOPPED}).",
        ),
        (
            {"max_unavailable": 1},
            "The rolling drain does not complete: 0 of 1 node is back, 1 is not empty.",
        ),
    ],
)
def test_a_drain_waits_for_ever_for_a_kubelet_that_does_not_answer(make, snapshot, drain, sentence):
    """The pod is deleted with or without the drain, but only its kubelet can confirm that."""
    silent, unreachable = make.node("a"), "node.kubernetes.io/unreachable"
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    silent["spec"] = {
        "taints": [{"key": unreachable, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    }
    web = make.workload("ReplicaSet")
    web["metadata"]["uid"] = "web"
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["metadata"]["labels"] = {"app": "web"}
    dump = snapshot(silent, make.node("b"), web, pod)
    answer = what_if(dump, ClusterChange(drain=("a",), **drain))
    result = whatif_result(answer)
    assert result["undrained"] == [{"pod": "default/web-1", "node": "a", "why": UNSTOPPED}]
    assert result["verdict"]["sentence"] == sentence
    assert result["difference"]
    assert check(parse_fail_on("undrained"), answer.effect).holds


STOPPING = "1 pod on a has not stopped, and its grace period ends after 2h00m (default/web-1)"
UNFINISHED = "is not finished after 1h00m, when the simulation ends (--horizon):"


@pytest.mark.parametrize(
    ("drain", "sentence"),
    [
        ({}, f"The drain {UNFINISHED} {STOPPING}."),
        (
            {"max_unavailable": 1},
            f"The rolling drain {UNFINISHED} 0 of 1 node is back, {STOPPING}.",
        ),
    ],
    ids=["at once", "in turns"],
)
def test_a_drain_is_not_finished_before_the_last_grace_period_ends(make, snapshot, drain, sentence):
    """kubectl drain waits for the pod, although its replacement already runs elsewhere."""
    web = make.workload("ReplicaSet")
    web["metadata"]["uid"] = "web"
    pod = make.pod("web-1", node_name="a", owner="web", terminationGracePeriodSeconds=7200)
    pod["metadata"]["labels"] = {"app": "web"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    dump = snapshot(make.node("a"), make.node("b"), web, pod)
    change = ClusterChange(drain=("a",), **drain)
    answer = what_if(dump, change)
    assert answer.verdict.first.sentence == sentence
    [stopping] = whatif_result(answer)["undrained"]
    assert stopping["pod"] == "default/web-1"
    assert check(parse_fail_on("undrained"), answer.effect).holds
    assert "--horizon 3h" in [step.options for step in answer.next_steps]
    [row] = answer.effect.workloads
    assert (row.moved, row.undrained) == (1, 0)
    ended = what_if(dump, change, Conditions(horizon=seconds(3 * 3600)))
    assert ended.changed.undrained == ()
    assert ended.changed.settled


@pytest.fixture
def failed_node(make):
    """Return a function that makes the node `a`, which is out of service."""

    def made(status):
        key = {"Unknown": "unreachable", "False": "not-ready"}[status]
        taint = {"key": f"node.kubernetes.io/{key}", "effect": "NoExecute"}
        node = make.node("a")
        since = "2025-12-31T23:58:00Z"
        node["status"]["conditions"] = [
            {"type": "Ready", "status": status, "lastTransitionTime": since}
        ]
        node["spec"] = {"taints": [taint | {"timeAdded": since}]}
        return node

    return made


@pytest.mark.parametrize("status", ["Unknown", "False"])
def test_the_failure_of_a_failed_node_is_compared_with_its_return(
    make, failed_node, snapshot, status
):
    """Otherwise the evictions would happen in both runs, and the answer would not contain them."""
    web = make.workload("ReplicaSet", replicas=1)
    web["metadata"]["uid"] = "web"
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["metadata"] |= {"labels": {"app": "web"}, "creationTimestamp": "2025-12-31T00:00:00Z"}
    pod["status"]["conditions"] = [
        {"type": "Ready", "status": "False"},
        {"type": "ContainersReady", "status": "True"},
    ]
    pod["spec"]["tolerations"] = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("unreachable", "not-ready")
    ]
    other = make.node("b")
    other["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"  # the time of the dump
    dump = snapshot(failed_node(status), other, web, pod)
    answer = what_if(dump, ClusterChange(failures=Failures(fail_node=("a",))))
    [displaced] = answer.difference.displaced
    assert displaced.key == "default/web-1"
    assert answer.without.pods["default/web-1"].node == "a"
    assert answer.without.failed_nodes == frozenset()
    assert answer.verdict.first.sentence.startswith("rs/default/web has no ready pod for ")
    [note] = [note for note in answer.changed.notes if "not in service" in note]
    assert note.startswith("a was not in service when the dump was taken.")
    # Part of the five minutes may have passed before the dump was taken.
    assert "five-minutes" not in {one.name for one in answer.changed.outage.misconceptions}


@pytest.mark.parametrize(
    ("finalizer", "stays"),
    [
        pytest.param("karpenter.sh/termination", False, id="Karpenter deletes it"),
        pytest.param("a.io/b", True, id="another finalizer keeps it"),
    ],
)
def test_a_failed_node_that_is_being_deleted_does_not_return_to_service(
    make, failed_node, snapshot, finalizer, stays
):
    """The same happens to it in both runs, so the answer is about the other nodes.

    It begins after the rollout in progress.
    """
    going = failed_node("Unknown")
    going["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer]}
    change = ClusterChange(failures=Failures(fail_node=("a", "n0")))
    nodes = (make.node(f"n{n}", cpu="8") for n in range(6))
    answer = what_if(snapshot(going, *nodes, *rollout.in_progress()), change)
    assert answer.without.rest.after
    assert answer.changed.started_at == answer.without.started_at
    assert not any("not in service" in note for note in answer.changed.notes)
    said = "a was out of service before the change. Its pods are evicted in both runs, so this"
    assert any(note.startswith(said) for note in answer.changed.notes)
    kept = [node.is_ready for node in answer.without.nodes if node.name == "a"]
    assert kept == [False] * stays


def test_pods_do_not_run_on_other_failed_nodes_if_no_node_is_ready(make, snapshot):
    """Without the change, node a returns, and pods are evicted from node b to node a."""
    since, zone = "2025-12-31T23:58:00Z", "topology.kubernetes.io/zone"
    nodes = [make.node(name, **{zone: name}) for name in "ab"]
    for node in nodes:
        unready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": since}
        node["status"]["conditions"] = [unready]
        taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
        node["spec"] = {"taints": [taint | {"timeAdded": since}]}
    web = make.workload("ReplicaSet", replicas=2)
    web["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{node}", node_name=node, owner="web") for node in "ab"]
    for pod in pods:
        pod["metadata"] |= {"labels": {"app": "web"}, "creationTimestamp": since}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    change = ClusterChange(failures=Failures(fail_node=("a",)))
    answer = what_if(snapshot(*nodes, web, *pods), change)
    assert sentence_of(answer, OutcomeKind.MOVED) == (
        "1 pod of rs/default/web stays on a node that is not in service, and does not run."
    )
    assert answer.effect.workloads[0].words == "1 down: evictions stopped, 1 on a failed node"


def test_a_daemon_pod_on_a_failed_node_is_not_ready(make, failed_node, snapshot):
    """The pod was not ready before, and nothing evicts it, so no change of it is recorded."""
    agent = make.workload("DaemonSet")
    agent["metadata"]["uid"] = "agent"
    pods = []
    for name in ("a", "b"):
        pod = make.pod(f"agent-{name}", node_name=name, owner="agent")
        pod["metadata"]["labels"] = {"app": "web"}
        pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
        pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        ready = "False" if name == "a" else "True"
        pod["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        pods.append(pod)
    dump = snapshot(failed_node("Unknown"), make.node("b"), agent, *pods)
    answer = what_if(dump, ClusterChange(failures=Failures(fail_node=("a",))))
    [effect] = answer.effect.workloads
    readiness = effect.readiness
    assert (readiness.before, readiness.lowest, readiness.at_end, effect.down) == (2, 1, 1, 1)


@pytest.fixture
def evicted_before(make, failed_node):
    return evictions(make, failed_node("Unknown"))


def evictions(make, node):
    """Return a dump's objects, taken after the evictions from the failed `node`, named `a`.

    A ReplicaSet has replaced its pod, which is pending because it must run in zone 1. The pod of a
    StatefulSet cannot be replaced before its end.
    """
    gone = {"deletionTimestamp": "2026-01-01T00:10:00Z", "deletionGracePeriodSeconds": 30}
    web, db = make.workload("ReplicaSet"), make.workload("StatefulSet", "db")
    daemons = make.workload("DaemonSet", "agent", tolerations=[{"operator": "Exists"}])
    pods = []
    for name, owner in (("web-1", web), ("web-2", web), ("db-0", db), ("agent-1", daemons)):
        kind, app = owner["kind"], owner["metadata"]["name"]
        owner["metadata"]["uid"] = app
        place = "" if name == "web-2" else "a"
        pods.append(make.pod(name, node_name=place, owner=app, nodeSelector={"zone": "1"}))
        pods[-1]["metadata"]["ownerReferences"][0]["kind"] = kind
        pods[-1]["metadata"] |= {"labels": {"app": app}, "uid": name}
        if name in ("web-1", "db-0"):
            pods[-1]["metadata"] |= gone
            pods[-1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    pods[-1]["spec"] |= {"tolerations": [{"operator": "Exists"}], "nodeSelector": {}}
    for owner in (web, db):
        owner["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "1"}
    node["metadata"] |= {"labels": {"zone": "1"}}
    node["metadata"]["creationTimestamp"] = "2025-12-01T00:00:00Z"
    pods[-1]["metadata"]["creationTimestamp"] = "2026-01-01T00:20:00Z"  # the time of the dump
    return (node, web, db, daemons, *pods)


def sentence_of(answer, kind):
    return next((one.sentence for one in answer.verdict.findings if one.kind is kind), None)


def test_pods_that_were_replaced_before_the_dump_are_not_on_the_failed_node(
    evicted_before, snapshot
):
    """Their replacements have other names, and would never be found in this run."""
    answer = what_if(snapshot(*evicted_before), ClusterChange(failures=Failures(fail_node=("a",))))
    assert [(one.pod, one.cause) for one in answer.changed.outage.lost] == [
        ("default/agent-1", LossCause.DAEMON),
        ("default/db-0", LossCause.STICKY),
    ]
    assert answer.difference.removed == ()
    [db] = [one for one in answer.effect.workloads if one.workload.name == "db"]
    assert (db.readiness.wanted, db.readiness.at_end, db.down) == (1, 0, 1)
    assert sentence_of(answer, OutcomeKind.DOWN) is not None
    assert sentence_of(answer, OutcomeKind.RESIZED) is None


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (
            (),
            (
                "1 pod of sts/default/db is not created again: the old pod never stops, because "
                "the kubelet of the node does not answer."
            ),
        ),
        (("sts/db=0",), "1 pod of sts/default/db is removed."),
    ],
    ids=["the StatefulSet needs the pod", "it does not need the pod"],
)
def test_a_stateful_set_waits_for_a_deleted_pod_that_cannot_stop(
    make, snapshot, failed_node, scale, expected
):
    """The kubelet did not answer before the change either, so the change makes no node fail."""
    db = make.workload("StatefulSet", "db")
    db["metadata"]["uid"] = "db"
    pod = make.pod("db-0", node_name="a", owner="db", tolerations=[{"operator": "Exists"}])
    pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pod["metadata"] |= {"labels": {"app": "db"}, "uid": "db-0"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    cluster = snapshot(failed_node("Unknown"), make.node("b"), db, pod)
    answer = what_if(cluster, ClusterChange(delete=("pod/db-0",), scale=scale))
    assert answer.verdict.first.sentence == expected


def test_a_pod_that_waits_for_a_node_is_not_down_with_its_node(make, failed_node, snapshot):
    """The kubelet of node a still answers, so db-0 is replaced at once, and waits."""
    dump = snapshot(*evictions(make, failed_node("False")))
    answer = what_if(dump, ClusterChange(failures=Failures(fail_node=("a",)), lasts="20m"))
    assert sentence_of(answer, OutcomeKind.INTERRUPTED) == (
        "1 pod is down with its node and comes back after 20m01s. "
        "2 pending pods of 2 workloads wait up to 20m00s for a node."
    )


def test_a_pod_that_is_replaced_while_its_node_is_down_does_not_come_back_with_it(
    make, failed_node, snapshot
):
    """The Job controller replaces the pod at the start of the run, on another node."""
    job = make.workload("Job", "web", restartPolicy="Never")
    job |= {"apiVersion": "batch/v1", "status": {"startTime": "2026-01-01T00:00:00Z"}}
    job["spec"] = {"template": job["spec"]["template"], "parallelism": 1, "completions": 1}
    job["metadata"]["uid"] = "web"
    pod = make.pod("web-1", node_name="a", owner="web", restartPolicy="Never")
    pod["metadata"]["ownerReferences"][0] |= {"kind": "Job", "apiVersion": "batch/v1"}
    pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:30Z"}
    pod["metadata"]["deletionGracePeriodSeconds"] = 30
    dump = snapshot(failed_node("Unknown"), make.node("b"), job, pod)
    answer = what_if(dump, ClusterChange(failures=Failures(fail_node=("a",))))
    assert answer.changed.outage.replaced == 1
    assert sentence_of(answer, OutcomeKind.INTERRUPTED) is None


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ((), "1 pod of job/default/j is replaced within 21s."),
        (("b",), "1 pod of job/default/j is created again on another node and runs after 21s."),
    ],
    ids=["on the same node", "on another node"],
)
def test_a_pod_that_ends_with_its_node_does_not_come_back_with_it(make, snapshot, others, words):
    """The kubelet fails the pod when it returns; the Job, unlike the node, creates it again."""
    stays = make.pod("stays", node_name="a", restartPolicy="Always")
    nodes = [make.node("a"), *(make.node(name, cpu="9") for name in others)]
    dump = snapshot(*nodes, *job_of(make, "a"), stays)
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="10s")
    sentences = [one.sentence for one in what_if(dump, change).verdict.findings]
    assert sentences[-2:] == [words, "1 pod is down with its node and comes back after 11s."]


def test_a_stateful_set_on_a_failed_node_suggests_to_taint_the_node(evicted_before, make, snapshot):
    """Its pod was deleted before the dump, and another node of the zone can run it."""
    dump = snapshot(*evicted_before, make.node("b", zone="1"))
    answer = what_if(dump, ClusterChange(failures=Failures(fail_node=("a",))))
    taint = "kubectl taint nodes a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    assert taint in [step.command for step in answer.next_steps]


def test_a_pod_that_fails_when_its_node_returns_is_not_new(make, snapshot):
    """Its containers stop with the node, and its restartPolicy does not start them again."""
    pod = make.pod("once", node_name="a", restartPolicy="Never")
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="3m")
    answer = what_if(snapshot(make.node("a"), make.node("b"), pod), change)
    [effect] = answer.effect.workloads
    assert effect.words == "1 down: not replaced, 1 failed"
    assert answer.verdict.first.sentence == "pod/default/once fails after 3m00s."


def test_an_outage_that_continues_keeps_pods_waiting(evicted_before, snapshot):
    """The pods wait in both runs, but without the change only for a moment."""
    failures = Failures(fail_node=("a",))
    answer = what_if(snapshot(*evicted_before), ClusterChange(failures=failures, lasts="20m"))
    assert [one.pod.key for one in answer.effect.waited] == ["default/web-2"]
    assert sentence_of(answer, OutcomeKind.INTERRUPTED) == (
        "2 pods are down with their node and come back after 20m01s. "
        "1 pending pod of rs/default/web waits 20m00s for a node."
    )


def test_an_answer_without_a_change_says_how_to_ask_about_a_failed_node(
    make, failed_node, snapshot
):
    hint = "--fail-node a shows what happens if this node stays out of service"
    for node, count in ((failed_node("False"), 1), (make.node("a"), 0)):
        notes = what_if(snapshot(node, make.node("b")), ClusterChange()).changed.notes
        assert sum(note.startswith(hint) for note in notes) == count


def test_an_answer_without_a_change_says_how_to_ask_about_pending_pods(make, snapshot):
    hint = " pods says why pods are pending."
    big = make.pod("big", cpu="99")
    for pods, change, count in (([big], {}, 1), ([], {}, 0), ([big], {"cordon": ("a",)}, 0)):
        answer = what_if(snapshot(make.node("a"), *pods), ClusterChange(**change))
        assert sum(note.endswith(hint) for note in answer.changed.notes) == count


def test_only_the_nodes_that_had_failed_return_without_the_change(make, failed_node, snapshot):
    dump = snapshot(failed_node("Unknown"), make.node("b"), make.workload(replicas=2))
    change = ClusterChange(failures=Failures(fail_node=("a", "b")), cordon=("b",))
    answer = what_if(dump, change)
    assert {one.node for one in answer.changed.outage.nodes} == {"a", "b"}
    assert answer.without.failed_nodes == frozenset()
    assert any(note.startswith("a was not in service when") for note in answer.changed.notes)
    told = "(a is out of service already; compared with its return now)"
    assert answer.title == f"{change.title} {told}"
    other_change = ClusterChange(failures=Failures(fail_node=("b",)))
    other = what_if(dump, other_change)
    assert other.title == other_change.title
    assert other.without.failed_nodes == {"a"}
    assert not any("not in service when" in note for note in other.changed.notes)


def test_a_drain_waits_for_ever_for_a_pod_that_a_finalizer_keeps(make, snapshot):
    """The pod was being deleted before the drain; no program that removes the finalizer runs."""
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/hold"]}
    dump = snapshot(make.node("a"), make.node("b"), pod)
    result = whatif_result(what_if(dump, ClusterChange(drain=("a",))))
    why = "finalizer x/hold keeps it after its end, as in the dump"
    assert result["undrained"] == [{"pod": "default/web-1", "node": "a", "why": why}]
    sentence = f"The drain does not complete: 1 pod on 1 node stays: {why}."
    assert result["verdict"]["sentence"] == sentence


@pytest.mark.parametrize(("at", "is_noted"), [("10m", True), ("0s", False), ("", False)])
def test_a_late_failure_is_noted_because_times_count_from_the_change(snapshot, make, at, is_noted):
    failures = Failures(fail_node=("a",), at=at)
    answer = what_if(snapshot(make.node("a"), make.node("b")), ClusterChange(failures=failures))
    noted = [one for one in answer.changed.notes if one.endswith(f"The nodes fail {at} later.")]
    assert bool(noted) is is_noted
