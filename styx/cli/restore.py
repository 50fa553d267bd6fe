"""`styx restore`: a backup into an empty store, from which a new cluster begins."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import LogUrl
from styx.cli.store_options import NO_OPTIONS, FromOptions, StoreOptions, StoreWord, secrets_help

EXAMPLES: Final = f"""\
Examples:
  styx restore --from file:///mnt/backups/bank \\
      --store file:///var/lib/bank --log kafka://127.0.0.1:9092
  styx restore --from s3://backups/bank \\
      --from-s3-endpoint https://s3.elsewhere \\
      --store s3://styx/bank --s3-endpoint http://s3.internal:9000 \\
      --log kafka://k1:9092,k2:9092 --from-secret-file old-secret

In the environment only:
  STYX_SECRET, or STYX_SECRET_FILE    the new cluster's secret; the app is
      signed with it anew
{secrets_help("--store")}
{secrets_help("--from", "from")}
      Those of --from need not be allowed to write. --from has those of --store
      if it has none of its own.
  STYX_KAFKA_USERNAME, STYX_KAFKA_PASSWORD    of the log, if it asks for them

Exit codes:
  0    restored; start the cluster
  1    not restored: the backup is damaged, or something is out of reach; run it
       again
  2    an option is wrong, the store is not empty, or Kafka has the app's topics
"""


def restore(
    *,
    from_: Annotated[str, Parameter(name="--from", help="The --to of styx backup.", env_var="STYX_RESTORE_FROM")],
    from_options: FromOptions = NO_OPTIONS,
    backup: Annotated[
        str, Parameter(help="Which backup; the newest by default.", env_var="STYX_RESTORE_BACKUP", show_default=False)
    ] = "",
    from_secret_file: Annotated[
        str | None,
        Parameter(help="File with the old cluster's secret, if it is another one.", env_var="STYX_FROM_SECRET_FILE"),
    ] = None,
    if_empty: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Do nothing if --store already has a cluster's data; for scripts that run at each start.",
            env_var="STYX_RESTORE_IF_EMPTY",
        ),
    ] = False,
    store: StoreWord,
    store_options: StoreOptions = NO_OPTIONS,
    log: LogUrl,
) -> None:
    """Make a store for a new cluster from a backup.

    --store must be empty, and --log a Kafka where the app has no topics yet.
    Everything in the backup is verified before anything is written. Then start the
    cluster with this store and log: its state is that of the backup's snapshot,
    unfinished requests are finished, idempotency keys are remembered, and
    transaction ids go on above all earlier ones.

    What was acknowledged after that snapshot is lost. External calls that were
    under way are made again, with the same idempotency key. The app's name stays.
    """
    import asyncio
    import os
    import time

    from styx.backup.places import read_index
    from styx.backup.restore import app_of, check_log, check_store, verify
    from styx.backup.restore import restore as restore_into
    from styx.cli.backup import progress
    from styx.cli.cluster_setup import secret_of
    from styx.cli.store_options import StorePlace
    from styx.kafka.address import parse_kafka_url

    began_s = time.monotonic()
    secret = secret_of(os.environ)
    old_secret = secret if from_secret_file is None else old_secret_of(from_secret_file)
    address = parse_kafka_url(log)
    target = StorePlace(store, store_options)
    opened = target.open()
    if if_empty and (app := app_of(opened)):
        print(f"the store has the data of app {app} already; nothing was restored")
        return
    reader = StorePlace(from_, from_options, "from", target).open_to_read()
    name, index = read_index(reader, backup)
    check_store(opened, name)
    asyncio.run(check_log(address, index.app))
    progress(f"verifying backup {name}: {len(index.objects)} objects with {index.size} bytes")
    verified = verify(reader, name, index, old_secret)
    restore_into(reader, verified, opened, secret, time.time(), progress)
    claim = verified.claim
    print(f"restored backup {name} of app {index.app}: epoch {index.epoch}, version {index.app_version} of the app")
    print(f"{len(index.objects)} objects, {index.size} bytes, {time.monotonic() - began_s:.1f} s")
    print(
        f"What was acknowledged after epoch {index.epoch}, whose snapshot was there at {index.taken_at}, is not in it: "
        "send it again, with its idempotency keys where it had any."
    )
    print(
        f"Start the cluster: styx coordinator --app-name {claim.app} --slots {claim.n_slots} "
        f"--reply-partitions {claim.reply_partitions} …, with this store and log."
    )


def old_secret_of(file: str) -> bytes:
    """The secret in a file; raises `CommandFailed`."""
    from styx.cli.cluster_setup import SECRET_FILE_VARIABLE, secret_of
    from styx.cli.exit_codes import usage_error
    from styx.errors import ConfigurationError

    try:
        return secret_of({SECRET_FILE_VARIABLE: file})
    except ConfigurationError as error:
        raise usage_error(f"--from-secret-file {file} cannot be used: {str(error).splitlines()[0]}") from None
