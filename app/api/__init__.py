"""HTTP only: routes, shapes, problems, streams, negotiation."""

from app.api.app import create_app
from app.api.context import Context
from app.api.http_protocol import BoundedHttpProtocol
from app.api.keys import Keys
from app.api.middleware import is_loopback

__all__ = ["BoundedHttpProtocol", "Context", "Keys", "create_app", "is_loopback"]
