"""Which store a URL means."""

import sys
from pathlib import Path

import pytest

from app.errors import StartError
from app.journal.blob_url import open_blobs
from app.journal.blobs import FolderBlobs
from app.journal.object_blobs import ObjectBlobs
from app.settings import Settings
from tests.unit.journal.s3_server import running_bucket


@pytest.mark.parametrize("form", [None, "{}", "file://{}", "file://localhost{}"])
async def test_a_folder_is_made_for_its_owner_only(tmp_path: Path, form: str | None) -> None:
    folder = tmp_path / "data" / "blobs" if form is None else tmp_path / "my blobs"
    url = form and form.format(folder if form == "{}" else str(folder).replace(" ", "%20"))

    blobs = await open_blobs(Settings(data_dir=tmp_path / "data", blob_url=url))

    assert isinstance(blobs, FolderBlobs)
    assert folder.stat().st_mode & 0o077 == 0


async def test_a_folder_that_can_not_be_made_is_a_start_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match="can't be used: Not a directory"):
        await open_blobs(Settings(blob_url=str(tmp_path / "file" / "blobs")))


@pytest.mark.parametrize("url", ["ftp://host/folder", "file://host/folder", "file:", "http://host/bucket"])
async def test_any_other_url_is_refused_with_those_that_work(url: str) -> None:
    with pytest.raises(StartError, match="s3://bucket/prefix"):
        await open_blobs(Settings(blob_url=url))


async def test_a_bucket_is_opened_by_what_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_bucket(monkeypatch):
        blobs = await open_blobs(Settings(data_dir=tmp_path, blob_url="s3://books"))
        assert isinstance(blobs, ObjectBlobs)
        await blobs.close()


async def test_an_account_that_is_not_named_is_a_start_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StartError, match="Account must be specified"):
        await open_blobs(Settings(blob_url="az://books"))


async def test_a_bucket_whose_name_is_none_is_a_start_error() -> None:
    with pytest.raises(StartError, match="the blob store can't be used"):
        await open_blobs(Settings(blob_url="s3://my books"))


async def test_a_bucket_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "app.journal.object_blobs")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StartError, match=r"pip install 'pagefleet\[s3\]'"):
        await open_blobs(Settings(blob_url="s3://books"))
