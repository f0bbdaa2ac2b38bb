"""The blob store that a URL names."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.errors import StartError
from app.journal.blobs import Blobs, FolderBlobs
from app.settings import Settings


async def open_blobs(settings: Settings) -> Blobs:
    """The store of `settings.blob_url`; raises `StartError` where it can't be used."""
    url = settings.blob_url
    if url is None:
        return _folder(settings.blob_dir)
    parts = urlsplit(url)
    match parts.scheme:
        case "":
            return _folder(Path(url))
        case "file" if parts.netloc in ("", "localhost") and parts.path:
            return _folder(Path(unquote(parts.path)))
        case "s3" | "gs" | "az":
            return await _bucket(url, settings)
        case _:
            raise StartError("a blob URL is a folder, file:///folder, s3://bucket/prefix, gs://… or az://…")


def _folder(path: Path) -> FolderBlobs:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"the blob folder {path} can't be used: {error.strerror}") from error
    return FolderBlobs(path)


async def _bucket(url: str, settings: Settings) -> Blobs:
    try:
        from app.journal.object_blobs import ObjectBlobs
    except ImportError as error:
        raise StartError("a blob store in a bucket needs: pip install 'pagefleet[s3]'") from error
    return await ObjectBlobs.open(url, settings)
