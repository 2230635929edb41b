"""Signs that a request came through a proxy.

They are for a host that requires no token because only its own machine can reach it: a proxy on that machine
makes everybody look local. Not every proxy can be recognised. One that adds no header and speaks HTTP/1.1
sends what a local client would send.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ADDED_BY_PROXIES = re.compile(
    # What HTTP itself has for intermediaries.
    r"via|forwarded|cdn-loop"
    # What an intermediary says about the request that it got: X-Forwarded-For, X-Original-URL, X-Real-IP.
    r"|x-(?:forwarded|original|real|proxy|proxyuser|envoy)(?:-.*)?"
    # The address of its client: True-Client-IP, CF-Connecting-IP, X-Cluster-Client-IP, X-Azure-ClientIP.
    r"|(?:.*-)?(?:client|connecting|remote|source|user)-?(?:ip|ipv6|addr|address|port)",
    re.ASCII,
)

OLD_HTTP = frozenset({"0.9", "1.0"})
"""What clients no longer speak, but nginx before 1.30 does to its upstreams unless it is told otherwise."""


def came_through_proxy(header_names: Iterable[str], http_version: str) -> bool:
    """Whether a request shows that it was passed on; names of headers are in lower case."""
    return http_version in OLD_HTTP or any(map(_ADDED_BY_PROXIES.fullmatch, header_names))
