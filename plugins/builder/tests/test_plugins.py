"""Every hook is called once, and a broken plugin does not affect the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jackfield.offers import EndpointOffer, Stage
from jackfield.plugins import OFFER_TYPES, PluginFaultKind, Plugins, load
from jackfield_builder.discovery import Selection, discover, plugin_findings
from jackfield_builder.findings import CheckCode

FAB = Selection(allow=("fab-*",))

SIMPLE = """
from jackfield import hookimpl
from jackfield.offers import {offer}

@hookimpl
def {hook}():
    return [{offer}({name!r}, create=dict)]
"""


def loaded() -> Plugins:
    return load(discover(FAB).plugins)


def codes(plugins: Plugins) -> list[CheckCode]:
    return [finding.code for finding in plugin_findings(plugins)]


# One test a hook, named after it; tests/test_documentation.py holds the list against hookspecs.py.


def test_jackfield_tools(site: Any) -> None:
    site.plugin(
        "fab-many",
        """
from jackfield import hookimpl
from jackfield.offers import ToolOffer

SCHEMA = '''%s'''

@hookimpl
def jackfield_tools():
    yield ToolOffer("nearby", "fab_many.nearby")
    yield ToolOffer("inline", "fab_many.shared", schema=SCHEMA, guide="# inline\\n\\nIs written in code.\\n")
""".replace("%s", json.dumps({**_schema(), "toolId": "inline"})),
    )
    home = site.folder / "fab_many"
    handler = "def execute(args, ctx): ...\n"
    for name in ("nearby", "shared"):
        (home / name).mkdir()
        (home / name / "__init__.py").touch()
        (home / name / "handler.py").write_text(handler)
    (home / "nearby" / "schema.json").write_text(json.dumps({**_schema(), "toolId": "nearby"}))
    (home / "nearby" / "guide.md").write_text("# nearby\n\nIs a file.\n\n```json\n{}\n```\n")

    report = site.run_json("build")

    assert report["tools"] == {"inline": "1.0.0", "nearby": "1.0.0"}
    assert {finding["code"] for finding in report["findings"]} == {CheckCode.NO_EXAMPLE.id}
    assert {finding["distribution"] for finding in report["findings"]} == {"fab-many"}


LISTING = """
from dataclasses import dataclass
from jackfield import hookimpl
from jackfield.offers import (
    CapabilityOffer, ListedTool, ListingProblem, ListingProblemKind, ToolListing, ToolListingOffer
)

@dataclass(frozen=True)
class Settings:
    city: str = "Paris"
    fails: bool = False

def read(settings, request):
    if settings.fails:
        raise KeyError("oops")
    schema = '{"category": "utility"}'
    guide = f"# a\\n\\nTells about {settings.city}.\\n\\n```json\\n{{}}\\n```\\n"
    tool = ListedTool("far__tell", "fab_far.tool", schema, guide, {"server": "far", "definition": {"a": 1}})
    others = sorted(request.other_tools)
    problems = [ListingProblem(kind, "far", f"{kind.name}, not {others}") for kind in KINDS]
    return ToolListing((tool,), tuple(problems))

KINDS = [getattr(ListingProblemKind, name) for name in NAMES]

@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("far", dict, settings=Settings)]

@hookimpl
def jackfield_tool_listings():
    return [ToolListingOffer("far", "far", read)]
