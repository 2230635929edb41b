"""Image generation, and the policy `image_consent`.

The hooks import no provider package; the first image does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PolicyOffer, Services, Stage

if TYPE_CHECKING:
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


def _images(settings: ImagesSettings, services: Services) -> ProviderImages:  # noqa: ARG001
    from jackfield_images.images import ProviderImages
    from jackfield_images.settings import ProviderConfig

    return ProviderImages(ProviderConfig.of(settings))


def _consent(settings: ImageConsentSettings, services: Services) -> ImageConsent:
    from jackfield_images.consent import ImageConsent

    return ImageConsent(settings, services)
