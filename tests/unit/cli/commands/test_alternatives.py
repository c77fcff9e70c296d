"""Several answers side by side: alternatives, other snapshots, and other configurations."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from fairlead.cli.commands.whatif.alternatives import parse_alternatives
from fairlead.cli.main import run
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.input.error import InputError

NODE = {"apiVersion": "v1", "kind": "Node"}
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "x", "uid": "1"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
            ]},
        },
    },
}  # fmt: skip


def cluster(nodes, pods):
    sizes = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    return [
        *({**NODE, "metadata": {"name": name}, "status": {"allocatable": sizes}} for name in nodes),
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "x", "labels": {"app": "web"},
                             "ownerReferences": [{**owner, "controller": True}]},
                "spec": {"nodeName": node, "containers": [container]},
                "status": {"phase": "Running"},
            }
            for name, node in pods.items()
        ),
    ]  # fmt: skip


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Returns the comparison for these options, of two full nodes and an empty one."""
    monkeypatch.chdir(tmp_path)
    dumps = {
        "room.json": cluster("abc", {"p": "a", "q": "b"}),
        "full.json": cluster("ab", {"p": "a", "q": "b"}),
    }
    for name, objects in dumps.items():
        (tmp_path / name).write_text(json.dumps(objects))

    def compare(*options):
        code = run(["whatif", "room.json", "-o", "json", *options])
        out, error = capsys.readouterr()
        return code, json.loads(out) if out else None, error

    return compare


def test_options_become_changes_by_name():
    found = parse_alternatives(("one:--drain n1 --max-unavailable 1", "b b: --fail-node 'x y'"))
    assert {name: one.change for name, one in found.items()} == {
        "one": ClusterChange(drain=("n1",), max_unavailable=1),
        "b b": ClusterChange(failures=Failures(fail_node=("x y",))),
    }


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("--drain n1",), "--change: '--drain n1' is not NAME:OPTIONS"),
        (("a:--drain n1", "a:--drain n2"), "--change: the name a appears twice"),
        (
            ("a:--drian n1",),
            "--change: a: --drian is not an option of a change; did you mean --drain",
        ),
        (("a:--seeds=9",), "--change: a: --seeds is not an option of a change$"),
        (("a:",), "--change: a: has no options"),
        (
            ("a:--node-eviction-rate 1",),
            "--change: a: has no options that change the cluster",
        ),
        (("a:--drain 'n1",), "--change: a: No closing quotation"),
    ],
)
def test_an_option_that_is_not_a_change_is_refused(texts, said):
    with pytest.raises(InputError, match=said):
        parse_alternatives(texts)


def test_alternatives_are_ranked_and_side_by_side(ask):
    code, found, _ = ask("--change", "both:--drain a --drain b", "--change", "one:--drain a")
    assert code == 1
    assert found["kind"] == "WhatIfComparison"
    assert found["verdict"].startswith("Of 2 alternatives, one has the best outcome: 1 pod")
    both, one = found["alternatives"]
    assert (both["alternative"], both["evicted"], one["evicted"]) == ("both", 2, 1)
    assert one["changes"] == ["--drain a"]
    assert found["findings"] == ["both: --drain a --drain b", "one: --drain a"]
    assert {row["alternative"] for row in found["workloads"]} == {"both", "one"}


def test_alternatives_can_differ_in_flags_of_the_controllers(ask):
    """One node fails, and its pod is evicted after the grace period and the toleration time."""
    changes = ("--change", "fast:--fail-node a --node-monitor-grace-period 20s")
    common = ("--node-monitor-grace-period", "100s", "--horizon", "2h")
    _, found, _ = ask(*changes, "--change", "slow:--fail-node a", *common)
    fast, slow = found["alternatives"]
    assert slow["recovered_s"] - fast["recovered_s"] == pytest.approx(80, abs=5)
    assert fast["changes"] == ["--fail-node a", "--node-monitor-grace-period 20s"]
    assert found["findings"][0] == "fast: --fail-node a --node-monitor-grace-period 20s"
    assert slow["changes"] == ["--fail-node a"]


def test_workloads_that_differ_show_how_long_they_lacked_pods(ask):
    changes = ("--change", "fast:--fail-node a --node-monitor-grace-period 20s")
    _, found, _ = ask(*changes, "--change", "slow:--fail-node a")
    rows = [(one["lowest"], one["lowest_for_s"], one["lowest_for"]) for one in found["workloads"]]
    assert rows == [(1, 321.05, "5m21s"), (1, 351.05, "5m51s")]


