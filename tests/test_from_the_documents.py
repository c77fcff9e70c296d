"""Every claim of docs/from-the-documents is shown by its command, in its version and in 1.36."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from fairlead.cli import main

ROOT: Final = Path(__file__).parent.parent
TODAY: Final = "1.36"


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("claims_pages", ROOT / "tools/claims_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL: Final = _tool()
CLAIMS: Final = [
    (page["version"], claim) for page in TOOL.read_claims() for claim in page["claims"]
]
Run = Callable[[str, str], str]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Everything that a command prints, logs and writes in a version; each is run once."""
    done: dict[tuple[str, str], str] = {}
    files = tmp_path_factory.mktemp("out")

    def run(command: str, version: str, capsys: pytest.CaptureFixture[str]) -> str:
        key = (command, version)
        if key not in done:
            written = [files / name for name in ("commands", "metrics", "snapshot.json")]
            for file in written:
                file.unlink(missing_ok=True)
            words = shlex.split(command.replace("SNAPSHOT", str(written[-1])))
            options = ["--no-report", "--behave-like", version, "-v", "5"]
            options += ["--commands", str(written[0]), "--metrics", str(written[1])]
            main.run([*words, *options])
            printed = capsys.readouterr()
            texts = [file.read_text() for file in written if file.exists()]
            done[key] = "\n".join((printed.out, printed.err, *texts))
        return done[key]

    return run  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("version", "claim"), CLAIMS, ids=[claim["claim"][:60] for _, claim in CLAIMS]
)
def test_a_claim_holds(
    version: str,
    claim: dict[str, Any],
    output: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In its version as the document says, and in 1.36 as the page says."""
    if "test" in claim:
        assert (ROOT / claim["test"]).is_file()
        return
    monkeypatch.chdir(TOOL.FOLDER / "scenarios")
    for which, texts in ((version, claim["shows"]), (TODAY, claim.get("today", claim["shows"]))):
        found = output(claim["run"], which, capsys)
        for text in texts:
            wanted = not text.startswith(TOOL.NOT)
            assert (text.removeprefix(TOOL.NOT) in found) is wanted, (which, text)


def test_what_is_different_is_shown_by_different_texts() -> None:
    """A row that names 1.36 apart must not say the same."""
    assert not [claim for _, claim in CLAIMS if claim.get("today") == claim.get("shows", ())]


def test_the_pages_are_up_to_date() -> None:
    """`python tools/claims_pages.py` writes them."""
    for name, text in TOOL.pages().items():
        assert (TOOL.FOLDER / name).read_text() == text, name
