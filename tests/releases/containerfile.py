"""Reads deploy/Containerfile: its stages, with the instructions of each."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from releases.members import ROOT

CONTAINERFILE = ROOT / "deploy" / "Containerfile"
KNOWN = {"CMD", "COPY", "ENV", "EXPOSE", "HEALTHCHECK", "RUN", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}
"""The instructions that `nox -s image` carries out or checks."""


class ContainerfileError(Exception):
    """The Containerfile contains something that `nox -s image` does not support."""


@dataclass(frozen=True)
class Instruction:
    """One instruction of a stage, on one line."""

    word: str
    rest: str

    @property
    def copy_from(self) -> str:
        """The stage that a COPY copies from; empty for the build context."""
        found = re.match(r"--from=(\S+)\s", self.rest)
        return found[1] if found else ""

    @property
    def copy_paths(self) -> tuple[list[str], str]:
        """The sources and the destination of a COPY."""
        *sources, destination = re.sub(r"^--from=\S+\s+", "", self.rest).split()
        return sources, destination

    def variables(self, before: dict[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the variables that an ENV sets, with references to earlier ones replaced."""
        for pair in shlex.split(self.rest):
            name, _, value = pair.partition("=")
            yield name, re.sub(r"\$(\w+)", lambda reference: before.get(reference[1], ""), value)


@dataclass(frozen=True)
class Stage:
    """A stage: its base image, its name, and its instructions in order."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def last(self, word: str) -> str:
        """Return what the last instruction with this word says."""
        found = [each.rest for each in self.instructions if each.word == word]
        if not found:
            raise ContainerfileError(f"the last stage has no {word}")
        return found[-1]

    @property
    def command(self) -> list[str]:
        """The command that the container runs."""
        return [str(word) for word in json.loads(self.last("CMD"))]

    @property
    def health_check(self) -> HealthCheck:
        """The health check."""
        options, _, command = self.last("HEALTHCHECK").partition("CMD ")
        seconds = {name: float(value) for name, value in re.findall(r"--([\w-]+)=(\d+)s", options)}
        return HealthCheck(
            json.loads(command), seconds["timeout"], seconds["start-period"] + 3 * seconds["interval"]
        )


@dataclass(frozen=True)
class HealthCheck:
    """The command of a health check and its times in seconds."""

    command: list[str]
    timeout: float
    unhealthy_after: float
    """When a container that never passes counts as unhealthy: after the start period and three checks."""


def stages(text: str) -> list[Stage]:
    """Return the stages of a Containerfile."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    found: list[Stage] = []
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(base, name))
        elif word and (word not in KNOWN or not found):
            raise ContainerfileError(f"`nox -s image` does not support this instruction: {line}")
        elif word:
            found[-1].instructions.append(Instruction(word, rest))
    return found


def stop_timeout(text: str) -> float:
    """Return the seconds that the comment at the top gives the container to stop."""
    found = re.search(r"--stop-timeout (\d+)", text)
    if not found:
        raise ContainerfileError("the comment at the top no longer has --stop-timeout")
    return float(found[1])
