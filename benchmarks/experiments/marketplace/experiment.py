"""What an experiment consists of: the settings that it compares, and the numbers that it goes through. Data only."""

from __future__ import annotations

from typing import Final, NamedTuple

EMBEDDED: Final = "embedded"
CLUSTER: Final = "cluster"


class Setting(NamedTuple):
    """One of the settings that are compared: `words` are options of the workload's command, and `variables` are
    NAME=VALUE words of the application's environment.
    """

    name: str
    words: str = ""
    variables: str = ""


class Numbers(NamedTuple):
    """What an experiment goes through: each number, from `least` to `most`, is given to `option` of the command.
    `default` are those that are taken if no others are asked for.
    """

    option: str
    label: str
    default: str
    least: float
    most: float


class Experiment(NamedTuple):
    """Each of the `settings` is measured at each of the `numbers`, and the first one is what the others are compared
    with. `words` and `variables` are those of all settings.

    `apart` is a kind of transaction that some settings lack: the rate and the processor time that are compared are
    those of the others. `by_kind`: latencies are shown for each kind of transaction. `dies`: a worker is killed.
    `open`: requests are sent at the rate in the settings' words, whether others are answered or not.
    """

    what: str
    settings: tuple[Setting, ...]
    words: str = ""
    numbers: Numbers | None = None
    variables: str = ""
    workload: str = "marketplace"
    on: str = EMBEDDED
    apart: str = ""
    by_kind: bool = False
    dies: bool = False
    open: bool = False
