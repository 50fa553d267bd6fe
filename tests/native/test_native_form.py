"""What the compiler gets in place of a source: the same modules with records as native classes."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

import pytest

import styx
from tests.compile_scripts import script

native_form = script("native_form").native_form

CONTEXT = """
    from __future__ import annotations
    from typing import Any, cast
    import msgspec
    from styx.protocol.frames import CallSpec

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
    from typing import TYPE_CHECKING, cast
    from styx.model.context import Context
    from styx.messages import Call, LIMIT

    if TYPE_CHECKING:
        from styx.footprint import Footprint

    _size = len

    class Invocation(Context, eq=False):
        if TYPE_CHECKING:
            footprint: Footprint = cast("Footprint", None)

        def send(self, kind: type[Invocation]) -> Call:
            def later() -> Call:
                return Call(LIMIT)
            return kind(1) or later()
    """


def native(**modules: str) -> dict[str, str]:
    changed: dict[str, str] = native_form({name: textwrap.dedent(source) for name, source in modules.items()})
    for source in changed.values():
        ast.parse(source)
    return changed


def function(source: str, name: str) -> str:
    [found] = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name]
    return ast.unparse(found)


def test_a_record_is_a_class_that_takes_its_fields_in_their_order() -> None:
    source = native(context=CONTEXT)["context"]
    assert "class Context:\n" in source
    assert "plain_stores\n" not in source
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
    changed = native(reading="from __future__ import annotations\nclass Reading:\n    pass\n")["reading"]
    assert "@mypyc_attr(free_list_len=1, acyclic=True)\nclass Reading:" in changed


def test_the_usual_kind_is_made_by_its_name() -> None:
    source = native(context=CONTEXT, invocation=INVOCATION)["invocation"]
    assert "(Invocation(1) if kind is Invocation else kind(1))" in source


def test_an_attribute_has_one_declaration() -> None:
    """Of two, the collector would be told twice, and free what is in use."""
    base = "class Environment:\n    app: str\n"
    record = "import msgspec\nclass Footprint(msgspec.Struct, Environment, eq=False):\n    app: str\n    tid: int\n"
    made = function(native(one=base, two=record)["two"], "__init__")
    assert "self.app = app" in made
    assert "self.tid: int = tid" in made
    other = "class Other(Environment):\n    def __init__(self) -> None:\n        self.app: str = ''\n"
    with pytest.raises(SystemExit, match="Other gives types to \\['app'\\], to which its base gives one already"):
        native(one=base, two=other)


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
            "class Three(Two, eq=False):\n    z: int\n",
            "the fields of One",
        ),
    ],
)
def test_what_would_be_lost_is_refused(source: str, told: str) -> None:
    with pytest.raises(SystemExit, match=f"a native class cannot be this: .*{told}"):
        native(one=f"import msgspec\n{source}")


def test_the_modules_that_are_compiled_can_be_written_so() -> None:
    build: Any = script("build")
    package = Path(styx.__file__).parent
    sources = {module: (package / f"{module}.py").read_text() for module in build.MODULES}
    changed = native_form(sources)
    assert changed.keys() == sources.keys()
    for module, source in changed.items():
        assert "msgspec.Struct" not in ast.unparse(ast.parse(source)).replace("docstring", ""), module
