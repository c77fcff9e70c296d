"""Writes docs/fairlead.1, the manual page in the wheel, from the code.

    python tools/man_page.py

The page lists the commands; `make site` builds a longer page with all options.
tests/test_man_page.py compares the file with the output of this tool.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fairlead.cli.main import COMMAND_GROUPS, HELP, USUAL_EXIT_CODES

PAGE: Final = Path(__file__).parent.parent / "docs" / "fairlead.1"
EXAMPLE: Final = re.compile(r"^ {4}(.*)$", re.MULTILINE)

HEAD: Final = r"""
.\" Written by tools/man_page.py
.TH FAIRLEAD 1 "" "" "User Commands"
.SH NAME
fairlead \- ask a Kubernetes cluster "what if?"
.SH SYNOPSIS
.B fairlead
.I COMMAND
.RI [ ARGUMENT ...]
.RI [ OPTION ...]
.br
.B fairlead
.I COMMAND
.B \-\-help
"""

TAIL: Final = r"""
.SH EXIT STATUS
.TP
.B 0
success
.TP
.B 1
an answer that asks for attention, such as a difference; see
.I COMMAND
.B \-\-help
.TP
.B 2
bad input, with one line on standard error that names file, object and field
.TP
.B 3
a condition of
.B \-\-fail\-on
holds
.SH ENVIRONMENT
.TP
.B KUBECONFIG
the kubeconfig of the cluster to read; by default
.I ~/.kube/config
.TP
.B COLUMNS
the width of tables if standard output is not a terminal
.SH SEE ALSO
.BR kubectl (1)
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(man_page())


def man_page() -> str:
    """Return the page in roff."""
    description, _, examples = HELP.partition("Try:\n")
    parts = [HEAD.strip(), ".SH DESCRIPTION", _escaped(description.strip()), ".SH COMMANDS"]
    for title, commands in COMMAND_GROUPS.items():
        parts.append(f".SS {title}")
        for command in commands:
            parts += [".TP", f".B {_escaped(command.name)}", _escaped(command.text)]
            if command.exit_codes != USUAL_EXIT_CODES:
                parts.append(_escaped(command.exit_codes))
    parts.append(".SH EXAMPLES")
    for example in EXAMPLE.findall(examples):
        parts += [".PP", ".nf", f".B {_escaped(example)}", ".fi"]
    return "\n".join((*parts, TAIL.strip())) + "\n"


def _escaped(text: str) -> str:
    """Return `text` with roff's special characters escaped; a hyphen becomes a minus sign."""
    shown = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return re.sub(r"^([.'])", r"\\&\1", shown, flags=re.MULTILINE)


if __name__ == "__main__":
    main()
