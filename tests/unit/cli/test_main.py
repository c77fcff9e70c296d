"""The whole command line: help, exit codes, and output to stdout, stderr and files."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from fairlead import __version__
from fairlead.cli import main
from fairlead.cli.main import (
    COMMAND_GROUPS,
    COMMANDS,
    SignalError,
    clean_up_on_signals,
    documented_app,
    run,
)
from fairlead.cli.output.atomic_file import AtomicFile
from fairlead.engine.framework.user_plugin.guard import checked

ROOT = Path(__file__).parents[3]
STORE = ROOT / "examples" / "store"
PRIORITIES = ROOT / "examples" / "priorities" / "scenario.yaml"
RECLAIM_LOOP = ROOT / "examples" / "reclaim-loop" / "scenario.yaml"


@pytest.fixture
def fairlead(tmp_path, monkeypatch, capsys):
    """Runs `fairlead` in its own folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run_fairlead(*arguments):
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_fairlead


def test_the_version_is_printed(fairlead):
    assert fairlead("--version") == (0, f"{__version__}\n", "")


@pytest.mark.parametrize(
    ("question", "file"),
    [
        (("whatif", STORE / "store.yaml", "--cordon", "worker-03"), "fairlead-whatif.html"),
        (("simulate", PRIORITIES), "fairlead-simulate.html"),
    ],
)
def test_an_answer_needs_no_file_for_the_default_report(fairlead, tmp_path, question, file):
    (tmp_path / file).mkdir()  # for example, the current directory is read-only
    code, out, err = fairlead(*question)
    refusal = f"{file} is a directory"
    assert (code, err) == (0, f"no report: {refusal} (--report FILE chooses another file)\n")
    assert out
    code, out, err = fairlead(*question, "--report", file)
    assert (code, out, err) == (2, "", f"fairlead: --report: {refusal}\n")


def test_a_what_if_without_a_question_says_nothing_about_a_report(fairlead, tmp_path):
    """It writes no report, so it does not matter whether the default file can be written."""
    (tmp_path / "fairlead-whatif.html").mkdir()
    code, out, err = fairlead("whatif", STORE / "store.yaml")
    assert (code, err) == (0, "")
    assert out.startswith("No change requested")


def test_a_refused_drain_is_a_difference(fairlead):
    arguments = ("whatif", STORE / "store.yaml", "--drain", "worker-11", "--drain-as-kubectl")
    code, out, _ = fairlead(*arguments, "--no-report")
    assert "kubectl drain refuses worker-11" in out
    assert code == 1


@pytest.mark.parametrize("command", ["", "simulate", "whatif", "explain", "conformance", "bench"])
def test_every_command_has_help_with_examples(fairlead, command):
    code, out, _ = fairlead(*command.split(), "--help")
    assert code == 0
    tried = out.partition("Try:")[2]
    assert f"fairlead {command}".strip() in tried


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("whatif", "[SNAPSHOT]"),
        ("explain", "[SNAPSHOT] [OBJECT]"),
        ("conformance", "KIND [FILES...]"),
        ("replay", "FILE"),
    ],
)
def test_the_usage_names_the_arguments(fairlead, command, arguments):
    _, out, _ = fairlead(command, "--help")
    assert out.splitlines()[0] == f"Usage: fairlead {command} [OPTIONS] {arguments}"


# The directory of the demo, the file that `up` writes, the input of a plan, the report of a shadow.
OPTIONS_WITH_ANOTHER_MEANING = {
    "--output": ["demo"],
    "--kubeconfig": ["up"],
    "--instance-types": ["consolidate", "size"],
    "--report": ["run"],
}


def test_the_help_lists_the_commands_in_groups(fairlead):
    _, out, _ = fairlead("--help")
    assert re.findall(r"╭─ ([A-Z][a-z ]+) ─", out) == [*COMMAND_GROUPS, "Other"]
    questions = out.partition("Questions about a cluster")[2].partition("╰")[0]
    assert "whatif" in questions
    assert "conformance" not in questions


def test_the_help_lists_the_own_options_of_a_command_before_those_of_many_commands(fairlead):
    _, out, _ = fairlead("whatif", "--help")
    assert re.findall(r"╭─ ([A-Z][a-z ]+) ─", out) == [
        "Arguments",
        "Change",
        "Failing nodes",
        "Several answers",
        "Simulation",
        "Autoscaling",
        "Cluster",
        "Scheduler",
        "Kubernetes version",
        "Controllers",
        "Output",
    ]
    _, out, _ = fairlead("fit", "--help")
    assert re.findall(r"╭─ ([A-Z][a-z ]+) ─", out) == [
        "Arguments",
        "Parameters",
        "Change",
        "Autoscaling",
        "Cluster",
        "Scheduler",
        "Kubernetes version",
        "Output",
    ]


