"""`fairlead`: the entry point, which turns every error into one line and an exit code.

Each command is listed with its import path, and imported only when it is called. So `fairlead
--help` and the error about a mistyped option appear quickly.
"""

from __future__ import annotations

import atexit
import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import chain, dropwhile, pairwise, takewhile
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, NoReturn

from cyclopts import (
    App,
    Argument,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    RepeatArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from fairlead import __version__
from fairlead.cli import exit_code
from fairlead.worlds.gc_thresholds import collect_rarely
from fairlead.worlds.huge_pages import use_huge_pages

DEBUG_FLAG: Final = "--debug"
_HELP_FLAGS: Final = frozenset({"--help", "-h"})
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)

HELP: Final = """\
Ask your cluster "what if?". Fairlead simulates the nodes and pods of the cluster in virtual time,
with kube-scheduler's rules. Change or break something, and see which pods move and why.

Try:

    fairlead demo
    fairlead whatif --context prod --drain worker-3
    fairlead snapshot dump.json --context prod
    fairlead whatif dump.json --drain topology.kubernetes.io/zone=eu-1a
    fairlead whatif dump.json --fail-zone eu-1a --for 20m
    fairlead whatif dump.json --apply change.yaml --fail-on 'priority>=1000'
    fairlead explain dump.json pod/store/web-0
    fairlead simulate scenario.yaml

dump.json is a dump of the cluster, such as the file that `fairlead snapshot` writes. The README and
`fairlead demo` show a kubectl command that takes a dump without Fairlead.
"""

EPILOGUE: Final = """\
Exit status: 0 success; 2 bad input; 70 a defect of Fairlead; 74 a result cannot be written; 130
interrupted. COMMAND --help lists further statuses. Every command accepts --debug, which prints a
traceback with each error.
"""

USUAL_EXIT_CODES: Final = "Exit status: 0 success; 2 bad input."


class CommandEntry(NamedTuple):
    """A command, imported from `path` when it is called."""

    name: str
    path: str
    text: str  # describes the command in `fairlead --help`
    exit_codes: str = USUAL_EXIT_CODES  # the text at the end of the command's own help
    # An option that users often forget: they write `node-1` instead of `--nodes node-1`. The error
    # message then suggests the option.
    main_option: str = ""
    # The path of a function that is called with the arguments of the command if the command fails.
    on_failure: str = ""
    is_lasting: bool = False  # whether the command runs until it is interrupted


