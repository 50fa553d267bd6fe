"""What the compiler gets in place of a source: the same modules with records as native classes."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tests.compile_scripts import script

BUILD = script("build")
native_form = script("native_form").native_form

CONTEXT = """
    from __future__ import annotations
    from typing import Any, cast
    import msgspec
    from styx.native.interpreted import native, plain_stores
    from styx.protocol.frames import CallSpec

    @native(subclassed=True, unchecked=True)
    @plain_stores
    class Context(msgspec.Struct, eq=False):
        \"\"\"Its docstring.\"\"\"

        key: int
        path: bytes = b""
        calls: list[CallSpec] | None = None
        left: int = -1
        value: bytes = UNREAD
        footprint: Any = None
        own: list[int] = []

        def get(self, default: str = "") -> int:
            return self.key
    """
INVOCATION = """
    from __future__ import annotations
    from typing import TYPE_CHECKING, Annotated, cast
    from styx.model.context import Context
    from styx.messages import Call, LIMIT
    from styx.native.interpreted import USUAL, native as marked

    if TYPE_CHECKING:
        from styx.footprint import Footprint

    _size = len

    @marked
    class Invocation(Context, eq=False):
        if TYPE_CHECKING:
            footprint: Footprint = cast("Footprint", None)

        def send(self) -> Call:
            own: Annotated[type[Invocation], USUAL] = type(self)
            def later() -> Call:
                return Call(LIMIT)
            return own(1) or later()
    """


MODEL = {"context": "model/context"}
"""Modules that others import by their full name."""


MARKS = "from styx.native.interpreted import USUAL, native\n"


def native(**modules: str) -> dict[str, str]:
    changed: dict[str, str] = native_form({MODEL.get(n, n): textwrap.dedent(source) for n, source in modules.items()})
    for source in changed.values():
        ast.parse(source)
    return {name: changed[MODEL.get(name, name)] for name in modules}


def function(source: str, name: str) -> str:
    [found] = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name]
    return ast.unparse(found)


def test_a_record_is_a_class_that_takes_its_fields_in_their_order() -> None:
    source = native(context=CONTEXT)["context"]
    assert "class Context:\n" in source
    assert "@plain_stores" not in source
    assert "@mypyc_attr(allow_interpreted_subclasses=True)\nclass Context:" in source
    assert "Its docstring." in source
    made = function(source, "__init__")
    assert made.startswith(
        "def __init__(self, key: int, path: bytes=b'', calls: list[CallSpec] | None=None, left: int=-1,"
    )
    assert "self.own: list[int] = []" in made, "a list for each object"
    assert "own:" not in made.partition("\n")[0]


def test_what_users_pass_is_not_checked_by_annotations() -> None:
    assert function(native(context=CONTEXT)["context"], "get").startswith("def get(self, default: Any=''")


def test_a_field_with_a_type_of_its_own_below_belongs_to_the_class_below() -> None:
    both = native(context=CONTEXT, invocation=INVOCATION)
    assert "footprint" not in function(both["context"], "__init__")
    made = function(both["invocation"], "__init__")
    assert made.startswith("def __init__(self, key: int, path: bytes, calls: list[CallSpec] | None, left: int,"), made
    assert "footprint: Footprint) -> None:" in made, made
    assert "self.footprint: Footprint = footprint" in made


def test_names_that_stay_what_they_are_are_looked_up_once() -> None:
    source = native(context=CONTEXT, invocation=INVOCATION)["invocation"]
    assert "_once_Call: _Final = Call" in source
    assert "_once_LIMIT: _Final = LIMIT" in source
    assert "return _once_Call(_once_LIMIT)" in source
    assert "Context: _Final" not in source, "it is compiled itself"


def test_members_of_enumerations_are_looked_up_once() -> None:
    source = """
        from __future__ import annotations
        from styx.step import Step, steps

        class Worker:
            def step(self, own: Step) -> bool:
                return self.at is Step.IDLE or own.LAST is steps.FIRST or Step.idle
        """
    changed = native(worker=source)["worker"]
    assert "_once_Step_IDLE: _Final = Step.IDLE" in changed
    assert "return self.at is _once_Step_IDLE or own.LAST is steps.FIRST or Step.idle" in changed


def test_what_is_made_and_freed_in_turns_keeps_its_memory() -> None:
    source = f"from __future__ import annotations\n{MARKS}@native(short_lived=True)\nclass Reading:\n    pass\n"
    changed = native(reading=source)["reading"]
    assert "@mypyc_attr(free_list_len=1, acyclic=True)\nclass Reading:" in changed


def test_the_usual_kind_is_made_by_its_name() -> None:
    source = native(context=CONTEXT, invocation=INVOCATION)["invocation"]
    assert "(Invocation(1) if own is Invocation else own(1))" in source
    assert "own: type[Invocation] = type(self)" in source


def test_an_attribute_has_one_declaration() -> None:
    """Of two, the collector would be told twice, and free what is in use."""
    base = "class Environment:\n    app: str\n"
    record = (
        f"import msgspec\nfrom styx.one import Environment\n{MARKS}@native\n"
        "class Footprint(msgspec.Struct, Environment, eq=False):\n    app: str\n    tid: int\n"
    )
    made = function(native(one=base, two=record)["two"], "__init__")
    assert "self.app = app" in made
    assert "self.tid: int = tid" in made
    other = "from styx.one import Environment\n"
    other += "class Other(Environment):\n    def __init__(self) -> None:\n        self.app: str = ''\n"
    with pytest.raises(SystemExit, match="Other gives types to \\['app'\\], to which its base gives one already"):
        native(one=base, two=other)


def test_a_record_has_the_fields_of_all_records_above_it() -> None:
    base = (
        f"import msgspec\n{MARKS}@native\nclass One(msgspec.Struct, eq=False):\n    x: int\n"
        "@native\nclass Two(One, eq=False):\n    y: str = ''\n"
    )
    top = f"from styx.one import Two\n{MARKS}@native\nclass Three(Two, eq=False):\n    z: bytes = b''\n"
    made = function(native(one=base, two=top)["two"], "__init__")
    assert made.startswith("def __init__(self, x: int, y: str='', z: bytes=b'') -> None:"), made
    assert "self.x = x" in made


def test_a_record_with_an_equality_is_refused() -> None:
    with pytest.raises(SystemExit, match="say eq=False"):
        native(one="import msgspec\nclass One(msgspec.Struct):\n    x: int\n")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class One(msgspec.Struct, eq=False, kw_only=True):\n    x: int\n", "kw_only=True"),
        ("class One(msgspec.Struct, eq=False, tag='one'):\n    x: int\n", "tag='one'"),
        ("class One(msgspec.Struct, eq=False, frozen=False):\n    x: int\n", "frozen=False"),
        ("from msgspec import Struct\nclass One(Struct, eq=False):\n    x: int\n", "eq=False"),
        ("class One(Protocol, total=False):\n    x: int\n", "total=False"),
        ("@cached\nclass One(msgspec.Struct, eq=False):\n    x: int\n", "cached"),
        ("class One(msgspec.Struct, eq=False):\n    x: dict[str, int] = {}\n", "x = {}"),
        ("class One(msgspec.Struct, eq=False):\n    x: list[int] = [1]\n", r"x = \[1\]"),
        ("class One(msgspec.Struct, eq=False):\n    x: list[int] = cast('list[int]', ())\n", "x = cast"),
        ("class One(msgspec.Struct, eq=False):\n    x: int = msgspec.field(name='y')\n", "x = msgspec.field"),
        ("class One(msgspec.Struct, eq=False):\n    x: ClassVar[int] = 1\n", "x: ClassVar"),
        ("class One(msgspec.Struct, eq=False):\n    def __post_init__(self) -> None:\n        pass\n", "__post_init__"),
        (
            "class One(msgspec.Struct, eq=False):\n    x: int\nclass Two(One, eq=False):\n    y: int\n"
            "class Three(Two, eq=False):\n    z: int\n    if TYPE_CHECKING:\n        x: bool\n",
            "a narrower x",
        ),
    ],
)
def test_what_would_be_lost_is_refused(source: str, told: str) -> None:
    with pytest.raises(SystemExit, match=f"a native class cannot be this: .*{told}"):
        native(one=f"import msgspec\n{source}")


def test_a_module_that_has_moved_must_be_named_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BUILD, "MODULES", ("worker/slot", "worker/moved"))
    with pytest.raises(SystemExit, match="names worker/moved: where is its code now"):
        BUILD.sources()


def refused(told: str, others: dict[str, str] | None = None, **modules: str) -> None:
    """`others` are not compiled."""
    begin = f"from typing import Annotated, Any\nimport msgspec\n{MARKS}"
    with pytest.raises(SystemExit, match=told):
        native_form({name: begin + textwrap.dedent(source) for name, source in modules.items()}, others or {})


RECORD = "class One(msgspec.Struct, eq=False):\n    x: int\n"


def test_a_record_without_a_mark_is_refused() -> None:
    refused("styx.one.One: .* mark it @native", one=RECORD)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("@native\nclass One:\n    pass\n", r"only a Struct is written anew: take the mark @native away"),
        ("@native(fast=True)\nclass One:\n    pass\n", "@native knows subclassed=True, .*, and not fast=True"),
        ("@native(subclassed=False)\nclass One:\n    pass\n", "and not subclassed=False"),
        (f"@native()\n{RECORD}", r"write @native, or @native\(…\) with keywords, and not native\(\)"),
        (f"@native\n@native(subclassed=True)\n{RECORD}", "marked @native twice"),
        ("@native(subclassed=True, short_lived=True)\nclass One:\n    pass\n", "subclassed or short_lived"),
        ("def f() -> None:\n    @native(subclassed=True)\n    class One:\n        pass\n", "at the top of a module"),
        ("@native\ndef one() -> None:\n    pass\n", "marks classes at the top of a module"),
        ("@cached\nclass One:\n    pass\n", "a native class cannot be this: cached"),
        (
            "from styx.messages import Reply\nclass One(Reply):\n    pass\n",
            "from styx.messages.Reply, which",
        ),
        ("from msgspec import Struct\nclass One(Struct):\n    pass\n", "a native class cannot be this: Struct"),
        (
            "class One:\n    pass\n@native(subclassed=True)\nclass Two(One):\n    pass\n",
            r"its base styx.one.One must be marked @native\(subclassed=True\)",
        ),
    ],
)
def test_a_mark_that_would_do_nothing_or_harm_is_refused(source: str, told: str) -> None:
    refused(told, one=source)


def test_what_users_call_needs_any() -> None:
    with pytest.raises(SystemExit, match=r"styx\.one\.One: .* add `from typing import Any`"):
        native(one=f"{MARKS}@native(unchecked=True)\nclass One:\n    def f(self, x: int) -> None:\n        pass\n")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            "from styx.native.interpreted import native\n@native\nclass Two:\n    pass\n",
            "it is not compiled: add",
        ),
        ("import styx.native.interpreted as marks\nkind: marks.USUAL\n", "styx.two: its marks .* do nothing"),
        ("from styx.one import One as Base\nclass Two(Base):\n    pass\n", "cannot derive from styx.one.One, which is"),
    ],
)
def test_modules_that_are_not_compiled_are_looked_at_too(source: str, told: str) -> None:
    refused(told, {"two": source}, one="class One:\n    pass\n")


def test_interpreted_code_may_derive_from_a_class_that_says_so() -> None:
    one = f"{MARKS}@native(subclassed=True)\nclass One:\n    pass\n"
    native_form({"one": one}, {"two": "from styx.one import One\nclass Two(One):\n    pass\n"})


def test_a_record_is_told_from_another_of_the_same_name() -> None:
    tuple_ = "from typing import NamedTuple\nclass One(NamedTuple):\n    x: int\nclass Two(One):\n    pass\n"
    both = native(one=f"import msgspec\n{MARKS}@native\n{RECORD}", two=tuple_)
    assert "class Two(One):\n    pass" in both["two"]


def test_a_record_may_stand_behind_one_that_derives_from_it() -> None:
    above = f"import msgspec\n{MARKS}@native\n{RECORD}"
    below = f"from styx.two import One\n{MARKS}@native\nclass Two(One, eq=False):\n    y: int\n"
    both = native(one=below, two=above)
    assert function(both["one"], "__init__").startswith("def __init__(self, x: int, y: int)")


USES = "class One:\n    pass\ndef make(x: Any) -> Any:\n    "


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (f"{USES}kind = type(x)\n    return kind(1)\n", r"line \d+: kind holds a class, and a call through it is slow"),
        (f"{USES}kind = One if x else type(x)\n    return kind(1)\n", "kind holds a class"),
        (f"{USES}return type(x)(1)\n", r"type\(x\) holds a class"),
        ("def make(kind: type[Any]) -> Any:\n    return kind(1)\n", "kind holds a class"),
        ("class One:\n    def __init__(self) -> None:\n        self.kind: type[One] = One\n"
         "def make(x: One) -> Any:\n    other = x.kind\n    return other(1)\n", "other holds a class"),
        ("class One:\n    def __init__(self) -> None:\n        self.kind: type[One] = One\n"
         "def make(x: One) -> Any:\n    return x.kind(1)\n", "x.kind holds a class"),
        (f"{USES}kind: Annotated[type[One], USUAL] = type(x)\n    return kind\n", "is marked USUAL and is not called"),
        (f"{USES}kind: Annotated[type[Other], USUAL] = type(x)\n    return kind(1)\n", "where X is a class of a"),
        (f"{USES}kind: Annotated[One, USUAL] = type(x)\n    return kind(1)\n", "where X is a class of a"),
        ("class One:\n    pass\ndef f(kind: Annotated[type[One], USUAL]) -> Any:\n    return 1\n", "and nothing else"),
        ("KIND: Annotated[type[Any], USUAL] = int\n", "USUAL marks a function's own variable"),
    ],
)  # fmt: skip
def test_a_class_called_through_a_variable_is_marked_and_every_mark_counts(source: str, told: str) -> None:
    refused(told, one=source)


def test_the_modules_that_are_compiled_can_be_written_so() -> None:
    modules, others = BUILD.sources()
    assert "worker/slot" in modules
    assert "worker/events" in others
    changed = native_form(modules, others)
    assert changed.keys() == modules.keys() == set(BUILD.MODULES)
    for module, source in changed.items():
        classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
        assert "msgspec.Struct" not in {ast.unparse(base) for each in classes for base in each.bases}, module


def test_a_record_on_a_record_of_its_own_module_imports_nothing_from_there() -> None:
    source = (
        f"import msgspec\n{MARKS}@native\nclass Cell(msgspec.Struct, eq=False):\n    footprint: Footprint\n\n"
        "@native\nclass RowCell(Cell, eq=False):\n    table: str\n\nclass Footprint:\n    pass\n"
    )
    assert "from styx.footprint import" not in native(footprint=source)["footprint"]
