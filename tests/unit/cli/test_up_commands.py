"""`fairlead up -- COMMAND`, `fairlead up --detach` and `fairlead down`, as processes."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import POD
from fairlead.cli.commands.up.failed_start import NO_CLUSTER
from fairlead.cli.main import run
from fairlead.whatif.snapshot.snapshot import read_snapshot


@pytest.fixture
def fairlead(tmp_path, monkeypatch):
    """Runs `fairlead`; its background clusters are separate from those of other tests."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def run(*arguments):
        command = [sys.executable, "-P", "-m", "fairlead.cli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)

    yield run
    if list(tmp_path.glob("fairlead-up-*")):  # the files of a cluster in the background
        run("down")
        run("down", "--name", "blue")


READ_KUBECONFIG = "import os; print(open(os.environ['KUBECONFIG']).read().count('server:'))"


def test_a_command_runs_with_the_kubeconfig_and_ends_the_cluster(fairlead):
    done = fairlead("up", "--nodes", "1", "--", sys.executable, "-c", READ_KUBECONFIG)
    assert (done.returncode, done.stdout) == (0, "1\n")


def test_the_status_is_that_of_the_command(fairlead):
    assert fairlead("up", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


def test_a_missing_command_is_refused_before_the_cluster_starts(fairlead, tmp_path):
    files = ("--data-dir", str(tmp_path / "data"), "--audit", str(tmp_path / "audit"))
    done = fairlead("up", *files, "--", "no-such-command")
    assert list(tmp_path.iterdir()) == []
    assert (done.returncode, done.stderr) == (
        2,
        "fairlead: --: there is no command no-such-command\n",
    )


def test_a_cluster_in_the_background_is_ready_immediately_and_ends_with_down(fairlead, tmp_path):
    started = fairlead("up", "--detach=true", "--nodes", "1")
    assert started.returncode == 0
    path = started.stdout.removeprefix("export KUBECONFIG=").partition("  # ")[0]
    assert os.path.exists(path)  # noqa: PTH110
    second = fairlead("up", "--detach")
    assert second.returncode == 2
    assert "a cluster is already running (process" in second.stderr
    assert path in second.stderr
    ended = fairlead("down")
    assert ended.returncode == 0
    assert ended.stderr.startswith("ended: process ")
    assert path not in ended.stderr  # users could mistake the path for an instruction
    assert not os.path.exists(path)  # noqa: PTH110
    assert not list(tmp_path.glob("fairlead-up-*"))
    assert "no cluster runs in the background" in fairlead("down").stderr
    assert not list(tmp_path.glob("fairlead-up-*"))


def test_clusters_with_different_names_run_in_the_background_together(fairlead, tmp_path):
    blue = fairlead("up", "--detach", "--nodes", "1", "--name", "blue")
    assert blue.stdout.endswith("# 1 node in 1 zone; fairlead down --name blue ends it\n")
    assert fairlead("up", "--detach", "--nodes", "1").returncode == 0
    assert "a cluster named blue is already" in fairlead("up", "--detach", "--name=blue").stderr
    assert fairlead("down", "--name", "green").stderr == (
        "fairlead: down: no cluster named green runs in the background; "
        "to end another cluster: fairlead down, fairlead down --name blue\n"
    )
    assert fairlead("down").returncode == 0
    assert fairlead("down").stderr == (
        "fairlead: down: no cluster named fairlead runs in the background; "
        "to end another cluster: fairlead down --name blue\n"
    )
    assert fairlead("down", "--name", "blue").returncode == 0
    assert not list(tmp_path.glob("fairlead-up-*"))


def test_the_name_of_a_cluster_to_end_cannot_be_a_path(fairlead):
    assert fairlead("down", "--name", "../x").stderr.startswith("fairlead: --name: ../x: must ")


def test_down_does_not_import_the_server(fairlead):
    """Importing it would take half a second."""
    run_down = "import sys; from fairlead.cli.main import run; run(['down'])"
    code = f"{run_down}; print('fairlead.worlds.local.cluster' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert "no cluster runs in the background" in done.stderr


def test_the_link_to_the_dashboard_is_on_a_line_of_its_own(fairlead):
    started = fairlead("up", "--detach", "--nodes", "1", "--dashboard")
    assert fairlead("down").returncode == 0
    first, second = started.stdout.splitlines()
    assert first.endswith("  # 1 node in 1 zone; fairlead down ends it")
    assert re.fullmatch(r"# dashboard: http://127\.0\.0\.1:\d+/login\?code=[\w-]+", second)


OLD_NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-0, creationTimestamp: "2020-01-01T00:00:00Z"}
status: {allocatable: {cpu: "1", pods: "9"}}
"""


def test_a_start_in_the_background_prints_its_notices(fairlead, tmp_path):
    dump = tmp_path / "dump.yaml"
    dump.write_text(OLD_NODE)
    started = fairlead("up", "--detach", "--snapshot", str(dump))
    assert fairlead("down").returncode == 0
    assert started.stdout.startswith("export KUBECONFIG=")
    assert "with --keep-time, the clock starts at that time" in started.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"pid": -1, "line": "x"}', "is damaged"),
        ('{"pid": 0, "line": "x"}', "is damaged"),
        ('{"pid": 99999999999, "line": "x"}', "is damaged"),
        (
            '{"pid": 2147483647, "line": "x"}',
            "process 2147483647 cannot be ended (No such process)",
        ),
        ("{", "is damaged"),
    ],
)
def test_a_damaged_state_file_ends_no_process(fairlead, tmp_path, content, problem):
    state = tmp_path / f"fairlead-up-{os.getuid()}.json"
    state.write_text(content)
    with state.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = fairlead("down")
    assert done.returncode == 2
    assert done.stderr.startswith(f"fairlead: {state}: {problem}")
    assert done.stderr.endswith("; end the process that has this file open\n")
    assert done.stderr.count("\n") == 1


def test_down_does_not_end_the_process_of_an_earlier_cluster_during_a_start(fairlead, tmp_path):
    """The state file of a killed cluster remains, and its process id can belong to another one."""
    state = tmp_path / f"fairlead-up-{os.getuid()}.json"
    dump = tmp_path / "dump"
    os.mkfifo(dump)
    with subprocess.Popen(["sleep", "60"]) as other:
        state.write_text(f'{{"pid": {other.pid}, "line": "x"}}')
        up = [sys.executable, "-P", "-m", "fairlead.cli", "up", "--detach", "--snapshot", str(dump)]
        with subprocess.Popen(up, stderr=subprocess.DEVNULL) as start:
            with dump.open("w"):  # waits until the new process reads the dump
                assert "a cluster is just starting" in fairlead("down").stderr
            assert start.wait() == 2
        assert other.poll() is None
        other.kill()


def test_no_file_of_the_current_directory_runs_in_the_background(fairlead, tmp_path, monkeypatch):
    (tmp_path / "calendar.py").write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    started = fairlead("up", "--detach", "--nodes", "1")
    assert (started.returncode, fairlead("down").returncode) == (0, 0)


@pytest.mark.parametrize("source", ["--snapshot=-", "--snapshot=/dev/fd/{}"])
def test_a_cluster_in_the_background_reads_an_open_file(fairlead, tmp_path, source):
    """A shell passes `<(COMMAND)` as /dev/fd/N."""
    dump = tmp_path / "dump.yaml"
    dump.write_text(OLD_NODE)
    with dump.open() as file:
        name = source.format(file.fileno())
        command = [sys.executable, "-P", "-m", "fairlead.cli", "up", "--detach", name]
        started = subprocess.run(
            command,
            stdin=file,
            pass_fds=(file.fileno(),),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert fairlead("down").returncode == 0
    assert "  # 1 node; fairlead down ends it" in started.stdout


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("exit 0", 2, "the new process ended before the cluster was ready\n"),
        ("kill -9 $$", 2, "the new process ended before the cluster was ready (signal 9)\n"),
        ("exit 143", 2, "the new process ended before the cluster was ready (signal 15)\n"),
        ("echo no >&2; exit 70", 70, "no\n"),
    ],
)
def test_a_start_in_the_background_fails_if_its_process_ends_early(
    tmp_path, monkeypatch, capsys, script, code, words
):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(program))
    assert run(["up", "--detach"]) == code
    assert capsys.readouterr().err.endswith(words)


def test_an_interrupted_start_leaves_no_process_in_the_background(fairlead, tmp_path):
    dump = tmp_path / "dump"
    os.mkfifo(dump)
    # Python raises no KeyboardInterrupt if its parent ignores SIGINT, as a job of a script does.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from fairlead.cli.main import main; main()"
    )
    up = [sys.executable, "-P", "-c", program, "up", "--detach", "--snapshot", str(dump)]
    with (
        subprocess.Popen(up, stdout=subprocess.DEVNULL) as start,
        dump.open("w") as file,  # waits until the new process reads the dump
    ):
        start.send_signal(signal.SIGINT)
        assert start.wait() == 130
        [state] = tmp_path.glob("fairlead-up-*.json")
        with state.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # waits until the new process has ended
        with pytest.raises(BrokenPipeError):
            os.write(file.fileno(), b"x")


def test_a_log_with_content_is_kept(fairlead, tmp_path):
    fairlead("up", "--detach", "--nodes", "1")
    [log] = tmp_path.glob("fairlead-up-*.log")
    log.write_text("a message\n")
    assert fairlead("down").returncode == 0
    assert list(tmp_path.glob("fairlead-up-*")) == [log]


def test_a_failed_start_in_the_background_is_reported_with_its_reason(fairlead, tmp_path):
    done = fairlead("up", "--detach", "--data-dir", "/dev/null/x")
    assert done.returncode == 2
    assert done.stderr.startswith("fairlead: --data-dir: ")
    assert fairlead("down").returncode == 2


@pytest.fixture
def evaluated(fairlead):
    """Evaluates the output of `fairlead` in a shell whose KUBECONFIG is `mine`.

    Returns (what the shell then prints: status of `eval` and KUBECONFIG, its stderr).
    """

    def run(arguments):
        command = f'"{sys.executable}" -m fairlead.cli {arguments}'
        script = f'KUBECONFIG=mine; eval "$({command})"; echo "$? $KUBECONFIG"'
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("up --detach --data-dir /dev/null/x", id="a directory cannot be created"),
        pytest.param("up --detach --nods 3", id="an option is unknown"),
        pytest.param("up --nodes many --detach", id="a value has the wrong type"),
        pytest.param("up --detach=maybe", id="--detach has the wrong type"),
        pytest.param("up --detach=yes --nodes ''", id="a value is empty"),
        pytest.param("up --detach -- true", id="a command is given"),
        pytest.param(f"up --detach --name {'a' * 300}", id="the name is too long for a file"),
        pytest.param("--debug up --detach --nope", id="an option precedes the command"),
    ],
)
def test_a_failed_start_does_not_leave_the_users_own_kubeconfig_active(evaluated, arguments):
    """Otherwise the next kubectl command changes the user's own cluster."""
    printed, errors = evaluated(arguments)
    assert printed == "1 /dev/null/fairlead-up-failed\n"
    assert "fairlead: " in errors


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("up --detach=false --nodes=bad", id="--detach is false"),
        pytest.param("up --nodes=bad -- --detach", id="--detach belongs to the command"),
        pytest.param("down --detach", id="another command"),
    ],
)
def test_other_commands_that_fail_leave_kubeconfig_unchanged(evaluated, arguments):
    printed, errors = evaluated(arguments)
    assert printed == "0 mine\n"
    assert errors.startswith("fairlead: ")