def test_an_option_of_a_shared_group_is_in_this_group_in_the_help_of_every_command():
    app = documented_app()
    groups = defaultdict(lambda: defaultdict(list))
    for command in COMMANDS:
        for option in app[command.name].assemble_argument_collection():
            if option.show and option.name.startswith("--"):
                (group,) = option.parameter.group
                groups[option.name][group.name].append(command.name)
    shared = {"Autoscaling", "Cluster", "Scheduler", "Kubernetes version", "Output"}
    elsewhere = {
        name: sorted(command for group in found.keys() - shared for command in found[group])
        for name, found in groups.items()
        if len(found) > 1 and not shared.isdisjoint(found)
    }
    assert elsewhere == OPTIONS_WITH_ANOTHER_MEANING


def test_the_examples_in_the_help_follow_each_other_without_blank_lines(fairlead):
    _, out, _ = fairlead("whatif", "--help")
    examples = out.partition("Try:")[2].partition("╭")[0].strip().splitlines()
    assert len(examples) > 5
    assert all(line.strip() for line in examples)


def test_the_help_states_which_options_can_be_repeated(fairlead):
    _, out, _ = fairlead("drain-plan", "--help")
    words = " ".join(out.replace("│", "").split())
    nodes, others = words.partition("--nodes NODE ")[2].split("--max-unavailable N ")
    assert nodes.endswith("Can be repeated. ")
    assert "Can be repeated." not in others.partition("--for DURATION ")[0]


@pytest.mark.parametrize(("command", "defaults"), [("torture", {"True"}), ("whatif", set())])
def test_the_help_shows_the_default_of_a_flag_only_if_the_flag_is_on(fairlead, command, defaults):
    _, out, _ = fairlead(command, "--help")
    words = " ".join(out.replace("│", "").split())
    assert {
        default for default in ("True", "False") if f"[default: {default}]" in words
    } == defaults


def test_the_help_of_whatif_states_the_order_of_a_change(fairlead):
    """The order is that of `script_of_change`."""
    _, out, _ = fairlead("whatif", "--help")
    text = " ".join(out.split())
    assert (
        "The nodes of --add-nodes are added first. When these nodes are Ready, all other changes"
        in text
    )
    assert (
        "delete, apply, set fields, scale, cordon, drain, fail nodes, run the descheduler" in text
    )


def test_conformance_refuses_missing_files(fairlead):
    for option, value in (("--tokens", "nope"), ("--ca", "nope"), ("--show", "-1")):
        code, _, err = fairlead("conformance", "api", "cases.jsonl", f"{option}={value}")
        assert (code, err.count("\n")) == (2, 1)
        assert f'Invalid value "{value}" for {option}' in err


def test_no_difference_has_exit_code_0(fairlead):
    code, out, err = fairlead("whatif", STORE / "store.yaml", "--no-report")
    assert (code, err) == (0, "")
    assert out.startswith("No change requested\nNothing changes for any pod.\n")


def test_a_difference_has_exit_code_1_and_a_report(fairlead, tmp_path):
    change = STORE / "flash-sale.yaml"
    code, out, err = fairlead("whatif", STORE / "store.yaml", "--apply", change)
    assert code == 1
    assert "\n6 more pods of deploy/store/flash-sale run after 1s, and none is displaced.\n" in out
    assert err == "report: fairlead-whatif.html\n"
    assert "<html" in (tmp_path / "fairlead-whatif.html").read_text()


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        (["priority>=1000000"], 3),
        (["priority>=2000000", "name=nobody", "namespace=analytics"], 3),
        (["priority>=2000000", "labels.app=absent"], 0),
    ],
)
def test_with_fail_on_only_a_condition_that_holds_fails(fairlead, conditions, code):
    options = [f"--fail-on={condition}" for condition in conditions]
    found, out, _ = fairlead(
        "whatif", STORE / "store.yaml", "--drain=worker-11", "--no-report", *options
    )
    assert found == code
    assert ("\n--fail-on " in out) is (code == 3)


