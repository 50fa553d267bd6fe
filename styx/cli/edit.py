"""`styx state edit`: another value for one entity or row of a running system, compared with what was read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from styx.cli.common_options import (
    ApiKey,
    Authority,
    EntityKey,
    GatewayUrl,
    OperatorName,
    ReplyTimeout,
    check_timeout,
)
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX

if TYPE_CHECKING:
    from styx.cli.gateway_request import CallOutcome

EDIT_EXAMPLES: Final = """\
Examples:
  styx state edit account alice
  styx state edit account alice --set '{"balance": 70}'
  styx state edit cart ann items '[7]' --url http://shop.internal:8080
  styx state edit account alice --delete

Exit codes:
  0    it is written, or was left as it is
  1    somebody has changed it meanwhile, or a rule of the app forbids it:
       nothing is written, and what you wrote in the editor is in a file; no
       gateway, or no reply in time
  2    rejected: no such operator or table, or a value that does not fit its
       type
  3    there is nothing to delete
"""
EDITOR_DEFAULT: Final = "vi"


def edit(
    operator: OperatorName,
    key: EntityKey,
    table: Annotated[str | None, Parameter(help="The table whose row is edited, such as items.")] = None,
    row: Annotated[str | None, Parameter(help="The row's primary key, a JSON array such as [7].")] = None,
    /,
    *,
    set_: Annotated[str | None, Parameter(name="--set", help="The new value as JSON, in place of an editor.")] = None,
    delete: Annotated[bool, Parameter(negative=(), help="Delete it, in place of an editor.")] = False,
    url: GatewayUrl = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Edit one entity's state as JSON, or one of its rows.

    It opens the value in $VISUAL, $EDITOR or vi, and writes what you save there, in
    a transaction. All rules of the app's types and tables apply. If somebody has
    changed the value since it was shown, nothing is written, and your text stays
    in a file. An entity that does not exist is shown as null, and the edit makes
    it. The edit is in the log like any transaction.
    """
    from styx.cli.exit_codes import ABSENT, SUCCESS, usage_error
    from styx.cli.run_directory import gateway_url

    if set_ is not None and delete:
        raise usage_error("--set and --delete are two edits: give one of them")
    if (table is None) != (row is None):
        raise usage_error("a row is named by its table and its primary key: styx state edit cart ann items '[7]'")
    check_timeout(timeout, TIMEOUT_SECONDS_MAX)
    if set_ is not None:
        _check_json(set_, "--set")
    gateway = _Gateway(gateway_url(url), _path(operator, key, table, row), timeout, api_key, ca)
    found = gateway.look()
    shown = _indented(bytes(found.value)) if found.mark else "null"
    if delete:
        if not found.mark:
            print("absent: there is nothing to delete", file=sys.stderr)
            return ABSENT
        return _told(gateway.write({"mark": found.mark, "delete": True}), None)
    if set_ is not None:
        return _told(gateway.write(_put(found.mark, set_)), None)
    file, text = _edited(f"{operator}-{key}", shown + "\n")
    if text.strip() == shown:
        file.unlink()
        print("styx: left as it is", file=sys.stderr)
        return SUCCESS
    _check_json(text, str(file))
    return _told(gateway.write(_put(found.mark, text)), file)


def _told(outcome: CallOutcome, file: Path | None) -> int:
    """Says what has become of the edit. Its text is kept if nothing was written for certain."""
    from styx.cli.exit_codes import SUCCESS

    if outcome.exit_code == SUCCESS:
        if file is not None:
            file.unlink()
        print("styx: written", file=sys.stderr)
        return SUCCESS
    print(outcome.complaint, file=sys.stderr)
    if file is not None:
        print(f"What you wrote is in {file}", file=sys.stderr)
    return outcome.exit_code


def _edited(name: str, text: str) -> tuple[Path, str]:
    """A file with what the person has left of the text; raises `CommandFailed`."""
    import os
    import shlex
    import subprocess
    import tempfile

    from styx.cli.exit_codes import CommandFailed

    safe = "".join(each if each.isalnum() or each in "-_" else "_" for each in name)[:60]
    handle, path = tempfile.mkstemp(prefix=f"styx-{safe}-", suffix=".json")
    file = Path(path)
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(text)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or EDITOR_DEFAULT
    try:
        status = subprocess.run([*shlex.split(editor), path], check=False).returncode
    except (OSError, ValueError) as error:
        file.unlink()
        raise CommandFailed(f"the editor {editor!r} cannot be started: {error}. Set EDITOR, or use --set") from None
    if status:
        raise CommandFailed(f"the editor ended with {status}; nothing was written. What you wrote is in {file}")
    try:
        return file, file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(f"{file} is not UTF-8; nothing was written") from None


def _check_json(text: str, where: str) -> None:
    import msgspec

    from styx.cli.exit_codes import usage_error

    try:
        msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise usage_error(f"{where} is not JSON: {error}; nothing was written") from None


def _indented(value: bytes) -> str:
    import msgspec

    return msgspec.json.format(value, indent=2).decode()


def _put(mark: str, text: str) -> dict[str, Any]:
    import msgspec

    return {"mark": mark, "value": msgspec.Raw(text.strip().encode())}


def _path(operator: str, key: str, table: str | None, row: str | None) -> str:
    from urllib.parse import quote

    from styx.cli.exit_codes import usage_error

    try:
        path = f"/v1/~edit/{quote(operator, safe='')}/{quote(key, safe='')}"
        return path if table is None or row is None else f"{path}?rows={quote(table, safe='')}&pk={quote(row, safe='')}"
    except UnicodeEncodeError:
        raise usage_error("the operator, key or row is not valid Unicode") from None


class _Gateway:
    """What is edited, at a gateway. Raises `CommandFailed` for whatever goes wrong before anything is written."""

    def __init__(self, url: str, path: str, timeout: float, api_key: str | None, ca: Path | None) -> None:
        self._url = url
        self._path = path
        self._options = (timeout, api_key, ca)

    def look(self) -> Any:
        """What there is: its `mark`, "" if it is not there, and its `value`."""
        import msgspec

        from styx.cli.exit_codes import SUCCESS, CommandFailed
        from styx.cli.gateway_request import GatewayWork, NoReply, ask, read_outcome

        found = msgspec.defstruct("Found", [("mark", str), ("value", msgspec.Raw, msgspec.Raw(b"null"))])
        try:
            outcome = read_outcome(ask(self._url, GatewayWork("GET", self._path, *self._options)), self._url)
        except NoReply as error:
            raise CommandFailed(f"{error}; nothing was changed, ask again") from None
        if outcome.exit_code != SUCCESS:
            raise CommandFailed(outcome.complaint.removeprefix("styx: "), outcome.exit_code)
        return msgspec.json.decode(outcome.output, type=found)

    def write(self, edit: dict[str, Any]) -> CallOutcome:
        """Makes the edit."""
        import msgspec

        from styx.cli.exit_codes import FAILURE
        from styx.cli.gateway_request import CallOutcome, GatewayWork, NoReply, ask, edit_outcome

        body = msgspec.json.encode(edit)
        try:
            return edit_outcome(ask(self._url, GatewayWork("POST", self._path, *self._options, body=body)), self._url)
        except NoReply as error:
            return CallOutcome("", f"styx: {error}; it may be written: look, before you edit again", FAILURE)
