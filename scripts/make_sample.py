"""Draw `docs/sample.pdf`: three pages, the last one a scan. Run it by hand when the sample should change."""

import io
from pathlib import Path

import pymupdf
from PIL import Image, ImageFilter

SAMPLE = Path(__file__).parents[1] / "docs" / "sample.pdf"
A4 = pymupdf.paper_rect("a4")
TEXT_AREA = pymupdf.Rect(72, 130, A4.width - 72, A4.height - 72)

PAGES = [
    (
        "A Fleet for Pages",
        "This sample has three pages. Each is drawn as an image and read on its own, by whichever replica has the "
        "most room, and its text is streamed as soon as it is there.\n\n"
        "A page that can't be read is reported with its reason. It does not hold up its neighbours, and it does not "
        "take the document down with it.",
    ),
    (
        "What Happens to a Document",
        "The upload is stored and inspected before it is accepted. A journal then holds one row for each page: "
        "queued, running, and in the end succeeded or failed.\n\n"
        "When the service is stopped in the middle, even by a power cut, the pages that were read stay read. The "
        "others are read after the next start, each of them once.",
    ),
    (
        "A Scanned Page",
        "There is no text in the file for this page, only a picture of it, a little blurred as scans are. What you "
        "see printed was recognised from the pixels.\n\n"
        "The harbour office opens at 7:45 and closes at 16:30 from Monday to Friday. Parcels over 25 kg are weighed "
        "at gate 12.",
    ),
]


def draw_page(document: pymupdf.Document, title: str, text: str) -> pymupdf.Page:
    page = document.new_page(width=A4.width, height=A4.height)
    page.insert_text((72, 100), title, fontsize=24, fontname="tibo")
    page.insert_textbox(TEXT_AREA, text, fontsize=12, fontname="tiro", lineheight=1.4)
    return page


def replace_by_scan(document: pymupdf.Document) -> None:
    """Put a blurred grey picture of the last page in its place."""
    pixmap = document[-1].get_pixmap(dpi=130, colorspace=pymupdf.csGRAY)
    image = Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)
    jpeg = io.BytesIO()
    image.filter(ImageFilter.GaussianBlur(0.6)).save(jpeg, "JPEG", quality=60)
    document.delete_page(-1)
    scan = document.new_page(width=A4.width, height=A4.height)
    scan.insert_image(scan.rect, stream=jpeg.getvalue())


def main() -> None:
    document = pymupdf.open()
    for title, text in PAGES:
        draw_page(document, title, text)
    replace_by_scan(document)
    document.set_metadata({"title": "pagefleet sample"})
    document.save(SAMPLE, garbage=4, deflate=True, no_new_id=True)


if __name__ == "__main__":
    main()
