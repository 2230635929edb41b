"""A host calls frozen tools on their servers: results, limits, cancellation, and servers that die."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType
from shop_deployment import READS, Host, Shop, http_shop, until

ERAS = pytest.mark.parametrize("era", ["old", "new"])


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the registry, which is the same for both eras."""
    shop = Shop(tmp_path_factory.mktemp("frozen"))
    shop.freeze()
    return shop.settings.registry


@pytest.fixture
def era() -> str:
    return "new"


@pytest.fixture
def shop(frozen: Path, era: str, tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, era)
    shutil.copy(frozen, shop.settings.registry)
    return shop


@ERAS
async def test_tools_are_called_by_their_original_names_with_every_kind_of_result(shop: Shop) -> None:
    shop.use_new_python()
    async with shop.host() as host:
        assert (await host.call("get_price", item="tea")).data == {"cents": 300}
        assert (await host.call("place_order", item="tea")).data == {"text": "ordered tea"}
        tagged = await host.call("tag", tags=[{"name": "color", "value": "red"}])
        assert json.loads(tagged.data["text"]) == {"tags": {"color": "red"}}
        failed = (await host.call("fail")).failure
        assert failed
        assert (failed.type, failed.message, failed.partial_side_effects) == (
            ErrorType.PERMANENT, "out of stock", True,
        )  # fmt: skip
    assert shop.journal() == ["order tea"]


async def test_a_huge_result_is_cut_and_files_are_stored_as_what_they_are(shop: Shop) -> None:
    async with shop.host() as host:
        long = (await host.call("report", length=1_000_000)).data
        assert len(long["text"]) == 256 * 1024
        assert long["truncated"] == "the first 262144 of 1000000 bytes"
        image, blob = (await host.call("picture")).data["attachments"]
        files = host.servers.files
        assert (image["kind"], image["mediaType"]) == ("image", "image/png")
        assert files.read(image["id"])[1].startswith(b"\x89PNG")
        assert (blob["uri"], blob["mediaType"]) == ("file:///a.bin", "application/octet-stream")
        assert files.read(blob["id"])[1] == b"<script>\0"
        assert files.read("../tool_registry") is None


async def test_media_that_a_result_repeats_as_base64_are_references_to_the_stored_file(shop: Shop) -> None:
    async with shop.host() as host:
        data = (await host.call("pictures", structured=True)).data
        (image,) = data["attachments"]
        assert data["items"] == [{"name": "dot", "image": image["url"]}] * 2
        assert data["wrapped"] == image["url"]
        assert base64.b64decode(data["other"]) == b"not the picture" * 8
        written = (await host.call("pictures", structured=False)).data
        url = written["attachments"][0]["url"]
        assert written["text"] == f"A dot: ![dot]({url}) {url}"


@ERAS
async def test_requests_of_the_server_for_input_are_refused(shop: Shop) -> None:
    async with shop.host() as host:
        answer = (await host.call("ask")).failure
    assert answer
    assert answer.type is ErrorType.PERMANENT
    assert (answer.retryable, answer.partial_side_effects) == (False, True)
    assert "asked for input" in answer.message or "Elicitation not supported" in answer.message


