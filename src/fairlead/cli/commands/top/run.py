"""Runs `fairlead top`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from io import StringIO
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from fairlead.cli import exit_code
from fairlead.cli.commands.top.frame import FrameOptions, print_frame
from fairlead.cli.commands.top.reading import Reading, read_cluster_once
from fairlead.cli.options.connection import (
    ConnectionOptions,
    connection_of,
    shown_reading,
)
from fairlead.cli.output.console.terminal import stdout_console
from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import ConnectionConfigError, RequestError
from fairlead.client.rest_client import RestClient
from fairlead.engine.core.instant import to_seconds
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError

EVERY_SECONDS_MIN: Final = 1.0


def show_cluster(
    connection: ConnectionOptions, *, once: bool, every: str, sort: str, namespace: str
) -> int:
    """Show the cluster once, or until Ctrl-C; return the exit code. Raises InputError."""
    every_s = _interval(every)
    config = connection_of(connection)
    console = stdout_console()
    try:
        if once or not console.is_terminal:
            reading = asyncio.run(_read_once(config, namespace))
            print_frame(console, reading, FrameOptions(sort, namespace))
        else:
            asyncio.run(_follow(config, console, every_s, sort, namespace))
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem, field=cause.field) from None
    except RequestError as cause:
        raise InputError(config.name, f"{cause.server}: {cause.message}") from None
    except KeyboardInterrupt as ended:
        if type(ended) is not KeyboardInterrupt:  # a SignalError, which is no normal end
            raise
    return exit_code.SUCCESS


def _interval(text: str) -> float:
    try:
        every_s = to_seconds(read_duration(text))
    except ValueError as cause:
        raise InputError("--every", str(cause)) from None
    if every_s < EVERY_SECONDS_MIN:
        raise InputError("--every", "must be at least 1s")
    return every_s


async def _read_once(config: ConnectionConfig, namespace: str) -> Reading:
    async with RestClient(config) as client:
        return await _read_first(client, namespace)


async def _read_first(client: RestClient, namespace: str) -> Reading:
    """Read the cluster before the first frame; meanwhile, a terminal shows what is being read."""
    with shown_reading(client.config.name):
        return await read_cluster_once(client, namespace)


async def _follow(
    config: ConnectionConfig, console: Console, every_s: float, sort: str, namespace: str
) -> None:
    """Draw the cluster every `every_s` seconds; show a failed request, and try it again."""
    async with RestClient(config) as client:
        reading, problem = await _read_first(client, namespace), ""
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                options = FrameOptions(sort, namespace, console.height)
                draw(live, reading, options, problem)
                await asyncio.sleep(every_s)
                try:
                    reading, problem = await read_cluster_once(client, namespace), ""
                except RequestError as cause:
                    problem = f"{cause.server}: {cause.message}"


def draw(live: Live, reading: Reading, options: FrameOptions, problem: str = "") -> None:
    """Replace the frame on the screen by a frame of `reading`, the last successful reading.

    `problem` is the error of the latest attempt to read the cluster, "" if this attempt succeeded.

    The frame is printed to a separate console. The console of a live display would print the
    previous frame as well.
    """
    page = Console(
        file=StringIO(), width=live.console.width, force_terminal=True, color_system="standard",
        highlight=False, emoji=False, markup=False,
    )  # fmt: skip
    with page.capture() as captured:
        if problem:
            page.print(Text(problem, style="red"), no_wrap=True, overflow="ellipsis")
            options = replace(options, height=max(options.height - 1, 1))
        print_frame(page, reading, options)
    live.update(Text.from_ansi(captured.get()), refresh=True)
