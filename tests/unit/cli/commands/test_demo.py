"""`fairlead demo` writes its example, prints three answers, and overwrites no other files."""

from __future__ import annotations

from pathlib import Path

from fairlead.cli import exit_code
from fairlead.cli.main import run

STORE = Path(__file__).parents[4] / "examples" / "store"


def test_the_demo_answers_three_questions_and_writes_a_report(tmp_path, capsys):
    folder = tmp_path / "demo"
    assert run(["demo", "--output", str(folder)]) == exit_code.SUCCESS
    printed = capsys.readouterr().out
    assert printed.count("$ fairlead whatif") == 3
    assert "all run again within 1s" in printed
    assert "4 pods of deploy/analytics/reports stay pending" in printed
    assert "kubectl get -A -o json nodes," in printed
    assert (folder / "store.yaml").read_bytes() == (STORE / "store.yaml").read_bytes()
    assert "<html" in (folder / "flash-sale.html").read_text()


def test_the_demo_can_be_repeated(tmp_path):
    assert run(["demo", "--output", str(tmp_path)]) == exit_code.SUCCESS
    assert run(["demo", "--output", str(tmp_path)]) == exit_code.SUCCESS


def test_the_demo_does_not_overwrite_other_files(tmp_path, capsys):
    (tmp_path / "flash-sale.yaml").write_text("mine")
    assert run(["demo", "--output", str(tmp_path)]) == exit_code.BAD_INPUT
    assert "exists and is not the example" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["flash-sale.yaml"]


def test_an_output_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert run(["demo", "--output", str(tmp_path / "file")]) == exit_code.BAD_INPUT
    assert "is not a directory" in capsys.readouterr().err
