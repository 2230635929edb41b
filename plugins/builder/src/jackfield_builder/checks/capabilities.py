"""Checks that a tool requires every capability that its handler uses.

The check reads the source and runs nothing. It follows the context from the handler's function into the
functions that receive it, in the same module and in other modules of the package. It reports only what it
sees: a context that is stored in an object, for example, is not followed.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from jackfield.contract.context import ToolContext

from jackfield_builder.findings import CheckCode
from jackfield_builder.tool_draft import ToolDraft
from jackfield_builder.tool_files import HANDLER, MAX_BYTES

CONTEXT_MEMBERS = frozenset(name for name in vars(ToolContext) if not name.startswith("_"))
"""The context members that every tool can use."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_FUNCTIONS = 200
_CAUGHT = {"AttributeError", "Exception", "BaseException"}


def check(draft: ToolDraft) -> None:
    """Report each capability that the handler uses but `requires` does not list."""
    required = (draft.schema or {}).get("requires", [])
    if draft.schema is None or draft.handler is None or not isinstance(required, list):
        return
    source = draft.source
    reader = _SourceReader(source.folder.parents[source.package.count(".")])
    module = reader.module(f"{source.package}.{source.module}")
    if module is None:
        return
    seen: set[str] = set()
    for use in reader.uses(module, source.function):
        if use.name in CONTEXT_MEMBERS or use.name in required or use.name in seen:
            continue
        seen.add(use.name)
        message = f"it uses ctx.{use.name}, but `requires` does not list {use.name!r}"
        hint = ""
        if close := get_close_matches(use.name, map(str, required), 1):
            message = f"it uses ctx.{use.name}, but `requires` lists {close[0]!r}, not {use.name!r}"
            hint = "write the same name in the handler and in `requires`"
        elif close := get_close_matches(use.name, CONTEXT_MEMBERS, 1):
            message += f"; did you mean ctx.{close[0]}?"
            hint = f"correct the name, or add {use.name!r} to `requires` in schema.json"
        # In a family, the handler's folder may be a folder inside the package.
        folder, line = module.file.parent, f"line {use.line}"
        if use.file.is_relative_to(folder):
            file = str(use.file.relative_to(folder))
            draft.report(CheckCode.UNDECLARED_CAPABILITY, message, file=file, path=line, hint=hint)
        else:
            message = f"{message} ({use.file.name} {line})"
            draft.report(CheckCode.UNDECLARED_CAPABILITY, message, file=HANDLER, hint=hint)


@dataclass(frozen=True, slots=True)
class _Use:
    """A member of the context that a function uses."""

    name: str
    file: Path
    line: int


@dataclass(frozen=True)
class _Module:
    """A parsed module of the package."""

    name: str
    file: Path
    tree: ast.Module

    @cached_property
    def functions(self) -> dict[str, _Function]:
        return {node.name: node for node in self.tree.body if isinstance(node, _Function)}

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """The imported names, each with its module and its name there; a module itself has no name there."""
        found: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    if each.asname:
                        found[each.asname] = (each.name, "")
            elif isinstance(node, ast.ImportFrom):
                for each in node.names:
                    found[each.asname or each.name] = (self._origin(node), each.name)
        return found

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = self.file.name == "__init__.py"
        parts = self.name.split(".")
        kept = parts[: len(parts) - node.level + is_package]
        return ".".join([*kept, *([node.module] if node.module else [])])


