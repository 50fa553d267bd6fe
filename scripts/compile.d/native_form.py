"""A module's source with its records as native classes, which is what the compiler gets.

In the plain form records are `msgspec.Struct`s, which C code makes quickly. But compiled code reads a Struct's fields
slowly, and the compiler silently drops a Struct's class keywords. So each Struct, marked `@native`, becomes a plain
class with a generated `__init__` that takes the fields in the same order. Three more things change. A call of a class
through a variable marked `USUAL` becomes a call by the class's name if the variable holds the usual class, because
through a variable the arguments travel as a tuple. Annotations of the methods of a class marked `unchecked` are not
checked, as in the plain form. A module's constants are looked up once, at import, not in the module's dictionary at
each use. A form that a native class cannot have is refused, never left out. See "Writing for the compiled form" in
CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import builtins
import sys
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard

sys.path.insert(0, str(Path(__file__).parent))
from marks import (  # type: ignore[import-not-found]
    ROOM,
    STRUCT,
    Class,
    Source,
    holders_of_classes,
    is_record,
    marked_classes,
    refuse_elsewhere,
    usual_variables,
)

KEYWORDS: Final = frozenset({"eq=False", "gc=False", "frozen=True"})
"""What may be said of a record: it is equal to itself alone, the collector may know it, and the type checker keeps
others from setting its fields.
"""
DECORATORS: Final = frozenset({f"{ROOM}.native", f"{ROOM}.plain_stores"})
"""What goes with the Struct."""
_FUTURE: Final = "from __future__ import annotations\n"
_IMPORT: Final = """
from typing import TYPE_CHECKING as _checked, Final as _Final
if _checked:
    from mypy_extensions import mypyc_attr
