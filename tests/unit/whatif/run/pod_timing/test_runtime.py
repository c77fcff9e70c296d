"""Runtimes of pods, from the completed pods of a dump."""

from __future__ import annotations

from tests.unit.whatif.run.test_start_time import TAKEN, job_pod

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import seconds
from fairlead.whatif.run.pod_timing.runtime import RuntimeDraw, coverage, runtimes_in

NOW = parse_timestamp(TAKEN)
TWENTY = seconds(20 * 60)


def done(job, end="04:20:00", **spec):
    return job_pod(f"done-{job}-{end[3:5]}", job, started="04:00:00", finished=end, **spec)


def test_runs_of_one_cron_job_belong_together(found):
    earlier, now = done("backup-29384720"), job_pod("p", "backup-29384721", started="04:50:00")
    dump = found(earlier, now)
    assert runtimes_in(dump).of(dump[1].pod) == (TWENTY,)


def test_pods_of_one_template_share_runtimes_and_others_do_not(found):
    earlier = done("import-1")
    same = job_pod("p", "import-2", started="04:50:00")
    same["spec"]["containers"] = earlier["spec"]["containers"]
    other = job_pod("q", "import-3", started="04:50:00")
    dump = found(earlier, same, other)
    assert [runtimes_in(dump).of(one.pod) for one in dump[1:]] == [(TWENTY,), ()]


def test_evicted_and_restarted_pods_do_not_count(found):
    evicted = done("import")
    evicted["status"] |= {"phase": "Failed", "reason": "Evicted"}
    assert not runtimes_in(found(evicted, done("serve", restartPolicy="Always"))).is_given


def test_a_pod_that_runs_longer_than_all_known_ones_has_no_known_end(found):
    ages = ("04:30:00", "04:50:00")  # 30 and 10 minutes
    running = [job_pod(f"r-{at[3:5]}", "import", started=at) for at in ages]
    dump = found(done("import"), *running)
    known = runtimes_in(dump)
    draw = RuntimeDraw(known, NOW, 0)
    assert [draw(one.pod) for one in dump[1:]] == [None, TWENTY]
    assert (coverage(known, dump, NOW).known, coverage(known, dump, NOW).running) == (1, 2)


def test_drawn_runtimes_depend_on_the_seed_and_the_pod(found):
    ends = [f"04:{minute}:00" for minute in range(10, 50)]
    pods = [job_pod(f"p-{number}", "import") for number in range(5)]
    dump = found(*(done("import", end) for end in ends), *pods)
    known = runtimes_in(dump)
    drawn = [[RuntimeDraw(known, NOW, seed)(one.pod) for one in dump[-5:]] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) > 1