class _SourceReader:
    """Parses the modules below a folder, each once, and follows the context through their functions."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, _Module | None] = {}

    def module(self, name: str) -> _Module | None:
        """Return a module by its dotted name; None if its source is not below the folder."""
        if name not in self._modules:
            path = self._root.joinpath(*name.split("."))
            files = [path.with_name(f"{path.name}.py"), path / "__init__.py"]
            self._modules[name] = next((_parsed(name, file) for file in files if file.is_file()), None)
        return self._modules[name]

    def uses(self, module: _Module, function: str) -> Iterator[_Use]:
        """Yield the members of the context that a handler's function and the functions it calls use."""
        waiting: list[tuple[_Module, str, int | str]] = [(module, function, 1)]
        visited: set[tuple[str, str, int | str]] = set()
        while waiting and len(visited) < _MAX_FUNCTIONS:
            inside, name, parameter = waiting.pop(0)
            found = self._definition(inside, name)
            if found is None or (found[0].name, found[1].name, parameter) in visited:
                continue
            owner, definition = found
            visited.add((owner.name, definition.name, parameter))
            context = _parameter(definition, parameter)
            if context is None:
                continue
            walk = _FunctionWalk({context})
            walk.run(definition)
            for attribute, line in walk.members:
                if attribute not in walk.guarded:
                    yield _Use(attribute, owner.file, line)
            for callee, position in walk.calls:
                waiting += self._callee(owner, callee, position)

    def _definition(self, module: _Module, name: str) -> tuple[_Module, _Function] | None:
        """Return the function with this name, even if the module imports it from another one."""
        for _ in range(10):
            if definition := module.functions.get(name):
                return module, definition
            origin, name = module.imports.get(name, ("", ""))
            following = self.module(origin) if origin and name else None
            if following is None:
                return None
            module = following
        return None

    def _callee(
        self, owner: _Module, callee: ast.expr, position: int | str
    ) -> Iterator[tuple[_Module, str, int | str]]:
        if isinstance(callee, ast.Name):
            yield owner, callee.id, position
        elif isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
            origin, name = owner.imports.get(callee.value.id, ("", ""))
            module = self.module(f"{origin}.{name}" if name else origin) if origin else None
            if module:
                yield module, callee.attr, position


def _parsed(name: str, file: Path) -> _Module | None:
    try:
        if file.stat().st_size > MAX_BYTES[HANDLER]:
            return None
        with warnings.catch_warnings(action="ignore"):
            return _Module(name, file, ast.parse(file.read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parameter(function: _Function, which: int | str) -> str | None:
    positional = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(which, int):
        return positional[which] if which < len(positional) else None
    return which if which in (*positional, *(each.arg for each in function.args.kwonlyargs)) else None


@dataclass
class _FunctionWalk:
    """Collects what a function does with the context, under all names that it has there."""

    names: set[str]
    members: list[tuple[str, int]] = field(default_factory=list)
    guarded: set[str] = field(default_factory=set)
    """Members that the function looks up with `hasattr` or `getattr`."""
    calls: list[tuple[ast.expr, int | str]] = field(default_factory=list)

    def run(self, function: _Function) -> None:
        """Visit the body of the function."""
        self._visit_all(function.body, caught=False)

    def _visit(self, node: ast.AST, *, caught: bool) -> None:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.names:
                if not caught and not attribute.startswith("_"):
                    self.members.append((attribute, node.lineno))
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=name)) if name in self.names:
                self.names.add(alias)
            case ast.Call():
                self._call(node)
            case ast.Try():
                self._visit_try(node, caught=caught)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._visit_inner(node, caught=caught)
                return
        self._visit_all(ast.iter_child_nodes(node), caught=caught)

    def _visit_all(self, nodes: Iterable[ast.AST], *, caught: bool) -> None:
        for node in nodes:
            self._visit(node, caught=caught)

    def _visit_try(self, node: ast.Try, *, caught: bool) -> None:
        self._visit_all(node.body, caught=caught or any(map(_catches, node.handlers)))
        self._visit_all((*node.handlers, *node.orelse, *node.finalbody), caught=caught)

    def _visit_inner(self, node: _Function | ast.Lambda, *, caught: bool) -> None:
        """Visit a nested function, in which a parameter may shadow the context."""
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        hidden = self.names & {each.arg for each in every}
        self.names -= hidden
        self._visit_all(ast.iter_child_nodes(node), caught=caught)
        self.names |= hidden

    def _call(self, call: ast.Call) -> None:
        passed: list[tuple[int | str | None, ast.expr]] = [
            *enumerate(call.args), *((each.arg, each.value) for each in call.keywords),
        ]  # fmt: skip
        for position, value in passed:
            if not (isinstance(value, ast.Name) and value.id in self.names) or position is None:
                continue
            if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr"):
                asked = call.args[1] if len(call.args) > 1 else None
                if isinstance(asked, ast.Constant) and isinstance(asked.value, str):
                    self.guarded.add(asked.value)
            else:
                self.calls.append((call.func, position))


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CAUGHT) for kind in kinds)
