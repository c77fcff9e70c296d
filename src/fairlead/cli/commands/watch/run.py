"""Runs `fairlead watch`."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Final

from aiohttp import web

from fairlead.api.text.count import counted
from fairlead.cli import exit_code
from fairlead.cli.commands.watch.answer_page import AnswerPage
from fairlead.cli.commands.watch.inquiry import Inquiry
from fairlead.cli.commands.watch.question_file import read_questions
from fairlead.cli.options.connection import ConnectionOptions, connection_of, with_context
from fairlead.cli.options.listen import listen_address, open_listener
from fairlead.client.connection import read_text
from fairlead.client.error import ConnectionConfigError
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.live.live_snapshot import read_live
from fairlead.worlds.extender.address import Address
from fairlead.worlds.local.random_ids import new_token

TOKEN_CHARACTERS_MIN: Final = 16


def watch_cluster(
    ask: str,
    connection: ConnectionOptions,
    listen: str,
    *,
    token_file: Path | None,
    beyond_loopback: bool,
) -> int:
    """Serve the answers to the questions in the file `ask` until SIGINT or SIGTERM is received.

    Returns the exit code. Raises InputError.
    """
    file = read_questions(ask)
    address = listen_address(listen, beyond_loopback=beyond_loopback)
    token = new_token() if token_file is None else _token(token_file)
    config = connection_of(connection)
    # A read that is under way when the command ends may still write to the folder.
    directory = TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True)
    with directory as folder, open_listener(address) as listening:
        at = Address(address.host, listening.getsockname()[1])
        read = partial(read_live, config)
        words = with_context(connection).words
        inquiry = Inquiry(file, config.name, read, Path(folder), words)
        page = f"http://{at}/" + (f"?token={token}" if token_file is None else "")
        questions = counted(len(file.questions), "question")
        print(f"answers to {questions} about {config.name}: {page}", flush=True)
        asyncio.run(_serve(inquiry, AnswerPage(inquiry, token), listening))
    return exit_code.SUCCESS


async def _serve(inquiry: Inquiry, page: AnswerPage, listening: socket) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    runner = web.AppRunner(page.app(), access_log=None)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    asking = loop.create_task(inquiry.run())
    asking.add_done_callback(lambda _: ended.set())
    try:
        await ended.wait()
        if asking.done() and asking.exception() is not None:
            print(f"fairlead: {asking.exception()}", file=sys.stderr)
            asking.result()
    finally:
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        await runner.cleanup()


def _token(path: Path) -> str:
    try:
        token = read_text(str(path), "", str(path)).strip()
    except ConnectionConfigError as cause:
        raise InputError("--token-file", cause.problem, object_name=str(path)) from None
    if not token.isascii():
        raise InputError("--token-file", "is not ASCII", object_name=str(path))
    if len(token) < TOKEN_CHARACTERS_MIN:
        problem = f"must hold at least {TOKEN_CHARACTERS_MIN} characters"
        raise InputError("--token-file", problem, object_name=str(path))
    return token
