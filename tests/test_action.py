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

# A program `gh` that keeps the comments of a pull request in files, which are named by their ids.
GH: Final = """#!{python}
import re, sys
from pathlib import Path

folder, call = Path({folder!r}), " ".join(sys.argv[1:])
if (folder / "forbidden").exists():
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
found = sorted((folder / "comments").iterdir())
body = Path(call.partition("body=@")[2])
if call.startswith("api --paginate repos/o/r/issues/7/comments --jq "):
    marker = re.search("<!-- .* -->", call)[0]
    print(*(one.name for one in found if one.read_text().startswith(marker)), sep="\\n")
elif match := re.search("--method PATCH repos/o/r/issues/comments/([0-9]+) ", call):
    (folder / "comments" / match[1]).write_text(body.read_text())
elif "--method POST repos/o/r/issues/7/comments " in call:
    (folder / "comments" / str(100 + len(found))).write_text(body.read_text())
else:
    sys.exit("unexpected: " + call)
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
        self.comments = folder / "comments"

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

    def comment(self, question: str) -> subprocess.CompletedProcess[str]:
        """Ask `question` and run the step `comment`, with a `gh` that keeps comments in files."""
        assert self.ask(question) == 0
        self.comments.mkdir(exist_ok=True)
        program = self.folder / "bin" / "gh"
        program.parent.mkdir(exist_ok=True)
        program.write_text(GH.format(python=sys.executable, folder=str(self.folder)))
        program.chmod(0o755)
        path = f"{program.parent}:{os.environ['PATH']}"
        variables = {"NUMBER": "7", "GITHUB_REPOSITORY": "o/r", "PATH": path}
        return self.run("comment", SNAPSHOT=STORE, QUESTION=question, **variables)

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


def test_a_later_run_edits_its_own_comment_and_no_other(runner: Runner) -> None:
    """All workflows of a repository comment as the same user."""
    assert runner.comment("--drain worker-03").returncode == 0
    (runner.comments / "101").write_text("The coverage is 80 %.\n")
    assert runner.comment("--cordon worker-03").returncode == 0
    (runner.comments / "100").write_text(
        (runner.comments / "100").read_text().splitlines()[0] + "\nan older answer\n"
    )
    assert runner.comment("--drain worker-03").returncode == 0
    texts = {one.name: one.read_text() for one in runner.comments.iterdir()}
    assert sorted(texts) == ["100", "101", "102"]
    verdict = "### 2 pods of 2 workloads are displaced and all run again within 1s."
    assert texts["100"].splitlines()[1] == verdict
    assert texts["101"] == "The coverage is 80 %.\n"
    assert "--cordon worker-03" in texts["102"]


def test_a_comment_that_is_forbidden_is_a_warning(runner: Runner) -> None:
    """The token of a pull request from a fork may only read."""
    (runner.folder / "forbidden").touch()
    completed = runner.comment("--drain worker-03")
    assert completed.returncode == 0
    assert completed.stdout.startswith("::warning::The comment was not written.")


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
