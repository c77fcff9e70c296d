"""The GitHub Action in action.yml: its steps are run as a runner runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parent.parent
ACTION: Final[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: Final = {step["id"]: step for step in ACTION["runs"]["steps"]}
STORE: Final = str(ROOT / "examples" / "store" / "store.yaml")
POLICY: Final = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: root}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "false", message: container `app` needs runAs_NonRoot}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: root}
spec: {policyName: root, validationActions: [Deny]}
"""


class Runner:
    """Runs the steps of the action in a directory, with `fairlead` installed from this source."""

    def __init__(self, folder: Path) -> None:
        """Put `fairlead` where the install step of the action puts it."""
        self.folder = folder
        program = folder / "fairlead" / "bin" / "fairlead"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairlead.cli "$@"\n')
        program.chmod(0o755)
        self.summary, self.outputs = folder / "summary.md", folder / "outputs"

    def run(self, step: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script of a step with the variables of a runner."""
        env = {
            **os.environ,
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.outputs),
            **variables,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]["run"]]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def ask(self, question: str, fail_on: str = "", snapshot: str = STORE) -> int:
        """Run the step `ask`; return its exit code."""
        completed = self.run("ask", SNAPSHOT=snapshot, QUESTION=question, FAIL_ON=fail_on)
        return completed.returncode

    def output(self, name: str) -> str:
        """Return an output of the step `ask`."""
        lines = dict(line.split("=", 1) for line in self.outputs.read_text().splitlines())
        return lines[name]

    def decide(self) -> subprocess.CompletedProcess[str]:
        """Run the last step on the outputs of the step `ask`."""
        return self.run("decide", STATUS=self.output("status"), VERDICT=self.output("verdict"))


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with an empty directory."""
    return Runner(tmp_path)


def test_an_answer_has_a_summary_a_comment_and_outputs(runner: Runner) -> None:
    assert runner.ask("--drain worker-03") == 0
    verdict = "2 pods of 2 workloads are displaced and all run again within 1s."
    assert runner.output("verdict") == verdict
    assert Path(runner.output("report")).is_file()
    comment = (runner.folder / "fairlead-answer.md").read_text()
    assert comment == runner.summary.read_text()
    assert comment.startswith(f"### {verdict}")
    assert runner.decide().returncode == 0


def test_a_condition_fails_the_job_after_the_comment(runner: Runner) -> None:
    question = "--drain 'topology.kubernetes.io/zone=west-1a'"
    assert runner.ask(question, "pdb-breached\npending>0\n") == 0
    decided = runner.decide()
    assert decided.returncode == 3
    assert decided.stdout.startswith("::error::sts/store/orders-db has no ready pod to the end")


def test_the_errors_of_the_job_name_the_condition_that_holds(runner: Runner) -> None:
    """The verdict alone does not show why the job failed."""
    assert runner.ask("--drain worker-03", "pending>0\ndisplaced>1\n") == 0
    verdict, condition = runner.decide().stdout.splitlines()
    assert verdict == "::error::2 pods of 2 workloads are displaced and all run again within 1s."
    assert condition.startswith("::error::--fail-on displaced>1: store/frontend-6d58cd5f89-gwqtk, ")


def test_an_invalid_question_fails_the_job(runner: Runner) -> None:
    assert runner.ask("--drain no-such-node") == 2


def test_the_errors_of_a_comparison_name_the_alternative_and_the_condition(runner: Runner) -> None:
    question = "--change 'one:--drain worker-03' --change 'none:--cordon worker-03'"
    assert runner.ask(question, "displaced>1\n") == 0
    _, condition = runner.decide().stdout.splitlines()
    assert condition.startswith("::error::one: --fail-on displaced>1: store/frontend-6d58cd5f89-")


def test_the_verdict_and_the_errors_of_the_job_are_plain_text(
    runner: Runner, tmp_path: Path
) -> None:
    """The comment is Markdown, in which special characters have a backslash before them."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    question = f"--apply {policy} --scale deploy/store/frontend=9"
    assert runner.ask(question, "errors>0") == 0
    words = "denied request: container `app` needs runAs_NonRoot"
    assert runner.output("verdict").endswith(words)
    verdict, condition = runner.decide().stdout.splitlines()
    assert verdict.startswith("::error::1 pod of deploy/store/frontend is not created: ")
    assert verdict.endswith(words)
    assert condition.startswith("::error::--fail-on errors>0: ReplicaSet store/frontend-")
    assert condition.endswith(words)


@pytest.mark.parametrize(
    ("question", "fail_on", "error"),
    [
        ("--drain 'worker-03", "", "question: No closing quotation"),
        (" ", "", "question: has no options"),
        ("--drain no-such-node", "", "--drain: there is no Node no-such-node"),
        ("--drain worker-03", "pending>much", "--fail-on: pending: 'much' is not an integer"),
    ],
)
def test_a_question_that_cannot_be_asked_fails_the_job_with_its_error(
    runner: Runner, question: str, fail_on: str, error: str
) -> None:
    completed = runner.run("ask", SNAPSHOT=STORE, QUESTION=question, FAIL_ON=fail_on)
    assert completed.returncode == 2
    assert f"::error::{error}" in completed.stdout + completed.stderr
    assert not runner.outputs.exists()


def test_the_question_is_never_executed_as_shell_code(runner: Runner) -> None:
    canary = runner.folder / "canary"
    assert runner.ask(f"--drain $(touch {canary}) ; touch {canary}") == 2
    assert not canary.exists()


def test_a_line_break_in_an_option_does_not_start_another_option(runner: Runner) -> None:
    """Otherwise a name from a pull request could add --plugin, which runs code."""
    canary = runner.folder / "canary"
    plugin = runner.folder / "plugin.py"
    plugin.write_text(f"open({str(canary)!r}, 'w')\nclass Bad: pass\n")
    assert runner.ask(f"--drain 'worker-03\n--plugin\n{plugin}:Bad'") == 2
    assert not canary.exists()


def test_scripts_contain_no_expressions() -> None:
    """A runner inserts the value of `${{ }}` into a script, which would execute the value."""
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []
