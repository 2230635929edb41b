"""What is wrong with plugins, as findings with codes."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.plugins import PluginFaultKind, Plugins

from jackfield_builder.findings import Code, Finding

_CODES = {
    PluginFaultKind.BROKEN: Code.BROKEN_PLUGIN,
    PluginFaultKind.UNKNOWN_HOOK: Code.UNKNOWN_HOOK,
    PluginFaultKind.BAD_OFFER: Code.BAD_OFFER,
    PluginFaultKind.NAME_TAKEN: Code.OFFER_TAKEN,
}


def findings_about(plugins: Plugins) -> Iterator[Finding]:
    """One finding for each complaint."""
    for complaint in plugins.faults:
        entry = complaint.plugin
        yield Finding(_CODES[complaint.kind], complaint.message, entry.distribution, entry.name)
