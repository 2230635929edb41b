"""Images in an object store that several hosts share: a real S3 server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from image_object_server import BUCKET, SECRET, ObjectServer, free_ports
from jackfield import ErrorType, ToolError
from jackfield.settings import SettingsError, parse_offer
from jackfield_capability_types.images import ImageOrder, StoredImage
from jackfield_images import jackfield_capabilities
from jackfield_images.endpoint import create_routes
from jackfield_images.images import ProviderImages
from jackfield_images.settings import ImagesSettings, ProviderConfig
from jackfield_testkit import ImagesContractTests, ImageServer
from starlette.applications import Starlette


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with ObjectServer(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the bucket, whose credentials are in the environment."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/shown"


def images(server: ImageServer, url: str) -> ProviderImages:
    return ProviderImages(ProviderConfig.of(ImagesSettings("openai", base_url=server.openai_url, url=url)))


async def generate(made: ProviderImages) -> StoredImage:
    (image,) = await made.generate(ImageOrder("a boat"))
    return image


def client(made: ProviderImages) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=Starlette(routes=create_routes(made)))
    return httpx.AsyncClient(transport=transport, base_url="http://host")


def test_an_image_of_one_host_is_served_by_another(bucket: str) -> None:
    async def main() -> None:
        with ImageServer() as server:
            first, second = images(server, bucket), images(server, bucket)
            image = await generate(first)
            async with client(second) as browser:
                shown = await browser.get(f"/images/{image.id}")
            assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
            assert len(shown.content) == image.size
            assert shown.headers["cache-control"].startswith("private")
            found = await second.read(image.id)
            assert found is not None
            assert found[0] == image
            assert await second.read("0" * 32) is None
            for each in (first, second):
                await each.close()

    asyncio.run(main())


def test_a_bucket_that_is_away_is_a_clear_error_and_nothing_is_ordered(
    bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")

    async def main() -> None:
        with ImageServer() as server:
            made = images(server, bucket)
            with pytest.raises(ToolError) as refused:
                await generate(made)
            assert (refused.value.type, refused.value.partial_side_effects) == (ErrorType.TRANSIENT, False)
            assert server.requests == []
            async with client(made) as browser:
                away = await browser.get(f"/images/{'0' * 32}")
            assert (away.status_code, away.json()["error"]["code"]) == (503, "images_unavailable")
            assert away.headers["retry-after"]
            await made.close()

    asyncio.run(main())
    assert bucket in caplog.text
    assert SECRET not in caplog.text


def test_wrong_credentials_are_an_error_for_the_operator(
    bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret-entirely")

    async def main() -> None:
        with ImageServer() as server:
            made = images(server, bucket)
            with pytest.raises(ToolError):
                await generate(made)
            assert server.requests == []
            await made.close()

    asyncio.run(main())
    assert "images cannot be stored" in caplog.text
    assert "another-secret" not in caplog.text


def test_an_object_that_is_too_large_is_not_read(bucket: str) -> None:
    async def main() -> None:
        with ImageServer() as server:
            made = images(server, bucket)
            image = await generate(made)
            await made.close()
            settings = ImagesSettings("openai", base_url=server.openai_url, url=bucket, max_bytes=10)
            smaller = ProviderImages(ProviderConfig.of(settings))
            assert await smaller.read(image.id) is None
            await smaller.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "url", ["s3://key:secret@bucket", "s3://bucket?token=1", "http://bucket", "file:///tmp", "s3://", "x"]
)
def test_a_url_with_credentials_or_of_another_kind_is_refused(url: str) -> None:
    (offer,) = jackfield_capabilities()
    with pytest.raises(SettingsError, match=r"url: expected a URL such as s3://BUCKET/PREFIX"):
        parse_offer("capabilities", offer, {"url": url})


class TestBucketImages(ImagesContractTests):
    """The contract that a folder fulfils holds for a bucket too."""

    @pytest.fixture(autouse=True)
    def _servers(self, bucket: str) -> Iterator[None]:
        with ImageServer() as server:
            self.url, self.server = bucket, server
            yield

    async def create_images(self, folder: Path, provider: str) -> ProviderImages:
        if provider == "refusing":
            refusal = {"code": "moderation_blocked", "type": "image_generation_user_error", "message": "No."}
            self.server.respond_with(400, {"error": refusal})
        base_url = "http://127.0.0.1:1/v1" if provider == "unreachable" else self.server.openai_url
        settings = ImagesSettings("openai", base_url=base_url, url=f"{self.url}/{folder.name}")
        return ProviderImages(ProviderConfig.of(settings))
