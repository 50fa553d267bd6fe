"""A session's settings: those that clients set and show. None changes how queries are answered, but for the time that
they may take.
"""

from __future__ import annotations

import re
from typing import Final

from styx.postgres.sql_errors import (
    BAD_PARAMETER_VALUE,
    FEATURE_NOT_SUPPORTED,
    LIMIT_EXCEEDED,
    READ_ONLY,
    UNDEFINED_SETTING,
    SqlError,
)
from styx.version import __version__

SERVER_VERSION: Final = "14.0"
"""Of which PostgreSQL clients shall take this for: so they ask its catalogs for nothing that later ones have."""
SERVER_VERSION_NUMBER: Final = "140000"
VERSION: Final = f"PostgreSQL {SERVER_VERSION} (styx {__version__}, read-only)"
SETTINGS_MAX: Final = 200
VALUE_CHARS_MAX: Final = 4_096

REPORTED: Final = (
    *("server_version", "server_encoding", "client_encoding", "application_name", "default_transaction_read_only"),
    *("in_hot_standby", "is_superuser", "session_authorization", "DateStyle", "IntervalStyle", "TimeZone"),
    *("integer_datetimes", "standard_conforming_strings"),
)
"""What every client is told at its beginning, and when it changes."""
_NAMES: Final = {each.lower(): each for each in REPORTED}
_FIXED: Final = {
    "server_version": SERVER_VERSION,
    "server_version_num": SERVER_VERSION_NUMBER,
    "server_encoding": "UTF8",
    "in_hot_standby": "on",
    "is_superuser": "off",
    "integer_datetimes": "on",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "block_size": "8192",
    "lc_collate": "C",
    "lc_ctype": "C",
    "transaction_read_only": "on",
    "wal_level": "replica",
}
_BEGIN: Final = {
    **_FIXED,
    "client_encoding": "UTF8",
    "application_name": "",
    "default_transaction_read_only": "on",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "standard_conforming_strings": "on",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "transaction_deferrable": "off",
    "default_transaction_deferrable": "off",
    "search_path": '"$user", public',
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "extra_float_digits": "1",
    "client_min_messages": "notice",
    "bytea_output": "hex",
    "xmloption": "content",
    "jit": "off",
    "row_security": "on",
    "synchronize_seqscans": "on",
    "default_tablespace": "",
    "default_table_access_method": "heap",
    "check_function_bodies": "on",
    "work_mem": "4MB",
    "role": "none",
    "geqo": "on",
    "enable_seqscan": "on",
    "enable_nestloop": "on",
    "enable_hashjoin": "on",
    "enable_mergejoin": "on",
    "backslash_quote": "safe_encoding",
    "escape_string_warning": "on",
    "password_encryption": "scram-sha-256",
    "plan_cache_mode": "auto",
    "quote_all_identifiers": "off",
}
_STAYS: Final = {"datestyle", "intervalstyle", "timezone", "standard_conforming_strings", "bytea_output"}
"""What a client may ask to be other, and stays as it is, with a warning."""
_SAME: Final = {
    "datestyle": {"iso", "iso, mdy", "iso,mdy", "iso, dmy", "iso, ymd", "mdy", "default"},
    "timezone": {"utc", "etc/utc", "gmt", "default", "0", "zulu", "etc/gmt", "universal"},
    "standard_conforming_strings": {"on", "true", "1", "yes"},
}
_UTF8: Final = {"utf8", "unicode", "sqlascii", "default"}
"""Without signs, which PostgreSQL passes over as well."""
_WRITING: Final = {"transaction_read_only", "default_transaction_read_only"}
_OFF: Final = {"off", "false", "no", "0", "f", "n"}
_ISOLATION: Final = {"transaction_isolation", "default_transaction_isolation"}
_TIME: Final = re.compile(r"([0-9]{1,12}+) *+(us|ms|s|min|h|d|)")
_MILLISECONDS: Final = {"us": 0.001, "ms": 1.0, "": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}