_QUESTIONS: Final = (
    CommandEntry(
        "whatif",
        "fairlead.cli.commands.whatif.command:whatif",
        "Simulate a cluster with and without a change.",
        "Exit status: 0 no difference; 1 there is a difference, pods cannot be created, or a drain "
        "is refused or not completed; 2 bad input. With --fail-on: 3 a condition holds, 0 no "
        "condition holds.",
    ),
    CommandEntry(
        "explain",
        "fairlead.cli.commands.explain.command:explain",
        "Explain a pod, workload, node, budget, autoscaler or other object.",
    ),
    CommandEntry(
        "fit",
        "fairlead.cli.commands.fit:fit",
        "Count how many more pods of a workload fit.",
        "Exit status: 0 at least one pod fits (with --max-limit N: at least N pods); 1 fewer pods "
        "fit; 2 bad input.",
        "--like",
    ),
    CommandEntry(
        "consolidate",
        "fairlead.cli.commands.consolidate:consolidate",
        "Find nodes that can be removed, and what keeps the other nodes.",
        main_option="--nodes",
    ),
    CommandEntry(
        "size",
        "fairlead.cli.commands.size:size",
        "Find the cheapest nodes that run all pods.",
        "Exit status: 0 success; 1 a pod fits no node, or the failures of --survive cannot be "
        "survived; 2 bad input.",
    ),
    CommandEntry(
        "drain-plan",
        "fairlead.cli.commands.drain_plan:drain_plan",
        "Plan a drain of nodes: blockers, order, pace and duration.",
        "Exit status: 0 all nodes of --nodes can be drained safely; 1 a node of --nodes is blocked,"
        " or no simulated drain is safe; 2 bad input. Without --nodes: 0 at least one node can be "
        "drained, 1 no node can be drained.",
        "--nodes",
    ),
    CommandEntry(
        "upgrade-check",
        "fairlead.cli.commands.upgrade_check:upgrade_check",
        "Check whether all nodes can be drained and upgraded.",
        "Exit status: 0 the upgrade completes safely; 1 a node is blocked, or the upgrade does not "
        "finish or is not safe; 2 bad input.",
        "--nodes",
    ),
    CommandEntry(
        "rebalance",
        "fairlead.cli.commands.rebalance:rebalance",
        "Propose pod moves that make room or even out node loads.",
    ),
    CommandEntry(
        "watch",
        "fairlead.cli.commands.watch.command:watch",
        "Answer what-if questions again whenever a cluster changes.",
        is_lasting=True,
    ),
)
_SCENARIOS: Final = (
    CommandEntry(
        "simulate",
        "fairlead.cli.commands.simulate.command:simulate",
        "Run a scenario in virtual time.",
        "Exit status: 0 success; 2 bad input; 3 a condition of --fail-on holds.",
    ),
    CommandEntry(
        "sweep",
        "fairlead.cli.commands.sweep.command:sweep",
        "Run a scenario many times with varied fields or failures.",
        "Exit status: 0 success; 2 bad input; 3 a condition of --fail-on holds.",
    ),
    CommandEntry(
        "replay",
        "fairlead.cli.commands.replay:replay",
        "Compare recorded placements with the scheduler's rules.",
    ),
)
_CONTROL_PLANE: Final = (
    CommandEntry(
        "up",
        "fairlead.cli.commands.up.command:up",
        "Run a control plane with simulated nodes.",
        "Exit status: 0 success; 2 bad input; with a COMMAND: the exit status of COMMAND.",
        on_failure="fairlead.cli.commands.up.failed_start:print_failed_start",
        is_lasting=True,
    ),
    CommandEntry(
        "down",
        "fairlead.cli.commands.up.detached:down",
        "End a cluster that `fairlead up --detach` started.",
    ),
    CommandEntry(
        "clock",
        "fairlead.cli.commands.clock:clock",
        "Show or control the clock of a running cluster.",
    ),
    CommandEntry(
        "top",
        "fairlead.cli.commands.top.command:top",
        "Show nodes, pods, pending pods and events in a terminal.",
        is_lasting=True,
    ),
    CommandEntry(
        "dashboard",
        "fairlead.cli.commands.dashboard.command:dashboard",
        "Print a link to the dashboard of a running cluster.",
    ),
    CommandEntry(
        "backup",
        "fairlead.cli.commands.backup:backup",
        "Copy the data directory of a cluster to a file.",
    ),
    CommandEntry(
        "restore",
        "fairlead.cli.commands.backup:restore",
        "Restore a cluster from a backup.",
    ),
)
_REAL_CLUSTERS: Final = (
    CommandEntry(
        "snapshot",
        "fairlead.cli.commands.snapshot:snapshot",
        "Write the objects of a running cluster to a file.",
    ),
    CommandEntry(
        "run",
        "fairlead.cli.commands.run.command:run",
        "Schedule the pods of a real cluster.",
        "Exit status: 0 stopped by a signal or at the end of --for; 1 ended early, for example "
        "because leadership was lost; 2 bad input. With --rbac: 0 printed the roles.",
        is_lasting=True,
    ),
    CommandEntry(
        "extender",
        "fairlead.cli.commands.extender.command:extender",
        "Serve plugins as an extender of kube-scheduler.",
        is_lasting=True,
    ),
)
_ITSELF: Final = (
    CommandEntry(
        "demo",
        "fairlead.cli.commands.demo:demo",
        "Answer three what-if questions about an example cluster.",
    ),
    CommandEntry(
        "doctor",
        "fairlead.cli.commands.doctor:doctor",
        "Check that this machine meets Fairlead's requirements.",
        "Exit status: 0 Fairlead can run; 1 a library is missing, or the cluster does not answer; "
        "2 bad input.",
    ),
    CommandEntry(
        "completion",
        "fairlead.cli.commands.completion:completion",
        "Print a completion script for bash, zsh or fish.",
    ),
    CommandEntry(
        "conformance",
        "fairlead.cli.commands.conformance:conformance",
        "Replay decisions recorded from upstream binaries.",
        "Exit status: 0 all cases agree; 1 some cases differ; 2 bad input.",
    ),
    CommandEntry(
        "bench",
        "fairlead.cli.commands.bench:bench",
        "Run kube-scheduler's benchmark workloads.",
        "Exit status: 0 all workloads ran; 1 a workload failed, or needs over 15% more CPU time or "
        "memory than in --baseline; 2 bad input.",
    ),
    CommandEntry(
        "torture",
        "fairlead.cli.commands.torture:torture",
        "Test Fairlead itself under random faults.",
        "Exit status: 0 every law held; 1 a law was broken; 2 bad input.",
    ),
)
# {title in `fairlead --help`: commands}
COMMAND_GROUPS: Final = {
    "Questions about a cluster": _QUESTIONS,
    "Scenarios and recordings": _SCENARIOS,
    "A simulated control plane": _CONTROL_PLANE,
    "Real clusters": _REAL_CLUSTERS,
    "Fairlead itself": _ITSELF,
}
COMMANDS: Final = tuple(chain.from_iterable(COMMAND_GROUPS.values()))


