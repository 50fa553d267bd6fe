"""The process that replays a case for `styx audit`.

python -m styx.cli.audit_process MODULE:APP CASE OBJECTS WORKERS [TRACE]
"""

from __future__ import annotations

import sys

from styx.audit.apart import run_here
from styx.audit.verdict import CannotJudge
from styx.cli.app_target import load_app
from styx.cli.exit_codes import CommandFailed
from styx.model.app import App
from styx.reports.log_setup import set_up_logging


def main() -> None:
    """The program."""
    target, *words = sys.argv[1:]
    set_up_logging("styx.audit")

    def load() -> App:
        try:
            return load_app(target)
        except CommandFailed as error:
            raise CannotJudge(error.message) from error

    run_here(load, words)


if __name__ == "__main__":
    main()