"""

TOLERATED = ("UNAVAILABLE", "CONVERTED", "SUSPICIOUS", "UNMATCHED")


def install_listing(site: Any, names: tuple[str, ...]) -> None:
    site.plugin("fab-far", f"NAMES = {names!r}\n{LISTING}")
    home = site.folder / "fab_far" / "tool"
    home.mkdir()
    (home / "__init__.py").touch()
    (home / "handler.py").write_text("def execute(args, ctx): ...\n")


def test_jackfield_tool_listings(site: Any) -> None:
    install_listing(site, TOLERATED)
    site.tool("echo")
    (site.folder.parent / "jackfield.toml").write_text('[capabilities.far]\ncity = "Rome"\n')

    report = site.run_json("build")

    assert set(report["tools"]) == {"echo", "far__tell"}
    tolerated = {
        CheckCode.SOURCE_LEFT_OUT, CheckCode.CONVERTED_DEFINITION, CheckCode.SUSPICIOUS_TEXT,
        CheckCode.OVERRIDE_UNMATCHED,
    }  # fmt: skip
    assert {finding["code"] for finding in report["findings"]} == {code.id for code in tolerated}
    assert {finding["message"].partition(",")[2] for finding in report["findings"]} == {" not ['echo']"}
    registry = json.loads((site.folder.parent / "tool_registry.json").read_text())
    (told,) = [tool for tool in registry["tools"] if tool["toolId"] == "far__tell"]
    assert told["origin"] == {"server": "far", "definition": {"a": 1}}
    assert told["summary"] == "Tells about Rome."


@pytest.mark.parametrize(
    ("names", "settings", "code"),
    [
        (("UNREACHABLE",), "", CheckCode.SOURCE_UNREACHABLE),
        (("UNUSABLE",), "", CheckCode.UNUSABLE_DEFINITION),
        ((), "city = 3", CheckCode.LISTING_SETTINGS),
        ((), "fails = true", CheckCode.BROKEN_PLUGIN),
    ],
)
def test_a_listing_that_fails_prevents_the_registry(
    site: Any, names: tuple[str, ...], settings: str, code: CheckCode
) -> None:
    install_listing(site, names)
    (site.folder.parent / "jackfield.toml").write_text(f"[capabilities.far]\n{settings}\n")

    report = site.run_json("build")

    assert report["version"] is None
    assert code.id in [finding["code"] for finding in report["findings"]]


def test_an_ordinary_tool_cannot_have_two_underscores_in_a_row(site: Any) -> None:
    site.tool("far__tell")

    assert CheckCode.NOT_SNAKE_CASE.id in [each["code"] for each in site.run_json("build")["findings"]]


def test_a_tool_of_a_plugin_cannot_use_the_id_of_an_installed_tool(site: Any) -> None:
    site.tool("echo")
    site.plugin(
        "fab-many",
        "from jackfield import hookimpl\nfrom jackfield.offers import ToolOffer\n"
        "@hookimpl\ndef jackfield_tools():\n    return [ToolOffer('echo', 'fab_many')]\n",
    )
    (finding,) = site.run_json("build")["findings"]
    assert finding["code"] == CheckCode.TOOL_ID_TAKEN.id
    assert "fab-echo" in finding["message"]
    assert "fab-many" in finding["message"]


def _schema() -> dict[str, Any]:
    return {
        "version": "1.0.0",
        "description": "A tool.",
        "category": "utility",
        "sideEffects": "none",
        "idempotent": True,
        "requiresConfirmation": False,
        "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 100,
        "parameters": {"type": "object", "additionalProperties": False},
    }


ADAPTERS = """
from jackfield import hookimpl
from jackfield.offers import Adapted, CannotExpressError, Lowering, SchemaAdapterOffer

def plain(tool_id, description, parameters):
    parameters["properties"].clear()
    lowered = (Lowering("/properties/text", "maxLength dropped"),)
    return Adapted({"name": tool_id, "parameters": parameters}, lowered)

def whole(tool_id, description, parameters):
    return Adapted({"name": tool_id, "about": description, "parameters": parameters})

def picky(tool_id, description, parameters):
    if tool_id == "odd":
        raise CannotExpressError("/properties/text", "no strings here")
    return Adapted({})

def broken(tool_id, description, parameters):
    if tool_id == "odd":
        raise KeyError("oops")
    return Adapted({})

@hookimpl
def jackfield_schema_adapters():
    return [SchemaAdapterOffer(f.__name__, f) for f in (whole, plain, picky, broken)]
"""


def test_jackfield_schema_adapters(site: Any) -> None:
    site.plugin("fab-provider", ADAPTERS)
    site.tool("echo")
    report = site.run_json("build")
    described = site.run_json("describe", "echo")

    assert set(described["providerSchemas"]) == {"plain", "whole", "picky", "broken"}
    # What one adapter does to its copy, the next does not see.
    assert "text" in described["providerSchemas"]["whole"]["parameters"]["properties"]
    (finding,) = report["findings"]
    assert (finding["code"], finding["path"]) == (CheckCode.LOWERED.id, "/parameters/properties/text")


def test_a_schema_that_an_adapter_cannot_express_fails_the_build(site: Any) -> None:
    site.plugin("fab-provider", ADAPTERS)
    site.tool("odd")
    findings = {finding["code"]: finding for finding in site.run_json("build")["findings"]}
    assert {CheckCode.CANNOT_EXPRESS.id, CheckCode.ADAPTER_BROKEN.id} <= set(findings)
    assert findings[CheckCode.CANNOT_EXPRESS.id]["path"] == "/parameters/properties/text"
    assert "fab-provider 1.0.0" in findings[CheckCode.ADAPTER_BROKEN.id]["message"]


POLICIES = """
from jackfield import hookimpl
from jackfield.offers import PolicyOffer, Stage