class Settings:
    """The settings of one session."""

    def __init__(self, user: str) -> None:
        self._begin = {**_BEGIN, "session_authorization": user}
        self._now = dict(self._begin)
        self.epoch = ""

    def show(self, name: str) -> str:
        """The value of a setting; raises `SqlError` for one that there is not."""
        key = name.lower()
        if key == "styx.epoch":
            return self.epoch
        if key not in self._now:
            raise SqlError(UNDEFINED_SETTING, f'unrecognized configuration parameter "{name[:80]}"')
        return self._now[key]

    def all(self) -> list[tuple[str, str]]:
        """All settings by name."""
        return sorted((_NAMES.get(key, key), value) for key, value in self._now.items())

    def set(self, name: str, value: str) -> str:
        """Sets one; the answer is a warning, empty for none. Raises `SqlError` for one that cannot be, or not so."""
        key, wanted = name.lower(), value.strip().lower()
        if len(value) > VALUE_CHARS_MAX:
            raise SqlError(BAD_PARAMETER_VALUE, f"a setting has at most {VALUE_CHARS_MAX} characters")
        if key in _WRITING:
            if wanted in _OFF:
                raise SqlError(READ_ONLY, "cannot set transaction read-write mode: this server is read-only")
            return ""
        if key in _ISOLATION:
            check_isolation(wanted)
            return ""
        if key == "client_encoding":
            if "".join(filter(str.isalnum, wanted)) not in _UTF8:
                raise SqlError(FEATURE_NOT_SUPPORTED, f'client_encoding "{value[:80]}" is not supported: only UTF8 is')
            return ""
        if key in _STAYS:
            same = _SAME.get(key, set()) | {self._begin[key].lower()}
            return "" if wanted in same else f"{_NAMES.get(key, key)} stays {self._begin[key]} on this server"
        if key in _FIXED:
            raise SqlError("55P02", f'parameter "{name}" cannot be changed')
        if key == "statement_timeout":
            _seconds(value)
        self._put(key, name, value)
        return ""

    def _put(self, key: str, name: str, value: str) -> None:
        if key not in self._now:
            if "." not in key:
                raise SqlError(UNDEFINED_SETTING, f'unrecognized configuration parameter "{name[:80]}"')
            if len(self._now) >= SETTINGS_MAX or len(key) > VALUE_CHARS_MAX:
                raise SqlError(LIMIT_EXCEEDED, f"a session has at most {SETTINGS_MAX} settings")
        self._now[key] = value

    def reset(self, name: str | None) -> None:
        """Sets one, or all, to what it was at the beginning; raises `SqlError` for one that there is not."""
        if name is None:
            self._now = dict(self._begin)
            return
        key = name.lower()
        if key in self._begin:
            self._now[key] = self._begin[key]
        elif self._now.pop(key, None) is None:
            raise SqlError(UNDEFINED_SETTING, f'unrecognized configuration parameter "{name[:80]}"')

    def reported(self) -> dict[str, str]:
        """What clients are told without asking."""
        return {name: self._now[name.lower()] for name in REPORTED}

    def statement_seconds(self) -> float | None:
        """How long a query may take; None if the client has set nothing."""
        return _seconds(self._now["statement_timeout"]) or None


def check_isolation(level: str) -> None:
    """Raises `SqlError` unless the transactions of this level are what queries have here: each sees its own moment."""
    if level not in ("read committed", "read uncommitted", "default"):
        raise SqlError(
            FEATURE_NOT_SUPPORTED,
            f"isolation level {level[:40]} is not supported: each query sees all tables at one moment, the next query "
            "at a later one",
            hint="Ask in one query what must be of one moment, or choose READ COMMITTED.",
        )


def _seconds(value: str) -> float:
    if value.strip().lower() == "default":
        return 0.0
    found = _TIME.fullmatch(value.strip().lower())
    if found is None:
        raise SqlError(BAD_PARAMETER_VALUE, f'invalid value for parameter "statement_timeout": "{value[:40]}"')
    return int(found[1]) * _MILLISECONDS[found[2]] / 1e3
