"""What the recorded commands found around them, by the numbers that they have in the recording."""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns  # noqa: TID251 - kubectl reads the machine's clock
from typing import Final

from fairlead.api.json import Json
from fairlead.engine.core.instant import Instant, seconds

_HOUR_NS: Final = 3_600_000_000_000
_PHASE: Final = seconds(139)
# The context's namespace, from the command with that number on.
_NAMESPACES: Final = ((601, "kt3"), (401, "kt2"))
# While these ran the controllers had not begun yet.
ASLEEP: Final = range(601, 630)
# What an old kubectl asked for under an API that is gone, so that nothing came of it.
IN_VAIN: Final = frozenset((323,))
# The editors that the recordings were made with.
_SED: Final = '#!/bin/sh\nsed -i -E {} "$1"\n'
EDITORS: Final[Mapping[str, str]] = {
    "ed1.sh": _SED.format(
        "-e 's/nginx:1[.]2[0-9]*/nginx:1.99/' -e 's/^  replicas:.*/  replicas: 2/'"
    ),
    "ed2.sh": _SED.format("-e 's/^  a:.*/  a: \"edited\"/'"),
    "ed3.sh": _SED.format(r"-e 's/^( *)matchLabels:$/&\n\1  zz: yy/'"),
}
# What others had in the recorded cluster, for the commands with these numbers.
OTHERS: Final = range(301, 401)
LEFT_BEHIND: Final[Json] = {
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
    """When the session begins: at the same minute of an hour each time.

    kubectl reckons ages by the machine's clock, and time goes faster here, so it is one that is
    past. Upstream's CronJobs look at the minute.
    """
    return (time_ns() // _HOUR_NS - 1) * _HOUR_NS + _PHASE


def namespace_of(number: int) -> str:
    """The context's namespace, "" while none is set."""
    return next((name for first, name in _NAMESPACES if number >= first), "")
