"""Profiles: one module a model family, and the registry."""

from app.profiles.profile import Profile, Reading
from app.profiles.registry import Profiles

__all__ = ["Profile", "Profiles", "Reading"]