"""


class Field(NamedTuple):
    """One field of a record; `default` is None if it has none."""

    name: str
    annotation: str
    default: str | None


class Edit(NamedTuple):
    """Replaces what stands from `start` to `end`, offsets of bytes."""

    start: int
    end: int
    text: str


def native_form(modules: dict[str, str], others: dict[str, str] | None = None) -> dict[str, str]:
    """The sources of `modules` by name, in native form: a record can derive from another module's.

    `others` are the sources that are not compiled, in which marks and derived classes are looked for. Raises
    `SystemExit` for what a compiled module cannot have.
    """
    sources = [Source(name, source) for name, source in modules.items()]
    classes = marked_classes(sources)
    refuse_elsewhere([Source(name, source) for name, source in (others or {}).items()], classes)
    by_module = {source.name: source for source in sources}
    records: dict[str, Record] = {}
    for each in classes.values():
        if is_record(each, classes):
            _add_record(each, classes, records)
    for each in classes.values():
        _refuse_what_is_lost(each, by_module[each.module], records.get(each.name))
    for name in records:
        if classes[name].mark is None:
            raise SystemExit(
                f"{name}: the compiled form writes a Struct anew, as a native class: mark it @native ({ROOM}), or move "
                "it into a module that is not compiled"
            )
    declared = {name: _declared(each.node) for name, each in classes.items()}
    above = {name: {a for base in each.bases for a in declared.get(base, ())} for name, each in classes.items()}
    for name in classes.keys() - records.keys():
        _refuse_repeated(name, declared[name] & above[name])
    holders = holders_of_classes(sources)
    compiled = {source.dotted for source in sources}
    return {source.name: _Module(source, compiled, classes, records, above, holders).edited() for source in sources}


class Record(NamedTuple):
    """A Struct: `base` is the Struct it derives from; `narrowed` are fields of the base with a type of its own."""

    module: str
    name: str
    fields: list[Field]
    base: Record | None
    narrowed: dict[str, str]

    @property
    def all_fields(self) -> list[Field]:
        """Those of the bases, and its own."""
        return self.fields if self.base is None else [*self.base.all_fields, *self.fields]


def _add_record(each: Class, classes: dict[str, Class], records: dict[str, Record]) -> Record:
    """With its bases."""
    if each.name not in records:
        above = [classes[base] for base in each.bases if base in classes and is_record(classes[base], classes)]
        base = _add_record(above[0], classes, records) if above else None
        if "eq=False" not in _keywords(each.node):
            raise SystemExit(f"{each.name}: a native class has no equality of its own: say eq=False")
        records[each.name] = Record(each.module, each.name, _fields(each.node.body), base, _narrowed(each.node))
    return records[each.name]


def _keywords(node: ast.ClassDef) -> set[str]:
    return {f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in node.keywords}


def _refuse_what_is_lost(each: Class, source: Source, record: Record | None) -> None:
    """What the compiler would leave out without a word, or the native class would do otherwise."""
    node = each.node
    lost = _keywords(node) - (KEYWORDS if record is not None else set())
    lost |= {ast.unparse(base) for base in node.bases if source.origin(base) == STRUCT != ast.unparse(base)}
    for decorator in node.decorator_list:
        if decorator is not each.mark_node and (record is None or source.origin(decorator) not in DECORATORS):
            lost.add(ast.unparse(decorator))
    if record is not None:
        lost |= {f"{child.name}()" for child in node.body if _takes_part_in_making(child)}
        lost |= {f"{field.name} = {field.default}" for field in record.fields if not _is_each_s_own(field)}
        lost |= {f"{field.name}: {field.annotation}" for field in record.fields if "ClassVar" in field.annotation}
        if record.base is not None and record.base.base is not None and record.narrowed:
            lost.add(f"a narrower {', '.join(record.narrowed)}")  # which only the next base can leave to it
    if lost:
        raise SystemExit(f"{each.name}: a native class cannot be this: {', '.join(sorted(lost))}")


def _takes_part_in_making(child: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(child, ast.FunctionDef) and child.name in ("__init__", "__new__", "__post_init__")


def _is_each_s_own(field: Field) -> bool:
    """Whether the default is no object that could be changed, or is made anew for each."""
    if field.default is None or field.default == "[]":
        return True
    default = ast.parse(field.default, mode="eval").body
    if isinstance(default, ast.UnaryOp):
        default = default.operand
    return isinstance(default, ast.Constant) or (isinstance(default, ast.Name) and default.id.isupper())


def _fields(body: list[ast.stmt]) -> list[Field]:
    fields = []
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            annotation = ast.unparse(node.annotation)
            fields.append(Field(node.target.id, annotation, None if node.value is None else ast.unparse(node.value)))
    return fields


def _narrowed(node: ast.ClassDef) -> dict[str, str]:
    blocks = [child for child in node.body if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"]
    return {field.name: field.annotation for block in blocks for field in _fields(block.body)}


class _Module:
    def __init__(
        self,
        source: Source,
        compiled: set[str],
        classes: dict[str, Class],
        records: dict[str, Record],
        above: dict[str, set[str]],
        holders: set[str],
    ) -> None:
        self._source = source
        self._bytes = source.text.encode()
        self._tree = source.tree
        self._classes = [each for each in classes.values() if each.module == source.name]
        self._records = records
        self._narrowings = {
            (record.base.name, field)
            for record in records.values()
            if record.base is not None
            for field in record.narrowed
        }
        self._compiled = compiled
        self._above = above
        self._usual = usual_variables(source, classes, holders)
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._edits: list[Edit] = []

    def edited(self) -> str:
        """The module's source in native form."""
        self._module_names()
        for each in self._classes:
            self._class(each)
        for variable in self._usual:
            self._replace(variable.annotation, f"type[{variable.usual}]")
            for call in variable.calls:
                through = ast.unparse(call.func)
                arguments = self._text(call)[len(through) :]
                self._replace(
                    call, f"({variable.usual}{arguments} if {through} is {variable.usual} else {through}{arguments})"
                )
        data, below = self._bytes, len(self._bytes)
        for edit in sorted(set(self._edits), reverse=True):
            assert edit.end <= below, f"{self._source.name}: two edits in one place"
            below = edit.start
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        return data.decode().replace(_FUTURE, _FUTURE + _IMPORT, 1)

    def _module_names(self) -> None:
        """Constants are final; what is called, or all in capitals, of an import gets a final name of its own."""
        imported: set[str] = set()
        once: dict[str, str] = {}
        for node in self._tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_value(node.value):
                end = self._at(node.lineno, node.col_offset) + len(node.targets[0].id)
                self._edits.append(Edit(end, end, ": _Final"))
            elif isinstance(node, ast.ImportFrom) and node.module not in self._compiled and node.module != "__future__":
                imported |= {alias.asname or alias.name for alias in node.names}
                after = node.end_lineno
        for function in ast.walk(self._tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in _uses(function):
                    text = self._text(node)
                    if text.partition(".")[0] in imported and not self._source.means(node, "USUAL"):
                        once[text] = f"_once_{text.replace('.', '_')}"
                        self._replace(node, once[text])
        if once:
            assert after is not None
            at = self._at(after + 1, 0)
            self._edits.append(
                Edit(at, at, "".join(f"{name}: _Final = {text}\n" for text, name in sorted(once.items())))
            )

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _text(self, node: ast.expr) -> str:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._bytes[
            self._at(node.lineno, node.col_offset) : self._at(node.end_lineno, node.end_col_offset)
        ].decode()

    def _replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)
        self._edits.append(Edit(start, end, text))

    def _class(self, each: Class) -> None:
        node, mark, record = each.node, each.mark, self._records.get(each.name)
        if mark is not None and mark.unchecked:
            self._unchecked(each.name, node)
        decorator = ""
        if mark is not None and mark.subclassed:
            decorator = "@mypyc_attr(allow_interpreted_subclasses=True)\n"
        elif mark is not None and mark.short_lived:
            decorator = "@mypyc_attr(free_list_len=1, acyclic=True)\n"
        if record is None:
            if each.mark_node is not None:
                assert each.mark_node.end_lineno is not None
                start = self._at(each.mark_node.lineno, 0)
                self._edits.append(Edit(start, self._at(each.mark_node.end_lineno + 1, 0), decorator))
            return
        bases = [ast.unparse(base) for base in node.bases]
        kept = ", ".join(base for base in bases if base != "msgspec.Struct")
        first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        start, end = self._at(first, 0), self._at(node.body[0].lineno, 0)
        before = []
        above = record.base
        while above is not None:
            names = {n.id for f in above.fields for n in ast.walk(ast.parse(f.annotation)) if isinstance(n, ast.Name)}
            used = ", ".join(sorted(name for name in names if not hasattr(builtins, name)))
            if used and above.module != record.module:
                before.append(f"if _checked:\n    from styx.{above.module.replace('/', '.')} import {used}\n")
            above = above.base
        self._edits.append(
            Edit(start, end, "".join(before) + f"{decorator}class {node.name}{f'({kept})' if kept else ''}:\n")
        )
        fields = [c for c in node.body if isinstance(c, ast.AnnAssign) or _is_narrowing(c)]
        for child in fields:
            self._replace(child, "pass")
        last = (fields or node.body[:1])[-1]  # after the docstring, at least
        assert last.end_lineno is not None
        at = self._at(last.end_lineno + 1, 0)
        self._edits.append(Edit(at, at, "\n" + self._init(record)))

    def _unchecked(self, name: str, node: ast.ClassDef) -> None:
        if self._source.origin(ast.Name("Any")) != "typing.Any":
            raise SystemExit(f"{name}: @native(unchecked=True) writes Any: add `from typing import Any`")
        for method in node.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(method.name):
                arguments = method.args
                for argument in [*arguments.args, *arguments.kwonlyargs]:
                    if argument.annotation is not None and not _is_type_variable(argument.annotation):
                        self._replace(argument.annotation, "Any")

    def _init(self, record: Record) -> str:
        """`__init__` of a record; fields that every object gets a new list for are no parameters."""
        name = record.name
        own_types = {field.name: field.annotation for field in record.fields} | record.narrowed
        declared = own_types.keys() - (self._above[name] - record.narrowed.keys())
        parameters, body = [], []
        for field in record.all_fields:
            annotation = own_types.get(field.name, field.annotation)
            if (name, field.name) in self._narrowings:  # the deriving record has it, with its type
                if field.default is None:
                    raise SystemExit(f"{name}.{field.name} is narrowed below and has no default")
                continue
            typed = f": {annotation}" if field.name in declared else ""
            if field.default == "[]":
                body.append(f"        self.{field.name}{typed} = []\n")
            else:
                default = "" if field.default is None else f" = {field.default}"
                if field.name in record.narrowed and "None" in default and "None" not in annotation:
                    default = ""
                    parameters = [p.split(" = ")[0] for p in parameters]
                parameters.append(f"{field.name}: {annotation}{default}")
                body.append(f"        self.{field.name}{typed} = {field.name}\n")
        return f"    def __init__(self, {', '.join(parameters)}) -> None:\n" + "".join(body) + "\n"


