"""The one exception tree of pagefleet.

    PagefleetError
    ├── RequestError                what the caller can mend: 4xx
    │   ├── HeadTooLarge, FileMissing, EmptyFile, MultipartInvalid, FileTooLarge, UnsupportedType, UploadTimeout
    │   ├── DamagedPdf, NoPages, TooManyPages, PasswordRequired, PasswordWrong, PdfLocked, InspectTimeout
    │   ├── DamagedImage, ImageTooLarge
    │   ├── OptionUnknown, OptionInvalid, PageRangeInvalid, ProfileUnknown, CursorInvalid
    │   ├── NotFound, LaneUnknown, Gone, MethodNotAllowed, Unauthorized, Forbidden, NotAcceptable
    │   ├── IdempotencyConflict, IdempotencyInFlight
    │   └── NotEnded, NotRetryable, DocumentFailed, DocumentCancelled
    ├── ServiceError                what time mends: 429 and 503 with Retry-After, and 500
    │   ├── Busy, QueueFull, Draining, StoreUnavailable, NotReady
    │   └── InternalError
    ├── PageError                   ends one page; stored with it and shown in its `error`
    │   ├── PageTooLarge, PageDamaged, RenderFailed, RenderTimeout
    │   ├── ReplicaError, AnswerTruncated, AnswerRepeats, AnswerUnparsable
    │   └── DeadlineExceeded, PoisonPage, NoReplica, SourceUnavailable
    ├── AttemptError                ends one attempt at a page; the worker decides what follows
    │   ├── LaneUnreachable, LaneFull, AttemptAborted      not the page's fault: never charged to it
    │   ├── RankUnknown                                    nor this
    │   ├── LaneFault, AttemptTimeout, AttemptStalled      charged, tried on another lane
    │   └── RequestRefused                                 charged, and the same everywhere: final
    └── StartError                  the service can't start; printed as one line, exit status 2

A class's docstring is its title, its name in snake_case its stable `code`: neither can drift from the class.
Everything that reaches a client is an RFC 9457 problem (`problem()`).
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

RETRY_AFTER_SECONDS = 5
_MEMBERS = {"type", "title", "status", "detail", "code", "retryable"}

Problem = dict[str, Any]
"""An RFC 9457 problem: type, title, status, detail, code, retryable, and page, limit, retry_after where they apply."""


class PagefleetError(Exception):
    """Something went wrong."""

    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str = "", **extra: Any) -> None:
        """`extra` goes into the problem as is: `page`, `limit`, `retry_after` (seconds)."""
        super().__init__(detail)
        self.detail = detail or self.title()
        self.extra = extra

    @classmethod
    def code(cls) -> str:
        """The stable, machine-readable name: the class name in snake_case."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def title(cls) -> str:
        return (cls.__doc__ or "").strip().splitlines()[0]

    def problem(self) -> Problem:
        return {
            "type": f"urn:pagefleet:error:{self.code()}",
            "title": self.title(),
            "status": self.status,
            "detail": self.detail,
            "code": self.code(),
            "retryable": self.retryable,
            **self.extra,
        }

    @classmethod
    def of(cls, problem: Problem) -> "PagefleetError":
        """The error that `problem` was made of; a `RequestError` where this program has no such code any more."""
        kind = next((kind for kind in _kinds(cls) if kind.code() == problem["code"]), RequestError)
        return kind(problem["detail"], **{name: problem[name] for name in problem.keys() - _MEMBERS})


