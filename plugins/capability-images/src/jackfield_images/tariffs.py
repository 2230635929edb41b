"""Where the policy finds what an order costs: the capability of the same deployment says it.

Policies are made beside capabilities and are not given them; what both are given is the deployment's store.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from jackfield.capabilities.images import ImageOrder
from jackfield.store import Store

Cost = Callable[[ImageOrder], float | None]

_published: WeakKeyDictionary[Store, Cost] = WeakKeyDictionary()


def publish(store: Store, cost: Cost) -> None:
    """Say what orders cost in the deployment that has this store."""
    _published[store] = cost


def cost_in(store: Store, order: ImageOrder) -> float | None:
    """About what an order costs in that deployment, in US dollars; nothing when nobody knows."""
    cost = _published.get(store)
    return cost(order) if cost else None
