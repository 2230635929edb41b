"""A bicycle shop: sixteen tools, and the capability `shop` that they share."""

from dataclasses import dataclass
from typing import Annotated

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer
from jackfield.settings import Help


@dataclass(frozen=True)
class ShopSettings:
    database: Annotated[str, Help("The SQLite file with customers, products and orders.")] = "shop.db"


@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("shop", _open, settings=ShopSettings)]


def _open(settings, services):
    from acme_shop.shop import Shop

    return Shop(settings.database)
