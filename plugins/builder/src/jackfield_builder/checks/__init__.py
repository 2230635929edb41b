"""The checks of one tool, one module a concern; each reports into the draft it is given."""

from jackfield_builder.checks import guide, handler, manifest, parameters, repetition, rules

CHECKS = (manifest.check, rules.check, parameters.check, guide.check, repetition.check, handler.check)
