"""What a stand-in does with a call: `Reply`, and what may go wrong with it: `Fault`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """What goes wrong with a call. All but the first two come after the call's service time.

    Those in the middle or at the end of a stream leave an answer that is not streamed whole.
    """

    RESET_EARLY = "reset_early"
    """The connection is reset when the head of the request is here, while the client still sends its body."""
    RESET = "reset"
    """The connection is reset when the request is here, before any byte, without taking a slot."""
    DIE = "die"
    """The whole replica is gone, as by `kill -9`: its port is closed and every connection reset."""
    HANG = "hang"
    """No byte ever comes; the step counter does not move for it."""
    HANG_WITH_COMMENTS = "hang_with_comments"
    """No event ever comes, but the front end keeps sending SSE comments; the step counter does not move for it."""
    HANG_MIDWAY = "hang_midway"
    """Half of the text comes, then nothing; the step counter does not move for it."""
    CUT = "cut"
    """The stream stops in the middle: the connection is reset after half of the text."""
    KEEP_ALIVE_CUT = "keep_alive_cut"
    """A good answer; but the next request on its connection is reset, as when the server closed it just then."""
    ERROR_BODY = "error_body"
    """HTTP 200 and a JSON body with an `error`."""
    IN_BAND_ERROR = "in_band_error"
    """HTTP 200, half of the text, then `data: {"error": …}` and `[DONE]`, like a vLLM whose engine died."""
    HTML = "html"
    """HTTP 200 and a web page, like a proxy's own."""
    GARBAGE = "garbage"
    """HTTP 200 and an event stream of bytes that are no text."""
    MALFORMED = "malformed"
    """HTTP 200 and an event that is not JSON."""
    EMPTY_CHOICES = "empty_choices"
    """HTTP 200 and an answer, or chunks, without any choice."""
    NO_FINISH = "no_finish"
    """The whole text, then the end of the stream without `finish_reason` and `[DONE]`."""
    RUNAWAY = "runaway"
    """The text again and again, in `RUNAWAY_ROUNDS` chunks, until the token limit ends it."""


RUNAWAY_ROUNDS = 2000


@dataclass(frozen=True, slots=True)
class Reply:
    """What the stand-in does with one chat-completions call."""

    text: str | None = None
    """Text of the answer; None: what the stand-in's `text` says."""
    seconds: float | None = None
    """Service time; None: the stand-in's `seconds`."""
    status: int = 200
    """Anything but 200 is an error in vLLM's shape, after the service time."""
    message: str | None = None
    """Of the error; None: the status's phrase."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further response headers, such as `Retry-After`."""
    finish_reason: str = "stop"
    chunks: int = 2
    """Parts that the text is streamed in."""
    chunk_seconds: float = 0.0
    """Pause before each part: a slow stream."""
    fault: Fault | None = None


def reply_named(name: str) -> Reply:
    """The reply for an HTTP status, a fault, or a finish reason (`length`, `abort`). Raises `ValueError`."""
    if name.isdecimal():
        return Reply(status=int(name))
    if name in ("length", "abort"):
        return Reply(finish_reason=name)
    return Reply(fault=Fault(name))