@pytest.mark.parametrize("name", ["", " --name=blue"], ids=["the usual name", "another name"])
def test_a_second_start_fails_and_sets_the_kubeconfig_of_the_running_cluster(
    fairlead, evaluated, name
):
    export = fairlead("up", "--detach", *name.split(), "--nodes", "1").stdout.partition("  # ")[0]
    printed, errors = evaluated(f"up --detach{name}")
    assert printed == f"1 {export.removeprefix('export KUBECONFIG=')}\n"
    assert "is already running (process " in errors


@pytest.mark.needs("kubectl")
def test_kubectl_refuses_the_kubeconfig_of_a_failed_start(fairlead):
    path = NO_CLUSTER.removeprefix("export KUBECONFIG=")
    done = subprocess.run(
        ["kubectl", "delete", "pods", "--all"],
        env={**os.environ, "KUBECONFIG": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert path in done.stderr


def test_the_duration_of_jobs_is_checked(fairlead):
    done = fairlead("up", "--job-duration", "soon")
    assert done.returncode == 2
    assert done.stderr.startswith("fairlead: --job-duration: ")
    assert done.stderr.endswith("or forever\n")


STORE = Path(__file__).parents[3] / "examples" / "store" / "store.yaml"
TAKE_SNAPSHOT = 'exec "$0" -m fairlead.cli snapshot "$1" --kubeconfig "$KUBECONFIG"'


def places(path):
    """Return the node of each pod in a snapshot, by (name, uid)."""
    pods = [one.pod for one in read_snapshot(str(path)).manifests if one.kind is POD]
    return {(pod.metadata.name, pod.metadata.uid): pod.spec.node_name for pod in pods}


def test_a_cluster_starts_with_the_objects_of_a_snapshot(fairlead, tmp_path):
    copy = tmp_path / "copy.json"
    take = ["sh", "-c", TAKE_SNAPSHOT, sys.executable, str(copy)]
    options = ("--snapshot", str(STORE), "--keep-time", "--paused")
    assert fairlead("up", *options, "--", *take).returncode == 0
    assert places(copy) == places(STORE)
    assert len(places(copy)) == 51
    assert read_snapshot(str(copy)).taken_at == read_snapshot(str(STORE)).taken_at


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("--nodes", "5"),
            "fairlead: --snapshot: names the nodes; leave out --nodes and --zones\n",
        ),
        (("--data-dir", "used"), "fairlead: --snapshot: --data-dir holds a cluster; name an empty"),
    ],
)
def test_a_snapshot_needs_an_empty_cluster(fairlead, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    if "used" in arguments:
        assert fairlead("up", "--data-dir", "used", "--", "true").returncode == 0
    done = fairlead("up", "--snapshot", str(STORE), *arguments, "--", "true")
    assert (done.returncode, done.stderr[: len(line)]) == (2, line)


def test_a_stored_cluster_keeps_its_size_and_says_so(fairlead, tmp_path):
    def started(*size):
        done = fairlead("up", "--data-dir", str(tmp_path / "data"), *size, "--", "true")
        return done.returncode, done.stderr

    assert started("--nodes", "2", "--zones", "2") == (0, "")
    assert started("--nodes", "2", "--zones", "2") == (0, "")
    assert started() == (0, "")
    assert started("--nodes", "2") == (0, "")
    held = "--data-dir already holds a cluster (2 nodes in 2 zones), so"
    assert started("--nodes", "3") == (0, f"{held} --nodes has no effect\n")
    both = f"{held} --nodes and --zones have no effect\n"
    assert started("--nodes", "5", "--zones", "1") == (0, both)


def test_an_object_that_the_server_refuses_is_named(fairlead, tmp_path):
    pod = '{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {"a b": c}}, spec: {}}'
    (tmp_path / "bad.yaml").write_text(f"{STORE.read_text()}\n---\n{pod}\n")
    done = fairlead("up", "--snapshot", str(tmp_path / "bad.yaml"), "--", "true")
    assert done.returncode == 2
    assert "bad.yaml: Pod default/p: metadata.labels: Invalid value" in done.stderr


NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-0, annotations: {fairlead.dev/kubelet: stopped}}
status: {allocatable: {cpu: "1", pods: "9"}, conditions: [{type: Ready, status: "True"}]}
"""


def test_a_snapshot_without_times_leaves_the_clock_at_the_time_of_the_machine(fairlead, tmp_path):
    """No line says how old it is, because this is unknown."""
    path = tmp_path / "node.yaml"
    path.write_text(NODE)
    before = time.time_ns()  # noqa: TID251 - the clock of the machine is compared
    clock = (sys.executable, "-m", "fairlead.cli", "clock")
    done = fairlead("up", "--snapshot", str(path), "--keep-time", "--paused", "--", *clock)
    assert parse_timestamp(done.stdout.split()[0]) >= before // 1_000 * 1_000  # prints microseconds
    assert done.stderr == ""


def test_a_cluster_has_the_flags_of_kube_controller_manager(fairlead, tmp_path):
    path = tmp_path / "node.yaml"
    path.write_text(NODE)
    advance = (sys.executable, "-m", "fairlead.cli", "clock", "advance", "20s")
    flags = ("--node-monitor-grace-period", "8s", "--node-monitor-period", "3s")
    done = fairlead("up", "--snapshot", str(path), "--paused", *flags, "-v", "4", "--", *advance)
    assert done.returncode == 0
    assert '"Node has not posted its status in time" node="node-0"' in done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--node-eviction-rate", "fast"),
            "--node-eviction-rate: 'fast' is not a number",
        ),
        (
            ("--node-eviction-rate", "1", "--without", "node-lifecycle"),
            "--node-eviction-rate: has no effect with --without node-lifecycle",
        ),
        (
            ("--pod-eviction-timeout", "1m", "--behave-like", "1.16"),
            "--pod-eviction-timeout: needs either --enable-taint-manager false",
        ),
    ],
)
def test_a_flag_without_effect_or_with_an_invalid_value_is_refused(fairlead, arguments, problem):
    done = fairlead("up", *arguments, "--", "true")
    assert done.returncode == 2
    assert done.stderr.startswith(f"fairlead: {problem}")
