"""The settings of the capability `images` and of the policy `image_consent`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from jackfield.settings import (
    Bytes,
    EnvironmentVariable,
    Format,
    Ge,
    Help,
    HttpUrl,
    NonEmpty,
    Phrases,
    Seconds,
    SettingsError,
    Unit,
)

from jackfield_images import vocabulary
from jackfield_images.files import is_object_store
from jackfield_images.prices import Prices

Dollars = Annotated[float, Ge(0), Unit("US dollars")]
Price = Dollars | Mapping[Literal["square", "landscape", "portrait"], Dollars]
PriceList = Mapping[
    Literal["openai", "gemini"], Mapping[str, Mapping[Literal["draft", "standard", "high"], Price]]
]


def _url(value: str) -> str:
    if not is_object_store(value):
        raise ValueError
    return value


@dataclass(frozen=True, slots=True)
class ProviderRequirements:
    """What a provider needs."""

    key_env: str
    model: str
    package: str
    extra: str


PROVIDERS: Mapping[str, ProviderRequirements] = {
    "openai": ProviderRequirements("OPENAI_API_KEY", "gpt-image-2", "openai", "openai"),
    "gemini": ProviderRequirements("GEMINI_API_KEY", "gemini-3.1-flash-image", "google.genai", "gemini"),
}


@dataclass(frozen=True, slots=True)
class ImagesSettings:
    """`[capabilities.images]`"""

    provider: Annotated[
        Literal["openai", "gemini"] | None,
        Help("The provider.", default="`openai` if its key is set, otherwise `gemini` if its key is set"),
    ] = None
    model: Annotated[
        NonEmpty | None, Help("The model.", default="`gpt-image-2` or `gemini-3.1-flash-image`")
    ] = None
    api_key_env: Annotated[
        EnvironmentVariable | None,
        Help(
            "The environment variable that holds the key; a key in the file itself is rejected.",
            default="`OPENAI_API_KEY` or `GEMINI_API_KEY`",
        ),
    ] = None
    base_url: Annotated[
        HttpUrl | None,
        Help(
            "A different server that speaks the provider's protocol. It needs no key, and the "
            "built-in prices do "
            "not apply to it.",
            default="the provider's own",
        ),
    ] = None
    folder: Annotated[Path, Help("The directory for images, if `url` is not set.")] = Path("images")
    url: Annotated[
        Annotated[
            str,
            Format("a URL such as s3://BUCKET/PREFIX, gs://... or az://..., without credentials", _url),
        ]
        | None,
        Help(
            "The object store for images, required for several hosts; its credentials come from the "
            "environment.",
            default="none: `folder`",
        ),
    ] = None
    max_bytes: Annotated[Bytes, Help("Maximum size of an image.")] = 20 * 1024 * 1024
    timeout: Annotated[
        Seconds, Help("How long to wait for a provider; keep it below the tool's 120 seconds.")
    ] = 110.0
    prices: Annotated[
        PriceList,
        Help(
            "Price of an image, by provider, model and quality, and optionally by shape.",
            default="the providers' public price lists",
        ),
    ] = field(default_factory=dict)

    def unavailable(self) -> str | None:
        """Return the reason why images are unavailable, as a clause; None if they are available."""
        name = self.provider or _detect_provider()
        if name is None:
            variables = " or ".join(provider.key_env for provider in PROVIDERS.values())
            return (
                f"no image provider is configured: set {variables} in the environment, "
                "or provider and api_key_env in [capabilities.images]"
            )
        provider = PROVIDERS[name]
        if not _is_installed(provider.package):
            extra = f"jackfield-capability-images[{provider.extra}]"
            return f"the package for the provider {name} is not installed: pip install '{extra}'"
        key_env = self.api_key_env or provider.key_env
        if not self.base_url and not os.environ.get(key_env):
            return (
                f"the environment variable {key_env}, which holds the key for the provider {name}, is not set"
            )
        return None


@dataclass(frozen=True, slots=True)
class ImageConsentSettings:
    """`[policies.image_consent]`"""

    cost_limit: Annotated[
        Dollars,
        Help(
            "Cost up to which the user is not asked. An unknown cost counts as over the limit; "
            "with 0, the user "
            "is always asked."
        ),
    ] = 0.10
    verbs: Annotated[
        Phrases,
        Help(
            "Words that ask for an image if a noun follows, "
            "or if they come last in a sentence that contains a noun."
        ),
    ] = vocabulary.VERBS
    drawing_verbs: Annotated[Phrases, Help("Words that always ask for an image.")] = vocabulary.DRAWING_VERBS
    nouns: Annotated[Phrases, Help("Words for images.")] = vocabulary.NOUNS
    negations: Annotated[
        Phrases, Help("After one of these words, the rest of the sentence is not a request.")
    ] = vocabulary.NEGATIONS


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The settings with the defaults of the chosen provider."""

    provider: str
    model: str
    key: str = field(repr=False)
    base_url: str | None
    folder: Path
    url: str | None
    max_bytes: int
    timeout: float
    prices: Prices

    @classmethod
    def of(cls, settings: ImagesSettings) -> ProviderConfig:
        """Choose the provider and read its key; raises `SettingsError` if there is none."""
        name = settings.provider or _detect_provider()
        if name is None:
            raise SettingsError(f"[capabilities.images]: {settings.unavailable()}")
        provider = PROVIDERS[name]
        return cls(
            provider=name,
            model=settings.model or provider.model,
            key=os.environ.get(settings.api_key_env or provider.key_env, ""),
            base_url=settings.base_url,
            folder=settings.folder,
            url=settings.url,
            max_bytes=settings.max_bytes,
            timeout=settings.timeout,
            # A different server has different prices.
            prices=Prices.of(settings.prices, built_in=settings.base_url is None),
        )


def _detect_provider() -> str | None:
    """Return the first provider whose key is set."""
    return next((name for name, known in PROVIDERS.items() if os.environ.get(known.key_env)), None)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # The parent package is missing.
        return False
