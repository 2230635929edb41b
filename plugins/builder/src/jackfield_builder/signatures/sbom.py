"""The software bill of materials of an environment, in CycloneDX 1.6."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import importlib_metadata
from jackfield.contract.snapshot import Snapshot
from jackfield.distributions import Metadata, installed, normalised
from packaging.requirements import InvalidRequirement, Requirement

if TYPE_CHECKING:
    from cyclonedx.model.component import Component
    from cyclonedx.model.license import LicenseExpression

_NAMESPACE = uuid.UUID("6f0f3c0e-6a0b-5d5c-9d0a-2f1f6a0f9b11")
"""The namespace of serial numbers, so that the same registry and packages give the same document."""


def create_sbom(snapshot: Snapshot) -> dict[str, Any]:
    """Describe every distribution of this environment, and which of them have tools or plugins."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.dependency import Dependency
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion

    found = installed()
    contributed = _contributions(snapshot)
    # One search and one reading for each distribution, which take most of the time.
    described = {name: _DistributionMetadata.read(found[name].folder) for name in sorted(found)}
    components = {
        name: _component(name, found[name], each.license, contributed[name])
        for name, each in described.items()
    }
    digest = snapshot.content_hash.removeprefix("sha256:")
    root = Component(
        name="jackfield-registry",
        version=snapshot.version,
        type=ComponentType.APPLICATION,
        bom_ref=f"registry:{snapshot.version}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )
    versions = "\n".join(f"{name} {found[name].version}" for name in components)
    needed = {name: _needed(name, each.requires, components) for name, each in described.items()}
    # `register_dependency` is not used, because it searches all dependencies for each of them.
    leaves = {name: Dependency(component.bom_ref) for name, component in components.items()}
    bom = Bom(
        components=components.values(),
        dependencies=[
            Dependency(root.bom_ref, [leaves[name] for name in contributed if name in leaves]),
            *(
                Dependency(component.bom_ref, [leaves[each] for each in needed[name]])
                for name, component in components.items()
            ),
        ],
        serial_number=uuid.uuid5(_NAMESPACE, f"{digest}\n{versions}"),
    )
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromisoformat(snapshot.wire["buildTimestamp"])
    document: dict[str, Any] = json.loads(
        make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string()
    )
    return document


def listed_versions(sbom: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions in a bill of materials by name; components without either are left out."""
    components = sbom.get("components")
    return {
        str(each["name"]): str(each["version"])
        for each in (components if isinstance(components, list) else [])
        if isinstance(each, dict) and "name" in each and "version" in each
    }


def installed_versions() -> dict[str, str]:
    """Return the versions that a bill of materials of this environment lists, by name."""
    return {name: metadata.version for name, metadata in installed().items()}


def _contributions(snapshot: Snapshot) -> defaultdict[str, list[tuple[str, str]]]:
    """Return the tools and plugins of each distribution, as names and values of properties."""
    listed: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for tool in snapshot.tools.values():
        listed[normalised(tool.distribution)].append(("jackfield:tool", tool.manifest.tool_id))
    for plugin in snapshot.wire["plugins"]:
        listed[normalised(plugin["distribution"]["name"])].append(("jackfield:plugin", plugin["name"]))
    return listed


class _DistributionMetadata(NamedTuple):
    """What the metadata of a distribution says about its license and what it requires."""

    license: str | None = None
    requires: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: str) -> _DistributionMetadata:
        """Read the metadata in a folder; without a file there, nothing is known."""
        distribution = importlib_metadata.Distribution.at(folder)
        try:
            metadata = distribution.metadata
        except FileNotFoundError:
            return cls()
        # Old egg-info folders have their requirements in another file.
        requires = metadata.get_all("Requires-Dist") or distribution.requires or ()
        return cls(metadata.get("License-Expression"), tuple(requires))


def _component(
    name: str, metadata: Metadata, license_text: str | None, contributed: list[tuple[str, str]]
) -> Component:
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    version = metadata.version
    # A package from a folder or a repository is not the one of that name in the public index.
    purl = PackageURL("pypi", name=name, version=version) if metadata.is_from_index else None
    source = "index" if metadata.is_from_index else "local"
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{name}@{version}",
        purl=purl,
        licenses=list(_licenses(license_text)),
        properties=[
            Property(name=key, value=value) for key, value in (*contributed, ("jackfield:source", source))
        ],
    )


def _licenses(text: str | None) -> Iterator[LicenseExpression]:
    """Yield the SPDX expression of a license, if it is valid."""
    from cyclonedx.model.license import LicenseExpression
    from cyclonedx.spdx import is_expression

    if text and is_expression(text):
        yield LicenseExpression(text)


def _needed(name: str, requires: Iterable[str], components: Mapping[str, Component]) -> list[str]:
    """Return the installed distributions that a distribution requires here, without its extras."""
    needed = []
    for text in requires:
        with suppress(InvalidRequirement):
            requirement = Requirement(text)
            other = normalised(requirement.name)
            applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if applies and other in components and other != name:
                needed.append(other)
    return sorted(set(needed))
