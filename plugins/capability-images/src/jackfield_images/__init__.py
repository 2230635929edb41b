"""Pictures made from words, and the policy that asks before one is paid for.

Asking this plugin what it offers imports no provider's package; the first picture does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PluginSettings, PolicyOffer, Services, Stage

if TYPE_CHECKING:
    from jackfield_images.consent.policy import ImageConsent
    from jackfield_images.images import Images


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Pictures, where a provider is set up."""
    return [CapabilityOffer("images", _images, _unavailable)]


@hookimpl
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Just before confirmation: what it vouches for is not asked about."""
    return [PolicyOffer("image_consent", Stage.SHAPE, 15, _consent)]


def _images(settings: PluginSettings, services: Services) -> Images:  # noqa: ARG001
    from jackfield_images.images import Images
    from jackfield_images.options import Options

    return Images(Options.of(settings))


def _unavailable(settings: PluginSettings) -> str | None:
    from jackfield_images.options import unavailable

    return unavailable(settings)


def _consent(settings: PluginSettings, services: Services) -> ImageConsent:
    from jackfield_images.consent.policy import ImageConsent

    return ImageConsent(settings, services)
