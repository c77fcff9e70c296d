"""The kubectl command that takes a dump is the same in all documents."""

from __future__ import annotations

import re
from pathlib import Path

from fairlead.cli.main import HELP
from fairlead.whatif.snapshot.dump_command import RESOURCES

ROOT = Path(__file__).parents[4]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/fairlead.1")
DUMP = re.compile(r"kubectl get ((?:\\\n|[^\n`>|])*)")
KINDS = re.compile(r"[a-z.,\-]*,[a-z.,\-]*")


def test_every_command_that_dumps_pods_dumps_all_kinds_on_which_answers_depend():
    texts = {"fairlead --help": HELP}
    for pattern in DOCUMENTS:
        texts |= {path.name: path.read_text() for path in ROOT.glob(pattern)}
    found = {
        (where, kinds)
        for where, text in texts.items()
        for command in DUMP.findall(text)
        for kinds in KINDS.findall(command.replace("\\\n", ""))
        if not {"pods", "po"}.isdisjoint(kinds.split(","))
    }
    assert found == {(where, ",".join(RESOURCES)) for where in ("README.md", "tutorial.md")}
