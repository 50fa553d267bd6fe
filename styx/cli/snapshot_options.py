"""Options that name a snapshot to look at: of a cluster's store, a backup, or an embedded engine's data directory; and
the app whose types decode it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from styx.cli.store_options import FromOptions, StoreOptions, secrets_help
from styx.store.stores import USAGE

if TYPE_CHECKING:
    from styx.query.schema import Schema
    from styx.query.source import Source

SNAPSHOT_HELP: Final = f"""\
In the environment only:
{secrets_help("--store")}
{secrets_help("--from", "from")}
      They need not be allowed to write. --from has those of --store if it has
      none of its own.
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret; not needed, but with
      it the app's signature is checked
"""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SnapshotOptions:
    """A snapshot, and the app."""

    snapshot: Annotated[
        str | None,
        Parameter(
            help='"latest", an epoch of which --store or --data-dir has a snapshot, or the name of a backup in --from.'
        ),
    ] = None
    store: Annotated[
        str | None, Parameter(name="--store", help=f"A cluster's store: {USAGE}.", env_var="STYX_STORE")
    ] = None
    store_options: StoreOptions = field(default_factory=dict)
    from_: Annotated[str | None, Parameter(name="--from", help="A place for backups: the --to of styx backup.")] = None
    from_options: FromOptions = field(default_factory=dict)
    data_dir: Annotated[Path | None, Parameter(help="An embedded engine's data directory, such as .styx.")] = None
    app: Annotated[
        str | None,
        Parameter(help="The app whose types decode values and rows, as bank:app. Without: plain data."),
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether a snapshot is asked for, and not the cluster. A store in the environment alone asks for nothing."""
        typed = self.store is not None and self.store != os.environ.get("STYX_STORE")
        return typed or any(each is not None for each in (self.snapshot, self.from_, self.data_dir))

    def open(self) -> tuple[Source, Schema]:
        """The snapshot, and what is in it; says on standard error which it is. Raises `CommandFailed`,
        `ConfigurationError`, `StyxError` and `OSError`.
        """
        from styx.cli.app_target import load_app
        from styx.cli.backup import progress
        from styx.cli.exit_codes import usage_error
        from styx.query.schema import of_app, of_description

        source = self._source()
        if self.app is None:
            schema = of_description(source.description)
        else:
            schema = of_app(load_app(self.app))
            if schema.app != source.description.name:
                raise usage_error(
                    f"--app {self.app} is app {schema.app!r}, and the data is of {source.description.name!r}"
                )
        progress(f"{source.named}; what was committed after it is not shown")
        return source, schema

    def _source(self) -> Source:
        from styx.cli.exit_codes import usage_error
        from styx.cli.store_options import StorePlace
        from styx.query.source import LATEST, of_backup, of_cluster, of_directory

        if self.from_ is not None and self.data_dir is not None:
            raise usage_error("--from and --data-dir are two places: give one of them")
        snapshot = self.snapshot or LATEST
        if self.data_dir is not None:
            return of_directory(self.data_dir, snapshot)
        store = None if self.store is None else StorePlace(self.store, self.store_options)
        if self.from_ is not None:
            return of_backup(
                StorePlace(self.from_, self.from_options, "from", store).open_to_read(), snapshot, secret_if_given()
            )
        if store is None:
            here = " --data-dir .styx is here." if Path(".styx").is_dir() else ""
            raise usage_error(f"say whose snapshot: --store, --from or --data-dir.{here}")
        return of_cluster(store.open_to_read(), snapshot, secret_if_given())


def secret_if_given() -> bytes | None:
    """The cluster's secret, None if the environment has none. Raises `ConfigurationError`."""
    from styx.cli.cluster_setup import SECRET_FILE_VARIABLE, SECRET_VARIABLE, secret_of

    given = os.environ.get(SECRET_VARIABLE) or os.environ.get(SECRET_FILE_VARIABLE)
    return secret_of(os.environ) if given else None


@contextmanager
def typed_wrongly() -> Iterator[None]:
    """Names that there are not, and keys of another type, end the command as wrong usage."""
    from styx.cli.exit_codes import usage_error
    from styx.errors import BadArguments, UnknownOperator

    try:
        yield
    except (BadArguments, UnknownOperator) as error:
        raise usage_error(str(error)) from None


def tell(schema: Schema) -> None:
    """Says on standard error what a person should know of what was decoded."""
    from styx.cli.backup import progress

    for note in sorted(schema.notes):
        progress(note)
