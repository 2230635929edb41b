"""Image generation, and the policy `image_consent`.

The hooks import no provider package; the first image does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, EndpointOffer, PolicyOffer, Services, Stage
from jackfield.settings import NoSettings

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from jackfield_images.consent import ImageConsent
    from jackfield_images.images import ProviderImages
    from jackfield_images.settings import ImageConsentSettings, ImagesSettings


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Offer `images`; it is available only if a provider is configured."""
    from jackfield_images.settings import ImagesSettings

    return [CapabilityOffer("images", _images, ImagesSettings.unavailable, ImagesSettings)]


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Offer a policy that runs just before the confirmation policy, which skips calls with a waiver."""
    from jackfield_images.settings import ImageConsentSettings

    return [PolicyOffer("image_consent", Stage.SHAPE, 15, _consent, settings=ImageConsentSettings)]


@hookimpl
def jackfield_endpoints() -> Iterable[EndpointOffer]:
    """Offer the images that tools show to authenticated users."""
    return [EndpointOffer("images", "/images", _endpoint, settings=NoSettings, openapi=_describe_endpoint)]


def _endpoint(_settings: NoSettings, services: Any) -> Iterable[BaseRoute]:
    from jackfield_images.endpoint import create_routes
    from jackfield_images.images import ProviderImages

    images = services.runtime.capabilities.get("images")
    # Another capability of this name serves its images itself.
    return create_routes(images) if isinstance(images, ProviderImages) else []


def _describe_endpoint() -> Mapping[str, Any]:
    from jackfield_images.endpoint import OPENAPI

    return OPENAPI


def _images(settings: ImagesSettings, services: Services) -> ProviderImages:  # noqa: ARG001
    from jackfield_images.images import ProviderImages
    from jackfield_images.settings import ProviderConfig

    return ProviderImages(ProviderConfig.of(settings))


def _consent(settings: ImageConsentSettings, services: Services) -> ImageConsent:
    from jackfield_images.consent import ImageConsent

    return ImageConsent(settings, services)
