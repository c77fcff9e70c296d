"""Replays kubectl sessions: runs the same commands in order with the installed kubectl.

All commands of a file use the same cluster, because commands depend on earlier commands. Standard
output, standard error and exit code are compared. If the installed kubectl cannot replace the
recorded version, the recorded requests are replayed instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.conformance.api.comparison import printed_output
from fairlead.conformance.api.placeholder import PlaceholderValues
from fairlead.conformance.api.replay.case_replay import mismatches
from fairlead.conformance.api.replay.recorded_session import (
    EDITORS,
    FOREIGN_DEFINITION,
    WITH_FOREIGN_OBJECTS,
    WITH_UNSERVED_API,
    WITHOUT_CONTROLLERS,
    bounds_of,
    namespace_of,
    session_start,
)
from fairlead.conformance.api.replay.validators import Validators
from fairlead.conformance.api.server.on_socket import OnSocket
from fairlead.conformance.api.server.over_http import OverHttp
from fairlead.conformance.api.server.own_cluster import OwnCluster
from fairlead.conformance.api.server.own_server import USERS, token_of
from fairlead.conformance.api.server.recorded_placement import as_recorded
from fairlead.conformance.comparison import Mismatch
from fairlead.engine.core.instant import Instant

PROGRAM: Final = "kubectl"
_TIMEOUT_S: Final = 120
_PATIENCE_S: Final = 2.0  # OverHttp.patience_s, for replayed watches
_MOST_MINOR: Final = 32  # the minor version of kubectl with which most commands were recorded
_WORK: Final = "<wd>"
_WORKING_DIRECTORY: Final = "kcwd"  # the name of the commands' working directory
_NO_WAIT: Final = "--wait=false"
_COMMANDS_WITHOUT_PAUSE: Final = 3
_ROLLING: Final = frozenset(("rollout", "status"))
_DRAIN: Final = "drain"
_SIDE_BY_SIDE: Final = frozenset((_DRAIN, "componentstatuses", "cs"))
_GENERATED: Final = re.compile(r"^Name: .*<(?:hash|gen):", re.MULTILINE)
_MAPS: Final = frozenset(("cm", "configmap", "secret"))


class _CommandResult(Struct, frozen=True):
    """The exit code and the output of a command."""

    exit: int
    stdout: str
    stderr: str


@dataclass(slots=True)
class KubectlSession:
    """A cluster and a working directory for kubectl 1.`minor`; `close` removes both."""

    _stack: ExitStack = field(default_factory=ExitStack)
    _socket: OnSocket = field(init=False)
    _work: Path = field(init=False)
    _program: str = field(init=False)
    minor: int = field(init=False)
    _start: Instant = field(default_factory=session_start)
    _namespace: str = ""
    _commands_until_pause: int = 0
    _has_foreign_objects: bool = False
    _validators: Validators = field(default_factory=Validators)

    def __post_init__(self) -> None:
        """Start the cluster.

        Raises ValueError if kubectl is not installed or does not print its version.
        """
        program = shutil.which(PROGRAM)
        if program is None:
            raise ValueError(f"{PROGRAM} is not in PATH (its Debian package is kubernetes-client)")
        self._program = program
        self.minor = minor_of(program)
        self._work = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = OwnCluster(self._start, scheduler=as_recorded())
        self._socket = self._stack.enter_context(OnSocket(cluster, self._work))
        (self._work / _WORKING_DIRECTORY).mkdir()
        for name, text in EDITORS.items():
            (self._work / name).write_text(text)
            (self._work / name).chmod(0o700)
        self._write_config("admin", _config(self._socket, "admin"))

    def close(self) -> None:
        """Stop the cluster and remove all files of the session."""
        self._stack.close()

    def judge(self, line: Json) -> list[Mismatch]:
        """Run the command of `line`, or replay its recorded requests; return the mismatches.

        `_can_run` decides whether the command is run. The output and exit code of setup commands
        and of `version` are not compared.
        """
        number = int(line["id"].split(".")[1])
        self._enter_namespace(number)
        self._create_foreign_objects(number)
        began = self._socket.begin(
            immediately=self._observes_changes(line),
            without_controllers=number in WITHOUT_CONTROLLERS,
            between=bounds_of(number, self._start),
        )
        if not self._can_run(line):
            return self._replayed(line, began)
        if number in WITH_UNSERVED_API and not line["kubectl"].endswith(f".{self.minor}"):
            return []
        ran = self._run_command(line)
        if line.get("setup") or _prints_version(line):
            return []
        return list(_compared(line, ran, str(self._work)))

    def _can_run(self, line: Json) -> bool:
        """Return whether to run the command of `line` with the installed kubectl.

        If not, the recorded requests of the command are replayed instead. Most commands were
        recorded with kubectl 1.32. These commands are run with any installed version, because a
        replay of their recorded requests would not test protobuf bodies.
        """
        recorded = int(line["kubectl"].split(".")[1])
        is_alike = recorded in (self.minor, _MOST_MINOR) or _MOST_MINOR < recorded < self.minor
        return is_alike or "steps" not in line

    def _replayed(self, line: Json, began: Instant) -> list[Mismatch]:
        """Replay the recorded requests of a command started at `began`; return the mismatches."""
        transport = OverHttp(
            self._socket.url,
            {user: token_of(user) for user in USERS},
            str(self._socket.authority_file),
            patience_s=_PATIENCE_S,
            on_reach=lambda at_ms: self._socket.reach(began + at_ms * NANOSECONDS_PER_MILLISECOND),
        )
        try:
            return list(mismatches(line, transport, self._validators))
        finally:
            transport.close()

    def _observes_changes(self, line: Json) -> bool:
        """Return whether the command of `line` observes changes that are still in progress.

        The result is True for `rollout status`, and for the two commands that follow a command with
        --wait=false.
        """
        self._commands_until_pause = (
            _COMMANDS_WITHOUT_PAUSE
            if _NO_WAIT in line["argv"]
            else max(0, self._commands_until_pause - 1)
        )
        return 0 < self._commands_until_pause < _COMMANDS_WITHOUT_PAUSE or _ROLLING.issubset(
            line["argv"]
        )

    def _enter_namespace(self, number: int) -> None:
        wanted = namespace_of(number)
        if wanted != self._namespace:
            self._namespace = wanted
            self._run(["config", "set-context", "--current", f"--namespace={wanted}"], {})

    def _create_foreign_objects(self, number: int) -> None:
        if (number in WITH_FOREIGN_OBJECTS) != self._has_foreign_objects:
            self._has_foreign_objects = not self._has_foreign_objects
            verb = "create" if self._has_foreign_objects else "delete"
            self._run([verb, "--filename=-"], {}, json.dumps(FOREIGN_DEFINITION))

    def _run_command(self, line: Json) -> _CommandResult:
        for name, text in line["files"].items():
            path = self._work / _WORKING_DIRECTORY / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        given = {name: self._placed(value) for name, value in line["env"].items()}
        if line["user"] != "admin":
            given["KUBECONFIG"] = self._config_of(line["user"])
        beside = self._start_parallel(line.get("meanwhile"), given)
        arguments = [self._placed(argument) for argument in line["argv"][1:]]
        ran = self._run(arguments, given, line["stdin"])
        if beside is not None:
            beside.wait()
        return ran

    def _run(
        self, arguments: list[str], env: Mapping[str, str], stdin: str | None = None
    ) -> _CommandResult:
        try:
            done = subprocess.run(  # noqa: S603 - runs recorded commands on purpose
                [self._program, *arguments],
                input=stdin or "",
                env={**self._environment(), **env},
                cwd=self._work / _WORKING_DIRECTORY,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _CommandResult(-1, "", f"no end within {_TIMEOUT_S} s")
        return _CommandResult(done.returncode, done.stdout, done.stderr)

    def _start_parallel(
        self, script: str | None, env: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | None:
        """Start the shell script `script` in parallel with the command; return its process.

        Returns None if `script` is None.
        """
        if script is None:
            return None
        return subprocess.Popen(  # noqa: S603 - as above
            ["/bin/sh", "-c", script],
            env={**self._environment(), "K": self._program, **env},
            cwd=self._work / _WORKING_DIRECTORY,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self._work),
            "KUBECONFIG": str(self._work / "admin.config"),
            # kubectl ends before collecting garbage would be worth its time.
            "GOGC": "off",
        }

    def _placed(self, text: str) -> str:
        return text.replace(_WORK, str(self._work))

    def _config_of(self, user: str) -> str:
        """Write a kubeconfig for `user` and return its path."""
        text = (self._work / "admin.config").read_text()
        config = yaml.CSafeLoader(text).get_single_data()
        config["users"] = _config(self._socket, user)["users"]
        for context in config["contexts"]:
            context["context"]["user"] = user
        return self._write_config(user, config)

    def _write_config(self, user: str, config: Json) -> str:
        path = self._work / f"{user}.config"
        path.write_text(json.dumps(config))
        return str(path)


def minor_of(program: str) -> int:
    """Return the minor version of the kubectl `program`.

    Raises ValueError if the program does not print its version.
    """
    command = [program, "version", "--client", "--output=json"]
    said = subprocess.run(command, capture_output=True, check=False).stdout  # noqa: S603 - as above
    try:
        minor: str = json.loads(said)["clientVersion"]["minor"]
    except (ValueError, KeyError):
        raise ValueError(f"{program} does not print its version") from None
    return int(minor.rstrip("+"))


def _compared(line: Json, ran: _CommandResult, work: str) -> Iterator[Mismatch]:
    if line["exit"] != ran.exit:
        yield Mismatch("exit", [line["exit"], line["stderr"]], [ran.exit, ran.stderr])
        return
    bindings = PlaceholderValues()
    in_order = not _has_random_order(line)
    of = printed_output.drain_messages if _DRAIN in line["argv"] else str
    for output, shown in (("stdout", ran.stdout), ("stderr", ran.stderr)):
        if output == "stdout" and line.get("stdout_structure_only"):
            continue
        texts = of(line[output]), of(shown.replace(work, _WORK))
        found = printed_output.mismatch(*texts, bindings, output, in_order=in_order)
        if found is not None:
            yield found


def _has_random_order(line: Json) -> bool:
    """Return whether the order of the output lines of the command in `line` is random.

    The order is random if it results from a Go map, parallel work, or sorting by generated names.
    """
    words = line["argv"]
    if "describe" in words:
        return not _MAPS.isdisjoint(words) or len(_GENERATED.findall(line["stdout"])) > 1
    return not _SIDE_BY_SIDE.isdisjoint(words) or any("event" in word for word in words)


def _prints_version(line: Json) -> bool:
    return "version" in line["argv"][1:2]


def _config(served: OnSocket, user: str) -> Json:
    name = "golden"
    cluster = {"server": served.url, "certificate-authority": str(served.authority_file)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token_of(user)}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
