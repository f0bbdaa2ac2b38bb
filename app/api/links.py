"""`Link` headers (RFC 8288)."""

from urllib.parse import urlencode


def next_link(path: str, **query: str | None) -> dict[str, str]:
    """Header that leads to the rest of a list; parameters that are None are left out."""
    given = {name: value for name, value in query.items() if value is not None}
    return {"Link": f'<{path}?{urlencode(given)}>; rel="next"'}
