"""`styx backup`: the newest snapshot of a cluster, copied to another place."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.store_options import NO_OPTIONS, StoreOptions, StoreWord, ToOptions, secrets_help
from styx.store.stores import USAGE

EXAMPLES: Final = f"""\
Examples:
  styx backup --store file:///var/lib/bank --to file:///mnt/backups/bank
  styx backup --store s3://styx/bank --s3-endpoint http://s3.internal:9000 \\
      --to s3://backups/bank --to-s3-endpoint https://s3.elsewhere --keep 14

In the environment only:
{secrets_help("--store")}
{secrets_help("--to", "to")}
      Those of --store need not be allowed to write. --to has those of --store
      if it has none of its own.
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret; not needed, but with
      it the app's signature is checked

Exit codes:
  0    the backup is whole
  1    there is none: a store is out of reach, something in it is damaged, or no
       snapshot was taken yet
  2    an option is wrong, or does not fit what the stores hold
"""


def backup(
    *,
    store: StoreWord,
    store_options: StoreOptions = NO_OPTIONS,
    to: Annotated[str, Parameter(help=f"Where backups go: {USAGE}.", env_var="STYX_BACKUP_TO")],
    to_options: ToOptions = NO_OPTIONS,
    keep: Annotated[
        int | None,
        Parameter(
            help="Keep so many of the newest backups and delete the others; by default all stay.",
            env_var="STYX_BACKUP_KEEP",
        ),
    ] = None,
) -> None:
    """Copy a cluster's newest snapshot to another place.

    The cluster may be running. Only its store is read, and nothing is changed
    there; neither the coordinator nor Kafka is needed. Every checksum is verified
    on the way. Each backup is complete in itself, and named by the time at which
    it began. An unfinished backup does not count.

    Transactions acknowledged after the snapshot are not in the backup. So a restore
    loses at most the time between two backups and one --snapshot-interval of the
    coordinator.
    """
    from styx.cli.exit_codes import usage_error

    if keep is not None and keep < 1:
        raise usage_error(f"--keep is a number from 1, got {keep}")

    import os
    import time
    from datetime import UTC, datetime

    from styx.backup.places import keep_newest
    from styx.backup.take import take_backup
    from styx.cli.cluster_setup import SECRET_FILE_VARIABLE, SECRET_VARIABLE, secret_of
    from styx.cli.store_options import StorePlace

    has_secret = os.environ.get(SECRET_VARIABLE) or os.environ.get(SECRET_FILE_VARIABLE)
    secret = secret_of(os.environ) if has_secret else None
    source = StorePlace(store, store_options)
    began_s = time.monotonic()
    reader = source.open_to_read()
    target = StorePlace(to, to_options, "to", source).open()
    taken = take_backup(reader, target, datetime.now(UTC), secret, progress)
    index = taken.index
    print(f"backup {taken.name} of app {index.app}: epoch {index.epoch}, version {index.app_version} of the app")
    print(f"{len(index.objects)} objects, {index.size} bytes, {time.monotonic() - began_s:.1f} s")
    if taken.pending:
        print(f"{taken.pending} requests in it were under way; a restored cluster finishes them")
    print(f"What was acknowledged after epoch {index.epoch} is not in it.")
    if keep is not None:
        for name in keep_newest(target, keep, taken.name):
            print(f"deleted backup {name}")


def progress(text: str) -> None:
    """A line on standard error."""
    import sys

    print(f"styx: {text}", file=sys.stderr, flush=True)
