"""Every setting of pagefleet, with its unit, its default and what happens at its limit.

Read from the environment (`PAGEFLEET_PORT`), from `pagefleet.yaml` in the working directory (`port`), and from the
command line, which wins. Nothing else in the program reads the environment.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from app.errors import StartError

MIB = 1024 * 1024


def _split(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _or_none(value: Any) -> Any:
    """An empty value unsets what `pagefleet.yaml` sets."""
    return None if value == "" else value


def _api_key(value: str | None) -> str | None:
    """A key as a header can carry it: secrets are often mounted with a newline at their end."""
    key = (value or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("an API key has printable ASCII characters only")
    return key or None


def _base_url(value: str) -> str:
    """An endpoint without its trailing slash and `/v1`: one replica, one name (lane ids are made from it)."""
    if not value.startswith(("http://", "https://")):
        raise ValueError("an endpoint starts with http:// or https://")
    return value.rstrip("/").removesuffix("/v1").rstrip("/")


def _database_url(value: str | None) -> str | None:
    if value and not value.startswith(("postgresql://", "postgres://")):
        raise ValueError("a database URL starts with postgresql://")
    return value or None


EndpointUrl = Annotated[str, AfterValidator(_base_url)]


def cpu_count() -> int:
    """CPUs that this process may use: affinity, then the cgroup v2 quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return cpus
    return cpus if quota == "max" else max(1, min(cpus, int(quota) // int(period)))


class Settings(BaseSettings):
    """All settings; immutable once read."""

    model_config = SettingsConfigDict(env_prefix="PAGEFLEET_", yaml_file="pagefleet.yaml", frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    """Address to listen on. Without API keys only loopback is served, see `allow_anonymous`."""
    port: int = Field(8000, ge=0, le=65535)
    """TCP port to listen on; 0 takes a free one, which the start line names."""
    root_path: Annotated[str, Field(pattern=r"^(/[^/?#]+)*$")] = ""
    """Prefix of every link, for an ingress that strips it."""
    allow_anonymous: bool = False
    """Answer anybody on any address; where there are API keys, requests without one too, as tenant `default`. False:
    keys are needed, and where there are none only loopback is served, and only loopback Host headers."""

    api_keys_file: Annotated[Path | None, BeforeValidator(_or_none)] = None
    """YAML file of API keys (`pagefleet keys new` writes its entries), read again when it changes. Unset or empty: no
    keys, see `allow_anonymous`."""
    api_key: Annotated[str | None, AfterValidator(_api_key)] = Field(None, repr=False)
    """Key that `pagefleet ocr --server` sends; the gateway itself does not use it. Never shown or logged."""

    data_dir: Path = Path("pagefleet-data")
    """Folder of the SQLite file, the blobs, the spool and the cache. One gateway at a time."""
    database_url: Annotated[str | None, AfterValidator(_database_url)] = Field(None, repr=False)
    """`postgresql://…`, which several gateways may share. Unset: a SQLite file in the data directory."""
    blob_url: Annotated[str | None, BeforeValidator(_or_none)] = Field(None, repr=False)
    """Where uploads are kept: a folder (also `file:///…`), `s3://bucket/prefix`, `gs://bucket/prefix` or
    `az://container/prefix`. Unset: a folder in the data directory.

    The place belongs to one database: files there that are no document's are erased. Credentials, endpoint and
    timeouts of a bucket are what obstore reads from the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL` (one with `http://` needs `AWS_ALLOW_HTTP=true`), web
    identity and instance roles; `GOOGLE_APPLICATION_CREDENTIALS`; `AZURE_STORAGE_ACCOUNT_NAME`,
    `AZURE_STORAGE_ACCOUNT_KEY`. It does not read `~/.aws`. A rule of the bucket should end multipart uploads that were
    broken off.
    """
    blob_cache_bytes: int = Field(4096 * MIB, ge=MIB)
    """Local copies of uploads from an object store; above it those that no page needs are dropped."""
    blob_seconds: float = Field(120, gt=0)
    """Fetching a document's file, with all repeats; then its pages fail with `source_unavailable`."""
    orphan_seconds: float = Field(3600, gt=0)
    """Age at which bytes without a document are erased. An upload must be written down within half of it."""

    endpoints: Annotated[tuple[EndpointUrl, ...], NoDecode, BeforeValidator(_split)] = ()
    """Base URLs of OpenAI chat-completions servers, comma-separated. None: CPU replicas are started."""
    endpoint_api_key: Annotated[str | None, AfterValidator(_api_key)] = Field(None, repr=False)
    """Bearer key sent to every endpoint, without white space around it; empty: none. Never shown or logged."""
    cpu_replicas: int | None = Field(None, ge=0)
    """CPU replicas to start when there is no endpoint; unset: by CPUs and free memory."""
    lane_window: int | None = Field(None, ge=1)
    """Attempts in flight a lane, fixed. Unset: the slots that the endpoint states, else learnt, from 16 on."""
    profile: str = "auto"
    """Profile of documents that name none; `auto`: by the model names that the endpoints report."""
    prompt: str = "Transcribe all text on this page in reading order as Markdown. Output the text only, nothing else."
    """Prompt of the `generic` profile."""
    longest_side_pixels: int = Field(1288, ge=64, le=16_384)
    """Longest side of the page image that the `generic` profile sends."""
    max_tokens: int = Field(8192, ge=1)
    """Completion tokens that the `generic` profile allows a page; at the limit the page fails: `answer_truncated`."""

    max_file_bytes: int = Field(512 * MIB, ge=1)
    """Upload size; the rest of a larger one is not read: 413 `file_too_large`."""
    max_pages: int = Field(20_000, ge=1)
    """Pages a document: 413 `too_many_pages`."""
    max_queued_pages: int = Field(200_000, ge=1)
    """Pages queued in all: then 429 `queue_full`."""
    max_pixels: int = Field(25_000_000, ge=10_000)
    """Pixels of a drawn page; a larger page is drawn smaller."""
    image_buffer_bytes: int = Field(512 * MIB, ge=MIB)
    """Bytes of page images held at a time; above it rendering waits."""
    max_concurrent_pages: int = Field(2048, ge=1)
    """Pages that one gateway works on at a time, whatever the windows."""

    upload_idle_seconds: float = Field(60, gt=0)
    """Longest silence in the middle of an upload: 408 `upload_timeout`."""
    inspect_seconds: float = Field(5, gt=0)
    """Inspection of an upload, from its start: 422 `inspect_timeout`."""
    inspect_wait_seconds: float = Field(15, gt=0)
    """Wait for an inspection worker: 503 `busy`."""
    render_seconds: float = Field(20, gt=0)
    """Drawing a page, wall and CPU time each: the page fails with `render_timeout`."""
    render_workers: int = Field(default_factory=cpu_count, ge=1)
    """Processes that draw pages; as many again inspect uploads."""
    render_memory_bytes: int = Field(2048 * MIB, ge=256 * MIB)
    """Address space of a render process; at its limit the page fails."""
    page_seconds: float = Field(600, gt=0)
    """One attempt at a page, from its dispatch; then the page is tried on another lane."""

    ttl_seconds: int = Field(86_400, ge=1)
    """Keep time of a document that asks for none, from its end; then it is erased and its id answers 410."""
    idempotency_seconds: int = Field(86_400, ge=1)
    """Life of an idempotency key, from its first use."""
    sweep_interval_seconds: float = Field(30, gt=0)
    """Time between two looks for documents whose keep time is over."""
    claim_seconds: float = Field(30, gt=0)
    """How long a gateway may be silent before others take its pages over."""
    grace_seconds: float = Field(30, ge=0)
    """Time that pages in flight get to end at SIGTERM; then they are handed back."""
    heartbeat_seconds: float = Field(15, gt=0)
    """Longest silence of an event stream."""
    max_wait_seconds: float = Field(50, ge=0)
    """Cap of `Prefer: wait`; below the usual 60 s of a proxy."""
    health_interval_seconds: float = Field(2, gt=0)
    """Time between two health probes of an endpoint."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    """Least severe lines that are logged."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls)

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the settings; `overrides` come from the command line, None means not given.

        Raises `StartError` that names each setting at fault.
        """
        try:
            return cls(**{name: value for name, value in overrides.items() if value is not None})
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'settings'}: {fault['msg']}" for fault in error.errors()
            )
            raise StartError(f"invalid settings: {faults}") from None

    @property
    def blob_dir(self) -> Path:
        return self.data_dir / "blobs"

    @property
    def spool_dir(self) -> Path:
        """Uploads being received; on the blobs' file system, so that publishing is a rename."""
        return self.data_dir / "spool"

    @property
    def cache_dir(self) -> Path:
        """Local copies of files from an object store."""
        return self.data_dir / "cache"

    @property
    def database_path(self) -> Path:
        return self.data_dir / "pagefleet.sqlite3"
