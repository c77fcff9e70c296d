"""Suspends a request while the HTTP server calls a webhook for it.

The webhook plugin yields the call, and receives the webhook's answer:

    handler --> store verb --> admission --> webhook plugin --yield WebhookCall--> HTTP server
                                                            <--send WebhookAnswer--

Other requests run while one request is suspended. Therefore an object may change between a
request's read and its write. The write then raises `SupersededError`, and `retried` restarts the
request with the newest object.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.error import STALE, ApiError, conflict
from fairlead.apiserver.kind import Kind

ATTEMPTS_MAX: Final = 1_000

Parameters = ParamSpec("Parameters")
Instance = TypeVar("Instance")
Result = TypeVar("Result")


class WebhookCall(Struct, frozen=True):
    """A webhook call: a POST request with `body` to `url`.

    `ca` is the CA bundle (PEM) that the client trusts; "" means the authorities of the system.
    If `sends_timeout` is True, the timeout is also sent as a parameter of the URL.
    """

    url: str
    ca: str
    timeout_s: int
    body: bytes
    sends_timeout: bool = True


class WebhookAnswer(Struct, frozen=True, kw_only=True):
    """A webhook's answer: its `body`, or the reason why the call failed (`failure`).

    `is_reached` is True if the webhook, or a proxy before it, sent a response.
    """

    body: bytes = b""
    failure: str = ""
    is_reached: bool = False


PAUSE: Final = WebhookCall(url="", ca="", timeout_s=0, body=b"")
"""Not a webhook call: a request with a large body yields PAUSE to let other requests run first."""
LARGE_BYTES: Final = 64 << 10  # Handling a body of this size takes milliseconds.

# Yields the webhooks to call, one at a time, receives their answers, and returns the result.
WebhookCalls = Generator[WebhookCall, WebhookAnswer, Result]


class SupersededError(ApiError):
    """ApiError 409: another request changed an object while this request waited for a webhook."""

    def __init__(self, kind: Kind, obj: Json) -> None:
        """`obj` is the object that could not be written."""
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        stale = conflict(kind, namespace, name, STALE)
        super().__init__(
            stale.reason, stale.code, stale.message, kind=kind, namespace=namespace, name=name
        )


def run_to_end(
    calls: WebhookCalls[Result], call: Callable[[WebhookCall], WebhookAnswer] | None = None
) -> Result:
    """Run the generator `calls` to its end and return its result.

    `call` sends a webhook call and returns the answer. Raises RuntimeError if a webhook must be
    called and `call` is None.
    """
    try:
        needed = next(calls)
        while True:
            if needed is PAUSE:
                needed = calls.send(WebhookAnswer())
                continue
            if call is None:
                raise RuntimeError(f"nothing here calls webhooks: {needed.url}")
            needed = calls.send(call(needed))
    except StopIteration as end:
        result: Result = end.value
        return result


def retried(attempt: Callable[[], WebhookCalls[Result]]) -> WebhookCalls[Result]:
    """Run `attempt` until it raises no SupersededError, at most `ATTEMPTS_MAX` times.

    Returns the result of `attempt`. The last SupersededError and all other errors are passed on.

    upstream: apiserver/pkg/storage/etcd3/store.go:GuaranteedUpdate, which also repeats admission
    """
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            return (yield from attempt())
        except SupersededError:
            continue
    return (yield from attempt())


class Suspendable(Generic[Parameters, Result]):
    """A function that can wait for webhooks, written as a generator function.

    `steps(...)` returns the generator, which yields the calls of webhooks. A call of the
    Suspendable itself runs the generator to its end, and raises RuntimeError if a webhook must be
    called.
    """

    __slots__ = ("steps",)

    def __init__(self, steps: Callable[Parameters, WebhookCalls[Result]]) -> None:
        """`steps` is the decorated generator function."""
        self.steps = steps

    def __call__(self, *arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        """Run the generator to its end and return the result; see `run_to_end`."""
        return run_to_end(self.steps(*arguments, **options))


class SuspendableMethod(Generic[Instance, Parameters, Result]):
    """The decorator of a method that waits for webhooks; see `Suspendable`."""

    __slots__ = ("_function",)

    def __init__(
        self, function: Callable[Concatenate[Instance, Parameters], WebhookCalls[Result]]
    ) -> None:
        """`function` is the decorated generator function."""
        self._function = function

    def __get__(self, instance: Instance, owner: type[Instance]) -> Suspendable[Parameters, Result]:
        """Return the method, bound to `instance`."""
        return Suspendable(partial(self._function, instance))
