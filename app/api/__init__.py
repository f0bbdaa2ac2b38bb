"""HTTP only: routes, shapes, problems, streams, negotiation."""

from app.api.app import create_app
from app.api.context import Context
from app.api.middleware import is_loopback

__all__ = ["Context", "create_app", "is_loopback"]
