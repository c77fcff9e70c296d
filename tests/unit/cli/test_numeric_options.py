"""Numeric options of all commands: texts that are not numbers, and invalid numbers, are refused.

The options are found in the commands themselves, so new ones are tested too.
"""

from __future__ import annotations

from typing import Final

import pytest

from fairlead.cli.main import COMMANDS, documented_app, run

DUMP: Final = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
AUDIT: Final = '{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Request"}\n'
# Arguments with which a command validates its options, and then soon ends.
ARGUMENTS: Final = {
    "simulate": "s.yaml",
    "sweep": "s.yaml --on processes:1 --vary seed=0..9",
    "whatif": "dump.yaml --drain n1",
    "explain": "dump.yaml deploy/shop/web",
    "fit": "dump.yaml --like deploy/shop/web",
    "consolidate": "dump.yaml",
    "size": "dump.yaml",
    "drain-plan": "dump.yaml --nodes n1",
    "upgrade-check": "dump.yaml",
    "rebalance": "dump.yaml",
    "replay": "audit.log --snapshot dump.yaml",
    "conformance": "scheduling dump.yaml",
    "up": "--data-dir dump.yaml/below",
    "top": "--kubeconfig none",
    "run": "--kubeconfig none",
}
METAVARS: Final = ("N", "DURATION", "RATE", "SHARE", "SIZE", "[GROUP=]DURATION")
NO_NUMBERS: Final = ("nan", "1e400", "9" * 5_000)
MAY_BE_NEGATIVE: Final = ("--seed", "--random-seed")
NO_FRACTIONS: Final = "1.5"


def numeric_options():
    """Return the numeric options of all commands; for each, whether it is an integer."""
    app = documented_app()
    for command in COMMANDS:
        for argument in app[command.name].assemble_argument_collection():
            if not argument.parse or not argument.name.startswith("-"):
                continue
            hint, metavar = str(argument.hint), argument.parameter.metavar
            if "int" in hint or "float" in hint or metavar in METAVARS:
                is_integer = "int" in hint and metavar != "SIZE"
                yield pytest.param(command.name, argument.name, is_integer)


@pytest.fixture
def refusal(tmp_path, monkeypatch, capsys):
    """Returns the one-line error of a command for a value of an option."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.yaml").write_text(DUMP)
    (tmp_path / "s.yaml").write_text("cluster: {generated: {nodes: 2}}\n")
    (tmp_path / "audit.log").write_text(AUDIT)

    def said(command, option, value):
        code = run([command, *ARGUMENTS.get(command, "").split(), f"{option}={value}"])
        printed = capsys.readouterr()
        assert (code, printed.out) == (2, ""), (value, printed)
        assert printed.err.count("\n") == 1
        return printed.err

    return said


@pytest.mark.parametrize(("command", "option", "is_integer"), list(numeric_options()))
def test_invalid_numbers_are_refused(refusal, command, option, is_integer):
    values = [*NO_NUMBERS, *([] if option in MAY_BE_NEGATIVE else ["-1"])]
    for value in [*values, *([NO_FRACTIONS] if is_integer else [])]:
        assert option in refusal(command, option, value), value


def test_numeric_options_are_found():
    found = {(one.values[0], one.values[1]) for one in numeric_options()}
    assert ("whatif", "--horizon") in found
    assert ("up", "--speed") in found
    assert ("size", "--effort") in found
