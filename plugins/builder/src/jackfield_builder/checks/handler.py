"""Checks handler.py: first its source, without running it, then its import in a separate process."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from jackfield_builder.findings import CheckCode
from jackfield_builder.handler_probe import ImportRequest, ImportResult, probe_imports
from jackfield_builder.tool_draft import ToolDraft
from jackfield_builder.tool_files import HANDLER

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_IMPORT_CODES = {
    "raised": CheckCode.IMPORT_RAISES,
    "died": CheckCode.IMPORT_DIES,
    "uncallable": CheckCode.BAD_SIGNATURE,
}

_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def check(draft: ToolDraft) -> None:
    """Check the source: it parses and defines the tool's function with the parameters `(args, ctx)`.

    The signature of a decorated or imported function is checked when the handler is imported.
    """
    if draft.handler is None:
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(draft.handler)
            # Finds errors that the grammar allows, such as `await` outside an `async def`.
            compile(tree, HANDLER, "exec", dont_inherit=True)
    except SyntaxError as error:
        draft.report(CheckCode.BAD_SYNTAX, error.msg, file=HANDLER, path=f"line {error.lineno or 1}")
        return
    except (ValueError, RecursionError, MemoryError) as error:
        draft.report(CheckCode.BAD_SYNTAX, str(error) or type(error).__name__, file=HANDLER)
        return
    function = draft.source.function
    if not _binds(tree, function):
        message = f"nothing at the top level is named {function}{_similar(tree, draft)}"
        draft.report(_no_function(draft), message, file=HANDLER, hint=_definition_hint(draft))
        return
    definition = _definition(tree, function)
    if definition is None or definition.decorator_list:
        return
    line = f"line {definition.lineno}"
    if problem := _signature_problem(definition):
        hint = f"define it as `async def {function}(args, ctx)`"
        draft.report(CheckCode.BAD_SIGNATURE, f"{function} {problem}", file=HANDLER, path=line, hint=hint)
    elif (yields := list(_yields(definition))) and all(map(_is_partial, yields)):
        message = f"every value that {function} yields is partial"
        draft.report(CheckCode.NO_ANSWER, message, file=HANDLER, path=line)


def _no_function(draft: ToolDraft) -> CheckCode:
    return CheckCode.NO_EXECUTE if draft.source.function == "execute" else CheckCode.NO_FUNCTION


def _definition_hint(draft: ToolDraft) -> str:
    definition = f"define `async def {draft.source.function}(args, ctx)` at the top level"
    own = ", or give the tool a folder of its own" if draft.source.function != "execute" else ""
    return f"{definition}{own}"


def _similar(tree: ast.Module, draft: ToolDraft) -> str:
    """Return a question about a function with a similar name that belongs to no tool."""
    others = draft.source.family.tool_ids if draft.source.family else ()
    names = [node.name for node in tree.body if isinstance(node, _Function) and node.name not in others]
    close = get_close_matches(draft.source.function, names, 1)
    return f"; is it misspelled as {close[0]}?" if close else ""


def _definition(tree: ast.Module, name: str) -> _Function | None:
    definitions = [node for node in tree.body if isinstance(node, _Function) and node.name == name]
    return definitions[-1] if definitions else None


def _binds(tree: ast.Module, name: str) -> bool:
    """Return whether the module binds a name, including inside `if` and `try`."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, _Function | ast.ClassDef):
            if node.name == name:
                return True
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) in {name, "*"}:
            return True
        pending.extend(ast.iter_child_nodes(node))
    return False


def _signature_problem(function: _Function) -> str:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    keyword_only = [
        keyword.arg
        for keyword, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    if required > 2 or (len(positional) < 2 and arguments.vararg is None):
        taken = [argument.arg for argument in positional]
        if arguments.kwonlyargs:
            taken += ["*", *(keyword.arg for keyword in arguments.kwonlyargs)]
        return f"takes {', '.join(taken) or 'nothing'}"
    if keyword_only:
        return f"also requires {', '.join(keyword_only)}"
    if isinstance(function, ast.FunctionDef) and any(_yields(function)):
        return "is a generator; only an `async def` can yield partial results"
    return ""


def _yields(function: _Function) -> Iterator[ast.Yield | ast.YieldFrom]:
    """Yield the `yield` expressions of a function, without those of nested functions."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            yield node
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))


def _is_partial(node: ast.Yield | ast.YieldFrom) -> bool:
    """Return whether a `yield` can only give a partial result; a name may hold anything."""
    value = node.value
    if not isinstance(value, ast.Call):
        return value is None
    called = value.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in ("partial", "Partial")


def check_imports(drafts: Sequence[ToolDraft]) -> None:
    """Check that every handler with a valid source can be imported and has a callable function."""
    candidates = [
        draft
        for draft in drafts
        if draft.handler is not None
        and not draft.has(
            CheckCode.BAD_SYNTAX, CheckCode.NO_EXECUTE, CheckCode.NO_FUNCTION, CheckCode.BAD_SIGNATURE
        )
    ]
    # Tools that a plugin offers may share one handler.
    requests = {
        draft.source.handler: ImportRequest(draft.source.handler, draft.source.import_path)
        for draft in candidates
    }
    results = probe_imports(list(requests.values()))
    for draft in candidates:
        result = results[draft.source.handler]
        draft.types = result.schemas
        if result.kind == "imported":
            continue
        code = _IMPORT_CODES.get(result.kind) or _no_function(draft)
        message = result.message or f"{draft.source.function} is not a function"
        hint = _import_hint(draft, code, message)
        file, line = _place(draft, result)
        draft.report(code, message, file=file, path=line, hint=hint)


def _import_hint(draft: ToolDraft, code: CheckCode, message: str) -> str:
    """Return how to fix a failed import; empty if the hint of the code is enough."""
    if missing := _MISSING_MODULE.match(message):
        name = missing[1]
        package, folder = draft.source.package, draft.source.folder
        if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
            return f"the module is in the package: import it as `{package}.{name}`"
        return "install the missing module; if it is not in `dependencies` in pyproject.toml, add it there"
    if code is CheckCode.BAD_SIGNATURE:
        return f"define it as `async def {draft.source.function}(args, ctx)`"
    return "" if code in _IMPORT_CODES.values() else _definition_hint(draft)


def _place(draft: ToolDraft, result: ImportResult) -> tuple[str, str]:
    """Return the innermost place of the failed import in the handler's folder."""
    folder = draft.source.folder.joinpath(*draft.source.module.split(".")[:-1]).resolve()
    for file, line in reversed(result.places):
        path = Path(file).resolve()
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix(), f"line {line}"
    return HANDLER, ""
