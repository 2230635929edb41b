"""The model behind `generateContent`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from jackfield_testkit.providers.gemini.text_exchange import TextExchange
from jackfield_testkit.providers.gemini.violations import Violations
from jackfield_testkit.providers.gemini.wording import HTTP_ERRORS, encode
from jackfield_testkit.providers.model import Call, Heard, cut
from jackfield_testkit.providers.requests import RequestModel

SIGNED = "thoughtSignature"


class TextModel(RequestModel[TextExchange]):
    """Plays one conversation, which is a row of requests that each repeat what was said before."""

    def __init__(self, violations: Violations, *, call_ids: bool = True) -> None:
        super().__init__()
        self.signatures: dict[str, str] = {}
        """The signature that each call was made with."""
        self._violations = violations
        self._call_ids = call_ids

    def take(self, exchange: TextExchange) -> None:
        """The next request of the conversation; one that lost a signature is refused, as Gemini does."""
        if wrong := self._wrong(exchange):
            self.exchanges.append(exchange)
            self._violations.note(wrong)
            exchange.fail(400, wrong)
        else:
            super().take(exchange)

    @property
    def instructions(self) -> str:
        """The system instruction of the last request."""
        parts = (self.exchanges[-1].request.get("systemInstruction") or {}).get("parts") or ()
        return "\n".join(part.get("text", "") for part in parts)

    @property
    def tools(self) -> Mapping[str, Any]:
        """The function declarations of the last request."""
        declared = (
            each.get("functionDeclarations") or () for each in self.exchanges[-1].request.get("tools") or ()
        )
        return {each["name"]: each for declarations in declared for each in declarations}

    @property
    def received(self) -> list[Mapping[str, Any]]:
        """The last request's contents, which hold all before them."""
        return list(self.exchanges[-1].contents)

    async def hears(self) -> Heard:
        """Wait for a request."""
        exchange = await self._next()
        texts: list[str] = []
        for content in reversed(exchange.contents):
            if content.get("role") == "model":
                break
            texts += [part["text"] for part in reversed(content.get("parts") or ()) if "text" in part]
        return Heard(text="\n".join(reversed(texts)))

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Write an answer and end it; its last piece is signed, and empty, as Gemini's often is."""
        exchange = self._current or await self._next()
        words = 0
        for piece in cut(text, pieces):
            words += len(piece.split())
            exchange.send({"text": piece}, words=words)
            # Lets what was sent go out, and a client that has left be noticed.
            await asyncio.sleep(0)
        exchange.send({"text": "", SIGNED: encode(b"said")}, finish="STOP", words=words)
        self._current = None

    async def thinks(self, thought: str) -> None:
        """Show a thought, which is not for the user."""
        exchange = self._current or await self._next()
        exchange.send({"text": thought, "thought": True})

    async def stops(self, finish: str, said: str = "") -> None:
        """End the answer for a reason of `FinishReason`."""
        exchange = self._current or await self._next()
        exchange.send(*([{"text": said}] if said else []), finish=finish)
        self._current = None

    async def blocks(self, reason: str = "PROHIBITED_CONTENT") -> None:
        """Refuse the question itself."""
        exchange = self._current or await self._next()
        exchange.block(reason)
        self._current = None

    async def calls(self, *calls: Call, taken_back: bool = False) -> dict[str, Any]:
        """Call functions, one a chunk, the first one signed; malformed arguments end the answer."""
        exchange = self._current or await self._next()
        made = [self._made_of(call) for call in calls]
        well_formed = all(isinstance(each["args"], dict) for each in made)
        for number, each in enumerate(made if well_formed else ()):
            sent = each if self._call_ids else {key: value for key, value in each.items() if key != "id"}
            part: dict[str, Any] = {"functionCall": sent}
            if number == 0:
                part[SIGNED] = self.signatures[each["id"]] = encode(f"thought of {each['id']}".encode())
            exchange.send(part)
            await asyncio.sleep(0)
        exchange.send(finish="MALFORMED_FUNCTION_CALL" if taken_back or not well_formed else "STOP")
        self._current = None
        if taken_back or not well_formed:
            for each in made:
                self.signatures.pop(each["id"], None)
            return {}
        return await self._answers([each["id"] for each in made])

    async def errs(self, code: str, message: str = "") -> None:
        """Answer with an error."""
        exchange = self._current or await self._next()
        status, words = HTTP_ERRORS[code]
        exchange.fail(status, f"{words} {message}".rstrip())
        self._current = None

    def _answer_nothing(self, exchange: TextExchange) -> None:
        exchange.send(finish="STOP")

    async def _answers(self, made: list[str]) -> dict[str, Any]:
        exchange = await self._next()
        place = max(n for n, each in enumerate(exchange.contents) if each.get("role") == "model")
        parts = [part for content in exchange.contents[place + 1 :] for part in content.get("parts") or ()]
        answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        self._envelopes |= (found := dict(zip(made, answers, strict=True)))
        return found

    def _wrong(self, exchange: TextExchange) -> str:
        """What Gemini would refuse; empty when there is nothing."""
        contents = exchange.contents
        shown = [part.get(SIGNED) for each in contents for part in each.get("parts") or () if SIGNED in part]
        lost = [
            call
            for call, signature in self.signatures.items()
            if _standard(signature) not in map(_standard, shown)
        ]
        if lost:
            return f"Function call is missing a thought_signature in functionCall parts: {lost}"
        for place, content in enumerate(contents):
            asked = [part["functionCall"] for part in content.get("parts") or () if "functionCall" in part]
            after = contents[place + 1].get("parts") if place + 1 < len(contents) else ()
            answered = [part["functionResponse"] for part in after or () if "functionResponse" in part]
            if asked and [each.get("name") for each in asked] != [each.get("name") for each in answered]:
                return "The number of function response parts has to equal that of the function call parts."
        return ""

    def _made_of(self, call: Call) -> dict[str, Any]:
        self._made += 1
        args: Any = call.arguments
        if isinstance(args, str):
            try:
                args = orjson.loads(args)
            except orjson.JSONDecodeError:
                args = None
        return {"id": call.id or f"function-call-{self._made}", "name": call.tool, "args": args}


def _standard(data: str) -> str:
    return data.replace("-", "+").replace("_", "/").rstrip("=")
