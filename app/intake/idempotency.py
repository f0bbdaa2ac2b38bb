"""The `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header) and what makes two requests equal."""

import hashlib
import json
import re
from collections.abc import Iterable

from app.documents.options import Options
from app.errors import OptionInvalid
from app.intake.filename import clean_filename
from app.intake.spool import Spool

MAX_KEY_CHARACTERS = 255
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPED = re.compile(r'\\(["\\])')


def idempotency_key(header: str | None) -> str | None:
    """The key in the header's value: a string of RFC 8941, in quotes, as the draft asks for, or bare, as many send it.

    None where there is no header; raises `OptionInvalid`.
    """
    if header is None:
        return None
    quoted = _QUOTED.fullmatch(header)
    key = _ESCAPED.sub(r"\1", quoted[1]) if quoted else header
    if not (1 <= len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()):
        raise OptionInvalid(
            f"an idempotency key has 1 to {MAX_KEY_CHARACTERS} printable ASCII characters",
            option="Idempotency-Key",
            limit=MAX_KEY_CHARACTERS,
        )
    return key


def fingerprint_of(options: Options, files: Iterable[Spool]) -> str:
    """SHA-256 in hexadecimal of the options and, in order, of each file's name and bytes.

    The password is left out: fingerprints are kept, and it could be guessed from one by trial.
    """
    # The metadata apart: as a value of its own it is nested no deeper than it was when it was checked.
    metadata = json.dumps(options.metadata, sort_keys=True)
    asked = {name: getattr(options, name) for name in options.__dataclass_fields__ if name != "password"}
    received = [[clean_filename(file.filename), file.sha256] for file in files]
    request = json.dumps([{**asked, "metadata": metadata}, received], sort_keys=True)
    return hashlib.sha256(request.encode()).hexdigest()
