"""Size limits of inputs from files, pipes and devices."""

from __future__ import annotations

import io
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from fairlead.whatif.input import content
from fairlead.whatif.input.content import content_of, content_of_stream
from fairlead.whatif.input.error import InputError


def refusal(call):
    with pytest.raises(InputError) as refused:
        call()
    return str(refused.value)


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_file_up_to_the_limit_is_read(tmp_path):
    path = tmp_path / "dump.json"
    path.write_bytes(b"12345")
    assert bytes(content_of(path, 5)) == b"12345"


def test_a_larger_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "dump.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert "has more than 2,147,483,648 bytes" in refusal(lambda: content_of(path))


def test_a_stream_in_memory_has_the_same_limit():
    assert content_of_stream("stdin", io.BytesIO(b"12345"), 5) == b"12345"
    line = refusal(lambda: content_of_stream("stdin", io.BytesIO(b"123456"), 5))
    assert line.startswith("stdin: has more than 5 bytes; ")
    assert "--max-input" in line


def test_a_pipe_is_read_to_its_end_while_another_program_writes(pipe):
    seen = []
    writer = threading.Thread(target=pipe.write_bytes, args=(b"x" * 200_000,))
    writer.start()
    assert content_of(pipe, on_read=lambda *one: seen.append(one)) == b"x" * 200_000
    writer.join()
    assert seen[-1] == ("bytes", 200_000, 0)


def test_a_pipe_is_not_read_beyond_the_limit(pipe):
    def write():
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)

    writer = threading.Thread(target=write)
    writer.start()
    assert "has more than 100,000 bytes" in refusal(lambda: content_of(pipe, 100_000))
    writer.join()


def test_a_pipe_that_no_program_writes_to_is_refused(pipe, monkeypatch):
    monkeypatch.setattr(content, "_WRITER_AWAITED_MS", 1)
    assert refusal(lambda: content_of(pipe)) == f"{pipe}: is a pipe that no program writes to"


def test_a_device_without_end_is_refused():
    assert refusal(lambda: content_of(Path("/dev/zero"))) == "/dev/zero: is a device, not a file"
    assert content_of(Path("/dev/null")) == b""
