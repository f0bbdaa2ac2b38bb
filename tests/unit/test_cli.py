import builtins
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import app.ocr
from app import cli, main
from app.api.keys import read_keys
from app.errors import StartError
from app.ocr import Options
from app.settings import Settings


class Serve:
    """Stands in for the service: keeps its settings, and ends as it is told to."""

    def __init__(self) -> None:
        self.settings: list[Settings] = []
        self.status = 0
        self.fault: BaseException | None = None

    async def __call__(self, settings: Settings) -> int:
        self.settings.append(settings)
        if self.fault is not None:
            raise self.fault
        return self.status


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    serve = Serve()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "serve", serve)
    monkeypatch.setattr(cli, "configure_logging", lambda level: None)  # it would take over the logs of later tests
    return serve


def test_what_the_command_line_does_not_say_the_settings_do(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_PORT", "8123")
    assert cli.main(["serve"]) == 0
    assert serve.settings == [Settings(port=8123)]


def test_the_command_line_wins(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_PORT", "8123")
    options = ["--host", "::1", "--port", "0", "--data-dir", "d", "--endpoint", "http://a/v1", "--endpoint", "http://b"]
    cli.main(["serve", *options])
    (settings,) = serve.settings
    assert (settings.host, settings.port, settings.data_dir) == ("::1", 0, Path("d"))
    assert settings.endpoints == ("http://a", "http://b")


def test_the_exit_status_is_the_commands(serve: Serve) -> None:
    serve.status = 1
    assert cli.main(["serve"]) == 1


def test_what_can_not_start_is_told_in_one_line_with_status_2(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve.fault = StartError("the port is taken")
    assert cli.main(["serve"]) == 2
    assert capsys.readouterr().err == "pagefleet: the port is taken\n"


def test_an_invalid_setting_is_told_before_anything_starts(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--port", "70000"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("pagefleet: invalid settings: port: ")
    assert err.count("\n") == 1
    assert serve.settings == []


def test_an_interrupt_ends_with_130(serve: Serve) -> None:
    serve.fault = KeyboardInterrupt()
    assert cli.main(["serve"]) == 130


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["serve", "--port", "high"],
        ["ocr"],
        ["replicas"],
        ["replicas", "up"],
        ["replicas", "up", "--engine", "steam"],
        ["keys"],
        ["keys", "new"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_can_not_be_read_shows_the_usage_with_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: pagefleet")


def test_a_new_key_is_shown_once_beside_its_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, shown = tmp_path / "keys.yaml", []
    for arguments in (["--tenant", "acme", "--name", "anna"], ["--tenant", "umbrella", "--scopes", "read"]):
        assert cli.main(["keys", "new", *arguments]) == 0
        captured = capsys.readouterr()
        shown.append(captured.err.splitlines()[-1])
        with path.open("a") as file:  # keys new … >> keys.yaml
            file.write(captured.out)
    anna, other = read_keys(path)
    assert all(entry.matches(sha256(key.encode()).digest()) for entry, key in zip((anna, other), shown, strict=True))
    assert (anna.name, anna.tenant, anna.scopes) == ("anna", "acme", ("read", "write"))
    assert (other.tenant, other.scopes) == ("umbrella", ("read",))
    assert not any(key in path.read_text() for key in shown)


@pytest.mark.parametrize("arguments", [["--tenant", "a/b"], ["--tenant", "a", "--scopes", "read,all"]])
def test_a_key_that_can_not_be_is_told_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["keys", "new", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("pagefleet: this key")


@pytest.mark.parametrize(("server", "api_key"), [([], None), (["--server", "http://a"], "secret")])
def test_only_a_server_that_is_named_gets_the_key_of_the_environment(
    server: list[str], api_key: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Options] = []

    async def ocr(options: Options) -> int:
        asked.append(options)
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGEFLEET_API_KEY", "secret\n")
    monkeypatch.setattr(app.ocr, "ocr", ocr)
    assert cli.main(["ocr", "any.pdf", *server]) == 0
    assert asked[0].api_key == api_key
    assert "secret" not in repr(asked[0])


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pagefleet {app.__version__}\n"


def test_ctrl_c_ends_a_command_without_a_stack_trace_even_while_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def interrupted(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "app.ocr":
            raise KeyboardInterrupt
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert cli.main(["ocr", "any.pdf"]) == 130
