"""A sweep on a Dask cluster of two workers gives the same files as one on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairlead.cli import exit_code
from fairlead.cli.main import run

SCENARIO = Path(__file__).parents[2] / "examples" / "priorities" / "scenario.yaml"
WORKERS = 2
START_S_MAX = 120


def _address_in(file: Path) -> str:
    """Return the address that the scheduler writes to `file` when it listens."""
    end = time.monotonic() + START_S_MAX  # noqa: TID251 - another process works in real time
    while True:
        with suppress(OSError, ValueError):  # absent, or not written completely
            address: str = json.loads(file.read_text())["address"]
            return address
        assert time.monotonic() < end, "the scheduler does not listen"  # noqa: TID251
        time.sleep(0.1)  # noqa: TID251


@pytest.fixture
def dask_address(tmp_path: Path) -> Iterator[str]:
    """The address of a Dask scheduler with two workers, each a process."""
    if find_spec("distributed") is None and not os.environ.get("CI"):
        pytest.skip("needs distributed")
    file, address = tmp_path / "scheduler.json", ""
    python = [sys.executable, "-m"]
    scheduler = [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
                 "--port", "0", "--scheduler-file", str(file), "--no-dashboard"]  # fmt: skip
    worker = [*python, "distributed.cli.dask_worker", "--scheduler-file", str(file),
              "--nthreads", "1", "--no-nanny", "--no-dashboard"]  # fmt: skip
    with ExitStack() as stack, (tmp_path / "dask.log").open("wb") as log:
        for command in [scheduler, *([worker] * WORKERS)]:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            if command is scheduler:
                address = _address_in(file)
        yield address.removeprefix("tcp://")


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
