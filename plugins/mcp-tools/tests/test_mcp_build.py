"""A build lists the tools of servers, and freezes them under the operator's decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jackfield.contract.snapshot import Snapshot
from jackfield_builder.findings import CheckCode
from jackfield_builder.pipeline import BuildResult, build
from shop_deployment import Shop, http_shop


def codes(built: BuildResult) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in built.findings:
        found.setdefault(each.code.id, []).append(f"{each.subject}: {each.message}")
    return found


def test_the_tools_of_all_pages_are_frozen_with_a_prefix(tmp_path: Path) -> None:
    built = Shop(tmp_path).build()

    assert built.snapshot
    assert sorted(built.snapshot.tools) == [
        "shop__ask", "shop__change", "shop__compose", "shop__environment", "shop__fail", "shop__get_price",
        "shop__hang", "shop__picture", "shop__pictures", "shop__place_order", "shop__read_meta",
        "shop__report", "shop__show_meta", "shop__sound", "shop__survey", "shop__tag",
    ]  # fmt: skip
    origin = built.snapshot.tools["shop__place_order"].origin
    assert origin is not None
    assert (origin["server"], origin["tool"]) == ("shop", "placeOrder")
    assert origin["definition"]["description"] == "Places an order."


def test_both_eras_and_both_transports_give_the_same_registry(tmp_path: Path) -> None:
    versions = {era: Shop(tmp_path, era).build().snapshot for era in ("old", "new")}
    with http_shop(tmp_path) as http:
        versions["http"] = Shop(tmp_path, command=None, url=http.url).build().snapshot

    assert len({snapshot.version for snapshot in versions.values() if snapshot}) == 1
    assert all(versions.values())


def test_a_tool_without_overrides_writes_and_asks_whatever_the_server_hints(tmp_path: Path) -> None:
    built = Shop(tmp_path).build()

    assert built.snapshot
    manifest = built.snapshot.tools["shop__place_order"].manifest
    assert built.snapshot.tools["shop__place_order"].origin["definition"]["annotations"] == {  # type: ignore[index]
        "readOnlyHint": True
    }
    assert (manifest.side_effects, manifest.idempotent, manifest.requires_confirmation) == (
        "writes", False, True,
    )  # fmt: skip


def test_overrides_of_a_tool_win_over_those_of_its_server(tmp_path: Path) -> None:
    tools = {"get_price": {"category": "retrieval", "allowed_modes": ["text"], "timeout_ms": 500}}
    defaults = {"requires_confirmation": "policy", "rate_limit": {"calls": 2, "window_ms": 1000}}
    shop = Shop(tmp_path, tools=tools, defaults={**defaults, "roles": ["staff"], "latency_budget_ms": 400})

    snapshot = shop.build().snapshot

    assert snapshot
    price, order = (snapshot.tools[f"shop__{each}"].manifest for each in ("get_price", "place_order"))
    assert (price.category, price.allowed_modes, price.timeout_ms) == ("retrieval", ("text",), 500)
    assert (order.category, order.requires_confirmation) == ("action", "policy")
    assert order.rate_limit == price.rate_limit == (2, 1000)
    assert order.availability == {"user": {"roles": ["staff"]}}


def test_allow_and_deny_lists_select_tools_by_their_names_on_the_server(tmp_path: Path) -> None:
    snapshot = Shop(tmp_path, allow=["*e*"], deny=["place*", "f*"], tools={}).build().snapshot

    assert snapshot
    assert sorted(snapshot.tools) == [
        "shop__change", "shop__compose", "shop__environment", "shop__get_price", "shop__picture",
        "shop__pictures", "shop__read_meta", "shop__report", "shop__show_meta", "shop__survey",
    ]  # fmt: skip


def test_an_override_for_a_tool_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    built = Shop(tmp_path, tools={"get_prize": {"category": "retrieval"}}).build()

    assert codes(built)["JF036"] == ["shop: [capabilities.mcp.servers.shop.tools.get_prize]"]


def test_a_server_that_ends_is_an_error_with_its_last_words_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "very-secret")
    shop = Shop(tmp_path, pass_env=["SHOP_KEY"], environment={"SHOP_BROKEN": "1"}, tools={})
    shop.use_new_python()

    built = shop.build()

    assert built.snapshot is None
    (message,) = codes(built)["JF031"]
    assert "no stock today" in message
    assert "the key is [SHOP_KEY]" in message
    assert "very-secret" not in message


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"command": ["no-such-program-here"]}, "the program 'no-such-program-here' was not found"),
        ({"command": None, "url": "http://127.0.0.1:9/mcp"}, "(http://127.0.0.1:9/mcp)"),
        ({"pass_env": ["SHOP_UNSET"]}, "set the environment variable SHOP_UNSET"),
    ],
)
def test_a_server_that_cannot_be_reached_is_an_error_that_says_why(
    server: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    built = Shop(tmp_path, tools={}, **server).build()

    assert built.snapshot is None
    assert expected in codes(built)["JF031"][0]


def test_an_optional_server_is_left_out_with_a_warning(tmp_path: Path) -> None:
    shop = Shop(tmp_path, command=["no-such-program-here"], tools={}, optional=True)

    assert "shop" in codes(shop.build())["JF032"][0]


def test_a_definition_that_cannot_be_used_is_an_error_until_it_is_denied(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.redefine(fail={"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}})

    assert "'fail' of shop: its schema cannot be read" in codes(shop.build())["JF033"][0]
    assert Shop(tmp_path, deny=["fail"]).build().snapshot


def test_secrets_are_neither_in_the_registry_nor_in_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "correct")
    with http_shop(tmp_path, SHOP_KEY="on") as http:
        shop = Shop(tmp_path, command=None, url=http.url, bearer_env="SHOP_TOKEN")
        shop.freeze()
        monkeypatch.setenv("SHOP_TOKEN", "wrong-and-secret")
        refused = shop.build()
        without = Shop(tmp_path, command=None, url=http.url).build()

    assert "SHOP_TOKEN" not in shop.settings.registry.read_text()
    assert http.url not in shop.settings.registry.read_text()
    assert refused.snapshot is None
    assert "wrong-and-secret" not in json.dumps([each.to_wire() for each in refused.findings])
    expected = "it refuses the credentials (HTTP 401); check `bearer_env`: the token in SHOP_TOKEN"
    assert expected in codes(refused)["JF031"][0]
    assert "it requires credentials (HTTP 401); set `bearer_env`" in codes(without)["JF031"][0]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"command": None}, "set either `command` or `url`"),
        ({"url": "http://127.0.0.1/"}, "set either `command` or `url`"),
        ({"bearer_env": "TOKEN"}, "bearer_env: only for a server with `url`"),
        ({"command": None, "url": "ftp://x"}, "a URL that begins with http"),
        ({"tools": {"a": {"side_effects": "maybe"}}}, "one of 'none', 'read_only', 'writes'"),
    ],
)
def test_wrong_settings_are_reported_with_their_table(
    server: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    built = Shop(tmp_path, **{"tools": {}, **server}).build()

    assert built.snapshot is None
    (message,) = codes(built)[CheckCode.LISTING_SETTINGS.id]
    assert "capabilities.mcp.servers.shop" in message
    assert expected in message


def test_a_build_for_development_keeps_what_was_frozen_and_asks_no_server(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.freeze()
    shop.redefine(get_price={"description": "Changed."})
    starts = len(shop.processes())

    kept = build(shop.settings, import_handlers=False, keep_listed=True).snapshot

    assert kept
    assert kept.content_hash == Snapshot.load(shop.settings.registry).content_hash
    assert len(shop.processes()) == starts


@pytest.mark.parametrize("issuer", ["", "http://127.0.0.1:9"])
def test_an_oauth_secret_is_sent_only_to_the_configured_issuer(
    issuer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", "shop-secret")
    with http_shop(tmp_path, SHOP_KEY="on", SHOP_ISSUER=issuer) as http:
        own = http.url.removesuffix("/mcp")
        oauth = {"issuer": own, "client_id": "shop-client", "client_secret_env": "SHOP_SECRET"}
        built = Shop(tmp_path, command=None, url=http.url, oauth=oauth, connect_timeout=20).build()
        asked = [line for line in Shop(tmp_path).journal() if line.startswith("token")]

    assert (built.snapshot is not None) is (issuer == "")
    assert len(asked) == (0 if issuer else 1)
    assert "shop-secret" not in json.dumps([each.to_wire() for each in built.findings])
