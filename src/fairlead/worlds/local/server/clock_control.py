"""ClockControl: lets authorized users control the clock of a local cluster over HTTP.

GET  /fairlead/clock    {"now": "2026-01-01T00:00:00.000000Z", "speed": 1.0, "paused": false}
POST /fairlead/clock    {"advance": "5m"}, {"speed": 60}, {"paused": true}; same response
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.api.timestamp import format_micro_time, parse_duration
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.negotiation.request_error import no_method
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.request import Request, Response
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.worlds.local.server.runner import Runner

PATH: Final = "/fairlead/clock"
SPEED_MIN: Final = 0.001  # at a lower speed, timers could wait longer than a process runs
SPEED_MAX: Final = 100_000.0
SPEED_RANGE: Final = f"must be from {SPEED_MIN:g} to {SPEED_MAX:g}"
ADVANCE_MAX: Final[DurationNs] = seconds(366 * 24 * 3_600)


class _ClockRequest(msgspec.Struct, forbid_unknown_fields=True):
    advance: str = ""
    speed: float | None = None
    paused: bool | None = None


class ClockControl:
    """Controls the clock of the cluster that `runner` runs."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def __call__(self, request: Request) -> Response:
        """Return the response to a request.

        Raises ApiError: 400 for a bad body, 405 for a bad method.
        """
        if request.method == "POST":
            await self._control(_clock_request(request.body))
        elif request.method != "GET":
            raise no_method()
        return Response(200, (encode(self._state()),))

    def _state(self) -> dict[str, Any]:
        clock = self._runner.clock
        return {
            "now": format_micro_time(clock.now()),
            "speed": clock.speed,
            "paused": clock.is_paused,
        }

    async def _control(self, request: _ClockRequest) -> None:
        duration = _duration(request.advance) if request.advance else 0
        if request.speed is not None and not SPEED_MIN <= request.speed <= SPEED_MAX:
            raise bad_request(f"speed: {SPEED_RANGE}")
        if request.speed is not None or request.paused is not None:
            self._runner.control(speed=request.speed, paused=request.paused)
        if duration:
            await self._runner.advance(duration)


def _clock_request(body: bytes) -> _ClockRequest:
    try:
        return msgspec.json.decode(body, type=_ClockRequest)
    except msgspec.DecodeError as cause:
        raise bad_request(str(cause)) from None


def _duration(text: str) -> DurationNs:
    try:
        duration = parse_duration(text)
    except ValueError as cause:
        raise bad_request(f"advance: {cause}") from None
    if not 0 <= duration <= ADVANCE_MAX:
        raise bad_request("advance: must be at least 0 and at most 366 days")
    return duration
