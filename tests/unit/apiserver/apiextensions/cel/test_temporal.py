"""Timestamps, dates and durations in validation rules."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.cel.rule import broken_rules
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, structural

TIME = {"type": "string", "format": "date-time"}
SPAN = {"type": "string", "format": "duration"}
DAY = {"type": "string", "format": "date"}
TEXT = {"type": "string"}
NEW_YEAR = "-01-01T00:00:00Z"


def typed(rule, **properties):
    return structural(
        {
            "type": "object",
            "properties": properties,
            "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
        }
    )


def is_kept(schema, value, old=ABSENT):
    said = [cause.message for cause in broken_rules(schema, value, old, "spec")]
    assert said in ([], ["Invalid value: no"])
    return not said


@pytest.mark.parametrize(
    ("rule", "holds", "breaks"),
    [
        ("self.t > timestamp('2020-01-01T00:00:00Z')", f"2021{NEW_YEAR}", f"2019{NEW_YEAR}"),
        ("self.t.getFullYear() == 2021", f"2021{NEW_YEAR}", f"2019{NEW_YEAR}"),
    ],
)
def test_a_rule_compares_timestamps(rule, holds, breaks):
    schema = typed(rule, t=TIME, other=TEXT)
    assert is_kept(schema, {"t": holds, "other": "x"})
    assert not is_kept(schema, {"t": breaks})


def test_a_rule_compares_an_optional_duration():
    schema = typed("!has(self.every) || self.every >= duration('1m')", every=SPAN)
    assert is_kept(schema, {})
    assert is_kept(schema, {"every": "90s"})
    assert not is_kept(schema, {"every": "30s"})


def test_a_rule_uses_the_weekday_of_a_date():
    schema = typed("self.day.getDayOfWeek() == 5", day=DAY)
    assert is_kept(schema, {"day": "2026-11-20"})


def test_a_rule_uses_timestamps_in_list_items_and_escaped_fields():
    items = {
        "type": "array",
        "items": {"type": "object", "properties": {"end-at": TIME, "n": TEXT}},
    }
    rule = "self.rows.all(r, r.end__dash__at < timestamp('2027-01-01T00:00:00Z') && r.n == 'a')"
    schema = typed(rule, rows=items)
    assert is_kept(schema, {"rows": [{"end-at": "2026-01-01T00:00:00Z", "n": "a"}]})
    assert not is_kept(schema, {"rows": [{"end-at": "2028-01-01T00:00:00Z", "n": "a"}]})


def test_a_transition_rule_compares_timestamps():
    schema = typed("self.t >= oldSelf.t", t=TIME)
    new, old = {"t": "2026-01-01T01:00:00+01:00"}, {"t": "2026-01-01T00:00:00Z"}
    assert is_kept(schema, new, old)
    assert not is_kept(schema, old, {"t": "2026-01-01T00:00:01Z"})


def test_a_rule_uses_a_nullable_timestamp():
    schema = typed("self.t == null || self.t.getFullYear() > 2000", t={**TIME, "nullable": True})
    assert is_kept(schema, {"t": None})
    assert is_kept(schema, {"t": "2026-01-01T00:00:00Z"})


def test_a_rule_can_belong_to_a_timestamp():
    schema = structural({**TIME, "x-kubernetes-validations": [{"rule": "self.getHours() < 12"}]})
    assert list(broken_rules(schema, "2026-01-01T01:00:00Z", ABSENT, "")) == []


def test_a_rule_uses_timestamps_in_maps():
    schema = typed(
        "self.ends.all(k, self.ends[k] > timestamp('2026-01-01T00:00:00Z'))",
        ends={"type": "object", "additionalProperties": TIME},
    )
    assert is_kept(schema, {"ends": {"a": "2026-01-02T00:00:00Z"}})
    assert not is_kept(schema, {"ends": {"a": "2025-01-02T00:00:00Z"}})