def main() -> None:
    """Run the command line of this process and exit with its code."""
    _open_closed_streams()
    # Print a question mark for each character that the encoding of stdout lacks.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    collect_rarely()
    command, _ = _command_and_arguments(sys.argv[1:])
    if command is None or not command.is_lasting:
        use_huge_pages()
    # OpenBLAS, NumPy's library for linear algebra, is not used. Without this setting, it
    # would start a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    clean_up_on_signals()
    try:
        code = run(sys.argv[1:])
    except SignalError as ended:
        code = exit_code.SIGNALLED + ended.number
    if code != exit_code.SUCCESS:
        _after_failure(sys.argv[1:])
    _leave(code)


def _after_failure(arguments: Sequence[str]) -> None:
    """Call `on_failure` of the command that `arguments` call, if the command has this function."""
    command, own = _command_and_arguments(arguments)
    if command is not None and command.on_failure:
        from pkgutil import resolve_name

        resolve_name(command.on_failure)(own)


def _command_and_arguments(arguments: Sequence[str]) -> tuple[CommandEntry | None, list[str]]:
    """Return (command that `arguments` call, arguments after its name).

    The name of the command is the first of `arguments` that is not an option. The command is None
    if no command has this name.
    """
    name, *own = [*dropwhile(lambda one: one.startswith("-"), arguments)] or [""]
    return next((command for command in COMMANDS if command.name == name), None), own


class SignalError(KeyboardInterrupt):
    """Raised in the main thread when the process receives the signal `number`.

    SignalError is a KeyboardInterrupt, because asyncio and the code that calls users' plugins catch
    most other exceptions. For example, asyncio only logs an exception in a callback.
    """

    def __init__(self, number: int) -> None:
        """`number` is the number of the signal."""
        super().__init__(number)
        self.number = number


def clean_up_on_signals() -> None:
    """Let SIGTERM and SIGHUP raise SignalError, so that unfinished output files are removed.

    A signal that is ignored stays ignored, as under nohup.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise_signal)


def _raise_signal(number: int, _: FrameType | None) -> NoReturn:
    raise SignalError(number)


def _leave(code: int) -> NoReturn:
    """End the process without freeing its Python objects, because freeing them can take seconds.

    Exit handlers run, and stdout and stderr are flushed. If other threads run, the process ends in
    the usual way. Python then waits for the threads.
    """
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()  # noqa: SLF001 - the only way to run them before os._exit
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed by its reader or by `run`
            stream.flush()
    os._exit(code)


def _open_closed_streams() -> None:
    """Replace streams that the shell has closed (`>&-`) by /dev/null."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115 - open until the process ends
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - open until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def run(arguments: Sequence[str]) -> int:
    """Run `fairlead` and return its exit code.

    An error is printed as one line on stderr. With --debug, a traceback precedes this line.
    """
    # Imported here for the same reason as the commands.
    from fairlead.whatif.input.mapped_file import unchanged_files

    debug = DEBUG_FLAG in arguments
    tokens = [argument for argument in arguments if argument != DEBUG_FLAG]
    try:
        _refuse_unusable(tokens)
        app = _app(requested=tokens[0] if tokens else "")
        if not _HELP_FLAGS.isdisjoint(tokens[1:]) and _is_command(tokens[0]):
            app[tokens[0]].usage = _usage(app[tokens[0]])
        with unchanged_files():
            code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
            sys.stdout.flush()
    except SignalError:
        raise
    except KeyboardInterrupt:
        return exit_code.INTERRUPTED
    except BrokenPipeError:  # The reader of stdout has exited, which is not an error.
        sys.stderr.close()
        return exit_code.SUCCESS
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        # rich, which prints help texts, has raised SystemExit in place of the BrokenPipeError.
        return exit_code.SUCCESS
    except Exception as cause:  # noqa: BLE001 - no traceback may reach a user
        if debug:
            traceback.print_exc()
        return _report(cause, tokens)
    return code if isinstance(code, int) else exit_code.SUCCESS


def values_of(arguments: Sequence[str]) -> dict[str, object]:
    """Return the values in `arguments`, keyed by parameter; `arguments[0]` is the command.

    Raises ValueError if the arguments cannot be parsed. The error's message is the line that `run`
    would print.
    """
    try:
        _refuse_unusable(arguments)
        app = _app(requested=arguments[0])
        _, bound, _ = app.parse_args(list(arguments), exit_on_error=False, print_error=False)
    except (CycloptsError, ValueError) as cause:
        raise ValueError(_line_and_code(cause, arguments)[0]) from None
    return bound.arguments


