"""Files are written completely or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlead.cli.output.atomic_file import AtomicFile, require_writable, write_atomically
from fairlead.whatif.input.error import InputError
from fairlead.worlds.local.kubeconfig import write_secret


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "out"
    with AtomicFile(path) as file:
        file.write(b"a")
        assert not path.exists()
        file.write(b"b")
    assert path.read_bytes() == b"ab"


def test_a_failure_leaves_no_file(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with suppress(KeyError), AtomicFile(path) as file:
        file.write(b"new")
        raise KeyError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Make writes beyond `size` bytes fail, as on a full disk."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [100, 1 << 20], ids=["when closed", "when written"])
def test_a_write_that_fails_names_the_file_and_leaves_the_old_content(tmp_path, size):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with files_of_at_most(10), pytest.raises(OSError, match="File too large") as raised:
        write_atomically(path, b"x" * size)
    assert raised.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_renamed_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(OSError, match="Is a directory") as raised, AtomicFile(path):
        path.mkdir()
    assert raised.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_can_have_the_longest_possible_name(tmp_path):
    path = tmp_path / ("\u00e4" * 127)
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("name", ["x" * 300, "loop"], ids=["too long", "a loop of links"])
def test_an_impossible_name_is_refused(name, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"--report: .* cannot be written: "):
        require_writable("--report", tmp_path / name)


def test_writing_replaces_an_existing_file(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"a longer old content")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_the_target_of_a_link_is_replaced_and_the_link_is_kept(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("write", [write_atomically, lambda p, c: write_secret(p, c.decode())])
def test_a_pipe_is_written_to_and_not_replaced(tmp_path, write):
    """If it were replaced, /dev/null would become a regular file for all processes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe, b"new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_unwritable_folders_are_refused_before_the_command_runs(tmp_path):
    require_writable("--report", None)
    require_writable("--report", tmp_path / "new")
    with pytest.raises(InputError, match="--report: there is no directory"):
        require_writable("--report", tmp_path / "no" / "file")
    with pytest.raises(InputError, match=r"--report: .* is a directory"):
        require_writable("--report", tmp_path)


@pytest.fixture
def read_only_folder():
    """A directory in which no user but root can create files, with a file that all can write."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "out").touch()
        (folder / "out").chmod(0o666)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o700)


ACCEPTED = "accepted"


def answer_to_another_user(path, **options):
    """Return the problem that `require_writable` reports to a user other than root, or ACCEPTED."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            require_writable("--report", path, **options)
            os.write(writing, ACCEPTED.encode())
        except InputError as refusal:
            os.write(writing, str(refusal).encode())
        except BaseException as error:  # noqa: BLE001 - the parent process shows it
            os.write(writing, f"crashed: {error!r}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode()


def test_a_file_in_a_read_only_folder_can_be_overwritten_but_not_replaced(read_only_folder):
    path = read_only_folder / "out"
    problem = f"--report: {path} cannot be written: no permission to create a file in its directory"
    assert answer_to_another_user(path) == problem
    assert answer_to_another_user(read_only_folder / "new", in_place=True).endswith("directory")
    assert answer_to_another_user(path, in_place=True) == ACCEPTED
    assert answer_to_another_user(Path("/dev/null")) == ACCEPTED


def test_the_folder_of_a_link_s_target_must_be_writable(read_only_folder):
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        link = Path(name) / "link"
        link.symlink_to(read_only_folder / "out")
        assert "no permission" in answer_to_another_user(link)


def test_a_file_in_a_deleted_current_directory_is_refused(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    require_writable("--report", tmp_path / "new")
    with pytest.raises(InputError, match="the current directory does not exist"):
        require_writable("--report", Path("new"))


@pytest.mark.parametrize("write", [write_atomically, lambda p, c: write_secret(p, c.decode())])
def test_a_pipe_without_a_path_of_its_own_is_written(write):
    """A shell passes `>(COMMAND)` as /dev/fd/N, and /dev/stdout can be a pipe."""
    reader, writer = os.pipe()
    try:
        path = Path(f"/dev/fd/{writer}")
        require_writable("--junit", path)
        write(path, b"text")
        assert os.read(reader, 9) == b"text"
    finally:
        os.close(reader)
        os.close(writer)


def test_links_that_form_a_loop_are_replaced_by_the_secret(tmp_path):
    path = tmp_path / "port"
    path.symlink_to(path)
    write_secret(path, "5")
    assert path.read_text() == "5"


def test_the_file_of_standard_output_gets_both_texts(tmp_path):
    """`--junit /dev/stdout > FILE` must not replace FILE, which is still standard output."""
    shown = run_with_stdout(tmp_path / "out", "print('a'); write('/dev/stdout', 'b'); print('c')")
    assert shown == "a\nbc\n"


def test_a_kubeconfig_is_appended_to_standard_output(tmp_path):
    shown = run_with_stdout(tmp_path / "out", "print('a'); secret('/dev/stdout', 'b'); print('c')")
    assert shown == "a\nbc\n"


def test_decisions_are_appended_to_standard_output(tmp_path):
    """`fairlead run --decisions /dev/stdout > FILE` writes each line at once."""
    code = """
from contextlib import ExitStack
from fairlead.cli.commands.run.run import _line_file

print("a")
with ExitStack() as opened:
    _line_file("--decisions", Path("/dev/stdout"), opened).write(b"b\\n")
print("c")
"""
    assert run_with_stdout(tmp_path / "out", code) == "a\nb\nc\n"


def test_the_file_of_standard_output_is_refused_under_its_own_name(tmp_path):
    shown = run_with_stdout(tmp_path / "out", f"check({str(tmp_path / 'out')!r})")
    problem = f"{tmp_path / 'out'} is also standard output or standard error; name another file"
    assert shown == f"--junit: {problem}\n"


def run_with_stdout(file, code):
    """Run `code` in a process whose standard output is `file`; return the content of `file`."""
    before = """
from pathlib import Path
from fairlead.cli.output.atomic_file import write_atomically
from fairlead.cli.output.distinct_outputs import require_distinct
from fairlead.whatif.input.error import InputError
from fairlead.worlds.local.kubeconfig import write_secret

def write(path, text): write_atomically(Path(path), text.encode())
def secret(path, text): write_secret(Path(path), text)
def check(path):
    try:
        require_distinct({"--junit": Path(path)})
    except InputError as cause:
        print(cause)
"""
    with file.open("wb") as stdout:
        subprocess.run([sys.executable, "-c", before + code], stdout=stdout, check=True)
    return file.read_text()
