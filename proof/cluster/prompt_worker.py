"""The command line, with a worker whose events do not gather: each leaves at once. So the worker is nearly always amid
a transaction of Kafka's, and a test that strikes it finds records that nobody may read. All else is the ordinary one.
"""

from __future__ import annotations

import sys
from typing import Final

from styx.cli import main
from styx.cluster.worker import event_log

MODULE: Final = "proof.cluster.prompt_worker"

if __name__ == "__main__":
    vars(event_log)["GATHERED_BYTES_MAX"] = 0
    sys.exit(main())