def test_stdout_contains_only_json(fairlead, tmp_path):
    code, out, err = fairlead("whatif", STORE / "store.yaml", "--drain", "worker-11", "-o", "json")
    result = json.loads(out)
    assert (code, err) == (1, "")
    assert result["kind"] == "WhatIfResult"
    assert result["changes"] == ["--drain worker-11"]
    assert result["started_at"] == "2026-11-20T05:00:00Z"
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_is_read_from_standard_input(fairlead, monkeypatch):
    with (STORE / "store-nodes-pods.json").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        code, out, _ = fairlead("whatif", "-", "--cordon", "worker-00", "-o", "json")
    assert code == 0
    assert json.loads(out)["source"] == "stdin"


def test_a_simulation_writes_the_files_of_its_scenario_and_options(fairlead, tmp_path):
    scenario = PRIORITIES.read_text() + "outputs: {json: r.json, report: r.html, commands: c.jsonl}"
    (tmp_path / "s.yaml").write_text(scenario)
    code, out, err = fairlead("simulate", "s.yaml", "--snapshot", "end.json")
    assert code == 0
    assert "preempted 6" in out
    assert err == "result: r.json\nsnapshot: end.json\nreport: r.html\n"
    assert json.loads((tmp_path / "r.json").read_text())["kind"] == "SimulationResult"
    lines = (tmp_path / "c.jsonl").read_text().splitlines()
    assert {"Bind", "DeleteObject", "CreateObject"} <= {json.loads(x)["command"] for x in lines}
    code, out, _ = fairlead("whatif", "end.json", "--no-report")
    assert code == 0  # what a simulation leaves is a snapshot that stands still


def test_outputs_of_a_scenario_replace_only_its_own_files(fairlead, tmp_path):
    outputs = "outputs: {json: r.json, report: r.html, commands: c.jsonl, snapshot: s.json}"
    (tmp_path / "s.yaml").write_text(PRIORITIES.read_text() + outputs)
    assert [fairlead("simulate", "s.yaml")[0] for _ in range(2)] == [0, 0]
    (tmp_path / "r.json").write_text("precious")
    assert fairlead("simulate", "s.yaml")[0] == 2
    assert (tmp_path / "r.json").read_text() == "precious"
    assert fairlead("simulate", "s.yaml", "--overwrite")[0] == 0
    assert (tmp_path / "r.json").read_text() != "precious"


def test_a_written_file_replaces_an_old_one_and_has_usual_permissions(fairlead, tmp_path):
    (tmp_path / "old.json").write_text("{}")
    fairlead("simulate", PRIORITIES, "--snapshot", "old.json", "--no-report")
    (tmp_path / "other").touch()
    assert (tmp_path / "old.json").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.json", "other"]


@pytest.mark.parametrize(
    ("condition", "code"), [("name=bare", 3), ("name=of-node", 0), ("name=other", 0)]
)
def test_a_deleted_node_displaces_its_pods(fairlead, tmp_path, condition, code):
    """The condition selects a bare pod or a static pod of the node, or a pod of another node."""
    spec = "spec: {nodeName: node-%s, containers: [{name: c, image: i}]}"
    static = "annotations: {kubernetes.io/config.mirror: x}"
    pods = [("bare", "", 0), ("of-node", static, 0), ("other", "", 1)]
    (tmp_path / "s.yaml").write_text(
        "cluster: {generated: {nodes: 2}}\nobjects:\n"
        + "".join(
            f"- {{apiVersion: v1, kind: Pod, metadata: {{name: {name}, {more}}}, {spec % node}}}\n"
            for name, more, node in pods
        )
        + "events: [{at: 1m, delete: node/node-0}]\nduration: 10m\n"
    )
    result = fairlead("simulate", "s.yaml", "--no-report", "--fail-on", condition)
    assert result[::2] == (code, "")


def test_a_simulation_is_printed_as_markdown(fairlead):
    code, out, _ = fairlead("simulate", PRIORITIES, "-o", "markdown", "--fail-on", "loop")
    first, *others = out.splitlines()
    # Three pods preempt two pods each: too few preemptions for a loop.
    assert (code, first) == (0, "### No pod is pending at the end: 7 pods on nodes.")
    assert "<details><summary>Preempted (6)</summary>" in others
    assert "| cpu | 12 | 12 | 0 | 12 |" in others
    assert not any("Newly placed" in line for line in others)


def test_the_markdown_of_a_simulation_names_the_conditions_that_are_met(fairlead):
    conditions = ("--fail-on", "loop", "--fail-on", "name=none")
    code, out, _ = fairlead("simulate", RECLAIM_LOOP, "-o", "markdown", *conditions)
    first, *others = out.splitlines()
    displaces = "ReplicaSet/bob/training displaces ReplicaSet/alice/notebook (reclaim)"
    assert code == 3
    assert first.startswith(f"### {displaces}")
    assert sum(line.startswith("- :x: `--fail-on loop`: ") for line in others) == 1
    assert not any("name=none" in line for line in others)


