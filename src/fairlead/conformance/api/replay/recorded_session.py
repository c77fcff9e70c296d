"""The environment of the recorded kubectl commands.

The environment consists of the time, the current namespace, the editors that `kubectl edit` calls,
and objects of other users.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns  # noqa: TID251 - kubectl reads the machine's clock
from typing import Final

from fairlead.api.json import Json
from fairlead.engine.core.instant import Instant, seconds

_HOUR_NS: Final = 3_600_000_000_000
# When each part of the session runs, so that a CronJob with the schedule */5 runs between the same
# commands as in the recording. The CronJob exists from command 160 on. In the recording, it ran for
# the first time after command 315. A row is (number of the first command, first minute, last
# minute). Minutes count from the start of the session; None means no limit.
_MINUTES: Final = ((316, 10.02, None), (160, 5.02, 9.98), (0, 0.02, 4.98))
# The current namespace of the parts of the session that have one, by the part's first command.
_NAMESPACES: Final = ((601, "kt3"), (401, "kt2"))
# Controllers were not running during these commands.
WITHOUT_CONTROLLERS: Final = range(601, 630)
# In these commands, an old kubectl used an API that Fairlead does not serve.
WITH_UNSERVED_API: Final = frozenset((323,))
# The editors used in the recordings.
_SED: Final = '#!/bin/sh\nsed -i -E {} "$1"\n'
EDITORS: Final[Mapping[str, str]] = {
    "ed1.sh": _SED.format(
        "-e 's/nginx:1[.]2[0-9]*/nginx:1.99/' -e 's/^  replicas:.*/  replicas: 2/'"
    ),
    "ed2.sh": _SED.format("-e 's/^  a:.*/  a: \"edited\"/'"),
    "ed3.sh": _SED.format(r"-e 's/^( *)matchLabels:$/&\n\1  zz: yy/'"),
}
# Objects that other users had in the recorded cluster during these commands.
WITH_FOREIGN_OBJECTS: Final = range(301, 401)
FOREIGN_DEFINITION: Final[Json] = {
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


def session_start() -> Instant:
    """Return the start time of the session: the beginning of the previous hour.

    The session starts on the hour so that a CronJob runs between the same commands in every
    session. The session's clock runs faster than the machine's clock. The session's clock must not
    overtake the machine's clock, with which kubectl computes ages. Therefore the session starts at
    least an hour before the current time.
    """
    return (time_ns() // _HOUR_NS - 1) * _HOUR_NS


def bounds_of(number: int, start: Instant) -> tuple[Instant, Instant | None]:
    """Return (earliest start time, latest end time) of the command `number`.

    `start` is the start time of the session. None means that the end time is not limited.
    """
    minutes = next((least, most) for first, least, most in _MINUTES if number >= first)
    earliest, latest = (None if m is None else start + seconds(60 * m) for m in minutes)
    return earliest or start, latest


def namespace_of(number: int) -> str:
    """Return the namespace that the kubeconfig sets for the command `number`; "" if none."""
    return next((name for first, name in _NAMESPACES if number >= first), "")
