"""What the server refuses or fails to answer, in vLLM's error shape.

ChatError
├── InvalidRequest   400
├── ModelNotFound    404
├── BodyTooLarge     413
└── EngineFailed     500
"""

from typing import Any, ClassVar

from app.errors import PagefleetError


class ChatError(PagefleetError):
    """The request can't be answered."""

    type: ClassVar[str]
    """`type` of vLLM's error shape."""

    def __init__(self, detail: str = "", param: str | None = None) -> None:
        super().__init__(detail)
        self.param = param

    def body(self) -> dict[str, Any]:
        return error_body(self.detail, self.type, self.status, self.param)


class InvalidRequest(ChatError):
    """The request is not one that this server reads."""

    status = 400
    type = "BadRequestError"


class ModelNotFound(ChatError):
    """This server has no such model."""

    status = 404
    type = "NotFoundError"


class BodyTooLarge(ChatError):
    """The request body is too large."""

    status = 413
    type = "RequestEntityTooLarge"


class EngineFailed(ChatError):
    """The OCR engine failed."""

    status = 500
    type = "InternalServerError"


def error_body(message: str, kind: str, status: int, param: str | None = None) -> dict[str, Any]:
    """vLLM's error shape; its `code` is the HTTP status."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}
