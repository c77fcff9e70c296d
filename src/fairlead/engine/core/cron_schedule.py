"""Schedules of CronJobs: five cron fields, a name such as @hourly, or @every with a duration.

The library cronsim computes the times. Fields that upstream's library interprets differently are
rewritten first. `?` and a list with a `*` become `*`. The day of the month and the weekday need
another change: a `*` with a step above 1 becomes a range. For example, `*/2` becomes `1-31/2` or
`0-6/2`. The reason is that `*/2` restricts a field in upstream, but not in cronsim. If the day of
the month and the weekday are both restricted, a date needs to match only one of them.

upstream: github.com/robfig/cron v3 (ParseStandard), pkg/controller/cronjob/utils.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_duration
from fairlead.engine.core.instant import DurationNs, Instant, floor_second, seconds

NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY: Final = "@every "
WHOLE_RANGES: Final = {2: "1-31", 4: "0-6"}  # by position of the field
WEEKDAY: Final = 4
# Matches what only cronsim accepts: the last day (L, LW, 5L) and the nth weekday (5#2) of a month.
# The names of months and weekdays have three letters, so they do not match.
ONLY_CRONSIM: Final = re.compile(r"#|(?<![A-Za-z])[A-Za-z]{1,2}(?![A-Za-z])")


class ScheduleError(ValueError):
    """A schedule cannot be parsed; the error text gives the reason."""


class NoSuchDateError(ScheduleError):
    """A schedule has no times, because its day exists in none of its months (30 February)."""


class Schedule(Struct, frozen=True):
    """The cron `fields` in the time zone `zone`, or an interval.

    If `period` is not 0, the schedule fires every `period` ns, and `fields` is ignored.
    """

    fields: str
    zone: tzinfo = UTC
    period: DurationNs = 0

    def after(self, instant: Instant) -> Instant | None:
        """Return the first time of the schedule after `instant`; None if there is none."""
        return next(self.all_after(instant), None)

    def all_after(self, instant: Instant) -> Iterator[Instant]:
        """Yield the times of the schedule after `instant`, in order.

        The times may never end, so the caller must stop the iteration. The first interval of an
        `@every` schedule begins at `instant`, rounded down to a second.
        """
        if self.period:
            due = floor_second(instant)
            while True:  # bounded by the caller
                due += self.period
                yield due
        # Schedules fire on whole seconds, and the current second has already begun.
        start = datetime.fromtimestamp(instant // NANOSECONDS_PER_SECOND, self.zone)
        # With a field for seconds, cronsim treats daylight saving time as upstream does. A time
        # that the clock skips is skipped. A time that the clock repeats is repeated.
        # upstream: github.com/robfig/cron/v3/spec.go:Next
        for found in CronSim(f"0 {self.fields}", start):
            yield int(found.timestamp()) * NANOSECONDS_PER_SECOND


def read_schedule(text: str, zone_name: str = "") -> Schedule:
    """Return the schedule in `text`, in the time zone `zone_name` ("" for UTC).

    Raises ScheduleError if the schedule or the time zone is invalid. Raises NoSuchDateError if a
    valid schedule has no times.
    """
    zone = read_zone(zone_name)
    if text.startswith(EVERY):
        return Schedule(text, period=_period(text.removeprefix(EVERY)))
    fields = NAMED.get(text, text).split()
    if len(fields) != len(NAMED["@hourly"].split()):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{text}]")
    rewritten = [_field(place, field) for place, field in enumerate(fields)]
    problem = _problem(rewritten)
    if problem:
        minute, hour, day, month, weekday = rewritten
        separately = (minute, hour, day, "*", weekday), (minute, hour, "*", month, weekday)
        is_date = not any(map(_problem, separately))
        raise NoSuchDateError(problem) if is_date else ScheduleError(problem)
    return Schedule(" ".join(rewritten), zone)


def read_zone(name: str) -> tzinfo:
    """Return the time zone `name`; UTC for "". Raises ScheduleError for an unknown zone."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):  # for example if `name` is a directory
        raise ScheduleError(f"unknown time zone {name}") from None


def missed_times(schedule: Schedule, since: Instant, now: Instant) -> int:
    """Return the approximate number of times of the schedule after `since` and not after `now`.

    The result is exact if all intervals of the schedule are equal.
    """
    # upstream: pkg/controller/cronjob/utils.go:mostRecentScheduleTime
    first = schedule.after(since)
    if first is None or first > now:
        return 0
    second = schedule.after(first)
    return 1 if second is None else (now - first) // (second - first) + 1


def most_recent(schedule: Schedule, since: Instant, now: Instant) -> Instant | None:
    """Return the last time of the schedule after `since` and not after `now`.

    Returns None if there is no such time. As in upstream, the result may also be None if the times
    are unevenly spaced. An example is a schedule that is hourly but not at night.
    """
    # upstream: pkg/controller/cronjob/utils.go:mostRecentScheduleTime
    first = schedule.after(since)
    if first is None or first > now:
        return None
    second = schedule.after(first)
    if second is None or second > now:
        return first
    between = second - first
    recent = None
    for due in schedule.all_after(first + ((now - first) // between - 1) * between):
        if due > now:
            break
        recent = due
    return recent


def next_time(schedule: Schedule, since: Instant, now: Instant) -> Instant | None:
    """Return the first scheduled time later than `now`; None if there is no such time.

    `since` is an earlier time, at which the first interval of an `@every` schedule begins.
    """
    # upstream: pkg/controller/cronjob/utils.go:nextScheduleTimeDuration
    recent = most_recent(schedule, since, now)
    if recent is None:
        recent = now if missed_times(schedule, since, now) else since
    return schedule.after(recent)


def _problem(fields: Iterable[str]) -> str:
    """Return the error text if `fields` are invalid or no date matches them; "" otherwise."""
    try:
        CronSim(" ".join(fields), datetime.fromtimestamp(0, UTC))
    except CronSimError as cause:
        return str(cause)
    return ""


def _field(place: int, field: str) -> str:
    """Return `field`, the cron field at index `place`, rewritten for cronsim.

    Raises ScheduleError if upstream does not accept `field` although cronsim does.
    """
    # upstream: parser.go:getRange, where a step above 1 removes the bit of a star
    terms = field.replace("?", "*").split(",")
    if any(term in ("*", "*/1") for term in terms):
        return "*"
    bounds = [bound for term in terms for bound in term.partition("/")[0].split("-")]
    if any(map(ONLY_CRONSIM.search, bounds)) or (place == WEEKDAY and "7" in bounds):
        raise ScheduleError(f"failed to parse {field}")
    if place in WHOLE_RANGES:
        terms = [WHOLE_RANGES[place] + one[1:] if one.startswith("*/") else one for one in terms]
    return ",".join(terms)


def _period(text: str) -> DurationNs:
    try:
        period = parse_duration(text)
    except ValueError:
        raise ScheduleError(f"failed to parse duration @every {text}") from None
    # upstream: robfig/cron constantdelay.go: whole seconds, at least one
    return max(floor_second(period), seconds(1))