def test_a_note_about_some_alternatives_names_them(ask):
    changes = ("--change", "fast:--fail-node a --node-eviction-rate 1")
    _, found, _ = ask(*changes, "--change", "slow:--fail-node a")
    flag = "The node controllers run with --node-eviction-rate 1 (default: 0.1)."
    assert f"fast: {flag}" in found["notes"]
    assert flag not in found["notes"]


def test_invalid_flags_of_an_alternative_are_refused_with_its_name(ask):
    code, _, error = ask("--change", "x:--fail-node a --node-eviction-rate much")
    assert code == 2
    assert "--change: x: --node-eviction-rate: 'much'" in error


def test_a_drain_that_does_not_complete_is_never_the_best(ask):
    """A drain that leaves a pod pending is better than a rolling drain that is not finished."""
    rolling = "rolling:--drain a --drain b --max-unavailable 1 --for 2h"
    _, found, _ = ask("--change", rolling, "--change", "pending:--drain a --cordon c")
    assert {row["outcome"] for row in found["alternatives"]} == {"unfinished", "pending"}
    assert found["verdict"].startswith("Of 2 alternatives, pending has the best outcome: ")


def test_three_equally_good_alternatives_are_named_as_a_list(ask):
    alternatives = (*(f"{name}:--cordon c" for name in "xyz"), "w:--drain a")
    changes = [word for one in alternatives for word in ("--change", one)]
    _, found, _ = ask(*changes)
    assert found["verdict"].startswith("Of 4 alternatives, x, y and z have the best outcome: ")


def test_alternatives_of_equal_rank_with_different_outcomes_are_both_stated(ask, tmp_path):
    """One adds a pod and the other two pods, at the same time and without a disruption."""
    objects = [*cluster("abcd", {"p": "a", "q": "b"}), REPLICA_SET]
    (tmp_path / "room.json").write_text(json.dumps(objects))
    changes = ("--change", "x:--scale rs/x/web=3", "--change", "y:--scale rs/x/web=4")
    _, found, _ = ask(*changes)
    start = "All 2 alternatives are equally disruptive. x: 1 more pod"
    assert found["verdict"].startswith(start)
    assert " y: 2 more pods" in found["verdict"]
    _, found, _ = ask(*changes, "--change", "z:--drain a")
    start = "Of 3 alternatives, x and y tie as the least disruptive. x: 1 more pod"
    assert found["verdict"].startswith(start)
    _, found, _ = ask("--change", "x:--cordon c", "--change", "y:--cordon d")
    start = "All 2 alternatives have the same outcome: Nothing changes"
    assert found["verdict"].startswith(start)


