"""Rules: the actions that each identity may take. An action is a call, a read, a listing of keys, an edit, a load, an
event that is published, the reading of events, the following of an operator's changes, work on an operator's dead calls
(their list, another attempt, a removal), a query in SQL, or the sight of a page. An action that no rule allows is
refused.

A file in TOML, of rules under `[[allow]]`; docs/operations.md has one that shows each kind. A pattern is a name, or the
beginning of a name followed by `*`. A rule without `keys` and `claims` is for every identity.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import ConfigurationError, RequestRejected
from styx.gateway import head
from styx.gateway.auth.identity import Identity

CALL: Final = "call"
READ: Final = "read"
LIST: Final = "list"
EDIT: Final = "edit"
LOAD: Final = "load"
PUBLISH: Final = "publish"
EVENTS: Final = "events"
CHANGES: Final = "changes"
DEAD: Final = "dead"
SQL: Final = "sql"
SEE: Final = "see"
PAGES: Final = {
    "/": "docs",
    "/docs": "docs",
    "/openapi.json": "docs",
    "/asyncapi.json": "docs",
    "/metrics": "metrics",
    "/errors": "errors",
    "/sql": "sql",
    "/status": "status",
}
"""Pages by path, with their names in rules."""
_SQL_PATHS: Final = {head.SQL_PATH: "query", head.SQL_WATCH_PATH: "watch"}
RULES_MAX: Final = 1_000
PATTERNS_MAX: Final = 1_000
ANY: Final = "*"


class Action(NamedTuple):
    """An action. `target` is OPERATOR.FUNCTION of a call, OPERATOR of a read, a listing, an edit, a load,
    changes or dead calls, an event's name, `query` or `watch` in SQL, or a page. `key` is the entity's key as text.
    """

    kind: str
    target: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


def action_of(
    scope: Mapping[str, Any], has_events: Callable[[], bool] = bool, has_sql: Callable[[], bool] = bool
) -> Action | None:
    """The action of an ASGI request, from its first line; None for a request that the gateway does not know.

    The path is parsed as by the gateway's endpoint, so that the allowed action is the one that runs. `has_events`:
    whether the app declares events, which have paths of their own; by default it does not. `has_sql`: whether queries
    are served, likewise.
    """
    method, sent = scope["method"], head.request_path(scope)
    if sent in _SQL_PATHS and has_sql():
        return Action(SQL, _SQL_PATHS[sent])
    if sent is None:
        page = PAGES.get(head.path(scope))
        return Action(SEE, page) if page is not None and method in ("GET", "HEAD") else None
    try:
        if sent.startswith(head.DEAD_PREFIX):
            dead = head.parse_dead(sent)
            listed = dead is not None and dead.act is None
            return None if dead is None or listed == (method == "POST") else Action(DEAD, dead.operator)
        if sent.startswith(head.EDIT_PREFIX):
            edit = head.parse_edit(sent)
            allowed = edit is not None and method in ("GET", "HEAD", "POST")
            return Action(EDIT, *edit) if edit is not None and allowed else None
        if sent.startswith(head.CHANGES_PREFIX):
            # Those of all entities and of their rows come in one stream; a read gives those of one entity.
            changes = head.parse_changes(sent)
            return None if changes is None or method not in ("GET", "HEAD") else Action(CHANGES, changes.operator)
        asked, event = head.parse(sent), head.published(sent, method)
    except RequestRejected:
        return None
    if event:
        return Action(PUBLISH, event)
    if asked is None or "" in asked:
        return None
    operator, key, function = asked
    if operator == head.EVENTS and key is not None and function is None and method in ("GET", "HEAD") and has_events():
        return Action(EVENTS, key)
    if key is None:
        kind = {"POST": LOAD, "GET": LIST, "HEAD": LIST}.get(method)
        return None if kind is None else Action(kind, operator)
    if function is None:
        return Action(READ, operator, key) if method in ("GET", "HEAD") else None
    return Action(CALL, f"{operator}.{function}", key) if method in ("GET", "HEAD", "POST") else None


Patterns = list[str]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[allow]]`."""

    keys: Patterns | None = None
    claims: dict[str, str | int | bool] | None = None
    entity: str | None = None
    call: Patterns = []
    read: Patterns = []
    list: Patterns = []
    edit: Patterns = []
    load: Patterns = []
    publish: Patterns = []
    events: Patterns = []
    changes: Patterns = []
    dead: Patterns = []
    sql: Patterns = []
    see: Patterns = []


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: list[Rule] = []


