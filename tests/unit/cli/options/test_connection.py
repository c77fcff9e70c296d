"""Which kubeconfig files a command reads."""

from __future__ import annotations

import pytest

from fairlead.cli.options.connection import ConnectionOptions, kubeconfigs


@pytest.fixture
def default(tmp_path, monkeypatch):
    path = tmp_path / "config"
    path.touch()
    monkeypatch.setenv("KUBECONFIG", str(path))
    return str(path)


def test_the_default_files_count_for_commands_that_read_the_current_cluster(default):
    assert kubeconfigs(ConnectionOptions(), by_default=True) == (default,)
    assert kubeconfigs(ConnectionOptions()) == ()


def test_the_default_files_count_with_a_context(default):
    assert kubeconfigs(ConnectionOptions(context="prod")) == (default,)


def test_in_cluster_no_file_is_read(default):
    assert kubeconfigs(ConnectionOptions(in_cluster=True), by_default=True) == ()
