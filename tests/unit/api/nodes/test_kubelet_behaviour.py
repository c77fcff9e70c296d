"""The annotation fairlead.dev/kubelet of nodes."""

from __future__ import annotations

import pytest

from fairlead.api.nodes.kubelet_behaviour import (
    RUNNING,
    KubeletBehaviour,
    Mode,
    Report,
    parse_kubelet_behaviour,
)

S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("", RUNNING),
        ("running", RUNNING),
        ("stopped", KubeletBehaviour(Mode.STOPPED)),
        ("paused", KubeletBehaviour(Mode.PAUSED)),
        ("slow 45s", KubeletBehaviour(Mode.SLOW, every=45 * S)),
        ("flap 60s/2m", KubeletBehaviour(Mode.FLAP, off=60 * S, on=120 * S)),
        ("ready", KubeletBehaviour(reports=(Report.READY,))),
        ("not-ready", KubeletBehaviour(reports=(Report.NOT_READY,))),
        (
            "disk-pressure, memory-pressure,disk-pressure",
            KubeletBehaviour(reports=(Report.MEMORY_PRESSURE, Report.DISK_PRESSURE)),
        ),
        (
            "slow 1m,pid-pressure",
            KubeletBehaviour(Mode.SLOW, every=60 * S, reports=(Report.PID_PRESSURE,)),
        ),
    ],
)
def test_valid_annotations_are_parsed(text: str, meaning: KubeletBehaviour) -> None:
    """Each form is parsed alone and combined with others."""
    assert parse_kubelet_behaviour(text) == meaning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dead", "'dead' is not a kubelet behaviour; known: running, stopped, paused, slow 45s"),
        ("not-ready,", "'' is not a kubelet behaviour"),
        ("slow", "'slow' is not a kubelet behaviour"),
        ("slow soon", "'soon' is not a duration"),
        ("slow 0s", "'0s' is not longer than 0s"),
        ("flap 60s", "'60s' is not DOWN/UP, such as 60s/120s"),
        ("flap 60s/-1s", "'-1s' is not longer than 0s"),
        ("flap 999ms/60s", "'999ms' is shorter than 1s"),
        ("flap 60s/1ns", "'1ns' is shorter than 1s"),
        ("stopped,paused", "'stopped,paused' combines stopped with paused"),
        ("not-ready,ready", "'not-ready,ready' combines ready with not-ready"),
    ],
)
def test_invalid_annotations_are_refused(text: str, words: str) -> None:
    """The message names the invalid part."""
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        parse_kubelet_behaviour(text)
