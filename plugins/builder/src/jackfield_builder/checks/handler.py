"""The handler's source, read and not run: it parses, and it defines an `execute` that takes (args, ctx)."""

from __future__ import annotations

import ast
import warnings

from jackfield_builder.drafts import HANDLER, Draft
from jackfield_builder.findings import Code

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check(draft: Draft) -> None:
    """`execute` as far as the source tells; a decorated or imported one is judged when it is imported."""
    if draft.handler is None:
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(draft.handler)
    except SyntaxError as error:
        draft.report(Code.BAD_SYNTAX, error.msg, file=HANDLER, path=f"line {error.lineno or 1}")
        return
    except (ValueError, RecursionError, MemoryError) as error:
        draft.report(Code.BAD_SYNTAX, str(error) or type(error).__name__, file=HANDLER)
        return
    if not _binds_execute(tree):
        draft.report(Code.NO_EXECUTE, "nothing at the top level is named execute", file=HANDLER)
        return
    definition = _definition(tree)
    if definition and not definition.decorator_list and (problem := _signature_problem(definition)):
        draft.report(Code.BAD_SIGNATURE, problem, file=HANDLER, path=f"line {definition.lineno}")


def _definition(tree: ast.Module) -> _Function | None:
    definitions = [node for node in tree.body if isinstance(node, _Function) and node.name == "execute"]
    return definitions[-1] if definitions else None


def _binds_execute(tree: ast.Module) -> bool:
    """Whether anything at module level, also inside `if` and `try`, gives the name a meaning."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, _Function | ast.ClassDef):
            if node.name == "execute":
                return True
            continue
        if isinstance(node, ast.Name) and node.id == "execute" and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) in {"execute", "*"}:
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
        return f"it takes {', '.join(taken) or 'nothing'}"
    if keyword_only:
        return f"it also requires {', '.join(keyword_only)}"
    if _is_generator(function):
        return "it is a generator"
    return ""


def _is_generator(function: _Function) -> bool:
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))
    return False
