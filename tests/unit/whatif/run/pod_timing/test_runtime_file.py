"""The file of --runtimes: forms, percentiles, and errors by line and field."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.pod_timing.runtime_file import read_runtimes

NO_DURATION = "is not a duration such as 90s, 1h30m or 500ms"


def minutes(*numbers):
    return tuple(seconds(60 * one) for one in numbers)


def test_durations_are_read_by_workload_image_and_label(write):
    text = """
- workload: CronJob/etl/nightly*
  durations: [10m, 120, 1m]
- {image: "train:2", durations: 5m}
- {label: app=import, percentiles: {p50: 10m}}
"""
    nightly, train, imports = read_runtimes(write("runtimes.yaml", text))
    assert (nightly.workload, nightly.durations) == ("cronjob/etl/nightly*", minutes(1, 2, 10))
    assert (train.image, train.durations) == ("train:2", minutes(5))
    assert (imports.label, set(imports.durations)) == (("app", "import"), set(minutes(10)))


def test_percentiles_are_interpolated(write):
    text = "- {image: i, percentiles: {p10: 10m, p50: 50m, p90: 90m}}"
    (found,) = read_runtimes(write("runtimes.yaml", text))
    assert len(found.durations) == 100
    at = [found.durations[percent - 1] for percent in (1, 10, 30, 50, 70, 90, 100)]
    assert tuple(at) == minutes(10, 10, 30, 50, 70, 90, 90)


def test_rows_of_a_table_with_one_subject_belong_together(write):
    text = "workload,image,duration\njob/a/x,,20m\n,train:1,30\njob/a/x,,10m\n"
    first, second = read_runtimes(write("runtimes.csv", text))
    assert (first.subject, first.durations) == ("job/a/x", minutes(10, 20))
    assert (second.subject, second.durations) == ("train:1", (seconds(30),))


def test_a_table_has_percentiles(write):
    (found,) = read_runtimes(write("runtimes.csv", "label,p50,p90\na=b,10m,20m\n"))
    assert found.durations[49::40] == minutes(10, 20)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("r.yaml", "[]", "runtimes: contains no runtime"),
        ("r.yaml", "- {durations: 1m}",
         "runtimes[0]: needs exactly one of workload, image and label"),
        ("r.yaml", "- {image: i}", "runtimes[0]: needs either durations or percentiles"),
        ("r.yaml", "- {image: i, durations: [1m, x]}",
         f"runtimes[0].durations[1]: 'x' {NO_DURATION}"),
        ("r.yaml", "- {image: i, durations: []}", "runtimes[0].durations: is empty"),
        ("r.yaml", "- {workload: web, durations: 1m}",
         "runtimes[0].workload: 'web' is not KIND/NAMESPACE/NAME, such as cronjob/etl/nightly"),
        ("r.yaml", "- {label: web, durations: 1m}", "runtimes[0].label: 'web' is not KEY=VALUE"),
        ("r.yaml", "- {image: i, percentiles: {p101: 1m}}",
         "runtimes[0].percentiles: 'p101' is not a percentile such as p50"),
        ("r.yaml", "- {image: i, percentiles: {p50: 2m, p90: 1m}}",
         "runtimes[0].percentiles: p90 is less than p50"),
        ("r.csv", "pod,duration\n",
         "line 1: has an unknown column 'pod'; known: workload, image, label, duration, p50"),
        ("r.csv", "duration\n1m\n", "line 1: has no column workload, image or label"),
        ("r.csv", "image\ni\n", "line 1: needs either a column duration or columns such as p50"),
        ("r.csv", "image,duration\ni,1m,2\n", "line 2: has more cells than the header"),
        ("r.csv", "image,duration\ni,1m\n,2m\n",
         "line 3: needs exactly one of workload, image and label"),
        ("r.csv", "image,duration\ni,\n", f"line 2: duration: '' {NO_DURATION}"),
        ("r.csv", "image,p50\ni,1m\ni,2m\n", "line 3: image: 'i' is stated twice"),
        ("r.csv", "image,duration\n", "contains no runtime"),
    ],
)  # fmt: skip
def test_errors_name_the_line_or_field(write, name, text, problem):
    path = write(name, text)
    with pytest.raises(InputError) as refused:
        read_runtimes(path)
    assert str(refused.value) == f"{path}: {problem}"
