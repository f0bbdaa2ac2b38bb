"""A document's text put together from its pages."""

from app.documents.records import Page
from app.documents.states import PageState


def markdown_page(page: Page) -> str:
    """A page as a part of the whole Markdown text: a comment that parts it from the one before, then its text.

    Readers of Markdown don't see the comment; programs can split at it.
    """
    if page.state is PageState.SUCCEEDED:
        return f"<!-- page {page.number} -->\n\n{page.outcome.text}\n\n"
    if page.outcome.error is not None:
        return f"<!-- page {page.number} failed: {page.outcome.error['code']} -->\n\n"
    return f"<!-- page {page.number} {page.state.value} -->\n\n"


def plain_page(page: Page) -> str:
    """A page as a part of the whole plain text: its text and a form feed; a page without text is empty."""
    return f"{page.outcome.text}\n\f"
