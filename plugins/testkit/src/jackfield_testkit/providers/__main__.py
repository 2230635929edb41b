"""A scripted provider for another process, or another language: `python -m jackfield_testkit.providers`."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path
from typing import Any

from jackfield_testkit.providers.model import Script
from jackfield_testkit.providers.playing import ScriptError, script_from_yaml


def main() -> None:
    """Serve a script until interrupted; the address is the first line of output."""
    parser = argparse.ArgumentParser(prog="python -m jackfield_testkit.providers", description=__doc__)
    parser.add_argument("provider", choices=["openai", "gemini"], help="whose protocols to speak")
    parser.add_argument(
        "scripts", nargs="+", type=Path, metavar="SCRIPT", help="YAML, one for each connection"
    )
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1 (default: any free one)")
    options = parser.parse_args()
    scripts = []
    for path in options.scripts:
        try:
            scripts.append(script_from_yaml(path.read_text("utf-8")))
        except (OSError, UnicodeDecodeError, ScriptError) as error:
            parser.error(f"{path}: {error}")
    try:
        asyncio.run(_serve(options.provider, scripts, options.port))
    except (OSError, OverflowError) as error:
        parser.error(f"port {options.port} cannot be used: {error}")


async def _serve(provider: str, scripts: list[Script], port: int) -> None:
    server: Any
    if provider == "openai":
        from jackfield_testkit.providers.openai import OpenAIServer

        server = OpenAIServer(*scripts, port=port)
    else:
        from jackfield_testkit.providers.gemini import GeminiServer

        server = GeminiServer(*scripts, port=port)
    told = asyncio.Event()
    # Both end it in order, so that a certificate does not stay behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with server:
        print(server.base_url, flush=True)  # noqa: T201
        if certificate := getattr(server, "ca_file", None):
            print(f"trust {certificate}", flush=True)  # noqa: T201
        await told.wait()


if __name__ == "__main__":
    main()
