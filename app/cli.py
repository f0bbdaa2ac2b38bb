"""The `pagefleet` command."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import app
from app import lifeline
from app.errors import PagefleetError
from app.settings import Settings
from app.telemetry.logs import configure_logging

START_ERROR_STATUS = 2
INTERRUPTED_STATUS = 130
"""128 + SIGINT, as shells count."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns its exit status: 0 done, 1 not all pages read, 2 could not start, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except PagefleetError as error:
        print(f"pagefleet: {error.detail}", file=sys.stderr)
        return START_ERROR_STATUS
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED_STATUS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pagefleet", description=app.__doc__)
    parser.add_argument("--version", action="version", version=f"pagefleet {app.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="run a gateway"))
    _add_ocr(commands.add_parser("ocr", help="read files and folders"))
    keys = commands.add_parser("keys", help="make API keys").add_subparsers(required=True, metavar="ACTION")
    _add_keys_new(keys.add_parser("new", help="make a key, and its entry for the file of keys"))
    replicas = commands.add_parser("replicas", help="run OCR replicas").add_subparsers(required=True, metavar="ACTION")
    _add_replicas_up(replicas.add_parser("up", help="start replicas and keep them running"))
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on, 0 for a free one (8000)")
    parser.add_argument("--data-dir", type=Path, help="folder of the journal and the uploads (./pagefleet-data)")
    parser.add_argument(
        "--endpoint",
        action="append",
        dest="endpoints",
        metavar="URL",
        help="chat-completions server to use, repeatable (none: CPU replicas are started)",
    )
    parser.add_argument("--end-with-parent", action="store_true", help="end when the process that started it ends")
    parser.set_defaults(command=_serve)


def _add_ocr(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE|FOLDER", help="PDF, image, or folder of both")
    parser.add_argument(
        "--server",
        metavar="URL",
        help="a running gateway; its API key is taken from PAGEFLEET_API_KEY (none: one is started for the occasion)",
    )
    parser.add_argument(
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="write one file a document, and skip those that are there (none: the text goes to standard output)",
    )
    parser.add_argument("--format", choices=["md", "txt", "json", "ndjson"], default="md", help="(md)")
    parser.add_argument("--pages", metavar="RANGE", help="pages of every file, such as 1-5,8,r3-r1 (all)")
    parser.add_argument("--overwrite", action="store_true", help="read files whose output exists, too")
    parser.set_defaults(command=_ocr)


def _add_keys_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", required=True, help="whose documents it opens")
    parser.add_argument("--name", help="what logs call it (the tenant and a number)")
    parser.add_argument("--scopes", default="read,write", help="of read, write and admin, by commas (read,write)")
    parser.set_defaults(command=_keys_new)


def _add_replicas_up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=["cpu", "vllm"], required=True)
    parser.add_argument("--count", type=int, help="how many (by CPUs and free memory)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="replica i listens on PORT+i; 0 for free ports (0)")
    parser.set_defaults(command=_replicas_up)


def _serve(arguments: argparse.Namespace) -> int:
    from app.main import serve  # the whole service is imported only where it is run

    if arguments.end_with_parent:
        lifeline.die_with_parent()
    settings = Settings.load(
        host=arguments.host, port=arguments.port, data_dir=arguments.data_dir, endpoints=arguments.endpoints
    )
    configure_logging(settings.log_level)
    return asyncio.run(serve(settings))


def _ocr(arguments: argparse.Namespace) -> int:
    from app.ocr import Options, ocr

    options = Options(
        paths=arguments.paths,
        server=arguments.server,
        api_key=None if arguments.server is None else Settings.load().api_key,
        output_dir=arguments.output_dir,
        format=arguments.format,
        pages=arguments.pages,
        overwrite=arguments.overwrite,
    )
    return asyncio.run(ocr(options))


def _keys_new(arguments: argparse.Namespace) -> int:
    from app.api.keys import as_yaml, new_key

    key, entry = new_key(arguments.tenant, arguments.name, arguments.scopes.split(","))
    print(as_yaml(entry), end="", flush=True)
    print(f"The key of {entry.name}, which is shown this once:\n{key}", file=sys.stderr)
    return 0


def _replicas_up(arguments: argparse.Namespace) -> int:
    from app.replicas.up import replicas_up

    configure_logging(Settings.load().log_level)
    return asyncio.run(
        replicas_up(engine=arguments.engine, count=arguments.count, host=arguments.host, port=arguments.port)
    )
