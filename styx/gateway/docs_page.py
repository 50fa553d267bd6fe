"""The page at `/docs`: every function with its parameters and docstring, and a form to try it.

One document without references to anything outside it. Everything that comes from the app is escaped, and the page's
security policy allows no script and no style but its own.
"""

from __future__ import annotations

import base64
import inspect
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

import msgspec

from styx.gateway.openapi import text_of
from styx.model.app import App
from styx.model.event import Event
from styx.model.function_spec import FunctionSpec
from styx.model.operator import Operator
from styx.model.partitioning import KeyType
from styx.schema.graph_picture import svg_of

_PARTS: Final[dict[Any, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "variadic",
    inspect.Parameter.VAR_KEYWORD: "rest",
}
_assets = files("styx.gateway")
STYLE: Final = (_assets / "docs.css").read_text("utf-8")
_SCRIPT: Final = (_assets / "docs.js").read_text("utf-8")


def _source(text: str) -> str:
    return "'sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode() + "'"


def security_policy(style: str, script: str) -> str:
    """The policy of a page that has this style and this script, and nothing else."""
    return (
        f"default-src 'none'; connect-src 'self'; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


CONTENT_SECURITY_POLICY: Final = security_policy(STYLE, _SCRIPT)


def docs_page(app: App) -> str:
    """The page as HTML."""
    operators = [operator for operator in app.operators.values() if operator.served]
    links = "".join(f'<a href="#{escape(each.name)}">{escape(each.name)}</a>' for each in operators)
    sections = "".join(map(_operator, operators))
    if app.events:
        links += '<a href="#events">events</a>'
        sections += _events(app)
    if app.graphs:
        links += '<a href="#*graphs">transaction graphs</a>'
        sections += _graphs(app)
    name = escape(app.name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>"
        f"<header><h1>{name}</h1><p>Every request is one serializable transaction. "
        'Machine-readable: <a href="openapi.json">openapi.json</a>. Watch: <a href="metrics">metrics</a>, '
        f'<a href="readyz">readiness</a>.</p><nav>{links}</nav></header>'
        f"<main>{sections}</main><script>{_SCRIPT}</script></body></html>\n"
    )


def _events(app: App) -> str:
    items = "".join(
        f'<li><a href="v1/events/{escape(event.name)}?follow=false"><code>{escape(event.name)}</code></a> '
        f"version {event.version}: <code>{escape(_type_name(event.type))}</code>{_kept(event)}</li>"
        for event in app.events.values()
    )
    return (
        '<section id="events"><h2>events</h2><p class="about">What committed transactions emit. Machine-readable: '
        f'<a href="asyncapi.json">asyncapi.json</a></p><ul>{items}</ul></section>'
    )


def _kept(event: Event[Any]) -> str:
    return "" if event.keep is None else f", kept for {escape(str(event.keep))}"


def _graphs(app: App) -> str:
    """The pictures of the app's graphs; no operator can have the section's name."""
    pictures = "".join(f'<div class="graph">{svg_of([graph], paper=False)}</div>' for graph in app.graphs.values())
    return (
        '<section id="*graphs"><h2>Transaction graphs</h2><p class="about">A request that begins at the blue '
        f"function makes these calls, and no others.</p>{pictures}</section>"
    )


def _operator(operator: Operator) -> str:
    name = escape(operator.name)
    functions = "".join(_function(operator, spec) for spec in operator.functions.values())
    key = escape(operator.key_type.name)
    return (
        f'<section id="{name}"><h2>{name}</h2><p class="about">Keys: <code>{key}</code></p>'
        f"{_read(operator)}{functions}</section>"
    )


def _read(operator: Operator) -> str:
    state = "" if operator.state_type is None else f" → {_type_name(operator.state_type)}"
    return (
        f"<details><summary><code>{escape(f'GET{state}')}</code> <span>Reads one entity: its state, in the serial "
        f'order.</span></summary><form data-operator="{escape(operator.name)}">{_key_field(operator.key_type)}'
        '<button>Read</button><output aria-live="polite"></output></form></details>'
    )


def _function(operator: Operator, spec: FunctionSpec) -> str:
    text, signature = text_of(spec), spec.signature
    fields = "".join(_field(parameter) for parameter in signature.parameters)
    result = "" if signature.result_type is Any else f" → {_type_name(signature.result_type)}"
    rest = f"<pre>{escape(text.description)}</pre>" if text.description else ""
    # Only the array form has room for *args; only the object form has room for everything else.
    form = "array" if signature.variadic is not None else "object"
    return (
        f"<details><summary><code>{escape(spec.name)}{escape(signature.describe())}{escape(result)}</code> "
        f"<span>{escape(text.summary)}</span></summary>{rest}"
        f'<form data-operator="{escape(operator.name)}" data-function="{escape(spec.name)}" data-body="{form}">'
        f'{_key_field(operator.key_type)}{fields}<button>Run</button><output aria-live="polite"></output></form>'
        "</details>"
    )


def _key_field(key_type: KeyType) -> str:
    hint = "" if key_type.scalar is not None else "a JSON array, such as [1, 2]"
    return _input("key", key_type.name, "", hint, 'data-part="key" required')


def _field(parameter: inspect.Parameter) -> str:
    part = _PARTS.get(parameter.kind, "argument")
    hint = {"variadic": "a JSON array", "rest": "a JSON object"}.get(part, "")
    required = part == "argument" and parameter.default is parameter.empty
    kind = "text" if parameter.annotation is str else "json"
    flags = f'data-part="{part}" data-kind="{kind}"' + (" required" if required and kind == "json" else "")
    if not required and part == "argument":
        flags += " data-optional"
        hint = f"default: {_default_text(parameter.default)}"
    return _input(parameter.name, _type_name(parameter.annotation), parameter.name, hint, flags)


def _input(label: str, kind: str, name: str, hint: str, flags: str) -> str:
    return (
        f"<label><b>{escape(label)}</b> <i>{escape(kind)}</i>"
        f'<input name="{escape(name)}" placeholder="{escape(hint)}" autocomplete="off" spellcheck="false" {flags}>'
        "</label>"
    )


def _type_name(annotation: Any) -> str:
    return inspect.formatannotation(annotation).replace("typing.", "")


def _default_text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except Exception:  # noqa: BLE001 - any object can be a default
        return "set by the function"