def test_an_empty_argument_is_refused(fairlead):
    """An unset shell variable is the usual cause."""
    assert fairlead("whatif", "")[::2] == (2, "fairlead: arguments: contain an empty argument\n")
    assert fairlead("whatif", "--drain", "")[::2] == (2, "fairlead: --drain: is empty\n")


def test_a_seed_is_part_of_the_input(fairlead):
    def choices(seed):
        arguments = ("simulate", PRIORITIES, "-o", "json", "--seed", seed)
        result = json.loads(fairlead(*arguments)[1])
        return [(one["pod"], one["node"]) for one in result["placed"]]

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)


def test_explanations_are_text_or_json(fairlead):
    arguments = ("explain", "pod/search-58f855c4f4-kvqhp", "--snapshot", STORE / "store.yaml")
    code, out, _ = fairlead(*arguments)
    assert code == 0
    assert "it would go to its own node, which has the highest score." in out
    assert "infeasible nodes (6)" in out
    found = json.loads(fairlead(*arguments, "-o", "json")[1])
    assert found["choices"] == ["worker-01"]


def test_a_row_groups_many_nodes_unless_all_are_requested(fairlead, tmp_path):
    cluster = "{generated: {nodes: 50, allocatable: {cpu: 2}}}"
    pods = "".join(
        f"- {{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: "
        f"[{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}\n"
        for name, cpu in (("large", 3), ("small", 1))
    )
    (tmp_path / "s.yaml").write_text(f"cluster: {cluster}\nobjects:\n{pods}")
    fairlead("simulate", "s.yaml", "--snapshot", "dump.json", "--no-report")
    arguments = ("explain", "pod/default/large", "--snapshot", "dump.json")
    code, out, _ = fairlead(*arguments)
    assert code == 0
    assert "infeasible nodes (50)" in out
    assert "and 47 more" in " ".join(out.split())
    assert "No node is large enough; the largest has 2 cpu." in out
    assert "Use --all-nodes or -o json to list every node" in out
    assert len(out.splitlines()) < 15
    everything = fairlead(*arguments, "--all-nodes")[1]
    assert all(f"\nnode-{number:02} " in everything for number in range(50))
    assert "--all-nodes" not in everything
    small = fairlead("explain", "pod/default/small", "--snapshot", "dump.json")[1]
    assert "feasible nodes (50)" in small
    assert "... and 40 more" in small


def test_an_unknown_workload_is_refused_with_the_nearest_name(fairlead):
    code, out, err = fairlead("bench", "PreemptionBasik")
    assert (code, out) == (2, "")
    assert err.startswith("fairlead: no workload 'PreemptionBasik'; did you mean PreemptionBasic/")
    assert "known: SchedulingBasic/" in err


def test_an_unexpected_failure_is_one_line_with_a_hint(fairlead, monkeypatch):
    def broken(requested):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(main, "_app", broken)
    code, out, err = fairlead("whatif")
    assert (code, out) == (70, "")
    assert (
        err == "fairlead: internal error: RuntimeError: two lines (use --debug for a traceback)\n"
    )
    _, _, err = fairlead("whatif", "--debug")
    assert "Traceback" in err


def test_a_lack_of_memory_is_no_internal_error(fairlead, monkeypatch):
    def large(requested):
        raise MemoryError

    monkeypatch.setattr(main, "_app", large)
    code, out, err = fairlead("whatif")
    assert (code, out) == (2, "")
    assert err == "fairlead: the input needs more memory than this process can use\n"


def test_an_interrupt_has_exit_code_130_and_no_message(fairlead, monkeypatch):
    def interrupted(requested):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_app", interrupted)
    assert fairlead("whatif") == (130, "", "")


