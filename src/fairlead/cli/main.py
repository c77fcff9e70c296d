"""`fairlead`: the entry point, and the one place where an error becomes a line and a code.

Commands are named by import path and loaded when called, so that `fairlead --help` and a
mistyped option answer at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cyclopts import App, Argument, CycloptsError, MissingArgumentError

from fairlead import __version__
from fairlead.cli import exit_code
from fairlead.worlds.gc_thresholds import collect_rarely

DEBUG_FLAG: Final = "--debug"

HELP: Final = """\
Ask your cluster "what if?": run a cluster's nodes and pods with kube-scheduler's rules in virtual
time, change something or let it fail, and see what moves and why.

Try:

    kubectl get nodes,pods,deploy,rs,pdb,priorityclasses -A -o yaml > dump.yaml

    fairlead whatif dump.yaml --drain topology.kubernetes.io/zone=eu-1a

    fairlead whatif dump.yaml --fail-zone eu-1a --for 20m

    fairlead whatif dump.yaml --apply change.yaml --fail-on 'priority>=1000'

    fairlead explain pod/store/web-0 --snapshot dump.yaml

    fairlead simulate scenario.yaml
"""

EPILOGUE: Final = """\
Exit codes: 0 done, no difference; 1 difference; 2 bad input; 3 a pod matching --fail-on was
displaced. With --debug, an unexpected failure shows its traceback.
"""

# Name, import path, and what it does in a line: the commands themselves are loaded when called.
_COMMANDS: Final = (
    ("simulate", "fairlead.cli.simulate:simulate", "Run a scenario in virtual time."),
    ("whatif", "fairlead.cli.whatif:whatif", "Run a cluster with and without a change."),
    ("explain", "fairlead.cli.explain:explain", "Show each node's verdict on a pod."),
    (
        "conformance",
        "fairlead.cli.conformance:conformance",
        "Replay what was recorded of the real programs.",
    ),
    ("up", "fairlead.cli.up:up", "Run a control plane with simulated nodes."),
    ("clock", "fairlead.cli.clock:clock", "Show or steer the time in a running cluster."),
    ("extender", "fairlead.cli.extender:extender", "Serve plugins to a kube-scheduler."),
    ("bench", "fairlead.cli.bench:bench", "Run upstream's benchmark workloads."),
)


def main() -> None:
    """Run the command line of this process and exit with its code."""
    _open_closed_streams()
    collect_rarely()
    sys.exit(run(sys.argv[1:]))


def _open_closed_streams() -> None:
    """What a shell has closed (`>&-`) is a stream like any other, that nobody reads."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def run(arguments: Sequence[str]) -> int:
    """Run `fairlead` with `arguments`; the exit code. Errors become one line on stderr."""
    debug = DEBUG_FLAG in arguments
    tokens = [argument for argument in arguments if argument != DEBUG_FLAG]
    try:
        _refuse_empty(tokens)
        app = _app(asked=tokens[0] if tokens else "")
        code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except KeyboardInterrupt:
        return exit_code.INTERRUPTED
    except BrokenPipeError:  # whoever read our output has left: no reason to complain
        sys.stderr.close()
        return exit_code.SUCCESS
    except Exception as cause:  # noqa: BLE001 - no traceback may reach a user
        if debug:
            traceback.print_exc()
        return _report(cause)
    return code if isinstance(code, int) else exit_code.SUCCESS


def _refuse_empty(tokens: Sequence[str]) -> None:
    """An empty text is a variable of the shell that was not set: nobody means it as a default."""
    from fairlead.whatif.input_error import InputError

    for before, token in zip(("", *tokens), tokens, strict=False):
        name, is_joined, value = token.partition("=")
        if not token:
            raise InputError(before if before.startswith("-") else "arguments", "is empty")
        if name.startswith("--") and is_joined and not value:
            raise InputError(name, "is empty")


def _app(asked: str) -> App:
    """All commands; the one that is `asked` for has its whole help, the others a line each."""
    app = App(
        name="fairlead",
        help=HELP,
        help_epilogue=EPILOGUE,
        help_format="markdown",
        version=__version__,
        suppress_keyboard_interrupt=False,
    )
    for order, (name, path, text) in enumerate(_COMMANDS):
        help_line = None if name == asked else text
        app.command(path, name=name, help=help_line, sort_key=order)
    return app


def _report(cause: Exception) -> int:
    """Say what went wrong in one line; the exit code that goes with it."""
    line, code = _line_and_code(cause)
    print(f"fairlead: {line}", file=sys.stderr)
    return code


def _line_and_code(cause: Exception) -> tuple[str, int]:
    from fairlead.whatif.input_error import InputError, one_line

    match cause:
        case InputError():
            return str(cause), exit_code.BAD_INPUT
        case MissingArgumentError(argument=Argument() as argument):
            line = f"{_missing(cause, argument)} (see fairlead --help)"
            return line, exit_code.BAD_INPUT
        case CycloptsError():
            return f"{one_line(str(cause))} (see fairlead --help)", exit_code.BAD_INPUT
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{one_line(name)}: {reason}", exit_code.OUTPUT_FAILED
        case OSError(filename=None, strerror=str(reason)):  # standard output, as a rule
            return f"output: {reason}", exit_code.OUTPUT_FAILED
        case _:
            what = one_line(f"{type(cause).__name__}: {cause}")
            return f"internal error: {what} (--debug shows where)", exit_code.DEFECT


def _missing(cause: MissingArgumentError, argument: Argument) -> str:
    """`whatif: SNAPSHOT is missing`, or the option whose value is."""
    command = "".join(f"{name}: " for name in cause.command_chain or ())
    if cause.keyword is not None:
        return f"{command}{cause.keyword} is without its value"
    return f"{command}{argument.name} is missing"
