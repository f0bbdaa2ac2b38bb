"""What the accuracy pages say, written for this project. In the files, each line is a paragraph."""

from pathlib import Path


def _paragraphs(name: str) -> list[str]:
    return (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8").splitlines()


ENGLISH = _paragraphs("english")
GERMAN = _paragraphs("german")
FRENCH = _paragraphs("french")
CHINESE = _paragraphs("chinese")
NUMBERS = _paragraphs("numbers")
TABLE = [
    ["Room", "Seats", "Opened", "Keeper", "Books"],
    ["Reading room", "64", "1874", "A. Lindqvist", "8,412"],
    ["Map collection", "12", "1891", "J. Okafor", "1,907"],
    ["Children's corner", "25", "1938", "M. Dubois", "3,260"],
    ["Periodicals", "18", "1902", "R. Yamada", "12,044"],
    ["Music archive", "7", "1956", "E. Kowalski", "2,385"],
    ["Workshop", "10", "1977", "T. Brandt", "641"],
]
LIST = [
    "Return the key of the side entrance to the hook behind the lamp.",
    "Close the shutters on the western wall when the wind rises above force seven.",
    "Write the number of readers in the blue book, never on loose paper, because loose paper has a way of leaving "
    "with the last visitor of the evening.",
    "Feed the stove at four and again at seven.",
]