def _refuse_unusable(tokens: Sequence[str]) -> None:
    """Raise InputError for an argument that is empty or not UTF-8.

    An empty argument is usually an unset shell variable. An argument that is not UTF-8 cannot be
    written to most files and answers. Exception: the name of an existing file need not be UTF-8.
    """
    from fairlead.whatif.input.error import InputError

    for before, token in zip(("", *tokens), tokens, strict=False):
        if not _is_utf8(token) and (before.startswith("-") or not _exists(token)):
            raise InputError("arguments", _not_utf8(token))
        name, is_joined, value = token.partition("=")
        if not token:
            if before.startswith("-"):
                raise InputError(before, "is empty")
            raise InputError("arguments", "contain an empty argument")
        if name.startswith("--") and is_joined and not value:
            raise InputError(name, "is empty")


def documented_app() -> App:
    """Return the app with every command loaded, for completion scripts and reference pages."""
    app = _app(requested="")
    for command in COMMANDS:
        app[command.name].help = None
    return app


def _app(requested: str) -> App:
    """Return the app with all commands.

    Only the command named `requested` is loaded with its full help.
    """
    app = App(
        name="fairlead",
        help=HELP,
        help_epilogue=EPILOGUE,
        help_format="markdown",
        version=__version__,
        default_parameter=Parameter(show_default=_shown_default),
        suppress_keyboard_interrupt=False,
    )
    for place, (title, commands) in enumerate(COMMAND_GROUPS.items()):
        group = Group(title, sort_key=place)
        for order, command in enumerate(commands):
            app.command(
                command.path,
                name=command.name,
                help=None if command.name == requested else command.text,
                help_epilogue=command.exit_codes,
                group=group,
                sort_key=order,
            )
    other = Group("Other", sort_key=len(COMMAND_GROUPS))
    for flag in (*app.help_flags, *app.version_flags):
        app[flag].group = other
    return app


def _usage(command: App) -> str | None:
    """Return the usage line of `command` if it has optional arguments; otherwise return None.

    cyclopts would write [ARGS] for the optional arguments, whatever their names.
    """
    arguments = command.assemble_argument_collection(parse_docstring=False)
    words = [_usage_word(one) for one in arguments if one.field_info.kind in _POSITIONAL]
    if not any(word.startswith("[") for word in words):
        return None
    return " ".join(["Usage: fairlead", *command.name, "[OPTIONS]", *words])


def _usage_word(argument: Argument) -> str:
    name = argument.name.lstrip("-").upper()
    if argument.field_info.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"[{name}...]"
    return name if argument.required else f"[{name}]"


def _shown_default(default: object) -> str | None:
    """Return the text of a default in the help; None if the option is off by default."""
    return None if default is None or default is False else str(default)


def _report(cause: Exception, tokens: Sequence[str]) -> int:
    """Print the error as one line on stderr; return its exit code."""
    line, code = _line_and_code(cause, tokens)
    with suppress(OSError):  # The exit code is the same if standard error cannot be written.
        print(f"fairlead: {line}", file=sys.stderr)
    return code


def _line_and_code(cause: Exception, tokens: Sequence[str]) -> tuple[str, int]:
    from fairlead.whatif.input.error import InputError, one_line

    match cause:
        case InputError():
            return _unknown_option(tokens, cause.source) or str(cause), exit_code.BAD_INPUT
        case CycloptsError():
            return _usage_error(cause, tokens), exit_code.BAD_INPUT
        case UnicodeEncodeError() if not_utf8 := [one for one in tokens if not _is_utf8(one)]:
            return f"arguments: {_not_utf8(not_utf8[0])}", exit_code.BAD_INPUT
        case FileNotFoundError(filename=None):  # raised by os.getcwd
            return "the current directory does not exist", exit_code.BAD_INPUT
        case MemoryError():
            return "the input needs more memory than this process can use", exit_code.BAD_INPUT
        case OSError(filename=str() | None as name, strerror=str(reason)):
            where = "output" if name is None else one_line(name)  # usually standard output
            return f"{where}: {reason}", exit_code.OUTPUT_FAILED
        case _:
            what = one_line(f"{type(cause).__name__}: {cause}")
            return f"internal error: {what} (use --debug for a traceback)", exit_code.DEFECT