def _is_narrowing(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_public(method: str) -> bool:
    return not method.startswith("_") or method == "__init__"


def _is_type_variable(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and len(annotation.id) == 1


def _is_value(node: ast.expr) -> bool:
    """Not a type: those must stay what the type checker knows."""
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in ("TypeVar", "NewType"))
    return isinstance(node, ast.Attribute | ast.Constant | ast.Tuple)


def _uses(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Name | ast.Attribute]:
    """Names in its own statements that are called, or all in capitals; and members, all in capitals, of classes."""
    names: dict[ast.Name, None] = {}
    members: dict[ast.Attribute, None] = {}
    own = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    own |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names[node.func] = None
            elif isinstance(node, ast.Name) and node.id.isupper() and isinstance(node.ctx, ast.Load):
                names[node] = None
            elif _is_member(node):
                members[node] = None
    return [*(node for node in names if node.id not in own), *members]


def _is_member(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """`Step.IDLE`: of an enumeration, by the way it is written."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr.isupper()):
        return False
    return isinstance(node.value, ast.Name) and node.value.id[0].isupper() and not node.value.id.isupper()


def _declared(node: ast.ClassDef) -> set[str]:
    """Attributes to which the class gives a type, in its body or in a method."""
    names = set()
    for child in ast.walk(node):
        if isinstance(child, ast.AnnAssign):
            if isinstance(child.target, ast.Name) and child in node.body:
                names.add(child.target.id)
            elif isinstance(child.target, ast.Attribute) and ast.unparse(child.target.value) == "self":
                names.add(child.target.attr)
    return names


def _refuse_repeated(name: str, repeated: set[str]) -> None:
    """The compiler makes one attribute of two declarations, but the class tells the garbage collector of it twice,
    which then frees what is still in use. (A record is written anew, with one declaration.)
    """
    if repeated:
        raise SystemExit(f"{name} gives types to {sorted(repeated)}, to which its base gives one already")
