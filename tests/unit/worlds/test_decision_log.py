"""Log lines of decisions: their levels and format, in every world."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.cli import main
from fairlead.cli.options.log import DecisionLogOptions
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import (
    DisplacementCycle,
    EvictionTimed,
    ExtenderIgnored,
    NodeEmptied,
    NodeMarkedUnknown,
    NominationsWasted,
    PluginFailed,
    PodBound,
    PodEvicted,
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    QueueMissing,
    SilentReporter,
    WorkloadStarving,
    ZoneAssessed,
)
from fairlead.worlds.decision_log import LEVELS, DecisionLog
from fairlead.worlds.log_entry import entry_text

P = ObjectRef("Pod", "ns", "p", "u")
V = ObjectRef("Pod", "ns", "v", "v")
NOON = seconds(43_200)


def lines(*records, verbosity=10):
    found = []

    def write(entry, now):
        found.append(entry_text(entry, now))

    log = DecisionLog(SilentReporter(), lambda: NOON + seconds(1), write, verbosity)
    for record in records:
        log.report(record)
    return found


PLACED = PodPlaced(P, "n1", NOON, "score", 3, 1, NOON, 2, "default-scheduler")
FAILED = PodUnschedulable(
    P, NOON, "0/1 nodes", ("Fit",), "n1", False, False, NOON, 1, "default-scheduler", "why"
)
PREEMPTING = PodPreempting(P, "n1", (V,), 0, "only candidate", 1, 1, NOON, "", ("",), (0,))


def test_a_line_has_time_component_message_and_pairs():
    """The line of a cycle has the counter of its outcome."""
    placed, failed = lines(PLACED, FAILED, verbosity=2)
    assert placed == (
        'I0101 12:00:00.000000 scheduler] "Placed pod on node" pod="ns/p" cycle=1 attempt=2 '
        'node="n1" feasibleNodes=3 via="score" equals=1'
    )
    assert failed == (
        'I0101 12:00:00.000000 scheduler] "Unable to schedule pod; no fit; waiting" pod="ns/p" '
        'cycle=2 attempt=1 reason="0/1 nodes" plugins=["Fit"]'
    )


@pytest.mark.parametrize(
    ("record", "counts"),
    [
        (PLACED, (0, 1, 2, 2)),
        (FAILED, (0, 1, 2, 3)),
        (PREEMPTING, (0, 1, 1, 2)),
        (PodEvicted(P, "n1", "drain", NOON), (0, 1, 1, 1)),
        (EvictionTimed(P, "n1", ("k:NoExecute",), 300, NOON, NOON), (0, 0, 1, 1)),
        (NodeMarkedUnknown("n1", "z", "True", 0, NOON), (0, 1, 1, 1)),
        (NodeEmptied("n1", "z", NOON), (0, 1, 1, 1)),
        (ZoneAssessed("r:\0:z", "Normal", 2, 0, 0.1, NOON), (0, 1, 1, 1)),
        (DisplacementCycle(("a", "b"), ("r", "r"), 3, P, NOON), (1, 1, 1, 1)),
        (WorkloadStarving("Job/ns/low", 6, P, 0, NOON), (1, 1, 1, 1)),
        (WorkloadStarving("Job/ns/spare", 6, P, -10, NOON), (0, 0, 0, 0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_record_has_its_log_level(record, counts):
    """The levels are those of -v 0, info, debug and trace."""
    assert tuple(len(lines(record, verbosity=n)) for n in (0, *LEVELS.values())) == counts


def test_only_a_new_state_of_a_zone_is_logged_as_new():
    zone = ZoneAssessed("r:\0:z", "Normal", 2, 0, 0.1, NOON)
    unready = msgspec.structs.replace(zone, unready=1)
    disrupted = msgspec.structs.replace(zone, state="FullDisruption", unready=2)
    found = [line.split("] ")[1] for line in lines(zone, unready, disrupted)]
    new = '"Controller detected that zone is now in new state" zone="r::z" '
    assert found == [
        new + 'newState="Normal" nodes=2 notReady=0 evictionRate=0.1',
        '"Zone has changed" zone="r::z" state="Normal" nodes=2 notReady=1 evictionRate=0.1',
        new + 'newState="FullDisruption" nodes=2 notReady=2 evictionRate=0.1',
    ]


def test_a_failed_binding_has_the_cycle_that_placed_the_pod():
    other = msgspec.structs.replace(PLACED, pod=V)
    refused = msgspec.structs.replace(FAILED, is_binding=True, attempt=2)
    *_, line = lines(PLACED, other, refused, verbosity=3)
    assert '"Unable to schedule pod; no fit; waiting" pod="ns/p" cycle=1 attempt=2' in line
    attempts = [one for one in lines(PLACED, refused) if '"Attempting to schedule pod"' in one]
    assert len(attempts) == 1


def test_a_pod_that_reserve_rejects_has_its_own_cycle():
    """Its placement is not reported, because the cycle fails before the binding begins."""
    refused = msgspec.structs.replace(FAILED, is_binding=True)
    attempting, line = lines(PLACED, msgspec.structs.replace(refused, pod=V), verbosity=3)[-2:]
    assert '"Attempting to schedule pod" pod="ns/v" cycle=2' in attempting
    assert '"Unable to schedule pod; no fit; waiting" pod="ns/v" cycle=2' in line


def test_a_bound_pod_is_forgotten():
    log = DecisionLog(SilentReporter(), lambda: NOON, lambda _entry, _now: None, 2)
    log.report(PLACED)
    log.report(PodBound(P, "n1", NOON, NOON, 2, "default-scheduler", NOON))
    assert log._placing == {}


def test_the_lines_of_a_batch_session_have_no_cycle():
    waiting = msgspec.structs.replace(FAILED, via="batch")
    evicting = msgspec.structs.replace(PREEMPTING, via="batch", rule="reclaim")
    found = lines(waiting, evicting, PLACED, verbosity=2)
    assert found[0].endswith(
        'batch] "Unable to place pod of a job; waiting" pod="ns/p" reason="0/1 nodes"'
    )
    assert 'batch] "Preempting pods on node"' in found[1]
    assert "cycle=" not in found[1]
    assert "cycle=1" in found[2]


def test_a_failed_plugin_is_logged_at_the_current_time():
    """The record has no time, and it can be the first one."""
    (line,) = lines(PluginFailed("Price", "Score", "no price"), verbosity=0)
    assert line == (
        'W0101 12:00:01.000000 scheduler] "Plugin failed" plugin="Price" extensionPoint="Score" '
        'reason="no price"'
    )


def test_an_ignored_failure_of_an_extender_is_a_warning():
    (line,) = lines(ExtenderIgnored("http://x/filter", "code 500"), verbosity=0)
    assert line == (
        'W0101 12:00:01.000000 scheduler] "Extender failed and is ignored" url="http://x/filter" '
        'reason="code 500"'
    )


def test_a_failed_cycle_is_an_error_at_any_verbosity():
    """A plugin that returns an error stops no other pod, so it is easily missed."""
    (line,) = lines(msgspec.structs.replace(FAILED, is_error=True), verbosity=0)
    assert line.startswith('E0101 12:00:00.000000 scheduler] "Error scheduling pod; retrying"')


def test_warnings_need_no_option():
    written = []
    wrap = DecisionLogOptions().logging_with_warnings(lambda entry, _now: written.append(entry))
    log = wrap(SilentReporter(), lambda: NOON)
    log.report(PLACED)
    log.report(PluginFailed("Price", "Score", "no price"))
    assert [entry.message for entry in written] == ["Plugin failed"]


def test_findings_are_warnings():
    (line,) = lines(DisplacementCycle(("a", "b"), ("r", "r"), 3, P, NOON), verbosity=0)
    assert line.startswith('W0101 12:00:00.000000 scheduler] "Workloads displace each other"')


def test_a_missing_queue_is_a_warning():
    """Its jobs wait forever, and nothing else says why."""
    (line,) = lines(QueueMissing("default", 2, NOON), verbosity=0)
    message = '"Queue does not exist; jobs wait for it" queue="default" jobs=2'
    assert line == f"W0101 12:00:00.000000 batch] {message}"


def test_warnings_about_wasted_nominations_become_rare():
    """Without permission to delete pods, a preemption is retried many times per second."""
    found = lines(*[NominationsWasted(P, times, NOON) for times in range(3, 28, 3)], verbosity=0)
    assert [line.rpartition("times=")[2] for line in found] == ["3", "6", "12", "24"]


def test_a_profile_without_post_filters_is_logged():
    # upstream: pkg/scheduler/schedule_one.go:schedulingCycle
    *_, line = lines(msgspec.structs.replace(FAILED, post_filter=None), verbosity=3)
    message = (
        '"No PostFilter plugins are registered, so no preemption will be performed" pod="ns/p"'
    )
    assert line.endswith(message)


def test_the_error_of_a_post_filter_is_logged_as_an_error():
    # upstream: pkg/scheduler/schedule_one.go:schedulingCycle
    reason = {"post_filter": "out of order", "post_filter_failed": True}
    failed = msgspec.structs.replace(FAILED, nominated_node=None, **reason)
    (line,) = [one for one in lines(failed, verbosity=0) if "PostFilter" in one]
    assert line.startswith("E0101 12:00:00.000000 scheduler]")
    assert line.endswith('status="Error" node="" reason="out of order"')


def test_victims_and_the_reasons_of_post_filters_are_details():
    text = "\n".join(lines(PREEMPTING, FAILED))
    assert '"Pod is a preemption victim on node" pod="ns/v" node="n1" preemptor="ns/p"' in text
    assert '"Status after running PostFilter plugins for pod"' in text
    assert 'status="Success" node="n1" reason="why"' in text


# --- options ----------------------------------------------------------------------------------

SCENARIO = """
cluster: {generated: {nodes: 1}}
objects:
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: default}
  spec: {containers: [{name: c, image: i}]}
duration: 1m
"""


@pytest.fixture
def logged(tmp_path, capsys):
    """Returns the lines on standard error of a simulation with these options."""

    def run(*options):
        path = tmp_path / "s.yaml"
        path.write_text(SCENARIO)
        main.run(["simulate", str(path), "--no-report", *options])
        return capsys.readouterr().err.splitlines()

    return run


def test_decisions_are_not_logged_by_default(logged):
    assert logged() == []


@pytest.mark.parametrize("options", [("--log-level", "info"), ("-v", "2")])
def test_the_name_and_the_number_of_a_level_are_equivalent(logged, options):
    placed = [line for line in logged(*options) if "Placed pod" in line]
    assert len(placed) == 1
    assert 'pod="default/web" cycle=1' in placed[0]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("-v", "2", "--log-level", "info"), "-v: cannot be combined with --log-level"),
        (("-v", "-1"), "-v: must be 0 or more"),
    ],
)
def test_contradicting_options_are_refused(logged, options, line):
    assert logged(*options) == [f"fairlead: {line}"]
