from app.documents.assembly import markdown_page
from app.documents.records import Page, PageOutcome
from app.documents.states import PageState
from tests.journals import failed, succeeded


def page(outcome: PageOutcome, number: int = 12) -> Page:
    return Page("0198", number, outcome, ended_at=None)


def test_a_page_begins_with_a_comment_that_names_it() -> None:
    assert markdown_page(page(succeeded("# Title\n\ntext"))) == "<!-- page 12 -->\n\n# Title\n\ntext\n\n"


def test_a_page_without_text_is_there_too() -> None:
    assert markdown_page(page(succeeded(""))) == "<!-- page 12 -->\n\n\n\n"


def test_a_failed_page_says_why_in_its_comment() -> None:
    assert markdown_page(page(failed())) == "<!-- page 12 failed: replica_error -->\n\n"


def test_a_cancelled_page_says_so() -> None:
    assert markdown_page(page(PageOutcome(PageState.CANCELLED))) == "<!-- page 12 cancelled -->\n\n"
