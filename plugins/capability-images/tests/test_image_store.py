"""Image files: written atomically, private to their owner, and found only by id."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.images import ImageOrder
from jackfield_images.files import ImageFolder
from jackfield_images.image_store import ImageStore, NotAnImageError, inspect
from jackfield_images.images import ProviderImages
from jackfield_images.settings import ImagesSettings, ProviderConfig
from jackfield_testkit import ImageServer
from jackfield_testkit.images import png
from PIL import Image


def kept(folder: Path) -> tuple[ImageStore, str]:
    image_store = ImageStore(ImageFolder(folder), 2**20)
    image_store.prepare()
    made = image_store.keep(png(4, 3), ("image/png", 4, 3), prompt="a \u202e boat", by=("openai", "m"))
    return image_store, made.id


def test_an_image_is_stored_with_its_metadata(tmp_path: Path) -> None:
    image_store, image_id = kept(tmp_path / "new" / "images")
    folder = tmp_path / "new" / "images"
    assert {path.name for path in folder.iterdir()} == {f"{image_id}.png", f"{image_id}.json"}
    facts = json.loads((folder / f"{image_id}.json").read_text("utf-8"))
    assert facts.pop("created").endswith("+00:00")
    assert facts == {
        "id": image_id,
        "media_type": "image/png",
        "width": 4,
        "height": 3,
        "size": len(png(4, 3)),
        "prompt": "a \u202e boat",
        "provider": "openai",
        "model": "m",
    }
    assert image_store.read(image_id) is not None


def test_image_files_are_private_to_their_owner(tmp_path: Path) -> None:
    _, image_id = kept(tmp_path / "images")
    assert (tmp_path / "images").stat().st_mode & 0o077 == 0
    for suffix in (".png", ".json"):
        assert (tmp_path / "images" / f"{image_id}{suffix}").stat().st_mode & 0o077 == 0


def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    image_store, image_id = kept(tmp_path / "images")
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    picture = tmp_path / "images" / f"{image_id}.png"
    picture.unlink()
    picture.symlink_to(secret)
    assert image_store.read(image_id) is None


@pytest.mark.parametrize(
    "facts", ["", "{", "[]", "{}", '{"media_type": "text/html"}', '{"media_type": "../../x"}']
)
def test_stored_metadata_is_not_trusted(facts: str, tmp_path: Path) -> None:
    image_store, image_id = kept(tmp_path)
    beside = tmp_path / f"{image_id}.json"
    given = json.loads(beside.read_text("utf-8"))
    changed = json.dumps({**given, **json.loads(facts)}) if facts.startswith('{"') else facts
    beside.write_text(changed)
    assert image_store.read(image_id) is None


def test_an_incomplete_image_is_not_found(tmp_path: Path) -> None:
    """The leftovers of a crash between the two writes are not found, and removed images are not an error."""
    image_store, image_id = kept(tmp_path)
    (tmp_path / f"{image_id}.json").unlink()
    assert image_store.read(image_id) is None
    image_store, image_id = kept(tmp_path)
    (tmp_path / f"{image_id}.png").unlink()
    assert image_store.read(image_id) is None


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image_store = ImageStore(ImageFolder(tmp_path), 2**20)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        image_store.keep(png(4, 3), ("image/png", 4, 3), prompt="x", by=("openai", "m"))
    assert list(tmp_path.iterdir()) == []


def made_of(server: ImageServer, folder: Path) -> ProviderImages:
    settings = ImagesSettings("openai", base_url=server.openai_url, folder=folder)
    return ProviderImages(ProviderConfig.of(settings))


def failure(images: ProviderImages) -> ToolError:
    async def main() -> None:
        try:
            await images.generate(ImageOrder("a boat"))
        finally:
            await images.close()

    with pytest.raises(ToolError) as raised:
        asyncio.run(main())
    return raised.value


def test_nothing_is_ordered_if_the_folder_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("a file where the folder should be")
    with ImageServer() as server:
        error = failure(made_of(server, tmp_path / "images"))
        assert (error.type, error.partial_side_effects) == (ErrorType.TRANSIENT, False)
        assert str(tmp_path) not in error.message
        assert server.requests == []


def test_a_paid_image_that_cannot_be_stored_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ImageStore, "keep", full)
    with ImageServer() as server:
        error = failure(made_of(server, tmp_path))
    assert (error.type, error.partial_side_effects) == (ErrorType.TRANSIENT, True)


@pytest.mark.parametrize(
    ("name", "media_type"), [("png", "image/png"), ("jpeg", "image/jpeg"), ("webp", "image/webp")]
)
def test_the_media_type_comes_from_the_content(name: str, media_type: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{name}"
    Image.new("RGB", (30, 20), "teal").save(path)
    assert inspect(path.read_bytes()) == (media_type, 30, 20)


@pytest.mark.parametrize("name", ["png", "jpeg", "webp", "gif"])
def test_a_truncated_file_is_not_an_image(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{name}"
    Image.effect_noise((200, 200), 60).convert("RGB").save(path)
    content = path.read_bytes()
    with pytest.raises(NotAnImageError):
        inspect(content[: len(content) // 2])


@pytest.mark.parametrize("name", ["tiff", "bmp", "ico", "pdf"])
def test_other_formats_are_rejected(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{name}"
    Image.new("RGB", (30, 20), "teal").save(path)
    with pytest.raises(NotAnImageError, match="not a PNG, JPEG, WebP or GIF"):
        inspect(path.read_bytes())


def test_a_decompression_bomb_is_rejected() -> None:
    with pytest.raises(NotAnImageError, match="more than can be shown"):
        inspect(png(40_000, 2_000))