@hookimpl
def jackfield_policies():
    return [PolicyOffer(name, stage, rank, create=dict) for name, stage, rank in {offers}]
"""


def test_jackfield_policies(site: Any) -> None:
    site.plugin("fab-zz", POLICIES.format(offers="[('last', Stage.SHAPE, 9), ('first', Stage.ADMIT, 1)]"))
    site.plugin(
        "fab-aa",
        POLICIES.format(offers="[('shape', Stage.SHAPE, 1), ('b', Stage.ADMIT, 5), ('a', Stage.ADMIT, 5)]"),
    )
    chain = loaded().policy_chain()
    assert [offer.name for offer, _ in chain] == ["first", "a", "b", "shape", "last"]
    assert chain[0][0].stage is Stage.ADMIT

    site.tool("echo")
    shown = site.run("plugins").stdout
    assert "first (admit) > a (admit) > b (admit) > shape (shape) > last (shape)" in shown


@pytest.mark.parametrize(
    ("hook", "offer"),
    [
        ("jackfield_intent_handlers", "IntentHandlerOffer"),
        ("jackfield_capabilities", "CapabilityOffer"),
        ("jackfield_transports", "TransportOffer"),
        ("jackfield_stores", "StoreOffer"),
        ("jackfield_observers", "ObserverOffer"),
    ],
)
def test_offers_with_a_factory(site: Any, hook: str, offer: str) -> None:
    site.plugin("fab-plugin", SIMPLE.format(hook=hook, offer=offer, name="thing"))
    site.tool("echo")
    plugins = loaded()
    assert [(each.hook, each.name) for each in plugins.offered] == [(hook, "thing")]
    assert plugins.faults == ()
    listed = site.run_json("plugins")["plugins"]
    assert listed[0]["offers"] == [{"hook": hook, "name": "thing"}]


def test_a_tool_is_offered_if_its_capability_is_provided(site: Any) -> None:
    site.tool("search", schema={"requires": ["kb"]})
    assert site.run("build").returncode == 0
    assert "no plugin provides kb" in site.run("tools").stdout

    site.plugin("fab-kb", SIMPLE.format(hook="jackfield_capabilities", offer="CapabilityOffer", name="kb"))
    assert site.run("build").returncode == 0
    assert "no plugin provides" not in site.run("tools").stdout


ENDPOINTS = """\
from jackfield import hookimpl
from jackfield.offers import EndpointOffer


@hookimpl
def jackfield_endpoints():
    return [EndpointOffer("reports", {prefix!r}, create=dict, auth={auth!r})]
"""


def test_jackfield_endpoints(site: Any) -> None:
    site.tool("echo")
    site.plugin("fab-reports", ENDPOINTS.format(prefix="/reports/daily", auth="operator"))
    (offered,) = loaded().of("jackfield_endpoints")
    assert isinstance(offered.offer, EndpointOffer)
    assert (offered.name, offered.offer.prefix) == ("reports", "/reports/daily")
    listed = site.run_json("plugins")["plugins"]
    assert listed[0]["offers"] == [{"hook": "jackfield_endpoints", "name": "reports"}]
    assert "reports" in site.run("plugins").stdout
    # The plugin is part of the registry, its endpoints are not.
    assert site.run("build").returncode == 0
    frozen = json.loads((site.folder.parent / "tool_registry.json").read_text("utf-8"))
    assert "jackfield_endpoints" not in frozen["plugins"][0]["offers"]


@pytest.mark.parametrize(
    ("prefix", "auth", "fault"),
    [
        ("reports", "user", "needs a prefix such as /reports, not 'reports'"),
        ("/reports/", "user", "needs a prefix such as /reports, not '/reports/'"),
        ("/{name}", "user", "needs a prefix such as /reports"),
        ("/reports", "nobody", "needs `auth` to be user, operator or public, not 'nobody'"),
    ],
)
def test_an_endpoint_with_an_invalid_prefix_or_auth_is_refused(
    site: Any, prefix: str, auth: str, fault: str
) -> None:
    site.plugin("fab-reports", ENDPOINTS.format(prefix=prefix, auth=auth))
    plugins = loaded()
    assert plugins.offered == ()
    (complaint,) = plugins.faults
    assert complaint.kind is PluginFaultKind.BAD_OFFER
    assert fault in complaint.message


COMMANDS = """\
from jackfield import hookimpl
from jackfield.offers import CommandOffer


def load():
    import click
    return click.Command("greet", callback=lambda: click.echo("hello from a plugin"))


def broken():
    import fab_not_there


def worse():
    raise RuntimeError("dropped")


