"""The findings of the build and their codes.

Codes are stable: docs/checks.md documents them, programs match on them, and none is ever reused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from jackfield.distributions import Distribution


class Severity(StrEnum):
    """An error prevents the registry from being written; a warning does not; a note needs no action."""

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


class CheckCode(Enum):
    """Every code that the build can report, grouped by subject."""

    # JF0xx: discovery of installed distributions
    NO_TOOLS = _Rule(
        "JF001",
        "no tool is installed",
        "install a tool package into this environment, or write one with `jackfield new-tool NAME`",
    )
    TOOL_ID_TAKEN = _Rule(
        "JF002",
        "two distributions claim the same tool id",
        "uninstall one of them, deny it with `--deny DISTRIBUTION`, or declare it as a `variant`",
    )
    SECOND_COPY = _Rule(
        "JF003",
        "a distribution is on the path twice",
        "remove one copy; the order of sys.path decides which is imported",
    )
    BROKEN_METADATA = _Rule("JF004", "a distribution's metadata cannot be read", "reinstall the distribution")
    BAD_ENTRY_POINT = _Rule(
        "JF005",
        "a tool does not name an import package",
        'write the entry point as `tool_id = "import_package"`, without an attribute',
    )
    PACKAGE_NOT_FOUND = _Rule(
        "JF006",
        "the package of a tool cannot be found",
        "check that the wheel ships the package, then reinstall the distribution",
    )
    ALLOW_UNMATCHED = _warning(
        "JF007", "an allow or deny pattern matches nothing", "correct the name or remove it"
    )

    # JF02x: variants of tools
    VARIANT_ALONE = _Rule(
        "JF021",
        "no distribution owns the id of a variant",
        "install the distribution that owns the tool's id, or remove `variant` from schema.json",
    )
    VARIANT_DIFFERS = _Rule(
        "JF022",
        "a variant's contract is not compatible with that of its tool",
        "accept every call that the tool accepts and return what it returns, or give the variant its own id",
    )

    # JF03x: tools that the build reads from other systems
    SOURCE_UNREACHABLE = _Rule(
        "JF031",
        "a tool server cannot be reached",
        "start it or correct its settings; with `optional = true`, the build continues without its tools",
    )
    SOURCE_LEFT_OUT = _warning(
        "JF032",
        "the tools of an optional server are left out",
        "start the server and build again",
    )
    UNUSABLE_DEFINITION = _Rule(
        "JF033",
        "a server's tool cannot be used",
        "add the tool to the server's `deny` list, or ask the server's authors to correct its definition",
    )
    CONVERTED_DEFINITION = _Rule(
        "JF034",
        "a server's schema was converted",
        "nothing to do; the arguments are converted back when the tool is called",
        Severity.NOTE,
    )
    SUSPICIOUS_TEXT = _warning(
        "JF035",
        "a server's text may contain instructions for a model",
        "read it with `jackfield mcp inspect SERVER`; deny the tool, or override its `description`",
    )
    OVERRIDE_UNMATCHED = _warning(
        "JF036",
        "a setting names a tool that the server does not have",
        "correct the name or remove it; `jackfield mcp inspect SERVER` lists the tools",
    )
    LISTING_SETTINGS = _Rule(
        "JF037",
        "the settings of a tool server are invalid",
        "correct the table in jackfield.toml",
    )

    # JF05x: the installed plugins
    BROKEN_PLUGIN = _Rule(
        "JF051", "a plugin cannot be loaded", "fix or uninstall it, or deny it with `--deny DISTRIBUTION`"
    )
    UNKNOWN_HOOK = _Rule(
        "JF052",
        "a plugin implements a hook that does not exist",
        "compare the name with docs/hooks.md; the plugin may need a different kernel version",
    )
    BAD_OFFER = _Rule(
        "JF053",
        "a hook returns the wrong type of offer",
        "return the type of offer that docs/hooks.md names for this hook",
    )
    OFFER_TAKEN = _Rule(
        "JF054", "two plugins offer the same name", "deny one of them with `--deny DISTRIBUTION`"
    )
    BAD_CAPABILITY_NAME = _Rule(
        "JF055",
        "a capability has a name that no handler can use",
        "choose an identifier that is neither a keyword nor a member of the context, such as `orders`",
    )
    UNMARKED_HOOK = _Rule(
        "JF056",
        "a function is named like a hook but not marked",
        "add `@hookimpl` above it, or give it another name",
    )

    # JF1xx: the files of the package
    SCHEMA_MISSING = _Rule(
        "JF101", "schema.json is missing", "add it next to handler.py and make the wheel ship it"
    )
    GUIDE_MISSING = _Rule(
        "JF102", "guide.md is missing", "add it next to handler.py and make the wheel ship it"
    )
    HANDLER_MISSING = _Rule("JF103", "handler.py is missing", "add it with `async def execute(args, ctx)`")
    UNREADABLE = _Rule(
        "JF104", "a file cannot be read", "check its permissions and that it is a regular file"
    )
    NOT_UTF8 = _Rule("JF105", "a file is not UTF-8", "save it as UTF-8")
    TOO_LARGE = _Rule(
        "JF106", "a file is too large", "shorten it or split the tool; models read the schema and the guide"
    )
    CHANGED_DURING_BUILD = _Rule(
        "JF107", "a file was saved during the build", "build again when nothing writes to the tool's folder"
    )

    # JF2xx: the JSON of schema.json
    BAD_JSON = _Rule("JF201", "schema.json is not JSON", "fix the syntax at the given position")
    DUPLICATE_KEY = _Rule("JF202", "a key appears twice", "keep one; parsers disagree about which one counts")
    BAD_NUMBER = _Rule(
        "JF203", "a number is too large or not finite", "use a finite number of at most 64 bits"
    )
    BAD_TEXT = _Rule("JF204", "a string contains an unpaired surrogate", "write the whole character")
    TOO_DEEP = _Rule(
        "JF205", "a document is nested too deeply", "flatten the document, or use `$ref` and `$defs`"
    )
    NOT_AN_OBJECT = _Rule("JF206", "schema.json is not an object", "wrap the contract in `{ }`")

    # JF3xx: the fields of schema.json
    FIELD_MISSING = _Rule(
        "JF301", "a required field is missing", "add it; docs/authoring.md lists the fields"
    )
    FIELD_UNKNOWN = _Rule("JF302", "a field is unknown", "remove it or correct its name")
    FIELD_TYPE = _Rule("JF303", "a field has the wrong type", "see its type in docs/authoring.md")
    FIELD_VALUE = _Rule("JF304", "a field has a value that is not allowed", "choose one of the listed values")
    FIELD_BOUNDS = _Rule("JF305", "a field is out of bounds", "keep within the limits")
    NOT_SEMVER = _Rule(
        "JF306", "the version is not a semantic version", "write it as MAJOR.MINOR.PATCH, e.g. 1.0.0"
    )
    NOT_SNAKE_CASE = _Rule(
        "JF307",
        "the tool id is not snake_case",
        "use lower-case letters, digits and single underscores, and start with a letter",
    )
    ID_MISMATCH = _Rule("JF308", "the tool id differs from the declared name", "give both the same name")
    BAD_PREVIEW = _Rule(
        "JF309",
        "the preview template is invalid",
        "use `{name}` for a parameter, `{name.member}` for a part of it, and `{{` for a brace",
    )
    BAD_SAYS = _Rule(
        "JF310",
        "a phrase in `says` has the wrong form",
        "begin with the past form of the verb, without a subject or auxiliary: `booked`, not `I have booked`",
    )

    # JF35x: the shared schema.json of a family
    FAMILY_NAME = _Rule(
        "JF351",
        "the family's name is wrong",
        "use the name of the entry point in jackfield.families, in snake_case",
    )
    EMPTY_FAMILY = _Rule(
        "JF352",
        "a family has no tools",
        "define them under `tools` in schema.json, or as folders with a schema.json of their own",
    )
    TOOL_TWICE = _Rule(
        "JF353",
        "a family defines a tool twice",
        "remove the tool from the shared files, or remove its folder",
    )
    DEFAULT_NOT_ALLOWED = _Rule(
        "JF354",
        "a family has a default that is not allowed",
        "state it for each tool; `$defs` is the place for shared parts of schemas",
    )
    DEFINITION_TWICE = _Rule(
        "JF355",
        "a tool redefines a shared definition",
        "give one of them another name, because `#/$defs/NAME` could mean either",
    )

    # JF4xx: rules that combine several fields
    RETRIEVAL_NOT_IDEMPOTENT = _Rule(
        "JF401", "a retrieval tool is not idempotent", "set `idempotent` to true, or make it an action"
    )
    RETRIEVAL_WRITES = _Rule(
        "JF402", "a retrieval tool writes data", "set `sideEffects` to read_only, or make it an action"
    )
    UNCONFIRMED_WRITE = _warning(
        "JF403",
        "an action writes without confirmation",
        'set `requiresConfirmation` to true or "policy" unless every call is harmless',
    )
    SLOW_RETRIEVAL = _Rule(
        "JF404",
        "a retrieval tool is slow for a conversation",
        "set `latencyBudgetMs` to at most 800 in voice and 2000 in text, if the data sources allow that",
        Severity.NOTE,
    )
    BUDGET_OVER_TIMEOUT = _Rule(
        "JF405",
        "the latency budget is longer than the timeout",
        "lower `latencyBudgetMs` or raise `timeoutMs`",
    )
    NO_PREVIEW = _warning(
        "JF406",
        "a tool that needs confirmation has no preview",
        "add `preview`, so that the user sees a sentence instead of raw arguments",
    )
    CAPABILITY_MISSING = _warning(
        "JF407",
        "no plugin provides a required capability",
        "install a plugin that provides it, or add one to this distribution; until then the tool is withheld",
    )
    UNENFORCED = _warning(
        "JF408",
        "no policy enforces one of the tool's restrictions",
        "install policies that do, such as jackfield-policies; until then the tool is withheld",
    )
    CAPABILITY_SETTINGS = _warning(
        "JF409",
        "the settings of a required capability are incomplete or invalid",
        "correct its table in jackfield.toml; a host with these settings does not start",
    )

    # JF5xx: the schema of the arguments
    BAD_SCHEMA = _Rule(
        "JF501",
        "the parameters are not a valid draft 2020-12 schema",
        "correct the keyword at the given path",
    )
    NOT_OBJECT_SCHEMA = _Rule(
        "JF502", "the parameters are not an object schema", 'start with `"type": "object"`'
    )
    OPEN_OBJECT = _Rule(
        "JF503",
        "an object accepts unknown members",
        'add `"additionalProperties": false`; for a map, use an array of objects with key and value',
    )
    UNKNOWN_FORMAT = _Rule("JF504", "a format is unknown", "use a format of draft 2020-12, or `pattern`")
    BAD_REFERENCE = _Rule(
        "JF505",
        "a reference cannot be resolved",
        "point to a place in these parameters, e.g. `#/$defs/range`; nothing is downloaded",
    )
    CIRCULAR_REFERENCE = _Rule(
        "JF506", "a reference is circular", "recurse only through a property or an item"
    )
    BAD_DEFAULT = _Rule("JF507", "a default violates its own schema", "correct the default or the schema")
    UNDEFINED_REQUIRED = _Rule(
        "JF508",
        "a required argument is not defined",
        "define it under `properties`, or remove it from `required`",
    )
    BAD_PATTERN = _Rule("JF509", "a pattern is not a regular expression", "correct the expression (ECMA-262)")
    OTHER_DRAFT = _Rule(
        "JF510", "the schema uses a different draft", "write it for draft 2020-12 and remove `$schema`"
    )
    UNDESCRIBED = _warning(
        "JF511",
        "an argument has no description",
        "describe it in a sentence; the model has no other explanation",
    )
    UNTYPED = _warning("JF512", "an argument accepts any value", "add a `type` or an `enum`")
    UNKNOWN_KEYWORD = _warning(
        "JF513",
        "a keyword is unknown",
        "correct its name, or start it with x- if it is your own; an unknown keyword has no effect",
    )
    UNUSED_DEFAULT = _warning(
        "JF514",
        "a required argument has a default",
        "remove it from `required`, or remove the default, which never applies",
    )
    UNSATISFIABLE = _Rule(
        "JF515",
        "a schema accepts no value",
        "correct the keywords that contradict each other; to accept nothing on purpose, write `false`",
    )

    TYPES_DISAGREE = _Rule(
        "JF516",
        "schema.json and the handler's types disagree",
        "correct one of them; `jackfield schema --write PATH` writes the types into schema.json",
    )
    TYPES_UNREAD = _Rule(
        "JF517",
        "the parameters come from types that were not read",
        "run without --no-import, or write them into schema.json with `jackfield schema --write PATH`",
    )

    # JF6xx: the guide
    NO_SUMMARY = _Rule(
        "JF601",
        "the guide has no summary",
        "start, after the heading, with a paragraph that says what the tool is for",
    )
    LONG_SUMMARY = _Rule(
        "JF602", "the summary is too long", "shorten the first paragraph; every voice prompt includes it"
    )
    BAD_EXAMPLE_JSON = _Rule(
        "JF603", "an example is not JSON", "fix it, or give the block a tag other than json"
    )
    INVALID_EXAMPLE = _Rule(
        "JF604", "an example violates the parameters", "correct the example; the model imitates it"
    )
    NO_EXAMPLE = _warning(
        "JF605", "the guide has no example", "add a json block with the arguments of a typical call"
    )
    INVALID_RESULT = _Rule(
        "JF606", "an example of a result violates `returns`", "correct the example or the schema"
    )
    REPEATED_SCHEMA = _Rule(
        "JF607",
        "the guide repeats the schema",
        "remove what schema.json already says about an argument; models read both",
        Severity.NOTE,
    )

    NO_SECTION = _Rule(
        "JF608",
        "a tool has no section in the family's guide",
        "write one section for it that starts with the heading `# TOOL_ID`",
    )
    STRAY_SECTION = _Rule(
        "JF609",
        "a section of the family's guide belongs to no tool",
        "start each section with the heading `# TOOL_ID` of a tool in the shared schema.json",
    )

    # JF7xx: the handler
    BAD_SYNTAX = _Rule("JF701", "the handler is not valid Python", "fix the syntax error in the given line")
    NO_EXECUTE = _Rule(
        "JF702", "the handler has no execute", "define `async def execute(args, ctx)` at the top level"
    )
    BAD_SIGNATURE = _Rule(
        "JF703",
        "the handler's function cannot be called with (args, ctx)",
        "define it as `async def execute(args, ctx)`",
    )
    IMPORT_RAISES = _Rule(
        "JF704",
        "the handler cannot be imported",
        "fix the error; open files and connect to services and devices on the first call, not at import",
    )
    IMPORT_DIES = _Rule(
        "JF705",
        "importing the handler ends the process or hangs",
        "do no work at import: no exit, no network, no waiting",
    )
    NO_FUNCTION = _Rule(
        "JF706",
        "the family's handler has no function for a tool",
        "define `async def TOOL_ID(args, ctx)` at the top level, or give the tool a folder of its own",
    )
    UNDECLARED_CAPABILITY = _Rule(
        "JF707",
        "the handler uses a capability that the tool does not require",
        "add its name to `requires` in schema.json",
    )
    BAD_TYPES = _Rule(
        "JF708",
        "a type of the handler has no schema",
        "use a dataclass, a TypedDict or a pydantic model whose members JSON can express",
    )
    UNRESOLVED_TYPES = _warning(
        "JF709",
        "a type of the handler does not exist at run time",
        "import it outside `if TYPE_CHECKING:`; until then, the handler gets a dict without a schema",
    )

    NO_ANSWER = _Rule(
        "JF710",
        "a streaming handler never yields an answer",
        "after the last `yield partial(...)`, yield the answer: `yield ok(...)` or the data",
    )

    # JF8xx: the schema adapters
    CANNOT_EXPRESS = _Rule(
        "JF801",
        "a provider cannot express the parameters",
        "simplify the schema, or deny the adapter's distribution",
    )
    LOWERED = _Rule(
        "JF802",
        "a schema is simplified for a provider",
        "nothing to do; arguments are still validated against the full schema",
        Severity.NOTE,
    )
    ADAPTER_BROKEN = _Rule(
        "JF803",
        "a schema adapter fails",
        "report it to the maintainers of the adapter's distribution, or deny that distribution",
    )

    # JF9xx: changes since the last build
    NO_BUMP = _warning(
        "JF901", "a tool changed more than its version says", "raise `version` as the change requires"
    )

    @property
    def id(self) -> str:
        """The code itself, e.g. JF101."""
        return self.value.code

    @property
    def title(self) -> str:
        """A short description of the code."""
        return self.value.title

    @property
    def hint(self) -> str:
        """How to fix it."""
        return self.value.hint

    @property
    def severity(self) -> Severity:
        """The default severity of its findings."""
        return self.value.severity


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem that the build found: what, where and how to fix it."""

    code: CheckCode
    message: str
    distribution: Distribution | None = None
    subject: str = ""
    file: str = ""
    path: str = ""
    hint: str = ""
    as_note: bool = False
    """True if this finding is only a note, regardless of its code's severity."""

    @property
    def severity(self) -> Severity:
        """The severity of this finding."""
        return Severity.NOTE if self.as_note else self.code.severity

    @property
    def is_error(self) -> bool:
        """True if this finding prevents the registry from being written."""
        return self.severity is Severity.ERROR

    def to_wire(self) -> dict[str, Any]:
        """Return the finding as JSON, for `--json`."""
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


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by distribution, tool and code."""

    def key(finding: Finding) -> tuple[str, str, str, str, list[tuple[int, str]], str]:
        name = finding.distribution.name if finding.distribution else ""
        # Line 8 comes before line 14.
        place = [
            (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", finding.path)
        ]
        return (name, finding.subject, finding.code.id, finding.file, place, finding.message)

    return tuple(sorted(findings, key=key))
