"""The annotation `fairlead.dev/kubelet`, which makes the simulated kubelet of a Node misbehave.

    running            normal; the same as no annotation
    stopped            the machine is off: the kubelet neither renews its Lease nor posts a status,
                       and the node's pods do not change
    paused             the containers run, but the kubelet sends nothing; when the mode ends, it
                       reports the current state
    slow 45s           renews its lease and posts its status at this interval
    flap 60s/120s      off for 60 s, on for 120 s, repeatedly, starting when the annotation is set;
                       each of the two times is at least one second
    ready              posts Ready=True, even if the node was not ready in the dump
    not-ready          posts Ready=False
    memory-pressure, disk-pressure, pid-pressure
                       posts that condition

`running` to `flap` are modes; `ready` and all words after it are conditions. The value may contain
any number of conditions and at most one mode, separated by commas (for example,
`slow 45s,disk-pressure`). `ready` and `not-ready` exclude each other.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.api.text.text_cache import text_cache
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_duration

KUBELET: Final = "fairlead.dev/kubelet"
SIMULATED_RUNTIME: Final = "fairlead://simulated"
"""The containerRuntimeVersion of the nodes that `fairlead up` creates."""


class Mode(StrEnum):
    """The mode of a simulated kubelet: whether and when the kubelet sends heartbeats."""

    RUNNING = "running"
    STOPPED = "stopped"
    PAUSED = "paused"
    SLOW = "slow"
    FLAP = "flap"


class Report(StrEnum):
    """A node condition that a kubelet reports if the annotation `fairlead.dev/kubelet` names it."""

    READY = "ready"
    NOT_READY = "not-ready"
    MEMORY_PRESSURE = "memory-pressure"
    DISK_PRESSURE = "disk-pressure"
    PID_PRESSURE = "pid-pressure"


class KubeletBehaviour(Struct, frozen=True):
    """The parsed annotation `fairlead.dev/kubelet`.

    `every` (ns) is the interval of the mode SLOW, and 0 in other modes. In the mode FLAP, the
    kubelet is off for `off` (ns), then on for `on` (ns), repeatedly. In other modes, `off` and `on`
    are 0. `reports` are in the order in which the class `Report` lists them, without repetitions.
    """

    mode: Mode = Mode.RUNNING
    every: int = 0
    off: int = 0
    on: int = 0
    reports: tuple[Report, ...] = ()


RUNNING: Final = KubeletBehaviour()
_WORDS: Final = ", ".join(
    ("running", "stopped", "paused", "slow 45s", "flap 60s/120s", *map(str, Report))
)


@text_cache(256)
def parse_kubelet_behaviour(text: str) -> KubeletBehaviour:
    """Parse the value of the annotation `fairlead.dev/kubelet`; "" means `running`.

    Raises ValueError if `text` is invalid.
    """
    modes: list[KubeletBehaviour] = []
    reports: list[Report] = []
    for word in (one.strip() for one in text.split(",")) if text.strip() else ():
        if word in set(Report):
            reports.append(Report(word))
        else:
            modes.append(_mode(word))
    if len(modes) > 1:
        raise ValueError(f"{text!r} combines {modes[0].mode} with {modes[1].mode}")
    if Report.READY in reports and Report.NOT_READY in reports:
        raise ValueError(f"{text!r} combines {Report.READY} with {Report.NOT_READY}")
    mode = modes[0] if modes else RUNNING
    ordered = tuple(report for report in Report if report in reports)
    return KubeletBehaviour(mode.mode, mode.every, mode.off, mode.on, ordered)


def _mode(word: str) -> KubeletBehaviour:
    match word.split():
        case [("running" | "stopped" | "paused") as name]:
            return KubeletBehaviour(Mode(name))
        case ["slow", every]:
            return KubeletBehaviour(Mode.SLOW, every=_positive(every))
        case ["flap", times] if times.count("/") == 1:
            off, on = times.split("/")
            return KubeletBehaviour(Mode.FLAP, off=_seconds(off), on=_seconds(on))
        case ["flap", times]:
            raise ValueError(f"{times!r} is not DOWN/UP, such as 60s/120s")
    raise ValueError(f"{word!r} is not a kubelet behaviour; known: {_WORDS}")


def _positive(text: str) -> int:
    duration = parse_duration(text)
    if duration <= 0:
        raise ValueError(f"{text!r} is not longer than 0s")
    return duration


def _seconds(text: str) -> int:
    """Parse a duration of at least one second; return it in ns.

    Raises ValueError if the duration is invalid or shorter than a second. Shorter durations would
    cause too many simulated changes.
    """
    duration = _positive(text)
    if duration < NANOSECONDS_PER_SECOND:
        raise ValueError(f"{text!r} is shorter than 1s")
    return duration
