import pytest

from app.replicas.cpu.lookalikes import with_letters


@pytest.mark.parametrize(
    ("read", "printed"),
    [
        ("Q∪EBEC 3131", "QUEBEC 3131"),
        ("THE RO∪TE", "THE ROUTE"),
        ("∪NDER", "UNDER"),
        ("A∪B", "A∪B"),
        ("A ∪ B = everything", "A ∪ B = everything"),
        ("nothing of the kind", "nothing of the kind"),
        ("", ""),
    ],
)
def test_a_sign_in_a_word_is_the_letter_it_looks_like(read: str, printed: str) -> None:
    assert with_letters(read) == printed