def test_the_alternative_with_fewer_waiting_pods_is_better(ask, tmp_path):
    """An autoscaler adds two pods for 40 minutes, and two nodes have room for one each."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "x"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    }
    objects = [*cluster("abcd", {"p": "a", "q": "b"}), REPLICA_SET, autoscaler]
    for pod in objects[4:6]:
        pod["status"]["startTime"] = "2026-01-01T00:00:00Z"
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    (tmp_path / "room.json").write_text(json.dumps(objects))
    load = "- workload: rs/x/web\n  cpu: {steps: {0s: 3, 2m: 6, 40m: 2.4}}\n"
    (tmp_path / "load.yaml").write_text(load)
    changes = ("--change", "x:--cordon c --cordon d", "--change", "y:--cordon c")
    _, found, _ = ask(*changes, "--load", "load.yaml")
    assert found["verdict"].startswith("Of 2 alternatives, y has the best outcome: ")
    assert ["2 waited up to 43m00s" in one["what"] for one in found["workloads"]] == [True, False]


def test_an_alternative_that_helps_pending_pods_is_better_than_one_that_changes_nothing(
    ask, tmp_path, capsys
):
    """Without harm, it counts how many pods stay pending; the deletion of a node helps none."""
    [*objects, waiting] = cluster("abc", {"p": "a", "q": "b", "w": "c"})
    del waiting["spec"]["nodeName"], waiting["metadata"]["ownerReferences"]
    waiting["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5"
    waiting["status"] = {"phase": "Pending"}
    (tmp_path / "room.json").write_text(json.dumps([*objects, waiting]))
    changes = ["--change", "less:--delete node/c", "--change", "cordon:--cordon c",
               "--change", "help:--set-resources pod/x/w=cpu=1"]  # fmt: skip
    code, found, _ = ask(*changes)
    assert found["verdict"].startswith("Of 3 alternatives, help has the best outcome: ")
    assert [one["still_pending"] for one in found["alternatives"]] == [1, 1, 0]
    code, found, _ = ask(*changes, "--change", "remove:--delete pod/x/w")
    assert found["verdict"].startswith("Of 4 alternatives, help has the best outcome: ")
    assert found["alternatives"][3]["still_pending"] == 0
    harm = ["--change", "less:--drain a", "--change", "more:--drain a --drain b --delete pod/x/w"]
    assert ask(*harm)[1]["verdict"].startswith("Of 2 alternatives, less has the best outcome: ")
    assert run(["whatif", "room.json", "--no-report", *changes]) == code
    assert "STILL PENDING" in capsys.readouterr().out
    run(["whatif", "full.json", "--no-report", *changes[2:4], "--change", "b:--cordon a"])
    assert "STILL PENDING" not in capsys.readouterr().out


def test_an_alternative_with_fewer_pending_pods_is_better_although_it_makes_a_pod_pending(
    ask, tmp_path
):
    """Two pods wait. One alternative starts both, and another pod then finds no room."""
    [*objects, v, w] = cluster("abcd", {"p": "a", "q": "b", "v": "c", "w": "d"})
    for pod in (v, w):
        del pod["spec"]["nodeName"], pod["metadata"]["ownerReferences"]
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5"
        pod["status"] = {"phase": "Pending"}
    (tmp_path / "room.json").write_text(json.dumps([*objects, v, w, REPLICA_SET]))
    smaller = "--set-resources pod/x/v=cpu=4 --set-resources pod/x/w=cpu=4"
    helping = f"help:{smaller} --scale rs/x/web=3"
    changes = ("--change", "nothing:--cordon a", "--change", helping)
    _, found, _ = ask(*changes)
    assert [(one["pending"], one["still_pending"]) for one in found["alternatives"]] == [
        (0, 2),
        (1, 0),
    ]
    assert found["verdict"].startswith("Of 2 alternatives, help has the best outcome: 1 pod of ")
    assert found["verdict"].endswith(
        " 1 pod is pending at the end; without the change, 2 pods are."
    )
    _, found, _ = ask("--change", "nothing:--cordon a")
    assert found["verdict"].endswith(": Nothing changes for any pod. 2 pods stay pending.")
    _, found, _ = ask("--change", "more:--scale rs/x/web=3 --set-resources pod/x/v=cpu=4")
    assert found["verdict"].endswith(" 2 pods are pending at the end, as without the change.")


def waiting(name, cpu, **metadata):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "x", **metadata},
        "spec": {"containers": [container]},
        "status": {"phase": "Pending"},
    }


def test_waiting_pods_do_not_make_up_for_a_running_pod_that_loses_its_room(ask, tmp_path):
    """If `p` is deleted, two waiting pods take its room, and the pod that replaces `p` waits."""
    pods = [waiting("v", "2"), waiting("w", "2")]
    objects = [*cluster("ab", {"p": "a", "q": "b"}), *pods, REPLICA_SET]
    (tmp_path / "room.json").write_text(json.dumps(objects))
    _, found, _ = ask("--change", "delete:--delete pod/x/p", "--change", "nothing:--cordon a")
    assert [(one["pending"], one["still_pending"]) for one in found["alternatives"]] == [
        (1, 0),
        (0, 2),
    ]
    assert found["verdict"].startswith("Of 2 alternatives, nothing has the best outcome: ")


def test_a_further_pending_pod_of_a_rollout_that_continues_is_no_harm(ask, tmp_path):
    """A new node takes a pod of the rollout, and `v` takes the room of the pod that it replaces.

    The rollout then creates a pod that fits on no node. `web` has as many ready pods as before.
    """
    spec = {**REPLICA_SET["spec"], "strategy": {"rollingUpdate": {"maxUnavailable": 0}}}
    deployment = {**REPLICA_SET, "kind": "Deployment", "spec": json.loads(json.dumps(spec))}
    requests = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    requests["cpu"] = "4"
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1"}
    sets = []
    for name, template, replicas in (
        ("old", REPLICA_SET["spec"]["template"], 2),
        ("new", deployment["spec"]["template"], 1),
    ):
        own = {"labels": {"app": "web"}, "ownerReferences": [{**owner, "controller": True}]}
        metadata = {**REPLICA_SET["metadata"], **own, "name": name, "uid": name}
        spec = {**REPLICA_SET["spec"], "replicas": replicas, "template": template}
        status = {"replicas": replicas}
        sets.append({**REPLICA_SET, "metadata": metadata, "spec": spec, "status": status})
    [*nodes, p, q] = cluster("ab", {"p": "a", "q": "b"})
    of = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    for pod in (p, q):
        pod["metadata"]["ownerReferences"] = [{**of, "name": "old", "uid": "old"}]
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    new = waiting("new-1", "4", labels={"app": "web"})
    new["metadata"]["ownerReferences"] = [{**of, "name": "new", "uid": "new"}]
    every = [*nodes, p, q, new, waiting("v", "3"), deployment, *sets]
    (tmp_path / "room.json").write_text(json.dumps(every))
    add = "add:--add-nodes 1 --like a"
    _, found, _ = ask("--change", add, "--change", "nothing:--cordon a")
    assert [(one["pending"], one["still_pending"]) for one in found["alternatives"]] == [
        (1, 0),
        (0, 2),
    ]
    assert found["verdict"].startswith("Of 2 alternatives, add has the best outcome: ")


def test_a_workload_that_an_alternative_does_not_create_is_not_untouched(ask, tmp_path):
    """Only `add` creates `new`; it leaves the pods of `web` untouched."""
    new = {**REPLICA_SET, "metadata": {"name": "new", "namespace": "x"}}
    (tmp_path / "new.json").write_text(json.dumps(new))
    _, found, _ = ask("--change", "add:--apply new.json", "--change", "drain:--drain a")
    what = {(one["workload"], one["alternative"]): one["what"] for one in found["workloads"]}
    assert what["rs/x/new", "drain"] == "has no pods"
    assert what["rs/x/web", "add"] == "untouched"


def test_the_nodes_of_alternatives_are_side_by_side(ask, tmp_path, capsys):
    changes = ("--change", "more:--add-nodes 2 --like a", "--change", "fewer:--delete node/c")
    _, found, _ = ask(*changes)
    assert [row["nodes"] for row in found["alternatives"]] == [5, 2]
    run(["whatif", "room.json", *changes, "-o", "markdown"])
    assert "| after | nodes | verdict |" in capsys.readouterr().out


def test_the_first_table_of_a_comment_is_open_and_the_others_are_closed(ask, capsys):
    changes = ("--change", "one:--drain a", "--change", "both:--drain a --drain b")
    run(["whatif", "room.json", *changes, "-o", "markdown"])
    side_by_side, closed = capsys.readouterr().out.split("<details>")
    assert "| alternative | pending |" in side_by_side
    assert closed.startswith("<summary>Workloads that differ (2)</summary>")


def test_the_costs_of_alternatives_are_side_by_side(ask, tmp_path):
    objects = [*cluster("ab", {"p": "a", "q": "b"}), REPLICA_SET]
    for one in objects[:2]:
        one["metadata"]["labels"] = {"pool": "g"}
    (tmp_path / "room.json").write_text(json.dumps(objects))
    group = {"name": "g", "min": 0, "max": 9, "labels": {"pool": "g"}, "price": 0.5}
    (tmp_path / "groups.json").write_text(json.dumps({"node-groups": [group]}))
    changes = ("--change", "same:--cordon a", "--change", "more:--scale rs/x/web=3")
    autoscaler = ("--autoscale", "cluster-autoscaler", "--node-groups", "groups.json")
    _, found, _ = ask(*changes, *autoscaler)
    costs = [(row["nodes"], row["cost_per_month"]) for row in found["alternatives"]]
    assert costs == [(2, 730.0), (3, 1095.0)]


def test_alternatives_can_add_nodes_of_instance_types(ask, tmp_path):
    (tmp_path / "types.csv").write_text("name,cpu,memory\nlarge,8,16Gi\n")
    change = "a:--add-nodes 1 --instance-type large"
    _, found, _ = ask("--change", change, "--instance-types", "types.csv")
    assert found["alternatives"][0]["nodes"] == 4
    code, _, error = ask("--change", "a:--drain a", "--instance-types", "types.csv")
    assert (code, "--instance-types: needs --autoscale" in error) == (2, True)


def test_a_single_alternative_is_not_compared(ask):
    _, found, _ = ask("--change", "one:--drain a")
    assert found["verdict"].startswith("The only alternative, one: 1 pod")


def test_another_snapshot_is_compared_with_the_same_change(ask):
    _, found, _ = ask("--drain", "a", "--against-snapshot", "full.json")
    here, there = found["alternatives"]
    assert (here["alternative"], there["alternative"]) == ("room.json", "full.json")
    assert here["outcome"] != there["outcome"]
    assert found["verdict"].startswith("room.json: 1 pod")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--drain", "c"), "--drain: there is no Node c; known: a, b (asked about full.json)"),
        (
            ("--change", "x:--drain c"),
            "--change: x: --drain: there is no Node c; known: a, b (asked about full.json)",
        ),
    ],
)
def test_an_error_names_the_snapshot_to_which_a_change_does_not_apply(ask, options, error):
    """The first snapshot has the node."""
    code, _, printed = ask(*options, "--against-snapshot", "full.json")
    assert (code, printed) == (2, f"fairlead: {error}\n")


def test_another_configuration_is_compared_with_the_same_change(ask, tmp_path):
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    (tmp_path / "s.yaml").write_text(config)
    _, found, _ = ask("--drain", "a", "--against-config", "s.yaml")
    assert [row["alternative"] for row in found["alternatives"]] == ["default scheduler", "s.yaml"]
    assert found["verdict"].startswith(
        "default scheduler and s.yaml: the answers are the same: 1 pod"
    )
    assert found["findings"] == ["What if: --drain a"]


def reported(path):
    """The data in the report at `path`."""
    page = path.read_text()
    return json.loads(re.search(r'type="application/json">(.*?)</script>', page)[1])


def test_the_report_has_every_alternative_with_its_own_report(ask, tmp_path):
    options = ("--change", "both:--drain a --drain b", "--change", "one </script>:--drain a")
    _, found, error = ask(*options, "--report", "compared.html")
    assert "report: compared.html" in error
    page = reported(tmp_path / "compared.html")
    assert page["verdict"] == found["verdict"]
    assert [(row["alternative"], row["best"]) for row in page["alternatives"]] == [
        ("both", False),
        ("one </script>", True),
    ]
    shown = [{k: v for k, v in row.items() if k != "best"} for row in page["alternatives"]]
    assert shown == found["alternatives"]
    rows = [
        (one["workload"], effect["what"]) for one in page["workloads"] for effect in one["effects"]
    ]
    assert rows == [(row["workload"], row["what"]) for row in found["workloads"]]
    assert [one["title"] for one in page["reports"]] == [
        "What if: --drain a --drain b",
        "What if: --drain a",
    ]


def test_the_report_of_two_snapshots_names_none_as_best(ask, tmp_path):
    ask("--drain", "a", "--against-snapshot", "full.json", "--report", "compared.html")
    page = reported(tmp_path / "compared.html")
    assert [(row["alternative"], row["best"]) for row in page["alternatives"]] == [
        ("room.json", False),
        ("full.json", False),
    ]


def test_text_output_comes_with_a_report_unless_it_is_off(ask, tmp_path):
    question = ("--change", "one:--drain a", "--output", "text")
    run(["whatif", "room.json", *question, "--no-report"])
    assert not (tmp_path / "fairlead-whatif.html").exists()
    run(["whatif", "room.json", *question])
    assert len(reported(tmp_path / "fairlead-whatif.html")["reports"]) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--drain", "a", "--change", "b:--drain b"), "--drain: cannot be used with --change"),
        (("--change", "b:--drain b", "--commands", "c.jsonl"), "--commands: cannot be combined"),
        (("--change", "b:--drain b", "--log-level", "info"), "--log-level: cannot be combined"),
        (("--against-config", "c.yaml", "-v", "2"), "-v: cannot be combined"),
        (("--change", "b:--drain b", "--fail-on", "when"), "--fail-on: 'when' is not"),
    ],
)
def test_options_about_one_answer_are_refused(ask, options, said):
    code, out, error = ask(*options)
    assert (code, out) == (2, None)
    assert said in error


def test_a_condition_that_holds_for_one_alternative_fails_the_comparison(ask, tmp_path):
    options = ("--change", "both:--drain a --drain b", "--change", "one:--drain a")
    code, found, _ = ask(*options, "--fail-on", "pending>0", "--junit", "r.xml")
    assert code == 3
    finding, *_questions = found["findings"]
    assert finding.startswith("both: --fail-on pending>0: x/")
    held = [one["holds"] for row in found["alternatives"] for one in row["fail_on"]]
    assert held == [True, False]
    root = ET.parse(tmp_path / "r.xml").getroot()
    suites = [(one.get("name"), one.get("failures")) for one in root]
    assert suites == [("fairlead whatif: both", "1"), ("fairlead whatif: one", "0")]
    [case] = root[0].findall("testcase")
    assert case.get("classname") == "both: What if: --drain a --drain b"


def test_conditions_that_hold_for_no_alternative_are_a_success(ask):
    code, found, _ = ask("--change", "one:--drain a", "--fail-on", "pending>0")
    assert (code, found["findings"]) == (0, ["What if: --drain a"])


def test_the_report_names_the_conditions_that_hold(ask, tmp_path):
    options = ("--change", "both:--drain a --drain b", "--fail-on", "pending>0")
    _, found, _ = ask(*options, "--report", "compared.html")
    assert reported(tmp_path / "compared.html")["findings"] == found["findings"] != []
