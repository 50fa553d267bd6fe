"""The marks of `styx.native.interpreted` in the sources that are compiled, and the classes with their bases.

A mark that would do nothing is refused, and so is what would need one and has none: each misuse ends the build with a
sentence that says what to do. Classes are known by module and name, wherever and as whatever they are imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

ROOM: Final = "styx.native.interpreted"
STRUCT: Final = "msgspec.Struct"
_HOW_USUAL: Final = "kind: Annotated[type[X], USUAL] = …"


class Mark(NamedTuple):
    """The keywords of `native`."""

    subclassed: bool = False
    short_lived: bool = False
    unchecked: bool = False


class Class(NamedTuple):
    """A class at the top of a compiled module; `name` and `bases` are dotted, with their modules."""

    module: str
    name: str
    node: ast.ClassDef
    bases: list[str]
    mark: Mark | None
    mark_node: ast.expr | None


class Usual(NamedTuple):
    """A local variable that nearly always holds one class, whose name `usual` is; `calls` go through the variable."""

    annotation: ast.expr
    usual: str
    calls: list[ast.Call]


class Source:
    """A module's text and tree, and where its names come from. `name` is `worker/slot`, `dotted` `styx.worker.slot`."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.dotted = f"styx.{name.replace('/', '.')}"
        self.text = source
        self.tree = ast.parse(source)
        self.nodes = list(ast.walk(self.tree))
        self._origins: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                self._origins.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
            elif isinstance(node, ast.Import):
                self._origins.update({each.asname: each.name for each in node.names if each.asname})
        self._own = {node.name for node in self.tree.body if isinstance(node, ast.ClassDef)}

    def origin(self, node: ast.expr) -> str:
        """The dotted name that an expression means, as far as it is one: `styx.worker.slot.Slot`."""
        if isinstance(node, ast.Subscript):
            return self.origin(node.value)
        if isinstance(node, ast.Attribute):
            return f"{self.origin(node.value)}.{node.attr}"
        if not isinstance(node, ast.Name):
            return ""
        return f"{self.dotted}.{node.id}" if node.id in self._own else self._origins.get(node.id, node.id)

    def means(self, node: ast.AST, name: str) -> bool:
        """Whether an expression is what this name of `ROOM` stands for."""
        return isinstance(node, ast.Name | ast.Attribute) and self.origin(node) == f"{ROOM}.{name}"


# Classes ---------------------------------------------------------------------------------------------------


def marked_classes(sources: list[Source]) -> dict[str, Class]:
    """The classes of compiled modules by dotted name."""
    classes: dict[str, Class] = {}
    for source in sources:
        for node in source.nodes:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            marks = [each for each in node.decorator_list if source.means(_called(each), "native")]
            if isinstance(node, ast.ClassDef) and node in source.tree.body:
                name, bases = f"{source.dotted}.{node.name}", [_base(source, base) for base in node.bases]
                if len(marks) > 1:
                    raise SystemExit(f"{name}: is marked @native twice: put all keywords into one mark")
                mark = _mark(name, marks[0]) if marks else None
                classes[name] = Class(source.name, name, node, bases, mark, marks[0] if marks else None)
            elif marks:
                raise SystemExit(f"{source.dotted}.{node.name}: @native marks classes at the top of a module: move it")
    for each in classes.values():
        _refuse_bases(each, classes)
        _refuse_mark(each, classes)
    return classes


def _base(source: Source, node: ast.expr) -> str:
    """A Struct is known by one spelling."""
    origin = source.origin(node)
    return ast.unparse(node) if origin == STRUCT else origin


def is_record(each: Class, classes: dict[str, Class]) -> bool:
    """It is a Struct, by itself or by a compiled base."""
    return STRUCT in each.bases or any(base in classes and is_record(classes[base], classes) for base in each.bases)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _mark(name: str, node: ast.expr) -> Mark:
    if not isinstance(node, ast.Call):
        return Mark()
    said: set[str] = set()
    for keyword in node.keywords:
        known = keyword.arg in Mark._fields and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        if not known or keyword.arg is None:
            options = ", ".join(f"{field}=True" for field in Mark._fields)
            raise SystemExit(f"{name}: @native knows {options}, and not {ast.unparse(keyword)}")
        said.add(keyword.arg)
    if node.args or not said:
        raise SystemExit(f"{name}: write @native, or @native(…) with keywords, and not {ast.unparse(node)}")
    return Mark(**dict.fromkeys(said, True))


