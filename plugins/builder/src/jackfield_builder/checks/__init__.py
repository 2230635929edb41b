"""The checks of one tool, a module for each file or schema; each adds its findings to the tool's draft."""

from jackfield_builder.checks import capabilities, guide, manifest, parameters

CHECKS = (
    manifest.check,
    manifest.check_consistency,
    parameters.check,
    guide.check,
    guide.check_repetition,
    capabilities.check,
)
"""The checks that run after those of the handler and its types."""
