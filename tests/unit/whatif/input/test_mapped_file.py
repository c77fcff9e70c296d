"""A mapped file that another program changes."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from threading import Thread

import pytest

from fairlead.cli.main import run
from fairlead.cli.output.atomic_file import write_atomically
from fairlead.cli.output.console.terminal import print_line, stdout_console
from fairlead.cli.output.result_file import print_bytes
from fairlead.whatif.input.content import BYTES_MAX, content_of
from fairlead.whatif.input.document import read_bytes
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.mapped_file import PROBLEM, unchanged_files
from fairlead.whatif.replay.replay import read_history
from fairlead.whatif.snapshot.snapshot import read_dump

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
}
DUMP = Path(__file__).parents[4] / "examples/store/store-nodes-pods.json"
LIST = {"apiVersion": "v1", "kind": "List", "items": [NODE]}
READS_A_SHORTENED_FILE = """\
import os, pathlib, sys
from fairlead.whatif.input.content import BYTES_MAX, content_of
from fairlead.whatif.input.document import read_bytes

data = content_of(pathlib.Path(sys.argv[1]))
os.truncate(sys.argv[1], 0)
bytes(data)
"""


def rewrite(path: Path) -> None:
    """Write another text of the same length to the file, at a later time."""
    text = path.read_bytes()
    path.write_bytes(text.replace(b"n1", b"n2"))
    later = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(later, later))


def use_and_rewrite(path: Path) -> None:
    """Map the file, and change it while its content is used."""
    content = content_of(path)
    rewrite(path)
    assert content


def answer_after_a_change(path: Path, write) -> None:
    """Map the file, change it while its content is used, and write an answer to its folder."""
    with unchanged_files():
        use_and_rewrite(path)
        write(path.parent)


def replace(path: Path) -> None:
    """Give the name of the file to another file."""
    other = path.with_name("other.json")
    other.write_text("{}")
    other.replace(path)


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        pytest.param(rewrite, True, id="written to"),
        pytest.param(lambda path: os.truncate(path, 10), True, id="made shorter"),
        pytest.param(replace, False, id="another file got its name"),
        pytest.param(Path.unlink, False, id="removed"),
        pytest.param(Path.read_bytes, False, id="read"),
    ],
)
def test_a_file_that_changes_is_refused(tmp_path, change, is_refused):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(LIST))
    refusal = pytest.raises(InputError) if is_refused else nullcontext()
    with refusal as caught, unchanged_files():
        data = content_of(path)
        change(path)
    assert len(data) > 10
    assert caught is None or str(caught.value) == f"{path}: {PROBLEM}"


def test_the_change_is_named_instead_of_its_consequence(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(LIST))

    def damage(_unit, _done, _total):
        path.write_bytes(b"}" * path.stat().st_size)
        os.utime(path, ns=(1, 1))

    with pytest.raises(InputError, match="was changed while it was used"):
        read_dump(path, on_read=damage)


def test_a_change_after_the_last_use_is_accepted(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(LIST))
    with unchanged_files():
        content = content_of(path)
        del content
        rewrite(path)


def test_a_change_before_the_last_use_is_refused(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(LIST))
    with pytest.raises(InputError, match="was changed while it was used"), unchanged_files():
        use_and_rewrite(path)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda _folder: print_bytes(b"answer"), id="JSON"),
        pytest.param(lambda _folder: print_line(stdout_console(), "answer"), id="text"),
        pytest.param(lambda folder: write_atomically(folder / "out", b"answer"), id="a file"),
    ],
)
def test_after_a_change_nothing_is_written(tmp_path, capfd, write):
    """Otherwise a wrong answer or report would remain, although the exit status is 2."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(LIST))
    with pytest.raises(InputError, match="was changed while it was used"):
        answer_after_a_change(path, write)
    assert capfd.readouterr().out == ""
    assert [one.name for one in tmp_path.iterdir()] == ["dump.json"]


def test_a_copied_file_can_change(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(LIST))
    with unchanged_files():
        found = read_dump(path, is_copied=True)
        rewrite(path)
    assert found.manifests[0].value["metadata"]["name"] == "n1"


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(read_bytes, id="read as a whole"),
        pytest.param(lambda path: read_history(str(path), BYTES_MAX), id="replayed"),
    ],
)
def test_an_audit_log_can_grow_while_it_is_used(tmp_path, read):
    path = tmp_path / "audit.log"
    path.write_text("{}\n")
    with unchanged_files():
        content = read(path)
        with path.open("a") as file:
            file.write("{}\n")
    assert content


def test_a_command_names_a_file_that_changed_while_it_was_used(tmp_path, capsys):
    dump, copy = tmp_path / "dump.json", tmp_path / "copy.json"
    dump.write_bytes(DUMP.read_bytes())
    os.mkfifo(copy)

    def rewrite_when_written() -> None:
        # The command waits, too: its output is larger than the buffer of a pipe.
        with copy.open("rb") as written:
            rewrite(dump)
            written.read()

    reader = Thread(target=rewrite_when_written)
    reader.start()
    assert run(["snapshot", str(copy), "--list", "--from", str(dump)]) == 2
    reader.join()
    assert capsys.readouterr().err.endswith(f"fairlead: {dump}: {PROBLEM}\n")


def test_reading_a_file_that_got_shorter_ends_the_process_with_one_line(tmp_path):
    path = tmp_path / "dump.json"
    path.write_bytes(b" " * 100_000)
    done = subprocess.run(
        [sys.executable, "-c", READS_A_SHORTENED_FILE, path],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (2, f"fairlead: {path}: {PROBLEM}\n")
