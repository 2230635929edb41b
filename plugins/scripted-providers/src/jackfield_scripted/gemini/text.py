"""Text over HTTP: requests for content, and the scripted model behind `generateContent`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from jackfield_scripted.gemini.wire_format import HTTP_ERRORS, encode, error_body, function_call
from jackfield_scripted.request_model import PendingRequest, RequestModel
from jackfield_scripted.script import ScriptedCall, UserInput, split_text
from jackfield_scripted.server import Violations

SIGNATURE = "thoughtSignature"


class ContentRequest(PendingRequest):
    """A request for content and the response to it."""

    sse_headers = ((b"content-type", b"text/event-stream"),)
    json_headers = ((b"content-type", b"application/json; charset=UTF-8"),)
    sse_line = b"data: %b\r\n\r\n"

    def __init__(self, model: str, request: Mapping[str, Any], *, streamed: bool) -> None:
        super().__init__(request, streamed=streamed)
        self._model = model

    @property
    def contents(self) -> list[dict[str, Any]]:
        """The conversation so far, as the client sent it."""
        return list(self.request.get("contents") or ())

    def send(self, *parts: Mapping[str, Any], finish: str | None = None, words: int = 0) -> None:
        """Send a piece of the response."""
        candidate: dict[str, Any] = {"index": 0}
        if parts:
            candidate["content"] = {"role": "model", "parts": list(parts)}
        if finish:
            candidate["finishReason"] = finish
        self._send_chunk({"candidates": [candidate], "usageMetadata": self._usage(words)})
        if finish:
            self._finish()

    def block(self, reason: str) -> None:
        """Reject the prompt."""
        self._send_chunk({"promptFeedback": {"blockReason": reason}, "usageMetadata": self._usage(0)})
        self._finish()

    def fail(self, status: int, message: str) -> None:
        """Respond with an error."""
        body = error_body(status, message)
        if self._started:
            body["modelVersion"] = self._model
        self._fail(status, orjson.dumps(body))

    def break_off(self) -> None:
        """Close the connection in the middle of the response."""
        if not self._started:
            self.send({"text": "W"})
        self._break()

    def _send_chunk(self, chunk: dict[str, Any]) -> None:
        self._put(orjson.dumps({**chunk, "modelVersion": self._model}))

    def _join(self, chunks: list[bytes]) -> dict[str, Any]:
        parts: list[Any] = []
        last: dict[str, Any] = {}
        for chunk in chunks:
            last = orjson.loads(chunk)
            for candidate in last.get("candidates", ()):
                parts += candidate.get("content", {}).get("parts", ())
        if parts and "candidates" in last:
            last["candidates"][0]["content"] = {"role": "model", "parts": parts}
        return last

    def _usage(self, words: int) -> dict[str, int]:
        prompt = len(orjson.dumps(self.contents)) // 4 + 1
        return {
            "promptTokenCount": prompt,
            "candidatesTokenCount": words + 1,
            "totalTokenCount": prompt + words + 1,
        }


class TextModel(RequestModel[ContentRequest]):
    """Plays one conversation: a series of requests, each of which repeats the contents before it."""

    def __init__(self, violations: Violations, *, call_ids: bool = True) -> None:
        super().__init__()
        self.signatures: dict[str, str] = {}
        """The thought signature of each call."""
        self._violations = violations
        self._call_ids = call_ids

    def receive(self, request: ContentRequest) -> None:
        """Accept the next request of the conversation; reject one without a signature, as Gemini does."""
        if fault := self._fault(request):
            self.requests.append(request)
            self._violations.add(fault)
            request.fail(400, fault)
        else:
            super().receive(request)

    @property
    def instructions(self) -> str:
        """The system instruction of the latest request."""
        parts = (self.requests[-1].request.get("systemInstruction") or {}).get("parts") or ()
        return "\n".join(part.get("text", "") for part in parts)

    @property
    def tools(self) -> Mapping[str, Any]:
        """The function declarations of the latest request."""
        declared = (
            each.get("functionDeclarations") or () for each in self.requests[-1].request.get("tools") or ()
        )
        return {each["name"]: each for declarations in declared for each in declarations}

    @property
    def received(self) -> list[Mapping[str, Any]]:
        """The contents of the latest request, which include all earlier ones."""
        return list(self.requests[-1].contents)

    async def hears(self) -> UserInput:
        """Wait for a request."""
        request = await self._next_request()
        texts: list[str] = []
        for content in reversed(request.contents):
            if content.get("role") == "model":
                break
            texts += [part["text"] for part in reversed(content.get("parts") or ()) if "text" in part]
        return UserInput(text="\n".join(reversed(texts)))

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Send a complete response; its last piece is empty and signed, as Gemini's often is."""
        request = await self._open_request()
        words = 0
        for piece in split_text(text, pieces):
            words += len(piece.split())
            request.send({"text": piece}, words=words)
            # Lets the server send the piece and notice a disconnect.
            await asyncio.sleep(0)
        request.send({"text": "", SIGNATURE: encode(b"said")}, finish="STOP", words=words)
        self._current = None

    async def thinks(self, thought: str) -> None:
        """Send a thought, which is not for the user."""
        request = await self._open_request()
        request.send({"text": thought, "thought": True})

    async def stops(self, finish: str, text: str = "") -> None:
        """End the response with a reason from `FinishReason`."""
        request = await self._open_request()
        request.send(*([{"text": text}] if text else []), finish=finish)
        self._current = None

    async def blocks(self, reason: str = "PROHIBITED_CONTENT") -> None:
        """Reject the prompt."""
        request = await self._open_request()
        request.block(reason)
        self._current = None

    async def calls(self, *calls: ScriptedCall, incomplete: bool = False) -> dict[str, Any]:
        """Call functions, one per chunk, the first one signed; malformed arguments end the response."""
        request = await self._open_request()
        made = [self._function_call(call) for call in calls]
        well_formed = all(isinstance(each["args"], dict) for each in made)
        for number, each in enumerate(made if well_formed else ()):
            sent = each if self._call_ids else {key: value for key, value in each.items() if key != "id"}
            part: dict[str, Any] = {"functionCall": sent}
            if number == 0:
                part[SIGNATURE] = self.signatures[each["id"]] = encode(f"thought of {each['id']}".encode())
            request.send(part)
            await asyncio.sleep(0)
        request.send(finish="MALFORMED_FUNCTION_CALL" if incomplete or not well_formed else "STOP")
        self._current = None
        if incomplete or not well_formed:
            for each in made:
                self.signatures.pop(each["id"], None)
            return {}
        return await self._read_results([each["id"] for each in made])

    async def fails(self, code: str, message: str = "") -> None:
        """Respond with an error."""
        request = await self._open_request()
        status, sentence = HTTP_ERRORS[code]
        request.fail(status, f"{sentence} {message}".rstrip())
        self._current = None

    def _send_empty(self, request: ContentRequest) -> None:
        request.send(finish="STOP")

    async def _read_results(self, call_ids: list[str]) -> dict[str, Any]:
        request = await self._next_request()
        place = max(n for n, each in enumerate(request.contents) if each.get("role") == "model")
        parts = [part for content in request.contents[place + 1 :] for part in content.get("parts") or ()]
        answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        self._envelopes |= (found := dict(zip(call_ids, answers, strict=True)))
        return found

    def _fault(self, request: ContentRequest) -> str:
        """Return why Gemini would reject the request; empty if it would not."""
        contents = request.contents
        shown = [
            part.get(SIGNATURE) for each in contents for part in each.get("parts") or () if SIGNATURE in part
        ]
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

    def _function_call(self, call: ScriptedCall) -> dict[str, Any]:
        self._call_count += 1
        return function_call(call, f"function-call-{self._call_count}")


def _standard(data: str) -> str:
    return data.replace("-", "+").replace("_", "/").rstrip("=")