def _refuse_bases(each: Class, classes: dict[str, Class]) -> None:
    for base in each.bases:
        if base.startswith("styx.") and base not in classes:
            raise SystemExit(
                f"{each.name}: a native class cannot derive from {base}, which is not compiled: compile its module as "
                "well (MODULES in scripts/compile.d/build.py), or move this class into a module that is not"
            )


def _refuse_mark(each: Class, classes: dict[str, Class]) -> None:
    mark = each.mark
    if mark is None:
        return
    if mark == Mark() and not is_record(each, classes):
        raise SystemExit(
            f"{each.name}: every class of a compiled module is native, and only a Struct is written anew: take the "
            "mark @native away, or give it a keyword"
        )
    if mark.subclassed and mark.short_lived:
        raise SystemExit(f"{each.name}: @native is subclassed or short_lived: interpreted objects are not kept")
    for base in each.bases:
        above = classes.get(base)
        if mark.subclassed and above is not None and (above.mark is None or not above.mark.subclassed):
            raise SystemExit(f"{each.name}: its base {base} must be marked @native(subclassed=True) as well")


def refuse_elsewhere(sources: list[Source], classes: dict[str, Class]) -> None:
    """Marks in modules that are not compiled, and classes there that derive from one that is not `subclassed`."""
    for source in sources:
        for node in source.nodes:
            if ROOM in source.text and (source.means(node, "native") or source.means(node, "USUAL")):
                raise SystemExit(
                    f"{source.dotted}: its marks of {ROOM} do nothing, because it is not compiled: add it to MODULES "
                    "in scripts/compile.d/build.py, or take the marks away"
                )
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                above = classes.get(source.origin(base))
                if above is not None and (above.mark is None or not above.mark.subclassed):
                    raise SystemExit(
                        f"{source.dotted}: interpreted code cannot derive from {above.name}, which is compiled: mark "
                        "that class @native(subclassed=True)"
                    )


# Classes that are called through a variable ----------------------------------------------------------------


def usual_variables(source: Source, classes: dict[str, Class], holders: set[str]) -> list[Usual]:
    """The variables that are marked; `holders` are the attributes that hold classes. A class that is called through a
    variable without a mark is refused: its arguments would travel as a tuple, for no one to see.
    """
    found: list[Usual] = []
    for function in _functions(source.tree):
        variables = {name: node for node in ast.walk(function) if (name := _marked(source, node))}
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        for name, node in variables.items():
            usual = _usual(node)
            through = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]
            if usual is None or source.origin(usual) not in classes:
                raise SystemExit(f"{source.dotted}: write {_HOW_USUAL}, where X is a class of a compiled module")
            if not through:
                raise SystemExit(f"{source.dotted}: {name} is marked USUAL and is not called: take the mark away")
            found.append(Usual(node.annotation, ast.unparse(usual), through))
        held = _holding_classes(function, holders) - variables.keys()
        for call in calls:
            if _is_held(call.func, held, holders):
                raise SystemExit(
                    f"{source.dotted}, line {call.lineno}: {ast.unparse(call.func)} holds a class, and a call through "
                    f"it is slow: call the class by its name, or mark the variable: {_HOW_USUAL}"
                )
    if len(found) != sum(source.means(node, "USUAL") for node in source.nodes):
        raise SystemExit(f"{source.dotted}: USUAL marks a function's own variable, and nothing else: {_HOW_USUAL}")
    return found


def holders_of_classes(sources: list[Source]) -> set[str]:
    """Names of attributes that are declared to hold a class."""
    return {
        node.target.attr
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and _is_type(node.annotation)
    }


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those that are in no other."""
    todo: list[ast.AST] = [tree]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            else:
                todo.append(node)


def _marked(source: Source, node: ast.AST) -> str:
    if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None):
        return ""
    return node.target.id if any(source.means(each, "USUAL") for each in ast.walk(node.annotation)) else ""


def _usual(node: ast.AST) -> ast.expr | None:
    """X of `Annotated[type[X], USUAL]`."""
    match node:
        case ast.AnnAssign(annotation=ast.Subscript(slice=ast.Tuple(elts=[ast.Subscript() as kind, _]))):
            return kind.slice if _is_type(kind) else None
    return None


def _is_type(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "type"


def _holding_classes(function: ast.AST, holders: set[str]) -> set[str]:
    """The function's variables and parameters that hold a class, by how they are declared or assigned."""
    found = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg) and _is_type(node.annotation)}
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_type(node.annotation):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            values = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
            if any(_is_held(value, set(), holders) for value in values):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _is_held(node: ast.AST, held: set[str], holders: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in held
    if isinstance(node, ast.Attribute):
        return node.attr in holders
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"