@hookimpl
def jackfield_policies():
    open("asked-for-policies", "w").close()
    return []


@hookimpl
def jackfield_commands():
    return [
        CommandOffer("greet", "Say hello.", load),
        CommandOffer("broken", "Cannot be loaded.", broken),
        CommandOffer("grumble", "Cannot be loaded either.", worse),
        CommandOffer("build", "Would take a name away.", load),
    ]
"""


def test_jackfield_commands(site: Any) -> None:
    site.plugin("fab-greeter", COMMANDS)
    site.tool("echo")
    assert site.run("greet").stdout == "hello from a plugin\n"
    shown = site.run("--help").stdout
    assert "greet" in shown
    assert "Say hello." in shown
    # The kernel's own commands cannot be taken over.
    assert "hello" not in site.run("build").stdout
    missing = site.run("broken")
    assert missing.returncode == 1
    assert "fab_not_there" in missing.stderr
    assert "Traceback" not in missing.stderr
    assert site.run("grumble").stderr == "Error: `jackfield grumble` cannot be loaded: dropped\n"
    assert site.run("greet", JACKFIELD_DENY="fab-greeter").returncode == 2


def test_listing_and_completing_commands_loads_only_the_command_offers(site: Any) -> None:
    site.plugin("fab-greeter", COMMANDS)
    site.plugin("fab-broken", "raise RuntimeError('broken')\n")
    asked = site.folder.parent / "asked-for-policies"
    assert "Say hello." in site.run("--help").stdout
    typed = {"_JACKFIELD_COMPLETE": "bash_complete", "COMP_WORDS": "jackfield gr", "COMP_CWORD": "1"}
    assert site.run(**typed).stdout.split() == ["plain,greet", "plain,grumble"]
    assert site.run(**typed | {"COMP_WORDS": "jackfield bu"}).stdout.split() == ["plain,build"]
    assert not asked.exists()
    site.run("plugins")
    assert asked.exists()


CHOOSY = """\
from jackfield import hookimpl
from jackfield.offers import CapabilityOffer


@hookimpl
def jackfield_capabilities():
    def why(settings):
        return None if "key" in settings else "no key is configured"
    return [CapabilityOffer("pictures", lambda settings, services: object(), why)]
