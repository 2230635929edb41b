"""What the build has to say: every code it can report, and one finding of it.

Codes are stable: they are documented in docs/checks.md, machines match on them, and none is ever reused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from jackfield.distributions import Distribution


class Severity(StrEnum):
    """An error keeps the registry from being written; a warning does not; a note asks for nothing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class _Rule:
    code: str
    title: str
    hint: str
    severity: Severity = Severity.ERROR


def _warning(code: str, title: str, hint: str) -> _Rule:
    return _Rule(code, title, hint, Severity.WARNING)


class Code(Enum):
    """Everything the build can find, grouped by the concern that finds it."""

    # JF0xx, discovery: what is installed
    NO_TOOLS = _Rule(
        "JF001",
        "no tool is installed",
        "install a tool package into this environment, or write one with `jackfield new-tool NAME`",
    )
    TOOL_ID_TAKEN = _Rule(
        "JF002",
        "two distributions claim one tool id",
        "uninstall one of them, or deny it with `--deny DISTRIBUTION`",
    )
    SECOND_COPY = _Rule(
        "JF003",
        "a distribution is on the path twice",
        "remove one copy: which of them is imported depends on the order of sys.path",
    )
    BROKEN_METADATA = _Rule("JF004", "a distribution's metadata cannot be read", "reinstall the distribution")
    BAD_ENTRY_POINT = _Rule(
        "JF005",
        "an entry point does not name an import package",
        'write it as `tool_id = "import_package"`, with no attribute',
    )
    PACKAGE_NOT_FOUND = _Rule(
        "JF006",
        "an entry point's package cannot be found",
        "check that the wheel ships the package, then reinstall the distribution",
    )
    ALLOW_UNMATCHED = _warning(
        "JF007", "an allow or deny pattern matches nothing", "correct the name or remove it"
    )

    # JF05x, plugins: what extends the kernel
    BROKEN_PLUGIN = _Rule(
        "JF051", "a plugin cannot be loaded", "mend or uninstall it, or deny it with `--deny DISTRIBUTION`"
    )
    UNKNOWN_HOOK = _Rule(
        "JF052",
        "a plugin answers a question the kernel does not ask",
        "compare the name with docs/hooks.md; the plugin may want another kernel version",
    )
    BAD_OFFER = _Rule(
        "JF053",
        "a plugin's answer is not an offer of the right kind",
        "return the offers that docs/hooks.md names for this hook",
    )
    OFFER_TAKEN = _Rule("JF054", "two plugins offer one name", "deny one of them with `--deny DISTRIBUTION`")

    # JF1xx, files: what the package holds
    SCHEMA_MISSING = _Rule(
        "JF101", "schema.json is missing", "add it beside handler.py and make the wheel ship it"
    )
    GUIDE_MISSING = _Rule(
        "JF102", "guide.md is missing", "add it beside handler.py and make the wheel ship it"
    )
    HANDLER_MISSING = _Rule("JF103", "handler.py is missing", "add it with `async def execute(args, ctx)`")
    UNREADABLE = _Rule(
        "JF104", "a file cannot be read", "check its permissions and that it is a regular file"
    )
    NOT_UTF8 = _Rule("JF105", "a file is not UTF-8", "save it as UTF-8")
    TOO_LARGE = _Rule(
        "JF106", "a file is too large", "a model has to read what it describes: shorten it, or split the tool"
    )

    # JF2xx, JSON: what schema.json is written in
    BAD_JSON = _Rule("JF201", "schema.json is not JSON", "mend the syntax at that place")
    DUPLICATE_KEY = _Rule(
        "JF202", "a key is given twice", "keep one: parsers disagree about which of them counts"
    )
    BAD_NUMBER = _Rule(
        "JF203", "a number is not finite or too large", "use a finite number of at most 64 bits"
    )
    BAD_TEXT = _Rule("JF204", "a string holds half of a surrogate pair", "write the whole character")
    TOO_DEEP = _Rule("JF205", "nested too deeply", "flatten the document, or use `$ref` and `$defs`")
    NOT_AN_OBJECT = _Rule("JF206", "schema.json is not an object", "wrap the contract in `{ }`")

    # JF3xx, manifest: the fields of schema.json
    FIELD_MISSING = _Rule(
        "JF301", "a required field is missing", "add it; docs/authoring.md lists the fields"
    )
    FIELD_UNKNOWN = _Rule("JF302", "a field is not known", "remove it or correct its name")
    FIELD_TYPE = _Rule("JF303", "a field has the wrong type", "see docs/authoring.md for what it takes")
    FIELD_VALUE = _Rule(
        "JF304", "a field has a value that is not allowed", "choose one of the values it lists"
    )
    FIELD_BOUNDS = _Rule("JF305", "a field is out of bounds", "keep to the limits it names")
    NOT_SEMVER = _Rule(
        "JF306", "the version is not a semantic version", "write it as MAJOR.MINOR.PATCH, e.g. 1.0.0"
    )
    NOT_SNAKE_CASE = _Rule(
        "JF307",
        "the tool id is not snake_case",
        "use lower-case letters, digits and single underscores, beginning with a letter",
    )
    ID_MISMATCH = _Rule("JF308", "the tool id is not the entry point's name", "give both the same name")
    BAD_PREVIEW = _Rule(
        "JF309",
        "the preview is not a template over the parameters",
        "use `{name}` for a parameter, `{name.member}` for a part of one, `{{` for a brace",
    )

    # JF4xx, rules: what the fields say together
    RETRIEVAL_NOT_IDEMPOTENT = _Rule(
        "JF401", "a retrieval tool is not idempotent", "set `idempotent` to true, or make it an action"
    )
    RETRIEVAL_WRITES = _Rule(
        "JF402", "a retrieval tool writes", "set `sideEffects` to read_only, or make it an action"
    )
    UNCONFIRMED_WRITE = _warning(
        "JF403",
        "an action writes without confirmation",
        'set `requiresConfirmation` to true or "policy" unless every call is harmless',
    )
    SLOW_RETRIEVAL = _Rule(
        "JF404",
        "a retrieval tool is slower than conversation allows",
        "keep it under 800 ms in voice and 2000 ms in text, where what it asks lets you",
        Severity.NOTE,
    )
    BUDGET_OVER_TIMEOUT = _Rule(
        "JF405",
        "the latency budget is longer than the timeout",
        "lower `latencyBudgetMs` or raise `timeoutMs`",
    )
    NO_PREVIEW = _warning(
        "JF406",
        "a confirmed tool has no preview",
        "add `preview`, so that the user reads a sentence rather than raw arguments",
    )
    CAPABILITY_MISSING = _warning(
        "JF407",
        "a required capability is provided by nobody",
        "install a plugin that provides it; until then the tool is withheld",
    )

    UNENFORCED = _warning(
        "JF408",
        "what the tool asks for is enforced by nobody",
        "install policies that do, such as jackfield-policies; until then the tool is withheld",
    )

    # JF5xx, parameters: the schema of the arguments
    BAD_SCHEMA = _Rule("JF501", "not a valid draft 2020-12 schema", "correct the keyword at that place")
    NOT_OBJECT_SCHEMA = _Rule(
        "JF502", "the parameters are not an object schema", 'begin with `"type": "object"`'
    )
    OPEN_OBJECT = _Rule(
        "JF503",
        "an object accepts unknown members",
        'add `"additionalProperties": false`; for a map, use an array of key and value',
    )
    UNKNOWN_FORMAT = _Rule("JF504", "a format is not known", "use a format of draft 2020-12, or `pattern`")
    BAD_REFERENCE = _Rule(
        "JF505",
        "a reference leads nowhere",
        "refer to a place in these parameters, e.g. `#/$defs/range`; nothing is fetched",
    )
    CIRCULAR_REFERENCE = _Rule(
        "JF506", "a reference leads back to itself", "let the recursion pass through a property or an item"
    )
    BAD_DEFAULT = _Rule("JF507", "a default breaks its own schema", "correct the default or the schema")
    UNDEFINED_REQUIRED = _Rule(
        "JF508",
        "a required argument is not defined",
        "define it under `properties`, or drop it from `required`",
    )
    BAD_PATTERN = _Rule("JF509", "a pattern is not a regular expression", "correct the expression (ECMA-262)")
    OTHER_DRAFT = _Rule(
        "JF510", "the schema is written for another draft", "write it for draft 2020-12 and drop `$schema`"
    )
    UNDESCRIBED = _warning(
        "JF511",
        "an argument has no description",
        "say in a sentence what it means: the model sees nothing else",
    )
    UNTYPED = _warning("JF512", "an argument accepts any value", "state its `type`, or its `enum`")

    UNKNOWN_KEYWORD = _warning(
        "JF513",
        "a keyword is not known",
        "correct its name, or begin it with x- if it is your own; as it stands it does nothing",
    )

    UNUSED_DEFAULT = _warning(
        "JF514",
        "a required argument has a default",
        "take it out of `required`, or drop the default: as it stands the default never applies",
    )
    UNSATISFIABLE = _Rule(
        "JF515",
        "a schema accepts no value",
        "correct the keywords that contradict each other; write `false` where nothing may be accepted",
    )

    # JF6xx, guide: what the model reads
    NO_SUMMARY = _Rule(
        "JF601",
        "the guide has no summary",
        "begin, after the heading, with a paragraph that says what the tool is for",
    )
    LONG_SUMMARY = _Rule(
        "JF602", "the summary is too long", "shorten the first paragraph: it goes into every voice prompt"
    )
    BAD_EXAMPLE_JSON = _Rule(
        "JF603", "an example is not JSON", "mend it, or tag the block as something other than json"
    )
    INVALID_EXAMPLE = _Rule(
        "JF604", "an example breaks the parameters", "correct the example: the model will imitate it"
    )
    NO_EXAMPLE = _warning(
        "JF605", "the guide has no example", "add a json block with the arguments of a typical call"
    )
    INVALID_RESULT = _Rule(
        "JF606", "an example of a result breaks `returns`", "correct the example or the schema"
    )

    REPEATED_SCHEMA = _Rule(
        "JF607",
        "the guide repeats its schema",
        "leave out what schema.json says of an argument: models read both",
        Severity.NOTE,
    )

    # JF7xx, handler: what runs
    BAD_SYNTAX = _Rule("JF701", "the handler is not Python", "mend the syntax at that line")
    NO_EXECUTE = _Rule(
        "JF702", "the handler has no execute", "define `async def execute(args, ctx)` at the top level"
    )
    BAD_SIGNATURE = _Rule(
        "JF703", "execute cannot be called with (args, ctx)", "define it as `async def execute(args, ctx)`"
    )
    IMPORT_RAISES = _Rule(
        "JF704",
        "the handler cannot be imported",
        "mend the error; do at the first call what needs the outside world",
    )
    IMPORT_DIES = _Rule(
        "JF705",
        "importing the handler ends the process or hangs",
        "do no work at import: no exit, no network, no waiting",
    )

    # JF8xx, adapters: what providers can express
    CANNOT_EXPRESS = _Rule(
        "JF801",
        "a provider cannot express the parameters",
        "simplify the schema, or deny the adapter's distribution",
    )
    LOWERED = _Rule(
        "JF802",
        "a construct is lowered for a provider",
        "nothing to do: arguments are still judged by the full schema",
        Severity.NOTE,
    )
    ADAPTER_BROKEN = _Rule(
        "JF803",
        "a schema adapter fails",
        "report it to the adapter's distribution, or deny that distribution",
    )

    # JF9xx, history: what changed since the last build
    NO_BUMP = _warning(
        "JF901", "a tool changed more than its version says", "raise `version` as the change asks for"
    )

    @property
    def id(self) -> str:
        """The code itself, e.g. JF101."""
        return self.value.code

    @property
    def title(self) -> str:
        """The code in a few words."""
        return self.value.title

    @property
    def hint(self) -> str:
        """How to mend it."""
        return self.value.hint

    @property
    def severity(self) -> Severity:
        """Whether it keeps the registry from being written."""
        return self.value.severity


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the build found, with all it takes to mend it."""

    code: Code
    message: str
    distribution: Distribution | None = None
    subject: str = ""
    file: str = ""
    path: str = ""
    hint: str = ""
    minor: bool = False
    """Whether this one is a note, although its code is more than that as a rule."""

    @property
    def severity(self) -> Severity:
        """How grave this one is."""
        return Severity.NOTE if self.minor else self.code.severity

    @property
    def is_error(self) -> bool:
        """Whether it keeps the registry from being written."""
        return self.severity is Severity.ERROR

    def to_wire(self) -> dict[str, Any]:
        """The finding for `--json`."""
        return {
            "code": self.code.id,
            "severity": self.severity.value,
            "title": self.code.title,
            "message": self.message,
            "distribution": self.distribution.name if self.distribution else None,
            "version": self.distribution.version if self.distribution else None,
            "subject": self.subject or None,
            "file": self.file or None,
            "path": self.path or None,
            "hint": self.hint or self.code.hint,
        }


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings grouped by distribution and tool, errors of a group in the order of their codes."""

    def key(finding: Finding) -> tuple[str, ...]:
        name = finding.distribution.name if finding.distribution else ""
        return (name, finding.subject, finding.code.id, finding.file, finding.path, finding.message)

    return tuple(sorted(findings, key=key))