def test_an_interrupt_during_the_start_has_exit_code_130_and_no_message(tmp_path):
    """The signal arrives in a function whose exceptions Python ignores."""
    (tmp_path / "cyclopts.py").write_text(
        "import signal, weakref\n"
        "class Gone: pass\n"
        "gone = Gone()\n"
        "kept = weakref.ref(gone, lambda _: signal.raise_signal(signal.SIGINT))\n"
        "del gone\n"
    )
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    start += "from fairlead.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, "--version"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    ("redirection", "error"),
    [("<&-", b"fairlead: stdin: is empty\n"), ("</dev/null 2>/dev/full", b"")],
    ids=["standard input is closed", "standard error cannot be written"],
)
def test_bad_input_has_exit_code_2_with_any_redirection_of_streams(redirection, error):
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh"]
    command = [*shell, sys.executable, "-m", "fairlead.cli", "whatif", "-"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", error)


def test_a_file_that_cannot_be_written_has_exit_code_74(fairlead, monkeypatch):
    def full(requested):
        raise OSError(28, "No space left on device", "r.html")

    monkeypatch.setattr(main, "_app", full)
    code, _, err = fairlead("whatif")
    assert (code, err) == (74, "fairlead: r.html: No space left on device\n")


def test_a_deleted_current_directory_is_named(fairlead, monkeypatch):
    def no_directory(requested):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(main, "_app", no_directory)
    code, _, err = fairlead("simulate", "s.yaml")
    assert (code, err) == (2, "fairlead: the current directory does not exist\n")


def in_process(*arguments, seed):
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-m", "fairlead.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, env=environment, text=True)


def test_the_hash_seed_does_not_change_commands_or_results(tmp_path):
    """Runs with the same scenario and seed, but two values of PYTHONHASHSEED, are equal."""

    def outcome(seed):
        log = tmp_path / f"{seed}.jsonl"
        done = in_process("simulate", PRIORITIES, "-o", "json", "--commands", log, seed=seed)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout, log.read_text()

    assert outcome(1) == outcome(2)


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_closed_pipe_changes_neither_exit_code_nor_files(tmp_path, output):
    """With `| head`, the exit code and the files are the same as without it."""
    command = [sys.executable, "-m", "fairlead.cli", "whatif", STORE / "store.yaml", "--drain",
               "worker-11", "-o", output, "--report", "r.html"]  # fmt: skip
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == "report: r.html\n"
    assert process.returncode == 1
    assert (tmp_path / "r.html").exists()


@pytest.mark.parametrize("arguments", [("--help",), ("whatif", "--help")])
def test_a_help_text_in_a_closed_pipe_succeeds(arguments):
    command = [sys.executable, "-m", "fairlead.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_help_does_not_import_numpy_or_the_engine():
    """`fairlead --help` is fast because it imports neither numpy nor the engine."""
    code = (
        "import sys; from fairlead.cli.main import run; run(['--help']); "
        "print([m for m in sys.modules if m in ('numpy', 'yaml', 'fairlead.engine')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_terminal_without_utf_8_gets_question_marks():
    command = [sys.executable, "-m", "fairlead.cli", "up", "--help"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout


def write_until_terminated(path):
    with AtomicFile(path) as file:
        file.write(b"{}")
        signal.raise_signal(signal.SIGTERM)


def test_a_terminated_command_leaves_no_unfinished_file(tmp_path):
    """SIGTERM ends a command as Ctrl-C does."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        clean_up_on_signals()
        with pytest.raises(SignalError):
            write_until_terminated(tmp_path / "commands.jsonl")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def signals():
    """Let SIGTERM raise SignalError in the test."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    clean_up_on_signals()
    yield
    signal.signal(signal.SIGTERM, before)


async def terminated_in_a_callback():
    asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
    await asyncio.sleep(60)


@pytest.mark.usefixtures("signals")
def test_a_signal_in_a_callback_of_asyncio_ends_the_command(caplog):
    """asyncio would log any exception of another kind, and continue."""
    with pytest.raises(SignalError):
        asyncio.run(terminated_in_a_callback())
    assert caplog.records == []


@pytest.mark.usefixtures("signals")
def test_a_signal_during_a_call_of_a_plugin_is_no_failure_of_the_plugin():
    call = checked("Mine", "filter", lambda: signal.raise_signal(signal.SIGTERM), lambda *_: None)
    with pytest.raises(SignalError):
        call()


@pytest.mark.parametrize("module", ["fairlead", "fairlead.cli"])
def test_the_package_runs_as_a_module(module):
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


def test_the_name_of_a_dump_need_not_be_utf8(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}'
    name = os.fsdecode(b"caf\xe9.json")
    Path(name).write_text(node)
    assert run(["explain", name, "nodes", "-o", "json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["source"] == r"caf\xe9.json"
    assert run(["whatif", name, "--cordon", "n1"]) == 0
    out = capfdbinary.readouterr().out
    assert rb"caf\xe9.json" in out
    assert run(["whatif", "dump.json", "--apply", name]) == 2
    assert b"'caf?.json' is not UTF-8" in capfdbinary.readouterr().err
