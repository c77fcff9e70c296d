"""JobProgress: the counts of the finished pods of a Job."""

from __future__ import annotations

from fairlead.engine.workloads.job.progress import IndexBackoff, JobProgress


def test_a_copy_shares_no_changeable_value():
    progress = JobProgress(completed={0: None}, by_index={1: IndexBackoff(failures=2)})
    made = progress.copied()
    assert made == progress
    own = {id(getattr(made, name)) for name in made.__struct_fields__}
    shared = [getattr(progress, name) for name in progress.__struct_fields__]
    assert [one for one in shared if id(one) in own and isinstance(one, dict)] == []
    made.by_index[1].fail(9)
    made.backoff.fail(9)
    assert progress.by_index[1].failures == 2
    assert progress.backoff.failures == 0
