from pathlib import Path

import pytest

from app.errors import StartError
from app.settings import Settings


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_folder / "pagefleet.yaml").write_text("port: 1\nhost: filehost\nmax_pages: 7\n")
    monkeypatch.setenv("PAGEFLEET_PORT", "2")
    monkeypatch.setenv("PAGEFLEET_HOST", "envhost")
    settings = Settings.load(port=3, host=None)
    assert (settings.port, settings.host, settings.max_pages) == (3, "envhost", 7)


def test_one_replica_has_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_ENDPOINTS", "http://a:1/v1/, http://b:2/,https://c")
    assert Settings.load().endpoints == ("http://a:1", "http://b:2", "https://c")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", 65_536),
        ("endpoints", "ftp://a"),
        ("max_pages", 0),
        ("log_level", "loud"),
        ("endpoint_api_key", "two\nlines"),
        ("colour", "blue"),
    ],
)
def test_a_setting_at_fault_is_named(name: str, value: object) -> None:
    with pytest.raises(StartError, match=name):
        Settings.load(**{name: value})


def test_the_endpoint_key_is_not_shown() -> None:
    assert "secret" not in repr(Settings.load(endpoint_api_key="secret"))


@pytest.mark.parametrize(("given", "key"), [("secret\n", "secret"), (" ", None), ("", None)])
def test_the_endpoint_key_is_one_that_a_header_can_carry(given: str, key: str | None) -> None:
    assert Settings.load(endpoint_api_key=given).endpoint_api_key == key


def test_the_log_level_may_be_in_capitals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_LOG_LEVEL", "INFO")
    assert Settings.load().log_level == "info"


def test_settings_do_not_change() -> None:
    with pytest.raises(Exception, match="frozen"):
        Settings.load().port = 1  # type: ignore[misc]
