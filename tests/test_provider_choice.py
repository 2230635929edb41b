"""The provider of a deployment: the named one, or with `auto` the first one detected."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jackfield.components import PluginComponents, ProviderChoice
from jackfield.distributions import PLUGINS, Distribution, EntryPoint
from jackfield.offers import Detected, Detector, PluginSettings, TransportOffer, Undetected
from jackfield.plugins import Plugins, RegisteredOffer
from jackfield.settings import Settings, SettingsError
from jackfield.settings.model_settings import ModelSettings
from jackfield_gemini import jackfield_transports as gemini
from jackfield_local import jackfield_transports as local
from jackfield_local import model_file
from jackfield_local.model_file import QWEN
from jackfield_openai import jackfield_transports as openai

SHIPPED = (*openai(), *gemini(), *local())


def _components(*offers: TransportOffer, **settings: Any) -> PluginComponents:
    entry = EntryPoint(PLUGINS, "main", "fab", Distribution("fab", "1"))
    offered = tuple(RegisteredOffer("jackfield_transports", offer, entry) for offer in offers)
    return PluginComponents(Plugins((entry,), offered, ()), Settings(**settings))


def _offer(name: str, *detectors: tuple[int, Callable[[PluginSettings], Any]]) -> TransportOffer:
    def create(settings: PluginSettings) -> Any:
        return {"transport": name, **settings}

    return TransportOffer(name, create, detectors=tuple(Detector(*each) for each in detectors))


def _none(hint: str) -> Callable[[PluginSettings], Undetected]:
    return lambda _: Undetected(hint)


@pytest.fixture(autouse=True)
def _no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JACKFIELD_LOCAL_MODEL")


@pytest.mark.parametrize(
    ("environ", "name", "reason"),
    [
        ({"OPENAI_API_KEY": "a"}, "openai", "OPENAI_API_KEY is set"),
        ({"GEMINI_API_KEY": "b"}, "gemini", "GEMINI_API_KEY is set"),
        ({"GOOGLE_API_KEY": "c"}, "gemini", "GOOGLE_API_KEY is set"),
        ({"OPENAI_API_KEY": "a", "GEMINI_API_KEY": "b"}, "openai", "OPENAI_API_KEY is set"),
        ({"OPENAI_API_KEY": " "}, "local", "no key and no local server was found"),
    ],
)
def test_a_key_in_the_environment_selects_its_provider(
    environ: Mapping[str, str], name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    choice = _components(*SHIPPED).provider_choice
    assert (choice.name, choice.reason, choice.detected) == (name, reason, True)


def test_the_local_agent_says_how_to_get_something_better() -> None:
    assert _components(*SHIPPED).provider_choice.hints == (
        "set OPENAI_API_KEY to use OpenAI",
        "set GEMINI_API_KEY to use Gemini",
        "start a local server (Ollama, LM Studio, llama.cpp, vLLM) with a model that can call tools",
        "run `jackfield model get` to download the local language model (1.1 GB)",
    )


def test_the_language_model_is_used_once_it_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    file = tmp_path / "jackfield" / QWEN.name
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    reason = "no key and no local server was found"
    assert _told(_components(*SHIPPED)) == f"{reason}; it uses the local language model"
    named = _components(*SHIPPED, provider="local")
    assert _told(named) == "the `provider` setting names it; it uses the local language model"
    router = {"transports": {"local": {"tool_selection": "router"}}}
    assert _told(_components(*SHIPPED, tables=router)) == f"{reason}; it uses no language model"
    monkeypatch.setenv("JACKFIELD_LOCAL_MODEL", "none")
    assert _told(_components(*SHIPPED)) == f"{reason}; it uses no language model"
    assert _components(*SHIPPED).provider_choice.hints[-1] == (
        "unset JACKFIELD_LOCAL_MODEL to use the local language model"
    )


def _told(components: PluginComponents) -> str:
    return components.provider_choice.now(components.transport()).reason


def test_a_model_downloaded_while_the_host_runs_is_announced_without_a_restart(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    components = _components(*SHIPPED)
    choice, transport = components.provider_choice, components.transport()
    before = choice.now(transport)
    assert before.reason.endswith("; it uses no language model")
    ((provider, hint, download),) = choice.downloads
    assert (provider, download.size_bytes, download.is_complete()) == ("local", QWEN.size, False)
    assert hint == before.hints[-1]
    file = tmp_path / "jackfield" / QWEN.name
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    after = choice.now(transport)
    assert after.reason.endswith("; it uses the local language model")
    assert after.hints == before.hints[:-1]
    file.unlink()
    assert choice.now(transport) == before


def test_without_its_engine_the_model_is_not_offered_as_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "find_spec", lambda _: None)
    choice = _components(*SHIPPED).provider_choice
    assert choice.downloads == ()
    assert choice.hints[-1] == (
        "run `pip install 'jackfield-transport-local[llama]'` and then `jackfield model get` "
        "to use the local language model (1.1 GB)"
    )


def test_a_named_provider_is_used_without_detection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a")
    choice = _components(*SHIPPED, provider="local").provider_choice
    assert choice == ProviderChoice("local", "the `provider` setting names it")
    with pytest.raises(
        SettingsError, match=r"^provider: no installed plugin offers 'nowhere'; choose one of openai"
    ):
        _ = _components(*SHIPPED, provider="nowhere").provider_choice


def test_detectors_are_asked_by_rank_and_only_once() -> None:
    asked: list[str] = []

    def detect(settings: PluginSettings) -> Detected:
        asked.append(settings["place"])
        return Detected("it is here", {"address": "found"})

    components = _components(
        _offer("one", (20, detect), (5, _none("get one"))),
        _offer("two", (10, _none("get two")), (30, _none("never asked"))),
        tables={"transports": {"one": {"place": "table", "address": "table"}}},
    )
    for _ in range(2):
        assert components.provider_choice == (
            "one",
            "it is here",
            True,
            ("get one", "get two"),
            {"address": "found"},
            (),
        )
    made: object = components.transport()
    assert made == {"transport": "one", "place": "table", "address": "found"}
    assert asked == ["table"]


def test_a_detector_that_fails_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: PluginSettings) -> Detected:
        raise OSError("no such device")

    components = _components(_offer("one", (1, fail)), _offer("two", (2, lambda _: Detected("it is here"))))
    assert components.provider_choice.name == "two"
    assert "transport one: provider detection failed; the transport is skipped" in caplog.text


def test_a_disabled_transport_is_not_detected() -> None:
    tables = {"transports": {"one": {"enabled": False}}}
    offers = (
        _offer("one", (1, lambda _: Detected("here"))),
        _offer("two", (2, lambda _: Detected("here too"))),
    )
    assert _components(*offers, tables=tables).provider_choice.name == "two"


def test_without_a_provider_conversations_are_off_and_the_hints_give_a_remedy() -> None:
    components = _components(_offer("one", (1, _none("set A KEY"))), _offer("plain"))
    choice = components.provider_choice
    assert (choice.name, choice.detected) == ("none", True)
    assert choice.hints == ("set A KEY", "name one with the `provider` setting: plain")
    assert (components.transport().modes, components.provider_unavailable_reason()) == (frozenset(), None)
    (fix,) = _components(provider="").provider_choice.hints
    assert fix.startswith("install a provider, such as")


def test_the_setting_none_turns_conversations_off_even_if_a_provider_is_there() -> None:
    components = _components(_offer("one", (1, lambda _: Detected("here"))), provider="none")
    choice = components.provider_choice
    assert (choice.name, choice.reason, choice.detected) == (
        "none",
        "the `provider` setting is `none`",
        False,
    )
    assert choice.hints == ("set `provider` to `auto` or `one`",)
    assert components.transport().modes == frozenset()


def test_models_to_choose_from_replace_settings_of_their_transport(tmp_path: Path) -> None:
    config = tmp_path / "jackfield.toml"
    config.write_text(
        '[transports.fab]\nretries = 1\ntext_model = "large"\n'
        '[models.quick]\ntransport = "fab"\nsettings = { text_model = "small" }\n'
        '[models.other]\ntransport = "fob"\n'
    )
    loaded = Settings.load(config, {})
    components = _components(_offer("fab"), _offer("fob"), tables=loaded.tables, models=loaded.models)
    assert {name: choice.name for name, choice in components.model_choices.items()} == {
        "quick": "fab",
        "other": "fob",
    }
    quick: Any = components.model_transport("quick")
    assert quick == {"transport": "fab", "retries": 1, "text_model": "small"}
    other: Any = components.model_transport("other")
    assert other == {"transport": "fob"}


@dataclass(frozen=True)
class FileSettings:
    file: Path = Path("default.gguf")
    name: str = ""


@pytest.mark.parametrize(
    "table", ["", '[transports.fab]\nname = "x"\n', '[transports.fab]\nfile = "other"\n']
)
def test_a_path_of_a_model_is_relative_to_the_settings_file_or_else_to_the_working_directory(
    tmp_path: Path, table: str
) -> None:
    config = tmp_path / "jackfield.toml"
    config.write_text(f'{table}[models.quick]\ntransport = "fab"\nsettings = {{ file = "quick.gguf" }}\n')
    offer = TransportOffer("fab", lambda settings: settings.file, settings=FileSettings)
    in_variable = {"quick": {"transport": "fab", "settings": {"file": "quick.gguf"}}}
    for environ, expected in (
        ({}, tmp_path / "quick.gguf"),
        ({"JACKFIELD_MODELS": json.dumps(in_variable)}, Path("quick.gguf")),
    ):
        loaded = Settings.load(config, environ)
        components = _components(offer, tables=loaded.tables, models=loaded.models)
        file: Any = components.model_transport("quick")
        assert file == expected


def test_a_model_that_cannot_be_used_is_a_fault() -> None:
    models = {"quick": ModelSettings("openai"), "lost": ModelSettings("nowhere")}
    components = _components(*SHIPPED, models=models)
    assert "quick" in components.model_choices
    assert "[models.quick]: openai cannot be used: " in str(components.faults)
    assert "[models.lost] transport: no installed plugin offers 'nowhere'" in str(components.faults)