async def test_a_program_gets_only_the_named_variables(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SHOP_KEY", "very-secret")
    monkeypatch.setenv("HOST_SECRET", "must-not-leak")
    shop.use_new_python()
    shop.server["pass_env"] = ["SHOP_KEY"]
    caplog.set_level(logging.DEBUG, "jackfield")
    async with shop.host() as host:
        seen = json.loads((await host.call("environment")).data["text"])
    assert seen["SHOP_KEY"] == "very-secret"
    assert "HOST_SECRET" not in seen
    assert "very-secret" not in caplog.text


@ERAS
async def test_a_server_killed_in_a_write_leaves_its_outcome_unknown_and_is_not_called_again(
    shop: Shop,
) -> None:
    async with shop.host() as host:
        call = asyncio.create_task(host.call("hang", call_id="order-0001", item="tea"))
        await until(lambda: any(line.startswith("hang") for line in shop.journal()))
        shop.kill()
        lost = (await call).failure
        assert lost
        assert (lost.type, lost.retryable, lost.partial_side_effects) == (ErrorType.TRANSIENT, False, True)
        assert lost.details == {"outcome": "unknown"}
        # The server is started again, and works; the lost call is not repeated.
        assert (await host.call("get_price", item="tea")).data == {"cents": 300}
    assert len(shop.processes()) == 2
    assert len(shop.journal()) == 1


async def test_a_server_killed_while_idle_is_started_again_before_the_next_call(shop: Shop) -> None:
    shop.use_new_python()
    async with shop.host() as host:
        assert (await host.call("get_price", item="tea")).ok
        shop.kill()
        await until(lambda: host.servers.reports()[0].state != "connected")
        assert (await host.call("place_order", item="tea")).ok
    assert shop.journal() == ["order tea"]


async def test_a_call_that_takes_too_long_is_stopped_and_the_connection_remains(tmp_path: Path) -> None:
    shop = Shop(tmp_path, tools={"hang": {**READS, "timeout_ms": 300}, "get_price": READS})
    shop.freeze()
    async with shop.host() as host:
        assert (await host.call("get_price", item="tea")).ok
        stopped = (await host.call("hang", item="tea")).failure
        assert stopped
        assert stopped.details == {"stopped": "timeout"}
        assert (await host.call("get_price", item="tea")).ok
    assert len(shop.processes()) == 2  # one for the build, one for the host


def is_running(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


async def test_programs_end_with_the_host(shop: Shop) -> None:
    shop.use_new_python()
    async with shop.host() as host:
        await host.call("get_price", item="tea")
        (process,) = shop.processes()
    assert not is_running(process)


@ERAS
async def test_a_restarted_http_server_is_connected_again(era: str, tmp_path: Path) -> None:
    with http_shop(tmp_path, era) as http:
        shop = Shop(tmp_path, era, command=None, url=http.url, connect_timeout=4)
        shop.freeze()
        async with shop.host() as host:
            assert (await host.call("place_order", item="tea")).ok
            http.stop()
            first = (await host.call("place_order", item="milk")).failure
            assert first
            # It may be repeated if it was not delivered. A connection that is still open may have taken it.
            assert first.type is ErrorType.TRANSIENT
            assert first.retryable is not first.partial_side_effects
            second = (await host.call("place_order", item="milk")).failure
            assert second
            assert (second.type, second.retryable, second.partial_side_effects) == (
                ErrorType.TRANSIENT, True, False,
            )  # fmt: skip
            http.start()
            assert (await _until_called(host)).ok
    assert shop.journal() == ["order tea", "order bread"]


async def _until_called(host: Host) -> Any:
    for _ in range(20):
        response = await host.call("place_order", item="bread")
        if response.ok:
            break
    return response


async def test_an_http_server_killed_in_a_write_leaves_its_outcome_unknown(tmp_path: Path) -> None:
    with http_shop(tmp_path, new_python=True) as http:
        shop = Shop(tmp_path, command=None, url=http.url)
        shop.freeze()
        async with shop.host() as host:
            call = asyncio.create_task(host.call("hang", item="tea"))
            await until(lambda: len(shop.journal()) == 1)
            http.stop()
            lost = (await call).failure
    assert lost
    assert (lost.retryable, lost.partial_side_effects) == (False, True)


@ERAS
async def test_refused_credentials_are_reported_with_the_setting_to_check(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "correct")
    with http_shop(tmp_path, era, SHOP_KEY="on") as http:
        shop = Shop(tmp_path, era, command=None, url=http.url, bearer_env="SHOP_TOKEN", connect_timeout=4)
        shop.freeze()
        async with shop.host() as host:
            assert (await host.call("get_price", item="tea")).ok
            (tmp_path / "refused.txt").write_text("403")
            refused = (await host.call("place_order", item="tea")).failure
            assert refused
            assert (refused.type, refused.retryable, refused.partial_side_effects) == (
                ErrorType.PERMANENT, False, False,
            )  # fmt: skip
            assert "refuses the credentials of this host" in refused.message
            await until(lambda: "HTTP 403" in host.servers.reports()[0].reason)
    expected = "it refuses the credentials (HTTP 403); check `bearer_env`: the token in SHOP_TOKEN"
    assert host.servers.reports()[0].reason == expected
    assert expected in caplog.text
    assert "Bearer correct" not in caplog.text
    assert shop.journal() == []
