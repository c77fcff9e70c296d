"""Sharing parts between versions of pods has no effect: an outage runs as with separate views.

State, controllers and recorders take shortcuts when the parts of two versions are the same objects.
Views that share nothing prevent all of these shortcuts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.api.codec import decode
from fairlead.cli.main import run
from fairlead.worlds.pod_views import PodViews

STORE = Path(__file__).parents[3] / "examples" / "store" / "store.yaml"
QUESTIONS = {
    "a zone fails": ("--fail-zone", "west-1a", "--for", "20m"),
    "a node is drained": ("--drain", "worker-03"),
    "a node restarts": ("--fail-node", "worker-03", "--for", "2m"),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_answer_and_commands_are_the_same(question, tmp_path, capsysbinary, monkeypatch):
    def answer(name):
        log = tmp_path / name
        options = ["--output", "json", "--commands", str(log)]
        assert run(["whatif", str(STORE), *question, *options]) == 1
        return capsysbinary.readouterr().out, log.read_bytes()

    shared = answer("shared")
    monkeypatch.setattr(PodViews, "view_of", lambda _, change: decode(change.object))
    assert answer("decoded") == shared
    assert shared[1].count(b"PatchStatus")
