import pytest

from app.documents.fairness import joining_pass, stride


@pytest.mark.parametrize(("priority", "weight"), [(0, 8), (1, 4), (2, 2), (3, 1), (4, 1 / 2), (7, 1 / 16)])
def test_stride_is_the_inverse_of_the_weight(priority: int, weight: float) -> None:
    assert stride(3) == stride(priority) * weight


@pytest.mark.parametrize(
    ("own", "in_use", "last", "expected"),
    [
        (0, [700, 300], 900, 310),  # a newcomer joins one stride behind the smallest pass in use
        (500, [700, 300], 900, 500),  # who has been served keeps what it owes
        (0, [], 900, 910),  # on an idle service virtual time stands still
        (0, [], 0, 10),
    ],
)
def test_joining_pass(own: int, in_use: list[int], last: int, expected: int) -> None:
    assert joining_pass(own, 10, in_use, last) == expected
