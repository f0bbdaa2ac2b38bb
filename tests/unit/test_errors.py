import re

import pytest

import app.errors
from app.errors import FileTooLarge, Gone, PagefleetError, QueueFull, StartError


def tree(cls: type[PagefleetError]) -> set[type[PagefleetError]]:
    """`cls` and what descends from it; rooms whose errors never leave them may have branches of their own."""
    own = (child for child in cls.__subclasses__() if child.__module__ == "app.errors")
    return {cls}.union(*(tree(child) for child in own))


def test_a_problem_carries_its_code_and_extras() -> None:
    problem = QueueFull("12 pages wait", retry_after=9).problem()
    assert problem == {
        "type": "urn:pagefleet:error:queue_full",
        "title": "Too many pages wait to be read.",
        "status": 429,
        "detail": "12 pages wait",
        "code": "queue_full",
        "retryable": True,
        "retry_after": 9,
    }


@pytest.mark.parametrize("error", [FileTooLarge("3 bytes at most", limit=3), QueueFull(retry_after=9), Gone()])
def test_a_problem_that_was_kept_is_its_error_again(error: PagefleetError) -> None:
    again = PagefleetError.of(error.problem())
    assert (type(again), again.problem()) == (type(error), error.problem())


def test_a_kept_problem_of_an_unknown_code_still_says_what_it_said() -> None:
    again = PagefleetError.of({**FileTooLarge("3 bytes at most").problem(), "code": "file_too_heavy"})
    assert (again.code(), again.status, again.detail) == ("request_error", 422, "3 bytes at most")


def test_codes_are_unique_and_every_error_has_a_title() -> None:
    classes = tree(PagefleetError)
    assert len({cls.code() for cls in classes}) == len(classes)
    assert all(cls.__dict__.get("__doc__") for cls in classes)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", (app.errors.__doc__ or "").split("A class's")[0]))
    missing = (
        {cls.__name__ for cls in tree(PagefleetError)}
        - drawn
        - {"Busy", "Draining", "Forbidden", "Gone", "Unauthorized"}
    )
    assert missing == set()
    assert issubclass(StartError, PagefleetError)
