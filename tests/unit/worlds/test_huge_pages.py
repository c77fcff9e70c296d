"""Huge pages for the memory of commands. Each test runs a new process, whose allocator changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.main import COMMANDS
from fairlead.worlds.huge_pages import _USERS_CHOICES, _has_huge_pages, _is_limited

OBJECTS = """
import ctypes, resource, sys
from pathlib import Path
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

needs_huge_pages = pytest.mark.skipif(
    sys.platform != "linux" or not _has_huge_pages() or _is_limited(),
    reason="the system provides no huge pages, or limits memory",
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
    ("limit", "variables"),
    [
        ("", {"PYTHONMALLOC": "pymalloc"}),
        ("", {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}),
        ("resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))", {}),
        ("resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))", {}),
    ],
)
def test_a_limit_or_a_choice_of_the_user_keeps_the_allocator(limit, variables):
    program = f"{limit}\nuse_huge_pages()\nprint(has_changed_allocator())"
    assert output("use_huge_pages()\nprint(has_changed_allocator())") == ["True"]
    assert output(program, **variables) == ["False"]


@pytest.mark.parametrize("setting", ["always madvise [never]\n", None])
def test_a_system_without_huge_pages_keeps_the_allocator(tmp_path, setting):
    """If the setting is missing, the kernel was built without huge pages."""
    if setting is not None:
        Path(tmp_path / "enabled").write_text(setting)
        Path(tmp_path / "hpage_pmd_size").write_text("2097152\n")
    program = f"""
from fairlead.worlds import huge_pages
huge_pages._SETTINGS = Path({str(tmp_path)!r})
use_huge_pages()
print(has_changed_allocator())
"""
    assert output(program) == ["False"]


def test_commands_that_run_until_they_are_interrupted_do_not_use_huge_pages():
    lasting = {command.name for command in COMMANDS if command.is_lasting}
    assert lasting == {"watch", "up", "top", "run", "extender"}
