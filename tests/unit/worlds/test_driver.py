"""The driver: all consequences of a stimulus are complete before the next stimulus."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import IssuedCommand, ObjectRef, PatchObject
from fairlead.engine.core.issuer import KUBELET, SCHEDULER
from fairlead.engine.core.stimulus import CommandSucceeded, ObjectChanged
from fairlead.worlds.driver import Driver, LivelockError


def command(name):
    return PatchObject(ObjectRef("Node", "", name), {})


def issued(names):
    return [IssuedCommand(command(name), SCHEDULER) for name in names]


class Diary:
    """A world with the script {instant: [names]}, and an engine with given replies and deadlines.

    Both record their calls.
    """

    def __init__(self, script=None, replies=None, deadlines=None, answers_at_once=False):
        self.script = [(at, name) for at, names in (script or {}).items() for name in names]
        self.replies = replies or {}
        self.deadlines = list(deadlines or ())
        self.answers_at_once = answers_at_once
        self.pending = []
        self.entries = []

    # the world

    def perform(self, issued, now):
        given = issued.command
        self.entries.append(("perform", given.target.name, now))
        outcome = CommandSucceeded(given)
        if self.answers_at_once:
            return outcome
        self.pending.append(outcome)
        return None

    def poll(self, now):
        if not self.pending and self.script and self.script[0][0] <= now:
            self.pending.append(ObjectChanged(self.script.pop(0)[1]))
        stimuli, self.pending = self.pending, []
        return stimuli

    def next_event(self):
        return self.script[0][0] if self.script else None

    # the engine

    def handle(self, stimulus, now):
        match stimulus:
            case ObjectChanged(name):
                self.entries.append(("see", name, now))
            case CommandSucceeded(done):
                name = f"{done.target.name} done"
                self.entries.append(("see", name, now))
        return issued(self.replies.get(name, ()))

    def next_deadline(self):
        return self.deadlines[0] if self.deadlines else None

    def handle_deadline(self, now):
        self.deadlines.pop(0)
        self.entries.append(("deadline", "", now))
        return issued(self.replies.get("deadline", ()))

    def handle_overdue(self, now):
        self.entries.append(("overdue", "", now))
        return [IssuedCommand(command(name), KUBELET) for name in self.replies.get("overdue", ())]


def run(diary, until=100, **options):
    driver = Driver(diary, diary, now=0)
    driver.run(until, **options)
    return [
        f"{what} {name}@{at}".replace(" @", "@") for what, name, at in diary.entries
    ], driver.now


def test_an_event_of_the_world_settles_before_the_next():
    diary = Diary({5: ["a", "b"]}, replies={"a": ["x"], "x done": ["y"]})
    assert run(diary)[0] == [
        "see a@5",
        "perform x@5",
        "see x done@5",
        "perform y@5",
        "see y done@5",
        "see b@5",
    ]


def test_events_of_the_world_are_handled_before_deadlines_of_the_controller():
    diary = Diary({5: ["a", "b"]}, deadlines=[5, 5])
    assert run(diary)[0] == ["see a@5", "see b@5", "deadline@5", "deadline@5"]


def test_a_unit_of_work_settles_before_the_next():
    diary = Diary(replies={"deadline": ["x"]}, deadlines=[3, 3])
    assert run(diary)[0] == [
        "deadline@3",
        "perform x@3",
        "see x done@3",
        "deadline@3",
        "perform x@3",
        "see x done@3",
    ]


def test_commands_issued_together_are_all_sent_before_outcomes_are_handled():
    diary = Diary({1: ["a"]}, replies={"a": ["x", "y"], "x done": ["z"]})
    assert run(diary)[0] == [
        "see a@1",
        "perform x@1",
        "perform y@1",
        "see x done@1",
        "perform z@1",
        "see y done@1",
        "see z done@1",
    ]


def test_an_outcome_can_arrive_at_once():
    diary = Diary({1: ["a"]}, replies={"a": ["x"]}, answers_at_once=True)
    assert run(diary)[0] == ["see a@1", "perform x@1", "see x done@1"]


def test_a_deadline_in_the_past_is_handled_at_once():
    assert run(Diary(deadlines=[-7]))[0] == ["deadline@0"]


def test_time_advances_to_the_next_due_time_until_the_end():
    entries, now = run(Diary({7: ["a"], 50: ["late"]}, deadlines=[3, 9, 60]), until=40)
    assert entries == ["deadline@3", "see a@7", "deadline@9"]
    assert now == 40


def test_work_that_is_due_at_the_end_is_performed():
    assert run(Diary({40: ["a"]}, deadlines=[40]), until=40)[0] == ["see a@40", "deadline@40"]


def test_a_run_continues_where_it_ended():
    diary = Diary({7: ["a"], 50: ["b"]})
    driver = Driver(diary, diary, now=0)
    for until, entries in ((6, 0), (49, 1), (49, 1), (50, 2)):
        driver.run(until)
        assert (driver.now, len(diary.entries)) == (until, entries)


def test_time_is_never_set_back():
    driver = Driver(Diary(), Diary(), now=9)
    driver.run(3)
    assert driver.now == 9


def test_a_run_stops_when_the_condition_is_met():
    diary = Diary({1: ["a"], 2: ["b"], 3: ["c"]})
    entries, now = run(diary, stop_when=lambda: ("see", "b", 2) in diary.entries)
    assert (entries[-1], now) == ("see b@2", 2)


def test_the_stop_condition_is_evaluated_only_after_everything_has_settled():
    diary = Diary({1: ["a"]}, replies={"a": ["x"], "x done": ["y"]})
    entries, _ = run(diary, stop_when=lambda: bool(diary.entries))
    assert entries[-1] == "see y done@1"


def test_progress_is_reported_after_each_unit_of_work():
    instants = []
    run(Diary({1: ["a"]}, deadlines=[1, 1, 8]), until=9, on_progress=instants.append)
    assert instants == [0, 1, 1, 1, 8, 8]


def test_endless_stimuli_are_a_livelock():
    diary = Diary({1: ["a"]}, replies={"a": ["x"], "x done": ["x"]})
    driver = Driver(diary, diary, now=0, steps_per_instant_max=50)
    with pytest.raises(LivelockError) as livelock:
        driver.run(100)
    assert (livelock.value.now, livelock.value.steps) == (1, 51)
    assert livelock.value.history[-1] == CommandSucceeded(command("x"))
    assert len(livelock.value.history) == 20


def test_endless_deadlines_are_a_livelock():
    diary = Diary(deadlines=[4] * 60)
    driver = Driver(diary, diary, now=0, steps_per_instant_max=50)
    with pytest.raises(LivelockError, match="the time did not advance in 51 steps at 4 ns"):
        driver.run(100)


def test_a_world_that_never_delivers_its_due_event_is_a_livelock():
    diary = Diary(deadlines=[9])
    diary.next_event = lambda: 4
    driver = Driver(diary, diary, now=0, steps_per_instant_max=50)
    with pytest.raises(LivelockError):
        driver.run(100)
    assert diary.entries == []


def test_many_steps_at_different_instants_are_not_a_livelock():
    diary = Diary({at: ["a"] for at in range(90)}, replies={"a": ["x"]})
    driver = Driver(diary, diary, now=0, steps_per_instant_max=3)
    driver.run(100)
    assert len(diary.entries) == 270


def test_pass_time_stops_at_the_next_due_time() -> None:
    """Otherwise, a change between two times would be reported with a wrong time."""
    driver = Driver(diary := Diary(deadlines=[7]), diary, now=0)
    driver.pass_time(5)
    assert driver.now == 5
    driver.pass_time(9)
    assert driver.now == 7
    driver.pass_time(3)
    assert driver.now == 7


def test_time_passes_by_no_more_than_busy_max_while_work_is_due() -> None:
    driver = Driver(diary := Diary({1: ["a", "b", "c"]}), diary, now=0)
    driver.run(5, pause_when=lambda: True)
    driver.pass_time(9)
    assert driver.now == 1
    driver.pass_time(9, busy_max=3)
    assert driver.now == 4
    driver.pass_time(5, busy_max=3)
    assert driver.now == 5


def test_endless_work_is_a_livelock_even_if_time_passes() -> None:
    diary = Diary({0: ["a"]}, replies={"a": ["x"], "x done": ["x"]})
    driver = Driver(diary, diary, now=0, steps_per_instant_max=50)

    def work_in_slices() -> None:
        for _ in range(200):
            driver.run(driver.now, pause_when=lambda: True)
            driver.pass_time(driver.now + 10, busy_max=1)

    with pytest.raises(LivelockError):
        work_in_slices()


def test_a_paused_run_can_be_continued():
    """The caller can do other work in between, and time may have passed."""
    diary = Diary({1: ["a", "b", "c"]})
    driver = Driver(diary, diary, now=0)
    driver.run(5, pause_when=lambda: True)
    assert diary.entries == [("see", "a", 1)]
    assert (driver.now, driver.next_due()) == (1, 1)
    driver.pass_time(3)
    driver.run(5)
    assert [name for _, name, _ in diary.entries] == ["a", "b", "c"]
    assert (driver.now, driver.next_due()) == (5, None)


def test_a_run_can_pause_between_commands():
    """So a caller with other work does not wait for a long list of commands."""
    diary = Diary({1: ["a"]}, replies={"a": ["x", "y"]})
    driver = Driver(diary, diary, now=0)
    for _ in range(2):
        driver.run(1, pause_when=lambda: True)
    assert diary.entries == [("see", "a", 1), ("perform", "x", 1)]
    driver.run(1)
    assert [name for _, name, _ in diary.entries] == ["a", "x", "y", "x done", "y done"]


def test_many_commands_do_not_delay_work_that_becomes_due_during_a_pause():
    """Commands of other issuers are performed in between; each issuer keeps its order."""
    diary = Diary({1: ["a"]}, replies={"a": ["x", "y", "z"], "overdue": ["p", "q"]})
    driver = Driver(diary, diary, now=0, handle_overdue=diary.handle_overdue)
    for _ in range(2):
        driver.run(1, pause_when=lambda: True)
    driver.pass_time(2, busy_max=1)
    driver.run(2)
    performed = [name for what, name, _ in diary.entries if what in ("perform", "overdue")]
    assert performed == ["x", "", "y", "p", "z", "q"]


def test_many_commands_do_not_delay_the_effects_of_the_first_commands():
    diary = Diary({1: ["a"]}, replies={"a": ["x", "y", "z"], "x done": ["w"]})
    driver = Driver(diary, diary, now=0, handle_overdue=diary.handle_overdue)
    for _ in range(2):
        driver.run(1, pause_when=lambda: True)
    driver.pass_time(2, busy_max=1)
    driver.run(2, pause_when=lambda: True)
    names = [name for what, name, _ in diary.entries if what != "overdue"]
    assert names == ["a", "x", "x done", "y"]


def test_a_pause_without_a_passage_of_time_changes_nothing():
    """So a run with a paused clock does not depend on the speed of the machine."""
    diary = Diary({1: ["a"]}, replies={"a": ["x", "y"], "overdue": ["p"]})
    driver = Driver(diary, diary, now=0, handle_overdue=diary.handle_overdue)
    driver.run(1, pause_when=lambda: True)
    driver.run(1)
    assert [name for _, name, _ in diary.entries] == ["a", "x", "y", "x done", "y done"]
