"""What is wrong with plugins, as findings with codes."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.plugins import Fault, Plugins

from jackfield_builder.findings import Code, Finding

_CODES = {
    Fault.BROKEN: Code.BROKEN_PLUGIN,
    Fault.UNKNOWN_HOOK: Code.UNKNOWN_HOOK,
    Fault.BAD_OFFER: Code.BAD_OFFER,
    Fault.NAME_TAKEN: Code.OFFER_TAKEN,
}


def findings_about(plugins: Plugins) -> Iterator[Finding]:
    """One finding for each complaint."""
    for complaint in plugins.complaints:
        entry = complaint.plugin
        yield Finding(_CODES[complaint.fault], complaint.message, entry.distribution, entry.name)
