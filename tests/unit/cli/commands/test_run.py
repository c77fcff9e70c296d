"""`fairlead run` with unusable credentials or TLS files ends before it starts."""

from __future__ import annotations

import json
import os
import threading

import pytest

from fairlead.cli import exit_code
from fairlead.cli.commands.run.client_settings import read_client_settings
from fairlead.cli.commands.run.run import RunRequest, cluster_arguments
from fairlead.cli.commands.run.shadow_options import NO_SHADOW
from fairlead.cli.main import run
from fairlead.cli.options.connection import NO_CONNECTION
from fairlead.cli.options.controller import NO_NODE_FLAGS
from fairlead.cli.options.log import NO_DECISION_LOG
from fairlead.cli.options.release import ReleaseOptions


def kubeconfig(path, user):
    cluster = {"server": "https://127.0.0.1:1"}
    value = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "prod",
    }
    file = path / "kubeconfig"
    file.write_text(json.dumps(value))
    return str(file)


VERSION = "client.authentication.k8s.io/v1"
FAILING = {"exec": {"command": "/bin/false", "apiVersion": VERSION, "interactiveMode": "Never"}}


@pytest.mark.parametrize("options", [[], ["--shadow"]], ids=["run", "shadow"])
@pytest.mark.parametrize(
    ("user", "problem"),
    [
        (FAILING, "context prod: the credential plugin /bin/false failed with exit code 1"),
        ({"tokenFile": "/dev/null"}, "context prod: tokenFile: /dev/null is empty"),
    ],
    ids=["exec plugin", "token file"],
)
def test_unusable_credentials_are_bad_input(tmp_path, capsys, user, problem, options):
    command = ["run", "--kubeconfig", kubeconfig(tmp_path, user), "--listen", "none", *options]
    assert run(command) == exit_code.BAD_INPUT
    assert capsys.readouterr() == ("", f"fairlead: {problem}\n")


@pytest.mark.parametrize("options", [[], ["--rbac"]], ids=["run", "roles"])
def test_only_the_scheduler_can_be_compared(capsys, options):
    command = ["run", "--shadow", "--controllers", "scheduler,batch", *options]
    assert run(command) == exit_code.BAD_INPUT
    error = "fairlead: --controllers: only the scheduler can be compared with --shadow\n"
    assert capsys.readouterr() == ("", error)


def test_the_configuration_may_be_a_pipe(tmp_path, capsys):
    """As with `--config <(…)`; a pipe can be read only once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {resourceName: mine}\n"
    )
    writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
    writer.start()
    assert run(["run", "--rbac", "--config", str(pipe)]) == exit_code.SUCCESS
    assert '"resourceNames":["mine"]' in capsys.readouterr().out


@pytest.mark.parametrize("in_file", [False, True], ids=["flag", "file"])
def test_without_leader_election_no_lease_role_is_printed(tmp_path, capsys, in_file):
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"leaderElection: {{leaderElect: {str(not in_file).lower()}}}\n"
    )
    options = [] if in_file else ["--no-leader-election"]
    assert run(["run", "--rbac", "--config", str(file), *options]) == exit_code.SUCCESS
    assert '"leases"' not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("controllers", "lease"),
    [
        ("scheduler", "kube-scheduler"),
        ("node-lifecycle,scheduler", "kube-scheduler"),
        ("taint-eviction,node-lifecycle", "fairlead-node-lifecycle"),
        ("taint-eviction", "fairlead-taint-eviction"),
    ],
)
def test_without_a_scheduler_the_lease_is_not_that_of_kube_scheduler(capsys, controllers, lease):
    """A node lifecycle controller would wait for as long as kube-scheduler runs."""
    assert run(["run", "--rbac", "--controllers", controllers]) == exit_code.SUCCESS
    assert f'"resourceNames":["{lease}"]' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "resources"),
    [
        (["--no-events"], {"tokenreviews", "subjectaccessreviews"}),
        (["--listen", "none"], {"events"}),
        ([], {"events", "tokenreviews", "subjectaccessreviews"}),
    ],
    ids=["no events", "no server", "default"],
)
def test_roles_contain_only_what_the_options_need(capsys, options, resources):
    assert run(["run", "--rbac", *options]) == exit_code.SUCCESS
    printed = capsys.readouterr().out
    own = ("events", "tokenreviews", "subjectaccessreviews")
    assert {one for one in own if f'"resources":["{one}"]' in printed} == resources


def test_a_key_without_a_certificate_is_refused(tmp_path, capsys):
    file = kubeconfig(tmp_path, {"token": "t"})
    options = ["--listen", "127.0.0.1:0", "--tls-private-key-file", "key.pem"]
    assert run(["run", "--kubeconfig", file, *options]) == exit_code.BAD_INPUT
    assert capsys.readouterr().err == "fairlead: --tls-private-key-file: needs --tls-cert-file\n"


OLDER_MODE = (
    "--enable-taint-manager false, or both --behave-like 1.16 and "
    "--feature-gates TaintBasedEvictions=false"
)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--node-eviction-rate 1", "--node-eviction-rate: needs --controllers node-lifecycle"),
        (
            "--controllers node-lifecycle --behave-like 1.16 --enable-taint-manager false",
            "--enable-taint-manager: needs --controllers taint-eviction",
        ),
        (
            "--shadow --node-monitor-period 1s",
            "--node-monitor-period: needs --controllers node-lifecycle",
        ),
        (
            "--controllers node-lifecycle --behave-like 1.19 --pod-eviction-timeout 1m",
            f"--pod-eviction-timeout: needs either {OLDER_MODE}",
        ),
    ],
)
def test_a_flag_of_a_controller_that_does_not_run_is_refused(tmp_path, capsys, options, problem):
    file = kubeconfig(tmp_path, {"token": "t"})
    assert run(["run", "--kubeconfig", file, *options.split()]) == exit_code.BAD_INPUT
    assert capsys.readouterr().err == f"fairlead: {problem}\n"


def test_no_pod_garbage_collector_runs_so_its_flag_is_unknown(capsys):
    assert run(["run", "--terminated-pod-gc-threshold", "5"]) == exit_code.BAD_INPUT
    assert "run: --terminated-pod-gc-threshold is not an option" in capsys.readouterr().err


def test_questions_of_the_dashboard_follow_the_cluster_and_configuration_of_the_process():
    request = RunRequest(
        controllers=("scheduler",),
        config="scheduler.yaml",
        connection=NO_CONNECTION,
        plugins=("cost.py:Cost",),
        batch=(None, ()),
        listen="none",
        certificate=("", ""),
        elects=True,
        writes_events=True,
        flags=NO_NODE_FLAGS,
        release=ReleaseOptions("1.19", "NodeLease=false"),
        log=NO_DECISION_LOG,
        shadow=NO_SHADOW,
    )
    assert cluster_arguments(request, "context prod", read_client_settings(None)) == [
        *("--context", "prod", "--config", "scheduler.yaml", "--plugin", "cost.py:Cost"),
        *("--behave-like", "1.19", "--feature-gates", "NodeLease=false"),
    ]
