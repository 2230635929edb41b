"""Orders through the official packages to a server on a real socket: images, refusals, failures, silence."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield.settings import parse_settings
from jackfield_capability_types.images import ImageOrder, Images, StoredImage
from jackfield_images.images import ProviderImages
from jackfield_images.settings import ImagesSettings, ProviderConfig
from jackfield_testkit import ImagesContractTests, ImageServer
from jackfield_testkit.images import png

# Google's package has an invalid escape in its source, which shows only if it was not compiled before.
pytestmark = pytest.mark.filterwarnings("ignore:.*invalid escape sequence")

KEY = "sk-test-0123456789abcdef"
PROVIDERS = ["openai", "gemini", "imagen"]
MODELS = {"openai": "gpt-image-2", "gemini": "gemini-3.1-flash-image", "imagen": "imagen-4.0-generate-001"}
ORDER = ImageOrder("a lighthouse", avoid="people")


@pytest.fixture
def server() -> Iterator[ImageServer]:
    with ImageServer() as server:
        yield server


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEST_KEY", KEY)


def images(kind: str, server: ImageServer | str, folder: Path, **settings: Any) -> ProviderImages:
    address = server
    if isinstance(server, ImageServer):
        address = server.openai_url if kind == "openai" else server.url
    given = {
        "provider": "openai" if kind == "openai" else "gemini",
        "model": MODELS[kind],
        "api_key_env": "TEST_KEY",
        "base_url": address,
        "folder": str(folder),
        **settings,
    }
    return ProviderImages(ProviderConfig.of(parse_settings(ImagesSettings, given, "[capabilities.images]")))


def generate(made: ProviderImages, order: ImageOrder = ORDER) -> Sequence[StoredImage]:
    async def main() -> Sequence[StoredImage]:
        try:
            return await made.generate(order)
        finally:
            await made.close()

    return asyncio.run(main())


def refused(made: ProviderImages, order: ImageOrder = ORDER) -> ToolError:
    with pytest.raises(ToolError) as raised:
        generate(made, order)
    return raised.value


def openai_error(code: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": f"said with {KEY}", "type": kind, "param": None, "code": code}}


def google_error(status: int, name: str, *details: dict[str, Any]) -> dict[str, Any]:
    said = f"said with {KEY}"
    return {"error": {"code": status, "message": said, "status": name, "details": list(details)}}


# The conformance suite, over each of the three protocols.


class ProviderContract(ImagesContractTests, abstract=True):
    kind = ""

    @pytest.fixture(autouse=True)
    def _server(self, server: ImageServer) -> None:
        self.server = server

    async def create_images(self, folder: Path, provider: str) -> Images:
        if provider == "unreachable":
            return images(self.kind, "http://127.0.0.1:1/v1", folder)
        if provider == "refusing":
            self.server.respond_with(*REFUSAL[self.kind])
        return images(self.kind, self.server, folder)


REFUSAL: dict[str, tuple[int, Any]] = {
    "openai": (400, openai_error("moderation_blocked", "image_generation_user_error")),
    "gemini": (200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
    "imagen": (200, {"predictions": [{"raiFilteredReason": "Unable to show generated images."}]}),
}


class TestOpenAI(ProviderContract):
    kind = "openai"


class TestGemini(ProviderContract):
    kind = "gemini"


class TestImagen(ProviderContract):
    kind = "imagen"


# Requests


def test_openai_gets_its_own_request_format(server: ImageServer, tmp_path: Path) -> None:
    order = ImageOrder("a boat", avoid="text", shape="landscape", quality="high", count=2)
    generate(images("openai", server, tmp_path), order)
    (request,) = server.requests
    assert request.path == "/v1/images/generations"
    assert (
        request.headers["authorization" if "authorization" in request.headers else "Authorization"]
        == f"Bearer {KEY}"
    )
    assert request.body == {
        "model": "gpt-image-2",
        "prompt": "a boat\n\nAvoid: text",
        "n": 2,
        "size": "1536x1024",
        "quality": "high",
    }


def test_gemini_gets_one_request_for_each_image(server: ImageServer, tmp_path: Path) -> None:
    order = ImageOrder("a boat", shape="portrait", quality="high", count=3)
    assert len(generate(images("gemini", server, tmp_path), order)) == 3
    assert len(server.requests) == 3
    for request in server.requests:
        assert request.path.endswith("/models/gemini-3.1-flash-image:generateContent")
        assert request.headers["x-goog-api-key"] == KEY
        assert request.body["contents"][0]["parts"] == [{"text": "a boat"}]
        config = request.body["generationConfig"]
        assert config == {
            "responseModalities": ["IMAGE"],
            "imageConfig": {"aspectRatio": "2:3", "imageSize": "2K"},
        }


def test_imagen_gets_one_request_for_all_images(server: ImageServer, tmp_path: Path) -> None:
    generate(images("imagen", server, tmp_path), ImageOrder("a boat", shape="landscape", count=2))
    (request,) = server.requests
    assert request.path.startswith("/v1beta1/publishers/google/models/imagen-4.0-generate-001:predict")
    assert request.body["instances"] == [{"prompt": "a boat"}]
    assert request.body["parameters"]["sampleCount"] == 2
    assert request.body["parameters"]["aspectRatio"] == "4:3"


def test_the_prompt_revised_by_the_provider_is_stored(server: ImageServer, tmp_path: Path) -> None:
    picture = base64.b64encode(png(8, 8)).decode()
    server.respond_with(200, {"created": 1, "data": [{"b64_json": picture, "revised_prompt": "a fine boat"}]})
    (kept,) = generate(images("openai", server, tmp_path), ImageOrder("boat"))
    assert kept.prompt == "a fine boat"


def test_a_server_without_authentication_needs_no_key(
    server: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_KEY")
    for kind in PROVIDERS:
        assert generate(images(kind, server, tmp_path))


# Failures

QUOTA = {"@type": "type.googleapis.com/google.rpc.QuotaFailure"}
DELAY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    ("kind", "status", "body", "expected"),
    [
        ("openai", 401, openai_error("invalid_api_key"), ErrorType.AUTH),
        ("openai", 403, openai_error("unsupported_country"), ErrorType.AUTH),
        ("openai", 400, openai_error("moderation_blocked"), ErrorType.PERMANENT),
        ("openai", 400, openai_error("content_policy_violation"), ErrorType.PERMANENT),
        ("openai", 400, openai_error("invalid_value"), ErrorType.PERMANENT),
        ("openai", 404, openai_error("model_not_found"), ErrorType.PERMANENT),
        ("openai", 429, openai_error("insufficient_quota"), ErrorType.RATE_LIMIT),
        ("openai", 400, openai_error("billing_hard_limit_reached"), ErrorType.RATE_LIMIT),
        ("openai", 500, openai_error("server_error"), ErrorType.TRANSIENT),
        ("openai", 503, b"<html>overloaded</html>", ErrorType.TRANSIENT),
        ("gemini", 400, google_error(400, "INVALID_ARGUMENT", BAD_KEY), ErrorType.AUTH),
        ("gemini", 403, google_error(403, "PERMISSION_DENIED"), ErrorType.AUTH),
        ("gemini", 400, google_error(400, "INVALID_ARGUMENT"), ErrorType.PERMANENT),
        ("gemini", 404, google_error(404, "NOT_FOUND"), ErrorType.PERMANENT),
        ("gemini", 500, google_error(500, "INTERNAL"), ErrorType.TRANSIENT),
        ("gemini", 503, b"overloaded", ErrorType.TRANSIENT),
        ("gemini", 200, {"candidates": [{"finishReason": "IMAGE_SAFETY"}]}, ErrorType.PERMANENT),
        ("gemini", 200, {"promptFeedback": {"blockReason": "SAFETY"}}, ErrorType.PERMANENT),
        ("gemini", 200, {"candidates": [{"finishReason": "NO_IMAGE"}]}, ErrorType.TRANSIENT),
        ("gemini", 200, {}, ErrorType.TRANSIENT),
        ("imagen", 401, google_error(401, "UNAUTHENTICATED"), ErrorType.AUTH),
        ("imagen", 200, {}, ErrorType.PERMANENT),
        ("openai", 200, {"created": 1, "data": []}, ErrorType.TRANSIENT),
        ("openai", 200, b"{not json", ErrorType.TRANSIENT),
        ("gemini", 200, b"{not json", ErrorType.TRANSIENT),
    ],
)
def test_provider_failures_map_to_error_types_without_secrets(
    kind: str, status: int, body: Any, expected: ErrorType, server: ImageServer, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG, "jackfield.images")
    server.respond_with(status, body)
    error = refused(images(kind, server, tmp_path))
    assert error.type is expected
    assert error.suggestion
    assert len(server.requests) == 1, "the package tried again by itself"
    assert KEY not in caplog.text
    assert KEY not in repr((error.args, error.message, error.suggestion, error.details))
    # Only possible charges are reported.
    assert error.partial_side_effects is (expected is ErrorType.TRANSIENT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "body", "headers", "seconds"),
    [
        ("openai", openai_error("rate_limit_exceeded"), {"Retry-After": "12"}, 12.0),
        ("openai", openai_error("rate_limit_exceeded"), {}, None),
        ("openai", openai_error("rate_limit_exceeded"), {"Retry-After": "soon"}, None),
        (
            "openai",
            openai_error("rate_limit_exceeded"),
            {"Retry-After": "Thu, 01 Jan 2026 00:00:00 GMT"},
            0.0,
        ),
        ("gemini", google_error(429, "RESOURCE_EXHAUSTED", QUOTA, DELAY), {}, 37.5),
        ("gemini", google_error(429, "RESOURCE_EXHAUSTED"), {"Retry-After": "5"}, 5.0),
        ("imagen", google_error(429, "RESOURCE_EXHAUSTED"), {}, None),
    ],
)
def test_a_busy_provider_reports_the_retry_delay(
    kind: str, body: Any, headers: dict[str, str], seconds: float | None, server: ImageServer, tmp_path: Path
) -> None:
    server.respond_with(429, body, headers)
    error = refused(images(kind, server, tmp_path))
    assert error.type is ErrorType.RATE_LIMIT
    assert error.retryable
    assert error.details == (None if seconds is None else {"retryAfterSeconds": seconds})
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_silent_provider_times_out_with_possible_charges(
    kind: str, server: ImageServer, tmp_path: Path
) -> None:
    server.stall()
    error = refused(images(kind, server, tmp_path, timeout=1))
    assert error.type is ErrorType.TRANSIENT
    assert (error.retryable, error.partial_side_effects) == (False, True)
    assert "1 seconds" in error.message


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("damage", ["text", "svg", "cut", "empty", "large", "broken base64"])
def test_data_that_is_not_an_image_is_rejected_and_not_stored(
    kind: str, damage: str, server: ImageServer, tmp_path: Path
) -> None:
    whole = png(400, 300, (200, 10, 90))
    contents = {
        "text": b"<html>This is no picture</html>",
        "svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "large": png(64, 64) + b"\x00" * 5000,
    }
    if damage in contents:
        server.content = contents[damage]
    else:
        server.encoded = base64.b64encode(whole).decode()[:-7] + "%%"
    error = refused(images(kind, server, tmp_path, max_bytes=4000))
    assert error.type in (ErrorType.TRANSIENT, ErrorType.PERMANENT)
    assert error.partial_side_effects or (kind, damage) == ("imagen", "empty")
    assert list(tmp_path.iterdir()) == []


def test_images_that_arrived_are_stored_if_others_fail(server: ImageServer, tmp_path: Path) -> None:
    server.respond_with(500, google_error(500, "INTERNAL"))
    assert len(generate(images("gemini", server, tmp_path), ImageOrder("a boat", count=3))) == 2
    good, bad = base64.b64encode(png(8, 8)).decode(), base64.b64encode(b"no picture").decode()
    server.respond_with(200, {"created": 1, "data": [{"b64_json": bad}, {"b64_json": good}]})
    assert len(generate(images("openai", server, tmp_path), ImageOrder("a boat", count=2))) == 1


def test_a_cancelled_call_ends(server: ImageServer, tmp_path: Path) -> None:
    server.stall()
    made = images("openai", server, tmp_path)

    async def main() -> None:
        task = asyncio.create_task(made.generate(ORDER))
        await asyncio.to_thread(server.received.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await made.close()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", PROVIDERS)
def test_images_can_be_generated_concurrently(kind: str, server: ImageServer, tmp_path: Path) -> None:
    made = images(kind, server, tmp_path)

    async def main() -> list[str]:
        answers = await asyncio.gather(*(made.generate(ORDER) for _ in range(8)))
        await made.close()
        return [each.id for answer in answers for each in answer]

    assert len(set(asyncio.run(main()))) == 8
