"""The conversations of `test_provider_sessions.py` with the real services; `nox -s live` runs it.

A real model is not scripted, so it is asked to do what the scripts do, and checked by what happened: which
tools ran, how often, and what was reported. Voice sessions get text input and answer aloud.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Self

from provider_sessions import WAYS, ConnectionType, User, provider_session

from conftest import Site

KEYS = {"openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
PATIENCE_SECONDS = 90


class RealProvider:
    """Replaces a scripted server with the provider's own address."""

    base_url = ""

    def __init__(self, *scripts: Any) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


async def ask(user: User, text: str) -> None:
    """Send a message and wait for the end of the answer."""
    before = len(user.turns_ended)
    await user.live.send_text(text)
    await user.turn_ends(before + 1)


async def parallel_calls(user: User) -> None:
    """Two reads run in one turn."""
    await ask(user, "Call fab_look twice, once with the text 'one two' and once with the text 'three'.")
    assert user.effects("fab_look") == 2, user.words


async def refusal(user: User) -> None:
    """A refused call is reported as refused."""
    await ask(user, "Call fab_look with the text 'x' four times, each in a step of its own.")
    assert user.effects("fab_look") <= 4
    assert user.words


async def confirmation(user: User) -> None:
    """A call runs once, after its approval."""
    await ask(user, "Book with fab_book, text 'a table for two'.")
    assert user.effects("fab_book") == 0
    (asked,) = user.of("confirmation_required")
    before = len(user.turns_ended)
    await user.live.resolve_confirmation(asked["token"], approve=True)
    await user.turn_ends(before + 1)
    assert user.effects("fab_book") == 1


async def interruption(user: User) -> None:
    """Unplayed speech is not remembered as said."""
    user.plays_at_once = False
    await user.live.send_text("Tell me a long story about a lighthouse.")
    if user.mode == "voice":
        await user.until(lambda: user.speech)
        user.live.report_playback(user.speech[-1].item, 300)
    else:
        await user.until(lambda: len(user.words) > 40)
    await user.live.interrupt()
    await asyncio.sleep(2)
    user.plays_at_once = True
    await ask(user, "Say the one word: ready.")
    assert "ready" in user.words.lower()


async def renewal(user: User) -> None:
    """A new connection knows the history of the old one."""
    await ask(user, "Remember the word heron.")
    await user.live._loop.connection.renew()
    await ask(user, "Which word did I ask you to remember?")
    assert "heron" in user.words.lower()


CONVERSATIONS: Sequence[Callable[[User], Awaitable[None]]] = (
    parallel_calls,
    refusal,
    confirmation,
    interruption,
    renewal,
)


async def run_conversation(way: ConnectionType, conversation: Callable[[User], Awaitable[None]]) -> None:
    """Run one conversation over one connection type, in its own folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        site = Site(Path(folder) / "site")
        sys.path.insert(0, str(site.folder))
        real = ConnectionType(
            way.provider, way.mode, RealProvider, {**way.table, "api_key_env": KEYS[way.provider]}
        )
        try:
            async with provider_session(real, site, Path(folder), patience=PATIENCE_SECONDS) as user:
                await conversation(user)
        finally:
            sys.path.remove(str(site.folder))
            for name in [name for name in sys.modules if name.startswith("jackfield_tool_fab")]:
                del sys.modules[name]


def main() -> int:
    """Run every conversation over every connection type whose key is set; return the number of failures."""
    parser = argparse.ArgumentParser(prog="nox -s live --", description=__doc__)
    parser.add_argument("ways", nargs="*", help=f"which ways to take: {', '.join(WAYS)} (default: all)")
    options = parser.parse_args()
    ways = {name: WAYS[name] for name in options.ways or WAYS if name != "openai-webrtc"}
    ready = {name: way for name, way in ways.items() if os.environ.get(KEYS[way.provider])}
    if not ready:
        print(f"nothing to do: set {' or '.join(KEYS.values())}")
        return 0
    home, failed = Path.cwd(), 0
    for name, way in ready.items():
        for conversation in CONVERSATIONS:
            try:
                asyncio.run(run_conversation(way, conversation))
            except Exception as error:  # noqa: BLE001 - each is reported, and the others are still held
                failed += 1
                print(f"FAILED {name} {conversation.__name__}: {type(error).__name__}: {error}")
            else:
                print(f"held   {name} {conversation.__name__}")
            os.chdir(home)
    return failed


if __name__ == "__main__":
    sys.exit(main())
