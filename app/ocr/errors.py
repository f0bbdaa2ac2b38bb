"""What goes wrong between the command and its server.

OcrError
├── Refused      the server's answer is a problem; ends one file
├── KeyRefused   the server wants an API key, or another; ends the command
├── Unanswered   no answer, or half of one; tried again
└── ServerLost   nothing heard for too long; ends the command
"""

from typing import Self

import httpx

from app.errors import PagefleetError

PASSING_STATUSES = frozenset({429, 502, 503, 504})
"""Too busy or going down, and what a proxy says while the gateway behind it restarts."""


class OcrError(PagefleetError):
    """The server could not be used."""


class Refused(OcrError):
    """The server refused the request."""

    def __init__(self, reason: str, detail: str, *, passing: bool = False, retry_after_seconds: float = 0) -> None:
        """`reason`: the problem's code; `passing`: the same request may be answered later."""
        super().__init__(detail)
        self.reason = reason
        self.passing = passing
        self.retry_after_seconds = retry_after_seconds

    @classmethod
    def from_response(cls, response: httpx.Response) -> Self:
        """The problem in a response whose body was read; one that a proxy made is named by its status."""
        try:
            problem = response.json()
            reason, detail, retryable = str(problem["code"]), str(problem["detail"]), problem.get("retryable") is True
        except (ValueError, KeyError, TypeError):
            reason, detail, retryable = f"http_{response.status_code}", response.reason_phrase, False
        asked = response.headers.get("Retry-After", "")
        return cls(
            reason,
            detail,
            passing=retryable or response.status_code in PASSING_STATUSES,
            retry_after_seconds=float(asked) if asked.isdecimal() else 0,
        )


class KeyRefused(OcrError):
    """The server does not let the command in."""

    @classmethod
    def from_refusal(cls, refused: Refused, *, sent: bool) -> Self:
        """`sent`: whether a key went with the request."""
        if refused.reason == "forbidden":
            return cls(f"the server refuses this: {refused.detail}")
        if sent:
            return cls(f"the server does not take the API key in PAGEFLEET_API_KEY: {refused.detail}")
        return cls("the server wants an API key; set PAGEFLEET_API_KEY")


class Unanswered(OcrError):
    """The connection failed before the answer was whole."""


class ServerLost(OcrError):
    """The server does not answer any more."""
