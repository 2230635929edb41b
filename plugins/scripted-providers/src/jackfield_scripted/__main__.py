"""Serve a scripted provider to another process or another language: `python -m jackfield_scripted`."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

from jackfield_scripted.script import Script, ScriptError, script_from_yaml
from jackfield_scripted.server import ScriptedServer


def main() -> None:
    """Serve scripts until interrupted; the first line of output is the address."""
    parser = argparse.ArgumentParser(prog="python -m jackfield_scripted", description=__doc__)
    parser.add_argument("provider", choices=["openai", "gemini"], help="the provider to imitate")
    parser.add_argument(
        "scripts", nargs="+", type=Path, metavar="SCRIPT", help="YAML files, one for each connection"
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free port)")
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
    server: ScriptedServer
    if provider == "openai":
        from jackfield_scripted.openai import OpenAIServer

        server = OpenAIServer(*scripts, port=port)
    else:
        from jackfield_scripted.gemini import GeminiServer

        server = GeminiServer(*scripts, port=port)
    stopped = asyncio.Event()
    # Both signals shut it down cleanly, so that the temporary certificate is removed.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server:
        print(server.base_url, flush=True)  # noqa: T201
        if certificate := getattr(server, "ca_file", None):
            print(f"trust {certificate}", flush=True)  # noqa: T201
        await stopped.wait()


if __name__ == "__main__":
    main()
