"""`fairlead completion`: prints a script with which a shell completes commands and options."""

from __future__ import annotations

from typing import Final, Literal

from fairlead.cli import exit_code

# Lines that cyclopts does not generate. They also complete file names. In zsh, they call the
# completion function. If zsh loaded the script from $fpath, this happens immediately. If the user
# sourced the script, it happens at each Tab.
_ADDITIONS: Final = {
    "bash": "complete -o bashdefault -o default -F _fairlead fairlead\n",
    "zsh": """\
_fairlead_or_files() { _cyclopts_fairlead "$@" || _files }
if [[ "${funcstack[1]}" == _fairlead ]]; then
  _fairlead_or_files "$@"
else
  compdef _fairlead_or_files fairlead
fi
""",
    "fish": "",
}


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print a completion script for a shell.

    Try:

        fairlead completion bash > ~/.local/share/bash-completion/completions/fairlead
        fairlead completion zsh > "${fpath[1]}/_fairlead"
        fairlead completion fish > ~/.config/fish/completions/fairlead.fish

    Parameters
    ----------
    shell
        The shell to write the script for.
    """
    from fairlead.cli.main import documented_app

    print(documented_app().generate_completion(shell=shell) + _ADDITIONS[shell], end="")
    return exit_code.SUCCESS
