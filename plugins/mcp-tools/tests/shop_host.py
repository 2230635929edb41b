"""A host with a socket, whose registry contains the tools of the shop's MCP server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from host_harness import ALLOW as HOST_ALLOW
from host_harness import Client, HostFolder, Provider
from jackfield.settings import Settings
from jackfield_testkit.site_packages import SitePackages
from shop_deployment import ALLOW, Shop, http_shop

HOST_PLUGINS = tuple(each for each in HOST_ALLOW if each not in ALLOW and "-tool-" not in each)
PATHS = pytest.mark.parametrize("path", ["old stdio", "new stdio", "old http", "new http"], indirect=True)
ERAS = pytest.mark.parametrize("path", ["old stdio", "new stdio"], indirect=True)


class ShopFolder(HostFolder):
    """The working folder of a host with the tools of the shop."""

    shop: Shop

    def settings(self, served: Provider, tables: Mapping[str, Any] | None = None) -> Settings:
        """Return the settings of the host, with the shop's."""
        shop = self.shop.settings
        host = super().settings(served, {**(tables or {}), **shop.tables})
        return replace(host, allow=(*HOST_PLUGINS, *ALLOW), deployment="development")


def make_site(folder: Path) -> Path:
    """Create a transport that supports forms, and the registry of the shop."""
    SitePackages(folder).plugin("hst-forms", "from jackfield_scripted.form_transport import *\n")
    shop = Shop(folder)
    shop.allow = (*HOST_PLUGINS, *ALLOW)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        shop.freeze()
    return folder


@contextmanager
def served_shop(folder: Path, path: str, **server: Any) -> Iterator[Shop]:
    """Return a shop: over `old stdio`, `new stdio`, `old http` or `new http`."""
    era, _, transport = path.partition(" ")
    if transport == "stdio":
        yield Shop(folder, era, **server)
        return
    with http_shop(folder, era) as served:
        shop = Shop(folder, era, **server)
        del shop.server["command"]
        shop.server["url"] = served.url
        yield shop


@contextmanager
def shop_folder(site: Path, folder: Path, path: str, **server: Any) -> Iterator[ShopFolder]:
    """Return the working folder of a host, with a running shop."""
    shutil.copy(site / "tool_registry.json", folder)
    with served_shop(folder, path, **server) as shop:
        made = ShopFolder(folder, folder / "tool_registry.json", site)
        object.__setattr__(made, "shop", shop)
        yield made


def asked_forms(client: Client) -> list[dict[str, Any]]:
    """Return the questions that servers put to a user."""
    return [form for form in client.of("form_request") if form.get("askedBy")]
