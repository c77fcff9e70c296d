"""The hint that JSON is read faster than YAML."""

from __future__ import annotations

import pytest

from fairlead.cli.options.connection import LARGE_YAML_BYTES, is_large_yaml


@pytest.mark.parametrize(
    ("start", "size", "expected"),
    [
        pytest.param(b"apiVersion: v1\n", LARGE_YAML_BYTES, True, id="a large List"),
        pytest.param(b"---\nkind: List\n", LARGE_YAML_BYTES, True, id="several documents"),
        pytest.param(b"apiVersion: v1\n", 1000, False, id="a small file"),
        pytest.param(b'{"kind": "List"}', LARGE_YAML_BYTES, False, id="JSON"),
        pytest.param(b"\x1f\x8b", LARGE_YAML_BYTES, False, id="a compressed file"),
    ],
)
def test_large_files_of_yaml_are_recognized(tmp_path, start, size, expected):
    path = tmp_path / "dump"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)
    assert is_large_yaml(path) is expected


def test_inputs_that_are_not_files_are_not_recognized(tmp_path):
    assert not is_large_yaml(tmp_path)
    assert not is_large_yaml(tmp_path / "none")
