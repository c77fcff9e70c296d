"""`run_steps`: runs a generator, and makes the webhook calls that the generator yields."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

from fairlead.apiserver.http.webhook_client import call_webhook
from fairlead.apiserver.suspension import PAUSE, WebhookAnswer, WebhookCalls

Result = TypeVar("Result")

# At a PAUSE, a request waits as long as its last step took, within these bounds. Other requests
# therefore get half of the time. After a long step, PAUSE_S_MAX is enough for a TLS handshake and a
# small request.
PAUSE_S_MIN: Final = 0.005
PAUSE_S_MAX: Final = 0.03


async def run_steps(steps: WebhookCalls[Result]) -> Result:
    """Run `steps` to its end and return its result; other tasks run during webhook calls."""
    time = asyncio.get_running_loop().time
    answer: Any = None  # starts the generator
    try:
        while True:
            began_s = time()
            call = steps.send(answer)
            if call is PAUSE:
                worked_s = time() - began_s
                await asyncio.sleep(min(PAUSE_S_MAX, max(PAUSE_S_MIN, worked_s)))
                answer = WebhookAnswer()
            else:
                answer = await call_webhook(call)
    except StopIteration as end:
        result: Result = end.value
        return result
