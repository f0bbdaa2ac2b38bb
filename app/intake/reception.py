"""Receiving the body of one request: its files go to the spool, its fields into memory."""

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from python_multipart.multipart import parse_options_header

from app.errors import EmptyFile, FileMissing, OptionInvalid
from app.intake.filename import FALLBACK_NAME, disposition
from app.intake.multipart import MultipartReader, Part
from app.intake.spool import Spool, file_too_large
from app.intake.upload import Upload

FILE_FIELD = "file"
MAX_FIELD_BYTES = 64 * 1024


class _Sink(Protocol):
    """Where the bytes of a part go."""

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class _Field:
    """A form field that is being received."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.value = ""
        self._raw = bytearray()

    async def write(self, data: bytes) -> None:
        self._raw += data
        if len(self._raw) > MAX_FIELD_BYTES:
            raise OptionInvalid(f"the field {self.name!r} is too long", option=self.name, limit=MAX_FIELD_BYTES)

    async def close(self) -> None:
        try:
            self.value = self._raw.decode()
        except UnicodeDecodeError:
            raise OptionInvalid(f"the field {self.name!r} is not UTF-8 text", option=self.name) from None


class Reception:
    """The files and fields of one request. As a context it leaves nothing in the spool, however it ends."""

    def __init__(self, spool_dir: Path, max_file_bytes: int) -> None:
        self.files: list[Spool] = []
        """In the order of the request, each closed once `read` has returned."""
        self._fields: dict[str, _Field] = {}
        self._spool_dir = spool_dir
        self._max_file_bytes = max_file_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self.files:
            file.discard()

    @property
    def fields(self) -> dict[str, str]:
        return {name: field.value for name, field in self._fields.items()}

    async def read(self, upload: Upload) -> None:
        """Receive the whole body: a multipart form, or with any other Content-Type one file.

        Raises `FileTooLarge`, `FileMissing`, `EmptyFile` (raw body), `MultipartInvalid`, `OptionInvalid`,
        `StoreUnavailable`, and what the body itself raises.
        """
        if parse_options_header(upload.content_type)[0] == b"multipart/form-data":
            await self._read_form(upload)
        else:
            await self._read_raw(upload)
        if not self.files:
            raise FileMissing()

    async def _read_raw(self, upload: Upload) -> None:
        if (upload.content_length or 0) > self._max_file_bytes:
            raise file_too_large(self._max_file_bytes)
        name = disposition((upload.content_disposition or "").encode("latin-1")).get("filename", FALLBACK_NAME)
        file = self._add_file(name)
        async for chunk in upload.chunks:
            await file.write(chunk)
        await file.close()
        if file.bytes == 0:
            raise FileMissing() if upload.content_type is None else EmptyFile()

    async def _read_form(self, upload: Upload) -> None:
        reader = MultipartReader(upload.content_type or "")
        sink: _Sink | None = None
        async for chunk in upload.chunks:
            for item in reader.feed(chunk):
                if isinstance(item, Part):
                    if sink is not None:
                        await sink.close()
                    sink = self._sink(item)
                elif sink is not None:
                    await sink.write(item)
        reader.close()
        if sink is not None:
            await sink.close()

    def _sink(self, part: Part) -> _Sink:
        if part.name == FILE_FIELD:
            return self._add_file(part.filename)
        if part.filename is not None:
            raise FileMissing(f"the field {part.name!r} holds a file; send files in the field {FILE_FIELD!r}")
        if part.name in self._fields:
            raise OptionInvalid(f"the field {part.name!r} is there twice", option=part.name)
        field = self._fields[part.name] = _Field(part.name)
        return field

    def _add_file(self, name: str | None) -> Spool:
        file = Spool(self._spool_dir, name or FALLBACK_NAME, self._max_file_bytes)
        self.files.append(file)
        return file
