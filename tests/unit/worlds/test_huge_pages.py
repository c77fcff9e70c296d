"""Huge pages for the memory of commands. Each test runs a new process, whose allocator changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.main import COMMANDS
from fairlead.worlds.huge_pages import _USERS_CHOICES, obstacle

OBJECTS = """
import ctypes, resource, sys
from pathlib import Path
from fairlead.worlds import huge_pages
from fairlead.worlds.huge_pages import _ArenaAllocator, use_huge_pages

MIB = 1 << 20

def objects(mib):
    return [bytes(400) for _ in range(mib * MIB // 440)]

def of_process(field, name="smaps_rollup"):
    lines = Path(f"/proc/self/{name}").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(field))

def has_changed_allocator():
    allocator = _ArenaAllocator()
    ctypes.pythonapi.PyObject_GetArenaAllocator(ctypes.byref(allocator))
    return bool(allocator.ctx)
"""

LIMIT = "resource.setrlimit(resource.{}, (4 << 30, 4 << 30))"
needs_huge_pages = pytest.mark.skipif(
    obstacle() != "", reason=f"this system has no huge pages for commands: {obstacle()}"
)


def output(program, **variables):
    """What `program` prints in a new process with the environment variables `variables`."""
    env = {k: v for k, v in os.environ.items() if k not in _USERS_CHOICES} | variables
    command = [sys.executable, "-c", OBJECTS + program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return done.stdout.split()


@needs_huge_pages
def test_new_objects_are_in_huge_pages():
    """Nearly all of 100 MiB of objects, although each arena has only half of a huge page."""
    program = "use_huge_pages(); kept = objects(100); print(of_process('AnonHugePages'))"
    [mib] = output(program)
    assert int(mib) >= 80


@needs_huge_pages
def test_freed_arenas_return_to_the_system_each_time():
    """A command with many runs must not keep the memory of all of them.

    Some MiB remain between the released arenas.
    """
    program = """
use_huge_pages()
print(of_process('VmRSS', 'status'))
for _ in range(5):
    kept = objects(100)
    print(of_process('VmRSS', 'status'))
    del kept
    print(of_process('VmRSS', 'status'))
"""
    first, *others = map(int, output(program))
    assert all(80 <= full - first <= 160 for full in others[::2])
    assert all(empty - first <= 45 for empty in others[1::2])


@needs_huge_pages
def test_a_forked_process_uses_the_same_arenas():
    program = """
import os
use_huge_pages()
kept = objects(20)
child = os.fork()
own = [bytes([number % 256]) * 300 for number in range(100_000)]
kept = None
is_right = all(one == bytes([number % 256]) * 300 for number, one in enumerate(own))
if not child:
    os._exit(0 if is_right else 1)
print(is_right, os.waitpid(child, 0)[1])
"""
    assert output(program) == ["True", "0"]


@needs_huge_pages
@pytest.mark.parametrize(
    ("limit", "variables", "reason"),
    [
        ("", {"PYTHONMALLOC": "pymalloc"}, "PYTHONMALLOC is set"),
        ("", {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}, "GLIBC_TUNABLES is set"),
        (LIMIT.format("RLIMIT_AS"), {}, "ulimit -v or -d limits memory"),
        (LIMIT.format("RLIMIT_DATA"), {}, "ulimit -v or -d limits memory"),
        ("huge_pages._OVERCOMMIT = Path('never')", {}, "never is 2"),
        ("huge_pages._SETTINGS = Path('off')", {}, "off/enabled is not madvise or always"),
        ("huge_pages._SETTINGS = Path('missing')", {}, "missing/enabled is not madvise or always"),
    ],
)  # fmt: skip
def test_a_limit_or_a_choice_of_the_user_keeps_the_allocator(
    limit, variables, reason, tmp_path, monkeypatch
):
    """A missing setting means that the kernel was built without huge pages."""
    monkeypatch.chdir(tmp_path)
    Path("never").write_text("2\n")
    Path("off").mkdir()
    Path("off", "enabled").write_text("always madvise [never]\n")
    Path("off", "hpage_pmd_size").write_text("2097152\n")
    program = "use_huge_pages()\nprint(has_changed_allocator())\nprint(huge_pages.obstacle())"
    assert output(program) == ["True"]
    assert output(f"{limit}\n{program}", **variables) == ["False", *reason.split()]


def test_commands_that_run_until_they_are_interrupted_do_not_use_huge_pages():
    lasting = {command.name for command in COMMANDS if command.is_lasting}
    assert lasting == {"watch", "up", "top", "run", "extender"}