def _usage_error(cause: CycloptsError, tokens: Sequence[str]) -> str:
    """Return the message about the arguments `tokens`, which cyclopts has refused with `cause`."""
    from fairlead.whatif.input.error import one_line

    match cause:
        case UnknownOptionError(token=token):
            return _not_an_option((token.keyword or token.value).partition("=")[0], tokens)
        case UnusedCliTokensError(unused_tokens=[str(first), *_]):
            return _unknown_option(tokens) or (
                f"{tokens[0]}: {one_line(first)!r} is one argument too many; "
                f"is {_option_for(tokens[0])} missing? ({_see_help(tokens)})"
            )
        case RepeatArgumentError(token=token):
            command = f"{tokens[0]}: " if tokens and _is_command(tokens[0]) else ""
            return f"{command}{token.keyword} is given more than once ({_see_help(tokens)})"
        case MissingArgumentError(argument=Argument() as argument):
            return f"{_missing(cause, argument, tokens)} ({_see_help(tokens)})"
        case _:
            return f"{one_line(str(cause))} ({_see_help(tokens)})"


def _see_help(tokens: Sequence[str]) -> str:
    """Return `see fairlead COMMAND --help`, without COMMAND if `tokens` begin with no command."""
    command = f" {tokens[0]}" if tokens and _is_command(tokens[0]) else ""
    return f"see fairlead{command} --help"


def _is_command(token: str) -> bool:
    return any(command.name == token for command in COMMANDS)


def _option_for(command: str) -> str:
    """Return the option whose name the user of `command` probably forgot before a value.

    Return the words "the name of its option" if no option is likely.
    """
    option = next((one.main_option for one in COMMANDS if one.name == command), "")
    return option or "the name of its option"


def _is_utf8(token: str) -> bool:
    """Return whether all bytes of the argument `token` were valid UTF-8.

    Python represents each invalid byte of an argument as a surrogate character.
    """
    return not any("\ud800" <= character <= "\udfff" for character in token)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # such as a name that is too long
        return False


def _not_utf8(token: str) -> str:
    from fairlead.whatif.input.error import one_line

    return f"{one_line(token.encode(errors='replace').decode())!r} is not UTF-8"


def _unknown_option(tokens: Sequence[str], wanted: str = "") -> str:
    """Return a message about the first unknown option in `tokens`; "" if all options are known.

    A command that accepts `-` for standard input treats a misspelt option as a file name. The
    message replaces the error about that file. If `wanted` is set, only the option of this name is
    checked.
    """
    before = list(takewhile("--".__ne__, tokens[1:]))
    options = [token.partition("=")[0] for token in before if token.startswith("--")]
    if wanted:
        options = [option for option in options if option == wanted]
    if not options or tokens[0] not in {command.name for command in COMMANDS}:
        return ""
    known = _options_of(tokens[0])
    unknown = next((option for option in options if option not in known), "")
    return _not_an_option(unknown, tokens) if unknown else ""


def _not_an_option(option: str, tokens: Sequence[str]) -> str:
    """Return the message that the command at the start of `tokens` does not have `option`."""
    from fairlead.cli.unknown_option import option_hint
    from fairlead.whatif.input.error import one_line

    if not tokens or not _is_command(tokens[0]):
        return f"{one_line(option)} is not an option ({_see_help(tokens)})"
    own = _options_of(tokens[0])
    line = f"{tokens[0]}: {one_line(option)} is not an option"
    if option in own:
        return f"{line} after --, which ends the options"
    hint = option_hint(tokens[0], option, own, _commands_with)
    return f"{line}; {hint}" if hint else f"{line} ({_see_help(tokens)})"


def _commands_with(option: str) -> list[str]:
    """Return the names of the commands that have `option`, in the order of `COMMANDS`."""
    return [one.name for one in COMMANDS if option in _options_of(one.name)]


def _options_of(command: str) -> frozenset[str]:
    """Return the names of the options of `command`, with the negative forms of its flags."""
    found = _app(requested=command)[command].assemble_argument_collection()
    return frozenset(name for one in found for name in (*one.names, *one.negatives))


def _missing(cause: MissingArgumentError, argument: Argument, tokens: Sequence[str]) -> str:
    """Return the message that an argument is missing, or that an option has no value."""
    from fairlead.whatif.input.error import one_line

    command = "".join(f"{name}: " for name in cause.command_chain or ())
    option = cause.keyword
    if option is not None:
        values = [after for token, after in pairwise(tokens) if token == option]
        dashed = [one_line(value) for value in values if value[:1] == "-" and value[1:2] != "-"]
        hint = f"; a value that starts with - is written {option}={dashed[0]}" if dashed else ""
        return f"{command}{option} needs a value{hint}"
    return f"{command}{argument.name} is missing"