"""


def test_a_tool_with_an_unconfigured_capability_gives_the_reason(site: Any) -> None:
    site.plugin("fab-pictures", CHOOSY)
    site.tool("draw", schema={"requires": ["pictures"]})
    assert site.run("build").returncode == 0
    assert "withheld: needs pictures: no key is configured" in site.run("tools").stdout
    assert "withheld: needs pictures: no key is configured" in site.run("describe", "draw").stdout
    config = site.folder.parent / "jackfield.toml"
    config.write_text('[capabilities.pictures]\nkey = "k"\n')
    assert "withheld" not in site.run("tools").stdout
    config.write_text('[capabilities.pictures]\nkey = "k"\nenabled = false\n')
    assert "[capabilities.pictures] is disabled" in site.run("tools").stdout


BROKEN = {
    "raises at import": ("1 / 0\n", CheckCode.BROKEN_PLUGIN, "ZeroDivisionError: division by zero"),
    "imports what is not there": ("import fab_gone\n", CheckCode.BROKEN_PLUGIN, "ModuleNotFoundError"),
    "raises when asked": (
        "from jackfield import hookimpl\n@hookimpl\ndef jackfield_stores():\n    raise ValueError('no')\n",
        CheckCode.BROKEN_PLUGIN,
        "jackfield_stores raised ValueError: no",
    ),
    "answers with nothing": (
        "from jackfield import hookimpl\n@hookimpl\ndef jackfield_stores():\n    return 5\n",
        CheckCode.BROKEN_PLUGIN,
        "jackfield_stores raised TypeError",
    ),
    "asks for an argument the hook has not": (
        "from jackfield import hookimpl\n@hookimpl\ndef jackfield_stores(settings):\n    return []\n",
        CheckCode.BROKEN_PLUGIN,
        "settings",
    ),
    "ends the process": ("import sys\nsys.exit(3)\n", CheckCode.BROKEN_PLUGIN, "SystemExit: 3"),
    "offers a policy that has no place": (
        "from jackfield import hookimpl\nfrom jackfield.offers import PolicyOffer\n"
        "@hookimpl\ndef jackfield_policies():\n    return [PolicyOffer('x', 'admit', '50', dict)]\n",
        CheckCode.BAD_OFFER,
        "needs a Stage",
    ),
    "misspells a hook": (
        "from jackfield import hookimpl\n@hookimpl\ndef jackfield_store():\n    return []\n",
        CheckCode.UNKNOWN_HOOK,
        "did you mean jackfield_stores?",
    ),
    "offers the wrong kind": (
        "from jackfield import hookimpl\nfrom jackfield.offers import CapabilityOffer\n"
        "@hookimpl\ndef jackfield_stores():\n    return [CapabilityOffer('x', dict)]\n",
        CheckCode.BAD_OFFER,
        "jackfield_stores returned CapabilityOffer instead of StoreOffer",
    ),
    "declares settings that are no dataclass": (
        "from jackfield import hookimpl\nfrom jackfield.offers import StoreOffer\n"
        "@hookimpl\ndef jackfield_stores():\n    return [StoreOffer('x', dict, settings={'path': str})]\n",
        CheckCode.BAD_OFFER,
        "'x' needs a dataclass as its settings",
    ),
    "forgets to mark a hook": (
        "def jackfield_policies():\n    return []\n",
        CheckCode.UNMARKED_HOOK,
        "jackfield_policies has no @hookimpl, so it is never called",
    ),
    "offers a capability that is no attribute": (
        "from jackfield import hookimpl\nfrom jackfield.offers import CapabilityOffer\n"
        "@hookimpl\ndef jackfield_capabilities():\n    return [CapabilityOffer('order-desk', dict)]\n",
        CheckCode.BAD_CAPABILITY_NAME,
        "the capability 'order-desk' is not an identifier",
    ),
    "offers a capability that is a keyword": (
        "from jackfield import hookimpl\nfrom jackfield.offers import CapabilityOffer\n"
        "@hookimpl\ndef jackfield_capabilities():\n    return [CapabilityOffer('class', dict)]\n",
        CheckCode.BAD_CAPABILITY_NAME,
        "the capability 'class' is not an identifier",
    ),
    "offers a capability that the context has": (
        "from jackfield import hookimpl\nfrom jackfield.offers import CapabilityOffer\n"
        "@hookimpl\ndef jackfield_capabilities():\n    return [CapabilityOffer('session', dict)]\n",
        CheckCode.BAD_CAPABILITY_NAME,
        "the capability 'session' is a member of every context",
    ),
    "offers something nameless": (
        "from jackfield import hookimpl\nfrom jackfield.offers import StoreOffer\n"
        "@hookimpl\ndef jackfield_stores():\n    return [StoreOffer('', dict)]\n",
        CheckCode.BAD_OFFER,
        "without a name",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_plugin_is_reported_and_other_plugins_are_loaded(site: Any, fault: str) -> None:
    source, code, cause = BROKEN[fault]
    site.plugin("fab-broken", source, version="3.1.4")
    site.plugin("fab-sound", SIMPLE.format(hook="jackfield_capabilities", offer="CapabilityOffer", name="kb"))
    site.tool("echo")

    report = site.run_json("build")

    (finding,) = report["findings"]
    assert finding["code"] == code.id
    assert (finding["distribution"], finding["version"]) == ("fab-broken", "3.1.4")
    assert cause in finding["message"]
    assert report["version"] is None
    offered = [offer for plugin in site.run_json("plugins")["plugins"] for offer in plugin["offers"]]
    assert {"hook": "jackfield_capabilities", "name": "kb"} in offered


def test_two_plugins_with_the_same_offer_name_are_both_reported(site: Any) -> None:
    for name in ("fab-one", "fab-two"):
        site.plugin(name, SIMPLE.format(hook="jackfield_stores", offer="StoreOffer", name="sqlite"))
    plugins = loaded()
    assert codes(plugins) == [CheckCode.OFFER_TAKEN]
    assert "fab-one 1.0.0 and by fab-two 1.0.0" in plugins.faults[0].message


def test_every_hook_returns_one_type_of_offer() -> None:
    from jackfield import hookspecs

    hooks = {name for name in vars(hookspecs) if name.startswith("jackfield_")}
    assert hooks == set(OFFER_TYPES), "OFFER_TYPES in kernel/src/jackfield/plugins.py names every hook"


def test_every_hook_says_whether_the_registry_records_its_offers() -> None:
    from jackfield_builder.snapshot import FREEZES_OFFERS

    undecided = sorted(set(OFFER_TYPES) - set(FREEZES_OFFERS))
    assert not undecided, (
        f"decide in FREEZES_OFFERS (plugins/builder/src/jackfield_builder/snapshot.py) whether the registry "
        f"records the offers of {', '.join(undecided)}: it must if they can change what a session does"
    )
    assert set(FREEZES_OFFERS) == set(OFFER_TYPES)
