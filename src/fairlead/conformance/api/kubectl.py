"""Replaying kubectl sessions: the same commands, in order, with the kubectl at hand.

One cluster serves a whole file, for commands find what those before them left. Compared are what
a command prints, on both outputs, and its exit code. Where another kubectl was recorded than the
one at hand can stand for, the recorded requests are replayed instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns  # noqa: TID251 - kubectl reads the machine's clock
from typing import Any, Final

import yaml

from fairlead.conformance.api import printed
from fairlead.conformance.api.on_socket import OnSocket
from fairlead.conformance.api.over_http import OverHttp
from fairlead.conformance.api.own_cluster import OwnCluster
from fairlead.conformance.api.own_server import USERS, token_of
from fairlead.conformance.api.placeholder import Bindings
from fairlead.conformance.api.replay import differences
from fairlead.conformance.api.validators import Validators
from fairlead.conformance.comparison import Difference

Json = dict[str, Any]

PROGRAM: Final = "kubectl"
_TIMEOUT_S: Final = 20
_BETWEEN_NS: Final = 2_000_000_000
_BEFORE_NS: Final = 3_600_000_000_000
_OLDEST_MINOR: Final = 32  # recordings of an older one show another program's texts
_WORK: Final = "<wd>"
_HERE: Final = "kcwd"  # within that
_NO_WAIT: Final = "--wait=false"
# The context's namespace, from the command with that number on.
_NAMESPACES: Final = ((601, "kt3"), (401, "kt2"))
# The editors that the recordings were made with.
_SED: Final = '#!/bin/sh\nsed -i -E {} "$1"\n'
_EDITORS: Final[Mapping[str, str]] = {
    "ed1.sh": _SED.format(
        "-e 's/nginx:1[.]2[0-9]*/nginx:1.99/' -e 's/^  replicas:.*/  replicas: 2/'"
    ),
    "ed2.sh": _SED.format("-e 's/^  a:.*/  a: \"edited\"/'"),
    "ed3.sh": _SED.format(r"-e 's/^( *)matchLabels:$/&\n\1  zz: yy/'"),
}


# What others had in the recorded cluster, for the commands with these numbers.
_OTHERS: Final = range(301, 401)
_LEFT_BEHIND: Final[Json] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.kopf.example.com"},
    "spec": {
        "group": "kopf.example.com",
        "names": {
            "plural": "things",
            "singular": "thing",
            "kind": "Thing",
            "listKind": "ThingList",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@dataclass(frozen=True, slots=True)
class _Ran:
    """What came of a command."""

    exit: int
    stdout: str
    stderr: str


@dataclass(slots=True)
class KubectlSession:
    """A cluster, and a place for kubectl to work in; both end with `close`."""

    _stack: ExitStack = field(default_factory=ExitStack)
    _socket: OnSocket = field(init=False)
    _work: Path = field(init=False)
    _program: str = field(init=False)
    _namespace: str = ""
    _is_hasty: bool = False
    _has_others: bool = False
    _validators: Validators = field(default_factory=Validators)

    def __post_init__(self) -> None:
        """Begin. Raises ValueError where there is no kubectl."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise ValueError(f"{PROGRAM} is not on the path")
        self._program = program
        self._work = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        # kubectl reckons ages by the machine's clock. Time goes faster here, so it begins before.
        cluster = OwnCluster(time_ns() - _BEFORE_NS)
        self._socket = self._stack.enter_context(OnSocket(cluster, self._work))
        (self._work / _HERE).mkdir()
        for name, text in _EDITORS.items():
            (self._work / name).write_text(text)
            (self._work / name).chmod(0o700)
        self._write_config("admin", _config(self._socket, "admin"))

    def close(self) -> None:
        """End the cluster, and leave nothing behind."""
        self._stack.close()

    def judge(self, line: Json) -> list[Difference]:
        """What differs when the line's command is run."""
        number = int(line["id"].split(".")[1])
        self._enter_namespace(number)
        self._let_others(number)
        if not self._is_hasty:
            self._socket.pass_time(_BETWEEN_NS)
        # Whoever does not wait for what they asked for wants to see it on its way.
        self._is_hasty = _NO_WAIT in line["argv"]
        if _is_of_another(line):
            tokens = {user: token_of(user) for user in USERS}
            authority = str(self._socket.authority_file)
            transport = OverHttp(self._socket.url, tokens, authority)
            found = list(differences(line, transport, self._validators))
            transport.close()
            return found
        ran = self._ran(line)
        if line.get("setup") or _tells_its_version(line):
            return []
        return list(_compared(line, ran, str(self._work)))

    def _enter_namespace(self, number: int) -> None:
        wanted = next((name for first, name in _NAMESPACES if number >= first), "")
        if wanted != self._namespace:
            self._namespace = wanted
            self._run(["config", "set-context", "--current", f"--namespace={wanted}"], {})

    def _let_others(self, number: int) -> None:
        if (number in _OTHERS) != self._has_others:
            self._has_others = not self._has_others
            verb = "create" if self._has_others else "delete"
            self._run([verb, "--filename=-"], {}, json.dumps(_LEFT_BEHIND))

    def _ran(self, line: Json) -> _Ran:
        for name, text in line["files"].items():
            path = self._work / _HERE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        given = {name: self._placed(value) for name, value in line["env"].items()}
        if line["user"] != "admin":
            given["KUBECONFIG"] = self._config_of(line["user"])
        beside = self._beside(line.get("meanwhile"), given)
        arguments = [self._placed(argument) for argument in line["argv"][1:]]
        ran = self._run(arguments, given, line["stdin"])
        if beside is not None:
            beside.wait()
        return ran

    def _run(self, arguments: list[str], env: Mapping[str, str], stdin: str | None = None) -> _Ran:
        try:
            done = subprocess.run(  # noqa: S603 - the commands of the recording are its point
                [self._program, *arguments],
                input=stdin or "",
                env={**self._environment(), **env},
                cwd=self._work / _HERE,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _Ran(-1, "", f"no end within {_TIMEOUT_S} s")
        return _Ran(done.returncode, done.stdout, done.stderr)

    def _beside(self, script: str | None, env: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
        """What happens while the command runs."""
        if script is None:
            return None
        return subprocess.Popen(  # noqa: S603 - likewise
            ["/bin/sh", "-c", script],
            env={**self._environment(), "K": self._program, **env},
            cwd=self._work / _HERE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self._work),
            "KUBECONFIG": str(self._work / "admin.config"),
        }

    def _placed(self, text: str) -> str:
        return text.replace(_WORK, str(self._work))

    def _config_of(self, user: str) -> str:
        """The configuration of another user, in the namespace that the administrator is in."""
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


def _compared(line: Json, ran: _Ran, work: str) -> Iterator[Difference]:
    if line["exit"] != ran.exit:
        yield Difference("exit", [line["exit"], line["stderr"]], [ran.exit, ran.stderr])
        return
    bindings = Bindings()
    if not line.get("stdout_structure_only"):
        shown = ran.stdout.replace(work, _WORK)
        # Events of one second are listed as they come out of a map; drains go on side by side.
        in_order = not any("event" in argument or argument == "drain" for argument in line["argv"])
        found = printed.difference(line["stdout"], shown, bindings, "stdout", in_order=in_order)
        if found is not None:
            yield found
    found = printed.difference(line["stderr"], ran.stderr.replace(work, _WORK), bindings, "stderr")
    if found is not None:
        yield found


def _is_of_another(line: Json) -> bool:
    minor = int(line["kubectl"].split(".")[1])
    return minor != _OLDEST_MINOR and "steps" in line


def _tells_its_version(line: Json) -> bool:
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
