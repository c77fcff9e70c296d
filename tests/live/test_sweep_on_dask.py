"""A sweep on a Dask cluster of two workers gives the same files as one on this machine."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairlead.cli import exit_code
from fairlead.cli.main import run

SCENARIO = Path(__file__).parents[2] / "examples" / "priorities" / "scenario.yaml"
WORKERS = 2
START_S_MAX = 60


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _await_listener(port: int) -> None:
    async with asyncio.timeout(START_S_MAX):
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.1)


@pytest.fixture
def dask_address(tmp_path: Path) -> Iterator[str]:
    """The address of a Dask scheduler with two workers, each a process."""
    if find_spec("distributed") is None and not os.environ.get("CI"):
        pytest.skip("needs distributed")
    port = _free_port()
    python = [sys.executable, "-m"]
    scheduler = [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
                 "--port", str(port), "--no-dashboard"]  # fmt: skip
    worker = [*python, "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}",
              "--nthreads", "1", "--no-nanny", "--no-dashboard"]  # fmt: skip
    with ExitStack() as stack, (tmp_path / "dask.log").open("wb") as log:
        for command in [scheduler, *([worker] * WORKERS)]:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            if command is scheduler:
                asyncio.run(_await_listener(port))
        yield f"127.0.0.1:{port}"


@pytest.mark.long
def test_two_workers_give_the_same_files(dask_address: str, tmp_path: Path) -> None:
    question = ["sweep", str(SCENARIO), "--vary", "seed=0..7", "--lose", "node@5m", "--parquet"]
    here, there = tmp_path / "here", tmp_path / "there"
    assert run([*question, "--on", "processes:1", "--out", str(here)]) == exit_code.SUCCESS
    on_dask = ["--on", f"dask://{dask_address}", "--out", str(there)]
    assert run([*question, *on_dask]) == exit_code.SUCCESS
    files = sorted(file.relative_to(here) for file in here.rglob("*") if file.is_file())
    assert len(files) == 32 + 4  # the cases; cases.csv, cases.parquet and two reports
    for file in files:
        assert (there / file).read_bytes() == (here / file).read_bytes(), file
