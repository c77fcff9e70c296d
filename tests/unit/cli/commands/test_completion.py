"""`fairlead completion`: the scripts complete commands, options, values and file names."""

from __future__ import annotations

import subprocess

import pytest

from fairlead.cli.main import run

# Calls the completion function as bash does when TAB is pressed after the given words.
PRESS_TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_fairlead fairlead "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts():
    """The script of each shell."""
    found = {}
    for shell in ("bash", "zsh", "fish"):
        with pytest.MonkeyPatch.context() as patch:
            lines = []
            patch.setattr("builtins.print", lambda *text, **_: lines.extend(text))  # noqa: B023
            run(["completion", shell])
        found[shell] = "".join(lines)
    return found


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (("fairlead", "wha"), {"whatif"}),
        (("fairlead", "whatif", "--dr"), {"--drain"}),
        (("fairlead", "whatif", "-o", "j"), {"json"}),
    ],
)
def test_bash_completes_commands_options_and_values(scripts, tmp_path, words, completed):
    script = tmp_path / "fairlead.bash"
    script.write_text(scripts["bash"])
    command = ["bash", "--norc", "-c", PRESS_TAB, "bash", str(script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed <= set(done.stdout.split())


def test_bash_completes_file_names_by_default(scripts):
    assert "complete -o bashdefault -o default -F _fairlead fairlead" in scripts["bash"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_commands_and_options_are_in_the_scripts_of_the_other_shells(scripts, shell):
    assert all(word in scripts[shell] for word in ("whatif", "explain", "drain", "doctor"))


def test_an_unknown_shell_is_refused_with_the_list_of_shells(capsys):
    assert run(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
