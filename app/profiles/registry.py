"""The profiles that this service knows."""

from collections.abc import Iterable, Iterator

from app.errors import ProfileUnknown
from app.profiles.cpu import CpuProfile
from app.profiles.generic import GenericProfile
from app.profiles.profile import Profile
from app.settings import Settings


class Profiles:
    """Profiles by name, in the order in which `auto` prefers them."""

    def __init__(self, settings: Settings) -> None:
        profiles: list[Profile] = [
            GenericProfile(settings.prompt, settings.longest_side_pixels, settings.max_tokens),
            CpuProfile(),
        ]
        self._by_name = {profile.name: profile for profile in profiles}

    def __getitem__(self, name: str) -> Profile:
        """Raises `ProfileUnknown`."""
        try:
            return self._by_name[name]
        except KeyError:
            raise ProfileUnknown(f"unknown profile {name[:60]!r}; known: {', '.join(self._by_name)}") from None

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._by_name.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def for_models(self, models: Iterable[str]) -> str | None:
        """Name of the first profile that serves one of `models`, the names that the endpoints report; else None."""
        known = list(models)
        return next((profile.name for profile in self if any(map(profile.serves, known))), None)
