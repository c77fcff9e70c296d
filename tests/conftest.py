"""What every test can use: programs of the machine, and properties with equal examples everywhere.

A test marked `needs("chromium")` runs only if this program is installed. Otherwise it is listed at
the end as `not run: needs chromium`. In CI, which has everything, a missing program is a failure.
"""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import sys
import typing
from collections import Counter
from collections.abc import Iterator
from copy import copy
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
from cyclopts import App, ArgumentCollection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.huge_pages import use_huge_pages

from fairlead.whatif.snapshot import garbage_collection
from fairlead.whatif.snapshot.garbage_collection import freeze_until_exit
from fairlead.worlds.gc_thresholds import collect_briefly

SPELLINGS: Final = {"chromium": ("chromium", "chromium-browser", "google-chrome")}
PREFIX: Final = "needs "

# Test runners with several processes set the terminal's width, which would change outputs.
os.environ.pop("COLUMNS", None)

# The modules and tests that are collected are long-lived objects, like those of a large cluster.
# With Python's defaults, the search for reference cycles would take a seventh of the time.
collect_briefly()

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile(
    "explore", settings.get_profile("ci"), derandomize=False, max_examples=2000
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=40)
settings.register_profile("fuzz", settings.get_profile("explore"), max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--update-golden`, which rewrites expected outputs for review as a diff."""
    parser.addoption("--update-golden", action="store_true", help="rewrite expected outputs")


def find_program(name: str) -> Path | None:
    """Return the path of the program `name`, under any of its spellings; None if not installed."""
    for spelling in SPELLINGS.get(name, (name,)):
        path = shutil.which(spelling)
        if path:
            return Path(path)
    return None


def missing_programs(item: pytest.Item) -> list[str]:
    """Return the programs that `item` needs and that this machine does not have."""
    wanted = (name for mark in item.iter_markers("needs") for name in mark.args)
    return [name for name in wanted if find_program(name) is None]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt the collected tests and the imported modules from garbage collection.

    The tests fork this process thousands of times, and a fork takes the longer, the more memory the
    process has. So garbage is collected often. It takes little time, because a collection visits
    only what is created after this function.
    """
    gc.collect()
    use_huge_pages()
    freeze_until_exit()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """Unfreeze all objects during a test, as in a user's process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(garbage_collection, "_frozen_until_exit", Event())
        gc.unfreeze()
        yield
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are missing; in CI, fail it."""
    missing = missing_programs(item)
    if missing and os.environ.get("CI"):
        pytest.fail(f"{PREFIX}{', '.join(missing)}, which CI must have", pytrace=False)
    if missing:
        pytest.skip(PREFIX + ", ".join(missing))


def needs_of_skipped(terminalreporter: pytest.TerminalReporter) -> Iterator[str]:
    """Yield the programs that each skipped test needs."""
    for report in terminalreporter.getreports("skipped"):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if reason.startswith(PREFIX):
            yield reason


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that were not run, with the missing programs."""
    counts = Counter(needs_of_skipped(terminalreporter))
    if not counts:
        return
    terminalreporter.section("not run")
    for reason in sorted(counts):
        terminalreporter.write_line(f"not run: {reason} (tests: {counts[reason]})")


@pytest.fixture(scope="session", autouse=True)
def _hypothesis_random() -> None:
    """Check a property without content before the first test.

    With its first property, Hypothesis registers its random generator. It then checks with the
    garbage collector whether the generator is referenced, and a thread that another test left
    behind can make this check fail.
    """

    @settings(max_examples=1)
    @given(st.none())
    def nothing_holds(_value: None) -> None:
        pass

    nothing_holds()


def unparsed(found: ArgumentCollection) -> ArgumentCollection:
    """Return a copy of `found` that can be parsed; nothing is parsed into `found` itself."""
    copies = {id(argument): copy(argument) for argument in found}
    for argument in copies.values():
        argument.tokens = []
        argument.children = ArgumentCollection(copies[id(child)] for child in argument.children)
    return ArgumentCollection(copies.values())


@pytest.fixture(scope="session", autouse=True)
def _arguments_assembled_once() -> Iterator[None]:
    """Assemble the arguments of each command only once in this process.

    A process of a user runs one command. The tests run thousands in one process, and assembling
    their arguments would take most of the time of the short ones.
    """
    assemble = App.assemble_argument_collection
    assembled: dict[Any, ArgumentCollection] = {}

    def assemble_once(self: App, **options: Any) -> ArgumentCollection:
        command = self.default_command
        if not inspect.isfunction(command) or not command.__module__.startswith("fairlead.cli."):
            return assemble(self, **options)
        key = (command, *sorted(options.items()))
        if key not in assembled:
            assembled[key] = assemble(self, **options)
        return unparsed(assembled[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(App, "assemble_argument_collection", assemble_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _protocols_inspected_once() -> Iterator[None]:
    """Collect the members of each Protocol only once in this process.

    Python 3.12 does the same. Python 3.11 collects them in each `isinstance`. A user's process
    builds few schedulers, but the tests build thousands.
    """
    with pytest.MonkeyPatch.context() as patch:
        if sys.version_info < (3, 12):
            collect = "_get_protocol_attrs"
            patch.setattr(typing, collect, cache(vars(typing)[collect]))
        yield


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser's program, for tests marked `needs("chromium")`."""
    path = find_program("chromium")
    assert path is not None, 'mark the test with pytest.mark.needs("chromium")'
    return path
