"""Creates a family of tools from the template, and adds tools to a family."""

from __future__ import annotations

import ast
import keyword
from pathlib import Path

from jackfield_builder.json_positions import JsonSyntaxError, read_positions
from jackfield_builder.tool_files import GUIDE, HANDLER, SCHEMA
from jackfield_builder.tool_sources import locate_project

from jackfield_cli.scaffold import ScaffoldError, check_name, create_folder, render_template

_SHARED = """
    "__tool_id__": {
      "parameters": { "required": ["text"], "properties": { "text": { "$ref": "#/$defs/text" } } }
    }"""
"""A tool in a new family; it uses the definition in the template."""

_ALONE = """
    "__tool_id__": {
      "category": "utility",
      "parameters": {
        "required": ["text"],
        "properties": {
          "text": { "type": "string", "minLength": 1, "maxLength": 2000, "description": "What to repeat." }
        }
      }
    }"""
"""A tool that is added to an existing family; it uses no shared definitions, which differ by family."""

_SECTION = """# __tool_id__

Repeats the given text. (Say in one or two sentences what the tool does and when to use it.)

Repeat this: Hello.

```json
{ "text": "Hello." }
```
"""

_FUNCTION = """async def __tool_id__(args, ctx):
    return ok({"text": args["text"]})
"""


def scaffold_family(family: str, tool_ids: list[str], parent: Path, taken: dict[str, str]) -> Path:
    """Create a family with these tools, or add them to a family that is already in the folder."""
    name = check_name(family)
    names = [check_name(tool_id) for tool_id in tool_ids]
    folder = parent / name.replace("_", "-")
    package = _existing_package(folder, name)
    for tool_id in names:
        if names.count(tool_id) > 1:
            raise ScaffoldError(f"the id {tool_id!r} is given twice; give each tool its own id")
        if tool_id in taken:
            raise ScaffoldError(f"the id {tool_id!r} is taken by {taken[tool_id]}; choose a different one")
        if keyword.iskeyword(tool_id):
            raise ScaffoldError(
                f"{tool_id!r} is a Python keyword, so no function can have this name; choose a different id"
            )
    if package is not None:
        _add_tools(package, names, _ALONE)
        return folder
    create_folder(folder)
    examples = "\n".join(
        f'        "{tool_id}": (Example({{"text": "Hello."}}, data={{"text": "Hello."}}),),'
        for tool_id in names
    )
    values = {
        "__family__": name,
        "__family_name__": name.replace("_", "-"),
        "__FamilyName__": "".join(word.capitalize() for word in name.split("_")),
        "__tool_list__": ", ".join(f"`{tool_id}`" for tool_id in names),
        "__examples__": examples,
    }
    render_template("family", folder, values)
    _add_tools(folder / "src" / f"jackfield_family_{name}", names, _SHARED)
    return folder


def _existing_package(folder: Path, family: str) -> Path | None:
    """Return the package of the family in a folder; None if there is no folder yet."""
    if not folder.exists():
        return None
    if not (folder / "pyproject.toml").is_file():
        raise ScaffoldError(f"{folder} already exists and is not a family; choose a different name or folder")
    for tool in locate_project(folder).tools:
        if tool.family and tool.family.name == family:
            return tool.family.folder
    raise ScaffoldError(f"{folder} does not declare the family {family!r}; choose a different name or folder")


def _add_tools(package: Path, tool_ids: list[str], manifest: str) -> None:
    schema, guide, handler = (package / name for name in (SCHEMA, GUIDE, HANDLER))
    texts = {path: path.read_text("utf-8") if path.exists() else "" for path in (schema, guide, handler)}
    for tool_id in tool_ids:
        if (package / tool_id / SCHEMA).exists():
            raise ScaffoldError(
                f"the family already has the tool {tool_id!r}, in its own folder; choose a different id"
            )
        texts[schema] = _with_tool(texts[schema], tool_id, manifest)
        section, function = (text.replace("__tool_id__", tool_id) for text in (_SECTION, _FUNCTION))
        texts[guide] = f"{texts[guide].rstrip()}\n\n{section}".lstrip()
        texts[handler] = f"{_importing_ok(texts[handler]).rstrip()}\n\n\n{function}"
    for path, text in texts.items():
        path.write_text(text, "utf-8")


def _with_tool(text: str, tool_id: str, manifest: str) -> str:
    """Return the schema.json of a family with one more tool; everything else stays as it is written."""
    try:
        root = read_positions(text).root
        tools = root.parts.get("tools")
    except JsonSyntaxError as error:
        raise ScaffoldError(f"{SCHEMA} cannot be read ({error}); run `jackfield validate`") from None
    if tools and tool_id in tools.parts:
        raise ScaffoldError(f"the family already has the tool {tool_id!r}; choose a different id")
    if tools is None:
        raise ScaffoldError(f"{SCHEMA} has no `tools`; add an empty `tools` object first")
    entry = manifest.replace("__tool_id__", tool_id)
    if not tools.parts:
        return f"{text[: tools.start + 1]}{entry}\n  {text[tools.end - 1 :]}"
    last = max(part.end for part in tools.parts.values())
    return f"{text[:last]},{entry}{text[last:]}"


def _importing_ok(source: str) -> str:
    """Return the source with an import of `ok`, unless it has one."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ScaffoldError(
            f"{HANDLER}, line {error.lineno}: {error.msg}; run `jackfield validate`"
        ) from None
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(alias.asname is None and alias.name == "ok" for node in imports for alias in node.names):
        return source
    first = [node for node in tree.body[:1] if isinstance(node, ast.Expr)]
    after = max((node.end_lineno or 0 for node in (*imports, *first)), default=0)
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:after], "from jackfield import ok\n", *lines[after:]])