class Policy:
    """The rules in one version of the file."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        if len(rules) > RULES_MAX:
            raise ConfigurationError(f"there are {len(rules)} rules; {RULES_MAX} is the most")
        for number, rule in enumerate(rules, 1):
            _check(rule, number)
        self._rules = tuple(rules)

    def allows(self, identity: Identity, action: Action | None) -> bool:
        """Whether any rule allows the action. None, a request that the gateway does not know, is never allowed."""
        return action is not None and any(
            _fits(rule, identity) and _allows(rule, identity, action) for rule in self._rules
        )


def parse(data: bytes) -> Policy:
    """The rules in a file's bytes; raises `ConfigurationError`."""
    try:
        return Policy(msgspec.convert(tomllib.loads(data.decode()), _File).allow)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"it is no file of rules: {error}") from None


def _fits(rule: Rule, identity: Identity) -> bool:
    if rule.keys is None and rule.claims is None:
        return True
    if identity.claims is None:
        return rule.keys is not None and _matches(rule.keys, identity.name)
    claims = identity.claims
    return rule.claims is not None and all(_has(claims.get(name), value) for name, value in rule.claims.items())


def _has(claim: Any, wanted: str | int | bool) -> bool:
    """Whether a claim equals the wanted value, or contains it in a list or among words, as `scope` does."""
    if claim is None:
        return False
    if wanted == ANY:
        return True
    for each in claim if isinstance(claim, list) else [claim]:
        if type(each) is type(wanted) and (each == wanted or (isinstance(each, str) and wanted in each.split())):
            return True
    return False


def _allows(rule: Rule, identity: Identity, action: Action) -> bool:
    if not _matches(_lists(rule)[action.kind], action.target):
        return False
    if rule.entity is None or action.kind == SEE:
        return True
    own = None if identity.claims is None else identity.claims.get(rule.entity)
    return isinstance(own, str | int) and not isinstance(own, bool) and action.key == str(own)


def _lists(rule: Rule) -> dict[str, Patterns]:
    """The patterns of each kind of action."""
    return {
        CALL: rule.call,
        READ: rule.read,
        LIST: rule.list,
        EDIT: rule.edit,
        LOAD: rule.load,
        PUBLISH: rule.publish,
        EVENTS: rule.events,
        CHANGES: rule.changes,
        DEAD: rule.dead,
        SQL: rule.sql,
        SEE: rule.see,
    }


def _matches(patterns: Sequence[str], name: str) -> bool:
    return any(name.startswith(each[:-1]) if each.endswith(ANY) else name == each for each in patterns)


def _check(rule: Rule, number: int) -> None:
    if rule.keys is not None and rule.claims is not None:
        raise ConfigurationError(
            f"rule {number} has keys and claims, and nobody has both: an API key has a name, a token has claims. Make "
            "two rules of it"
        )
    if rule.claims is not None and not rule.claims:
        raise ConfigurationError(
            f"rule {number} has an empty table of claims, which every token fits: name a claim, or leave claims out"
        )
    if rule.entity is not None and rule.list:
        raise ConfigurationError(
            f"rule {number} has entity and list: a listing has the keys of all entities, so a rule cannot allow those "
            "of one. Make two rules of it"
        )
    if rule.entity is not None and rule.events:
        raise ConfigurationError(
            f"rule {number} has entity and events: events of all entities come in one stream, so a rule cannot allow "
            "those of one. Make two rules of it, or let the app give them by a function"
        )
    if rule.entity is not None and rule.changes:
        raise ConfigurationError(
            f"rule {number} has entity and changes: changes of all entities come in one stream, so a rule cannot allow "
            "those of one. Make two rules of it"
        )
    if rule.entity is not None and rule.sql:
        raise ConfigurationError(
            f"rule {number} has entity and sql: a query sees the rows of all entities, so a rule cannot allow those of "
            "one. Make two rules of it, or let the app give them by a function"
        )
    lists = [rule.keys or [], *_lists(rule).values()]
    if any(len(each) > PATTERNS_MAX for each in lists):
        raise ConfigurationError(f"rule {number} has a list of more than {PATTERNS_MAX}")
    for pattern in (each for patterns in lists for each in patterns):
        if not pattern or ANY in pattern[:-1]:
            raise ConfigurationError(f"rule {number}: {pattern!r} is no pattern: a name, or its beginning and *")
    for pattern in rule.call:
        if pattern != ANY and "." not in pattern:
            raise ConfigurationError(f"rule {number}: call has {pattern!r}; write OPERATOR.FUNCTION or OPERATOR.*")
