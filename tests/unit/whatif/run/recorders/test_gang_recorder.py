"""Records about gangs: finished and broken gangs, lost and idle usage, and waiting times."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.testing.batch_builders import make_group, make_task
from fairlead.whatif.outcome.jobs import GangWaits, IncompleteGang
from fairlead.whatif.run.recorders.gang_recorder import GangRecorder


class Story:
    """Advances the time by hours, and changes the members of a gang of three CPUs."""

    def __init__(self, members=3, minimum=None):
        self.ledger = GangRecorder()
        self.now = 0
        pods = [make_task(f"g-{i}", "g") for i in range(members)]
        self.pods = {pod.metadata.name: pod for pod in pods}
        group = make_group("g", members if minimum is None else minimum)
        self.ledger.observe(ObjectsLoaded([group, *pods]), 0)

    def after(self, hours):
        self.now += int(hours * 3600e9)
        return self

    def run(self, *names):
        return self._become("Running", names)

    def succeed(self, *names):
        return self._become("Succeeded", names)

    def _become(self, phase, names):
        change = msgspec.structs.replace
        for name in names or self.pods:
            pod = self.pods[name]
            pod = change(
                pod,
                spec=change(pod.spec, node_name="n"),
                status=change(pod.status, phase=phase),
            )
            self.pods[name] = pod
            self.ledger.observe(ObjectChanged(pod), self.now)
        return self

    def preempt(self, *names):
        refs = [self._ref(name) for name in names]
        self.ledger.preempted(refs, self.now)
        return self

    def go(self, *names):
        for name in names:
            self.ledger.observe(ObjectDeleted(self.pods[name]), self.now)
        return self

    def _ref(self, name):
        return ObjectRef("Pod", "default", name, self.pods[name].metadata.uid)

    @property
    def tally(self):
        return self.ledger.tally(self.now)

    def hours(self, what):
        return getattr(self.tally, what).get("cpu", 0) / 3600e9 / 1000


def test_a_gang_whose_members_ran_at_the_same_time_is_finished():
    story = Story().run().after(2).succeed()
    assert (story.tally.gangs, story.tally.finished, story.tally.broken) == (1, 1, 0)
    assert (story.tally.lost, story.tally.incomplete) == ({}, {})


def test_a_gang_whose_members_ran_one_after_another_is_not_finished():
    story = Story()
    for name in story.pods:
        story.run(name).after(1).succeed(name)
    assert story.tally.finished == 0


def test_a_gang_with_a_member_that_did_not_succeed_is_not_finished():
    assert Story().run().after(1).succeed("g-0", "g-1").tally.finished == 0


@pytest.mark.parametrize(("victims", "broken"), [(("g-0",), 1), (("g-0", "g-1", "g-2"), 0)])
def test_a_gang_is_broken_if_preemption_leaves_too_few_running_members(victims, broken):
    story = Story().run().after(1).preempt(*victims).after(1)
    assert story.tally.broken == broken


def test_victims_at_one_instant_break_a_gang_once():
    story = Story().run().after(1).preempt("g-0").preempt("g-1")
    assert story.after(1).tally.broken == 1


def test_preemption_of_a_member_above_the_minimum_does_not_break_a_gang():
    assert Story(minimum=2).run().after(1).preempt("g-0").after(1).tally.broken == 0


def test_the_usage_of_victims_counts_as_lost():
    story = Story().run().after(2).preempt("g-0", "g-1", "g-2").after(5).go("g-0", "g-1", "g-2")
    assert story.hours("lost") == 6


def test_the_usage_of_pods_deleted_without_preemption_does_not_count_as_lost():
    assert Story().run().after(2).go("g-0").hours("lost") == 0


def test_the_usage_of_too_few_members_counts_as_incomplete():
    story = Story().run("g-0", "g-1").after(3).run("g-2").after(1).succeed()
    assert story.hours("incomplete") == 6
    assert story.tally.finished == 1


def test_the_time_with_too_few_members_is_counted():
    story = Story().run("g-0", "g-1").after(3).run("g-2").after(1).go("g-0").after(2)
    assert story.tally.incomplete_for == {"default/g": int(5 * 3600e9)}


def test_the_time_before_a_minimum_is_raised_does_not_count():
    story = Story(minimum=2).run("g-0", "g-1").after(3)
    story.ledger.observe(ObjectChanged(make_group("g", 3)), story.now)
    assert story.after(1).tally.incomplete_for == {"default/g": int(3600e9)}


def test_the_usage_of_too_few_members_counts_until_the_end_of_the_run():
    assert Story().run("g-0").after(2).hours("incomplete") == 2


def test_a_gang_of_which_too_few_members_run_is_named_until_all_have_ended():
    story = Story(members=3).run().after(1).succeed("g-0").go("g-1")
    assert story.tally.incomplete_now == (IncompleteGang("default/g", "default/g", 2, 3),)
    assert story.succeed("g-2").tally.incomplete_now == ()


def test_the_last_members_of_a_mostly_finished_gang_do_not_count_as_incomplete():
    assert Story().run().after(1).succeed("g-0", "g-1").after(1).hours("incomplete") == 0


def test_single_pods_are_not_gangs():
    assert Story(members=1).run().after(1).succeed().tally.gangs == 0


def test_a_gang_waits_until_enough_members_run():
    story = Story(members=3, minimum=2).after(1).run("g-0").after(1).run("g-1").after(1).run("g-2")
    (waits,) = story.tally.waits
    assert (waits.queue, waits.gangs) == ("default", 1)
    assert waits.waits == (int(2 * 3600e9),)


def test_a_gang_that_never_started_has_no_wait():
    (waits,) = Story().run("g-0").after(5).tally.waits
    assert (waits.gangs, waits.waits, waits.percentile(50)) == (1, (), None)


def test_percentiles_count_the_gangs_that_never_started():
    waits = GangWaits("q", 10, tuple(range(1, 9)))
    assert [waits.percentile(percent) for percent in (1, 50, 80, 81, 90)] == [1, 5, 8, None, None]
