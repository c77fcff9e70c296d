"""Every line of a running replica has its time, in both formats."""

from __future__ import annotations

import json
import logging

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.worlds.cluster.telemetry.run_log import LibraryLogHandler, RunLog
from fairlead.worlds.log_entry import FORMS, LogEntry

NOON = seconds(43_200) + 1_234_567


def written(form, *calls):
    lines = []
    log = RunLog(lambda entry, now: lines.append(FORMS[form](entry, now)), lambda: NOON)
    for call in calls:
        call(log)
    return lines


def test_text_has_the_severity_and_the_time():
    """A line without key-value pairs is prose, so its message is not quoted."""
    lines = written(
        "text",
        lambda log: log.note('slow cycle: "Scheduling"'),
        lambda log: log.problem("pods cannot be read"),
        lambda log: log.failure("leaderelection lost"),
    )
    assert lines == [
        'I0101 12:00:00.001234 fairlead] slow cycle: "Scheduling"',
        "W0101 12:00:00.001234 fairlead] pods cannot be read",
        "E0101 12:00:00.001234 fairlead] leaderelection lost",
    ]


def test_json_has_the_keys_of_kubernetes_and_the_pairs_of_the_line():
    entry = LogEntry(2, "scheduler", "Placed pod on node", {"pod": "ns/p", "cycle": 3})
    lines = written("json", lambda log: log.write(entry), lambda log: log.problem("a\nb"))
    assert lines[0] == (
        '{"ts":43200001.234,"level":"info","v":2,"logger":"scheduler","msg":"Placed pod on node",'
        '"pod":"ns/p","cycle":3}'
    )
    assert [json.loads(line)["msg"] for line in lines] == ["Placed pod on node", "a\nb"]


@pytest.mark.parametrize(
    ("level", "letter"), [(logging.INFO, "I"), (logging.WARNING, "W"), (logging.CRITICAL, "E")]
)
def test_lines_of_libraries_have_the_name_of_their_logger(level, letter):
    record = logging.LogRecord("aiohttp.server", level, "", 0, "refused %s", ("a",), None)
    [line] = written("text", lambda log: LibraryLogHandler(log).emit(record))
    assert line == f"{letter}0101 12:00:00.001234 aiohttp.server] refused a"
