"""The kubeconfig files that a command reads, and its progress output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.apiserver.kind import NODE
from fairlead.cli.commands.explain.run import snapshot_and_target
from fairlead.cli.options import connection
from fairlead.cli.options.connection import ConnectionOptions, kubeconfigs, snapshot_of
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.live.live_snapshot import LiveObjects

NODE_TEXT = b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}'
READ = """
import sys
from fairlead.cli.options.connection import shown_reading
with shown_reading("prod") as on_read:
    on_read(5)
print(*sys.modules)
"""


@pytest.fixture
def default(tmp_path, monkeypatch):
    path = tmp_path / "config"
    path.touch()
    monkeypatch.setenv("KUBECONFIG", str(path))
    return str(path)


def test_commands_that_read_the_current_cluster_use_the_default_files(default):
    assert kubeconfigs(ConnectionOptions(), by_default=True) == (default,)
    assert kubeconfigs(ConnectionOptions()) == ()


def test_the_default_files_are_read_if_a_context_is_named(default):
    assert kubeconfigs(ConnectionOptions(context="prod")) == (default,)


def test_in_a_pod_no_file_is_read(default):
    assert kubeconfigs(ConnectionOptions(in_cluster=True), by_default=True) == ()


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Make the context `prod` current until a cluster is read; return the options of all reads."""
    path = tmp_path / "config"
    path.write_text("current-context: prod")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-fairlead"])
    calls = []

    def read_cluster(options, *_, **__):
        calls.append(options)
        path.write_text("current-context: test")
        return LiveObjects("cluster", 0, ((NODE, [NODE_TEXT]),), ())

    monkeypatch.setattr(connection, "read_cluster", read_cluster)
    return calls


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["--context", "prod"]),
        ({"context": "other"}, ["--context", "other"]),
        ({"in_cluster": True}, ["--in-cluster"]),
    ],
)
def test_the_words_of_a_command_name_the_cluster_that_was_read(read, options, words):
    """The kubectl plugin reads the current context, which can be another one afterwards."""
    assert list(snapshot_of(None, ConnectionOptions(**options)).arguments) == words
    assert [word for one in read for word in one.words] == words


def test_the_words_of_a_command_name_the_kubeconfig(read, tmp_path):
    path = tmp_path / "config"
    found = snapshot_of(None, ConnectionOptions(kubeconfig=str(path))).arguments
    assert list(found) == ["--kubeconfig", str(path), "--context", "prod"]
    assert len(read) == 1


def test_the_words_of_a_command_have_the_largest_size_of_the_input(read):
    found = snapshot_of(None, ConnectionOptions(context="prod"), 4096).arguments
    assert list(found) == ["--context", "prod", "--max-input", "4096"]
    assert len(read) == 1


def test_a_missing_kubeconfig_is_an_input_error(read, tmp_path):
    path = tmp_path / "missing"
    with pytest.raises(InputError, match="missing"):
        snapshot_of(None, ConnectionOptions(kubeconfig=str(path)))
    assert read == []


def test_with_a_context_the_words_need_no_kubeconfig(read, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    found = snapshot_of(None, ConnectionOptions(context="prod")).arguments
    assert (len(read), list(found)) == (1, ["--context", "prod"])


def test_without_a_terminal_no_progress_is_shown_and_rich_is_not_loaded():
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "rich" not in done.stdout.split()


def test_the_kubectl_plugin_uses_the_current_context(monkeypatch, default):
    """`fairlead` itself requires an option that names the cluster."""
    Path(default).write_text("current-context: prod")
    calls = []

    def read_cluster(options, *_, **__):
        calls.append(options)
        raise InputError("prod", "does not answer")

    monkeypatch.setattr(connection, "read_cluster", read_cluster)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/fairlead"])
    with pytest.raises(InputError, match=r"name a dump .* the current context is --context pr"):
        snapshot_of(None, ConnectionOptions())
    with pytest.raises(InputError, match=r"name a dump \(SNAPSHOT\), or a cluster"):
        snapshot_and_target("pod/store/web-0", None, None, ConnectionOptions(), ())
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-fairlead"])
    with pytest.raises(InputError, match="prod: does not answer"):
        snapshot_of(None, ConnectionOptions())
    assert calls == [ConnectionOptions(context="prod")]
    found = snapshot_and_target("pod/store/web-0", None, None, ConnectionOptions(), ())
    assert found == (None, "pod/store/web-0")


@pytest.mark.parametrize("text", ["", "current-context: [", None])
def test_without_a_readable_current_context_the_error_names_none(default, text):
    Path(default).unlink() if text is None else Path(default).write_text(text)
    with pytest.raises(InputError, match=r"--kubeconfig or --in-cluster$"):
        snapshot_of(None, ConnectionOptions())
