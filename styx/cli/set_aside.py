"""`styx set-aside`: a request at which the engine fails is refused from now on, and the rest goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.backup_options import S3Endpoint, S3Region

EXAMPLES: Final = """\
Examples:
  styx set-aside 3:1041
  styx set-aside 3:1041 --data-dir /var/lib/bank
  styx set-aside 3:1041 --store s3://styx/bank \\
      --s3-endpoint http://127.0.0.1:9000

Exit codes:
  0    set aside
  1    the data directory is in use, or the store is out of reach
  2    an option is wrong, or there is no such directory
"""


def set_aside(
    place: Annotated[str, Parameter(name="SLOT:OFFSET", help="Which request, as the failure names it.")],
    /,
    *,
    data_dir: Annotated[Path, Parameter(help="Of an embedded engine that has ended.", env_var="STYX_DATA_DIR")] = Path(
        ".styx"
    ),
    store: Annotated[
        str | None, Parameter(help="A cluster's store, instead of a directory.", env_var="STYX_STORE")
    ] = None,
    s3_endpoint: S3Endpoint = None,
    s3_region: S3Region = None,
) -> None:
    """Refuse a request at which the engine fails whenever it meets it.

    The failure names the request's place. Its requester gets a rejection that says
    so, and nothing of it runs. In a cluster it takes effect with the next
    generation: when a worker fails at it again, or one is started again. There is
    no way back. Use it for what has failed only: to set aside what was answered
    takes the answer back.
    """
    from styx.cli.exit_codes import usage_error
    from styx.worker.set_aside import place_of
    from styx.worker.set_aside import set_aside as put

    wanted = place_of(place)
    if store is not None:
        from styx.cli.backup_options import Place

        put(Place(store, s3_endpoint, s3_region).open(), wanted)
    else:
        from styx.data_directory import DataDirectory
        from styx.embedded_engine.storage import OBJECTS_NAME
        from styx.store.directory import DirectoryStore

        if not (data_dir / OBJECTS_NAME).is_dir():
            raise usage_error(f"--data-dir {data_dir} is no engine's directory")
        with DataDirectory(data_dir):
            put(DirectoryStore(data_dir / OBJECTS_NAME), wanted)
    print(f"request {place} is set aside: it is refused, and not run")
