"""The phase of a deployment, and a generation: the coordinator's state that lasts as long as one generation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from styx.coordinator.barrier import EpochBarriers
from styx.coordinator.event_marks import EventMarks
from styx.protocol.messages import NOTHING, Loaded, Reached


class Phase(Enum):
    """The phase that a deployment is in."""

    WAITING = "too few workers, or the metadata is not read yet"
    FENCING = "a new generation's marker is being written"
    LOADING = "workers load their slots"
    RUNNING = "epochs run, first those to replay"
    REFUSED = "the data is damaged; nothing will run"
    STOPPED = "an orderly stop is over, with its last snapshot or without; nothing will run"


@dataclass(slots=True)
class Generation:
    """Made when a generation begins, and dropped when the next one begins.

    `producers` are the identities with which its members append to the log. `loaded` are the members that have their
    slots. What they found: recorded epochs up to `replay_until`, replies up to `answered`, and state that was
    `converted` to the version. `counter` counts transactions. `barriers` are those of the epoch that runs or is to
    begin; `joined_epoch` is the last epoch that the members were told to join. `marks` are those in the logs of events.
    """

    producers: list[tuple[int, int]] = field(default_factory=list)
    loaded: set[int] = field(default_factory=set)
    replay_until: int = -1
    answered: Reached = NOTHING
    converted: bool = False
    counter: int = 0
    barriers: EpochBarriers | None = None
    joined_epoch: int = -1
    marks: EventMarks = field(default_factory=EventMarks)

    def mark_due(self, now_s: float, epoch: int) -> bool:
        """Whether the logs of events are to be marked behind `epoch`, the last decided one: never amid a replay, when
        later ones stand there already.
        """
        return epoch >= self.replay_until and self.marks.due(now_s)

    def take_loaded(self, worker: int, message: Loaded) -> None:
        """A member has its slots."""
        self.loaded.add(worker)
        self.replay_until = max(self.replay_until, message.replay_until)
        self.answered = max(self.answered, message.answered)
        self.converted |= message.converted
