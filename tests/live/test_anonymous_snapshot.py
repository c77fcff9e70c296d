"""Anonymised snapshots: the answers are the same, and no name of the original remains."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.whatif.snapshot.anonymization.pseudonym import Pseudonyms
from fairlead.whatif.snapshot.anonymization.published_label import WELL_KNOWN
from fairlead.whatif.snapshot.snapshot import read_snapshot

STORE = str(Path(__file__).parents[2] / "examples" / "store" / "store.yaml")
SYSTEM = {"default", "kube-system", "kube-public", "kube-node-lease"}
SYSTEM |= {"system-node-critical", "system-cluster-critical", "default-scheduler"}

# Labels of workload controllers, whose keys are published.
CONTROLLERS = {"pod-template-hash", "controller-revision-hash", "pod-template-generation"}


def fairlead(*arguments):
    command = [sys.executable, "-m", "fairlead.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The anonymised store, and the key of its pseudonyms."""
    folder = tmp_path_factory.mktemp("shared")
    file, key = folder / "shared.json", folder / "names.key"
    done = fairlead("snapshot", file, "--anonymise", key, "--from", STORE)
    assert done.returncode == 0, done.stderr
    assert "dropped: environments" in done.stderr
    assert "kept: kinds" in done.stderr
    return file, key


def pseudonyms(key):
    return Pseudonyms(json.loads(key.read_text())["segments"])


NAMED = re.compile(r"worker-[0-9]+|frontend|store")


@pytest.mark.parametrize(
    ("command", "question"),
    [
        pytest.param("whatif", ["--drain", "worker-03"], id="a drain"),
        pytest.param("whatif", ["--fail-zone", "west-1a", "--for", "20m"], id="a zone that fails"),
        pytest.param("explain", ["deploy/store/frontend"], id="a workload"),
        *(
            pytest.param(command, question, id=command, marks=pytest.mark.long)
            for command, question in (
                ("drain-plan", ["--nodes", "worker-03", "--nodes", "worker-04"]),
                ("fit", ["--like", "deploy/store/frontend"]),
                ("consolidate", []),
                ("rebalance", []),
                ("size", []),
                ("upgrade-check", []),
            )
        ),
    ],
)
def test_answers_are_the_same_after_mapping_the_names(shared, command, question, tmp_path):
    file, key = shared
    names = pseudonyms(key)
    mapped = [NAMED.sub(lambda found: names.replace(found[0]), word) for word in question]
    original = fairlead(command, STORE, *question, "-o", "json")
    answer, revealed = tmp_path / "answer.json", tmp_path / "revealed.json"
    anonymous = fairlead(command, file, *mapped, "-o", "json")
    assert original.returncode in (0, 1), original.stderr
    assert anonymous.returncode == original.returncode
    answer.write_text(anonymous.stdout)
    assert fairlead("snapshot", revealed, "--from", answer, "--reveal", key).returncode == 0
    found = json.loads(revealed.read_text())
    expected = json.loads(original.stdout)
    assert {**found, "source": ""} == {**expected, "source": ""}


@pytest.mark.parametrize("form", [[], ["--list"]], ids=["columns", "a list"])
def test_a_dump_is_written_as_a_snapshot_with_the_same_answers(form, tmp_path):
    file = tmp_path / "store.json"
    done = fairlead("snapshot", file, "--from", STORE, *form)
    assert (done.returncode, done.stderr.partition(" (")[0]) == (0, f"snapshot: {file}")
    question = ("--drain", "worker-03", "-o", "json")
    answers = [json.loads(fairlead("whatif", one, *question).stdout) for one in (STORE, file)]
    assert {**answers[0], "source": ""} == {**answers[1], "source": ""}


def texts(value, path=()):
    """Yield every text of an object, with its path."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield (*path, "<key>"), key
            yield from texts(one, (*path, key))
    elif isinstance(value, list):
        for one in value:
            yield from texts(one, path)
    elif isinstance(value, str):
        yield path, value


def secrets(objects):
    """Return names, images, values of labels and annotations, and the keys of users."""
    for one in objects:
        for path, text in texts(one):
            is_name = path[-1] in ("name", "namespace", "uid", "image", "nodeName", "generateName")
            is_label = "labels" in path or "annotations" in path or "matchLabels" in path
            if path[-1] in WELL_KNOWN or path[-1].startswith("fairlead.dev/"):
                continue
            if (is_name or is_label) and text not in SYSTEM:
                yield text


def test_no_name_of_the_original_remains(shared):
    file, _ = shared
    hidden = set(secrets(one.value for one in read_snapshot(STORE).manifests))
    hidden = {
        text
        for text in hidden
        if text not in CONTROLLERS and not re.fullmatch(r"[0-9]*|true|.*kubernetes\.io.*", text)
    }
    assert {"worker-03", "store", "frontend", "analytics/reports:1"} <= hidden
    left = {text for _, text in texts(json.loads(file.read_text()))}
    assert left & hidden == set()


def test_only_its_owner_can_read_the_key_and_it_is_never_overwritten(shared):
    _, key = shared
    assert key.stat().st_mode & 0o077 == 0
    done = fairlead("snapshot", "other.json", "--anonymise", key, "--from", STORE)
    assert (done.returncode, done.stderr) == (
        2,
        f"fairlead: --anonymise: {key}: exists already; choose another\n",
    )


def test_an_answer_without_names_is_copied(shared, tmp_path):
    """For example, `rebalance` finds no moves; a script that reveals the answer must not fail."""
    answer, revealed = tmp_path / "answer.json", tmp_path / "revealed.json"
    answer.write_text('{"moves": [], "deviation": 0.234, "now": "2026-01-01T00:00:00Z"}')
    done = fairlead("snapshot", revealed, "--from", answer, "--reveal", shared[1])
    assert done.returncode == 0
    assert done.stderr == f"{answer}: contains no pseudonyms, so {revealed} is an equal copy\n"
    assert revealed.read_text() == answer.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["x.json", "--from", STORE, "--context", "x"],
            "--from: cannot be combined with a cluster",
        ),
        (["--rbac", "--list"], "--rbac: prints roles and reads no cluster"),
        (["x.json", "--reveal", "k"], "--reveal: needs --from, and neither a cluster nor"),
        (["x.json", "--from", STORE, "--reveal", STORE], "is not a key that --anonymise wrote"),
        (["--rbac", "--anonymise", "k"], "--rbac: prints roles and reads no cluster"),
    ],
)
def test_wrong_combinations_are_refused(arguments, said):
    done = fairlead("snapshot", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