def _kinds(kind: type[PagefleetError]) -> Iterator[type[PagefleetError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _kinds(child)


class RequestError(PagefleetError):
    """The request can't be served as it is."""

    status = 422


class HeadTooLarge(RequestError):
    """The request line and the headers are too long."""

    status = 431


class FileMissing(RequestError):
    """The request carries no file; send it in the multipart field `file` or as the raw body."""


class EmptyFile(RequestError):
    """The file is empty."""


class MultipartInvalid(RequestError):
    """The multipart body can't be parsed."""

    status = 400


class FileTooLarge(RequestError):
    """The file is larger than this service accepts."""

    status = 413


class UnsupportedType(RequestError):
    """The file is of no type that this service reads."""

    status = 415


class UploadTimeout(RequestError):
    """The upload has stopped coming."""

    status = 408
    retryable = True


class DamagedPdf(RequestError):
    """The PDF is damaged beyond repair."""


class DamagedImage(RequestError):
    """The image is damaged beyond repair."""


class ImageTooLarge(RequestError):
    """The image has more pixels than this service reads."""

    status = 413


class NoPages(RequestError):
    """The file has no pages."""


class TooManyPages(RequestError):
    """The file has more pages than this service accepts."""

    status = 413


class PasswordRequired(RequestError):
    """The PDF is encrypted and needs a password; send it as the option `password`."""


class PasswordWrong(RequestError):
    """The password does not open this PDF."""


class PdfLocked(RequestError):
    """The PDF is encrypted in a way that no password opens here."""


class InspectTimeout(RequestError):
    """The file could not be inspected in time."""


class OptionUnknown(RequestError):
    """There is no option of this name."""


class OptionInvalid(RequestError):
    """An option has a value that it can't have."""


class PageRangeInvalid(RequestError):
    """The page range can't be read, or names no page of this file."""


class ProfileUnknown(RequestError):
    """There is no profile of this name."""


class CursorInvalid(RequestError):
    """The cursor belongs to another order or list, or to nothing in it."""


class NotFound(RequestError):
    """There is nothing here."""

    status = 404


class LaneUnknown(RequestError):
    """There is no lane of that id."""

    status = 404


class Gone(RequestError):
    """The document was kept for its time to live and then erased."""

    status = 410


class MethodNotAllowed(RequestError):
    """This resource does not have this method."""

    status = 405


class NotAcceptable(RequestError):
    """None of the media types asked for can be produced here."""

    status = 406


class Unauthorized(RequestError):
    """An API key is needed; send it as `Authorization: Bearer KEY`."""

    status = 401


class Forbidden(RequestError):
    """Not allowed."""

    status = 403


class IdempotencyConflict(RequestError):
    """The idempotency key was used for another body or other options."""


class IdempotencyInFlight(RequestError):
    """The first request with this idempotency key has not been answered yet."""

    status = 409
    retryable = True


class NotEnded(RequestError):
    """The document is still being read."""

    status = 409
    retryable = True


class NotRetryable(RequestError):
    """There is nothing to retry."""

    status = 409


class DocumentFailed(RequestError):
    """The document could not be read."""


class DocumentCancelled(RequestError):
    """The document was cancelled."""

    status = 409


class ServiceError(PagefleetError):
    """The service can't do this now."""

    status = 503
    retryable = True

    def __init__(self, detail: str = "", **extra: Any) -> None:
        """Without a `retry_after` that is known better, clients are asked to wait for `RETRY_AFTER_SECONDS`."""
        if self.retryable:
            extra.setdefault("retry_after", RETRY_AFTER_SECONDS)
        super().__init__(detail, **extra)


class Busy(ServiceError):
    """Too many files wait for inspection."""


class QueueFull(ServiceError):
    """Too many pages wait to be read."""

    status = 429


class Draining(ServiceError):
    """The service is shutting down."""


class StoreUnavailable(ServiceError):
    """The store can't be reached."""


class NotReady(ServiceError):
    """No lane is up."""


class InternalError(ServiceError):
    """The service failed in a way that it did not foresee."""

    status = 500
    retryable = False


class PageError(PagefleetError):
    """The page could not be read."""


class PageTooLarge(PageError):
    """The page can't be drawn within the pixel and memory limits."""


class PageDamaged(PageError):
    """The page is damaged: nothing on it can be drawn."""


class RenderFailed(PageError):
    """The page could not be drawn."""


class RenderTimeout(PageError):
    """The page could not be drawn in time."""


class ReplicaError(PageError):
    """No replica could read the page."""

    retryable = True


class AnswerTruncated(PageError):
    """The replica's answer stops at its token limit."""

    retryable = True


class AnswerRepeats(PageError):
    """The replica's answer repeats itself without end."""

    retryable = True


class AnswerUnparsable(PageError):
    """The replica's answer has not the form that the profile asks for."""

    retryable = True


class DeadlineExceeded(PageError):
    """The page was not read in time."""

    retryable = True


class PoisonPage(PageError):
    """The page brought down the replicas that read it."""


class NoReplica(PageError):
    """No replica that serves the document's profile was ever up."""

    retryable = True


class SourceUnavailable(PageError):
    """The document's file can't be fetched from the blob store."""

    retryable = True


class AttemptError(PagefleetError):
    """The attempt failed."""

    charged: ClassVar[bool] = True
    """Whether the attempt counts against the page."""
    final: ClassVar[bool] = False
    """Whether another lane would answer the same."""


class LaneUnreachable(AttemptError):
    """The connection to the replica was refused or reset."""

    charged = False


class RankUnknown(AttemptError):
    """The server has no data-parallel rank of that number: it was started again with fewer."""

    charged = False


class LaneFull(AttemptError):
    """The replica has no room (429 or 503)."""

    charged = False


class AttemptAborted(AttemptError):
    """The replica ended the answer itself (`finish_reason` abort): it is going down."""

    charged = False


class LaneFault(AttemptError):
    """The replica answered with an error of its own."""


class AttemptTimeout(AttemptError):
    """The replica did not end its answer in time."""


class AttemptStalled(AttemptError):
    """The replica sent nothing for too long."""


class RequestRefused(AttemptError):
    """The replica refused the request (4xx)."""

    final = True


class StartError(PagefleetError):
    """The service can't start."""
