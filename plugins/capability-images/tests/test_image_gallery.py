"""Pictures as files: whole or not at all, for their owner alone, and found by nothing but an id."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.images import ImageOrder
from jackfield_images.gallery import Gallery, NotAnImageError, inspect
from jackfield_images.images import ProviderImages
from jackfield_images.settings import ImagesSettings, ProviderConfig
from jackfield_testkit import ImageServer
from jackfield_testkit.images import png
from PIL import Image


def kept(folder: Path) -> tuple[Gallery, str]:
    gallery = Gallery(folder)
    gallery.prepare()
    made = gallery.keep(png(4, 3), ("image/png", 4, 3), prompt="a \u202e boat", by=("openai", "m"))
    return gallery, made.id


def test_what_a_picture_is_stands_beside_it(tmp_path: Path) -> None:
    gallery, image_id = kept(tmp_path / "new" / "images")
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
    assert gallery.read(image_id) is not None


def test_nobody_else_on_the_machine_may_look(tmp_path: Path) -> None:
    _, image_id = kept(tmp_path / "images")
    assert (tmp_path / "images").stat().st_mode & 0o077 == 0
    for suffix in (".png", ".json"):
        assert (tmp_path / "images" / f"{image_id}{suffix}").stat().st_mode & 0o077 == 0


def test_a_link_in_the_folder_shows_nothing(tmp_path: Path) -> None:
    gallery, image_id = kept(tmp_path / "images")
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    picture = tmp_path / "images" / f"{image_id}.png"
    picture.unlink()
    picture.symlink_to(secret)
    assert gallery.read(image_id) is None


@pytest.mark.parametrize(
    "facts", ["", "{", "[]", "{}", '{"media_type": "text/html"}', '{"media_type": "../../x"}']
)
def test_what_stands_beside_it_is_not_trusted(facts: str, tmp_path: Path) -> None:
    gallery, image_id = kept(tmp_path)
    beside = tmp_path / f"{image_id}.json"
    given = json.loads(beside.read_text("utf-8"))
    changed = json.dumps({**given, **json.loads(facts)}) if facts.startswith('{"') else facts
    beside.write_text(changed)
    assert gallery.read(image_id) is None


def test_half_a_picture_is_none(tmp_path: Path) -> None:
    """What a crash between the two files leaves is not found, and what is tidied away is not missed."""
    gallery, image_id = kept(tmp_path)
    (tmp_path / f"{image_id}.json").unlink()
    assert gallery.read(image_id) is None
    gallery, image_id = kept(tmp_path)
    (tmp_path / f"{image_id}.png").unlink()
    assert gallery.read(image_id) is None


def test_a_full_disk_leaves_no_part_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery = Gallery(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        gallery.keep(png(4, 3), ("image/png", 4, 3), prompt="x", by=("openai", "m"))
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


def test_what_cannot_be_kept_is_not_ordered(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("a file where the folder should be")
    with ImageServer() as server:
        error = failure(made_of(server, tmp_path / "images"))
        assert (error.type, error.partial_side_effects) == (ErrorType.TRANSIENT, False)
        assert str(tmp_path) not in error.message
        assert server.requests == []


def test_what_was_paid_for_and_cannot_be_kept_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Gallery, "keep", full)
    with ImageServer() as server:
        error = failure(made_of(server, tmp_path))
    assert (error.type, error.partial_side_effects) == (ErrorType.TRANSIENT, True)


@pytest.mark.parametrize(
    ("name", "media_type"), [("png", "image/png"), ("jpeg", "image/jpeg"), ("webp", "image/webp")]
)
def test_the_type_is_what_it_is_and_not_what_is_said(name: str, media_type: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{name}"
    Image.new("RGB", (30, 20), "teal").save(path)
    assert inspect(path.read_bytes()) == (media_type, 30, 20)


@pytest.mark.parametrize("name", ["png", "jpeg", "webp", "gif"])
def test_a_file_that_ends_early_is_no_picture(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{name}"
    Image.effect_noise((200, 200), 60).convert("RGB").save(path)
    content = path.read_bytes()
    with pytest.raises(NotAnImageError):
        inspect(content[: len(content) // 2])


@pytest.mark.parametrize("name", ["tiff", "bmp", "ico", "pdf"])
def test_other_formats_are_not_shown(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{name}"
    Image.new("RGB", (30, 20), "teal").save(path)
    with pytest.raises(NotAnImageError, match="no PNG, JPEG, WebP or GIF"):
        inspect(path.read_bytes())


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(NotAnImageError, match="more than can be shown"):
        inspect(png(40_000, 2_000))
