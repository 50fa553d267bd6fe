"""The transcripts' commands, each a function of the cluster and the words after its name.

cluster workers=N slots=N [interval=S] [wanted=N|auto] [control=1] [events=1] [LIMIT=N …]
                                                     new and started; interval: seconds between snapshots; wanted:
                                                     workers that share the slots, the others stand by; auto: all
request ID KEY [local] [once=IDEMPOTENCY_KEY]: SCRIPT
                                                     a client appends a request; local: for the function of which
                                                     that is declared
look ID KEY [once=IDEMPOTENCY_KEY]: SCRIPT           the same for the read-only function
load ID [replace] [once=IDEMPOTENCY_KEY] KEY=N …     a client appends a chunk of a bulk load
given KEY=N …                                        the entities are put, one epoch; prints nothing
garbage SLOT / redeliver SLOT                        a record that is none; the log delivers all it has again
run / run until WORKER STEP                          delivers until nothing is left, or until the worker is there
hold LINK / release LINK / lose LINK                 lose: what was held back never arrives. Links: `w0 -> c`,
                                                     `w0 log`, `w0 replies`, `w0 store`, `c store`, …
kill W / start W / disconnect W / connect W          a disconnected worker lives on and does not know
restart c                                            the coordinator, which remembers only what is stored
break W W                                            the first worker has lost its connection to the second
deploy N [check | below B | from B | without] / scale N
                                                     version N of the app shall run, or (check) its state be checked;
                                                     it takes only numbers below B, or makes all others B larger, or
                                                     has no operator;
                                                     N workers shall share the slots
leave W                                              the worker is to end, and asks to be let go
stop                                                 the coordinator is to end, and takes a last snapshot
tick S                                               the coordinator's clock shows S seconds
clock S                                              the workers' clocks show S seconds; only alarms that are due ring
snapshot / quiet snapshot                            an operator wants one; quiet: taken, prints nothing
store works / store is down / store loses answers
damage PREFIX / remove PREFIX                        the newest stored object whose name starts so
outcome TID = N / outcome TID raises TYPE MESSAGE    the external function ends
operator deploy WORD [on all but W …] [below B | from B | without]
operator check WORD … / operator rollback / operator drain W / operator scale N / operator N goes
                                                     in a cluster with `control`, where code is handed out: a command
                                                     of another operator each time, or the end of one; the code that
                                                     WORD stands for cannot be run on some workers
alive                                                every worker gives a sign of life, and the clock ticks
state / where                                        committed entities; each worker's step
objects                                              names in the store
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from proof.spinning import as_replied
from styx.coordinator.events import DeployWanted, SnapshotWanted, StopWanted, Tick, WorkersWanted
from styx.log.base import Stream
from styx.messages import Request
from styx.model.bulk_load import encode_pair, load_arguments
from styx.model.function_spec import LOAD_FUNCTION
from styx.model.limits import Limits
from styx.model.table_names import holds_dead
from styx.protocol.frames import ExternalOutcome
from styx.testing.history import check_history
from styx.values.codec import decode_plain, encode_strict
from styx.worker.events import Step
from tests.protocol import narration
from tests.protocol.cluster import Cluster, script_request
from tests.protocol.managed_cluster import ManagedCluster, is_told
from tests.protocol.scripted_app import SLOT_COUNTS, app, emitting, entity, slot_digit, version
from tests.protocol.storage import Storage

NO_SNAPSHOTS_S = 1e9


class Session:
    """One transcript's run; `execute` gives a command's output. `finish` checks the history of the last cluster."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster:
        assert self._cluster is not None, "a transcript starts with the command `cluster`"
        return self._cluster

    def execute(self, line: str) -> list[str]:
        name, _, rest = line.partition(" ")
        if name == "cluster":
            self._new_cluster(rest)
            return []
        command = COMMANDS.get(name)
        if command is None:
            raise ValueError(f"no command {name!r}")
        command(self.cluster, rest)
        output, self.cluster.trace = self.cluster.trace, []
        return list(filter(is_told, output)) if isinstance(self.cluster, ManagedCluster) else output

    def _new_cluster(self, rest: str) -> None:
        self.finish()
        words = (word.split("=") for word in rest.split())
        options: dict[str, Any] = {name: None if value == "auto" else int(value) for name, value in words}
        workers, slots = options.pop("workers"), options.pop("slots")
        assert slots in SLOT_COUNTS
        interval_s = options.pop("interval", NO_SNAPSHOTS_S)
        wanted = options.pop("wanted", workers)
        kind = ManagedCluster if options.pop("control", 0) else Cluster
        versions = {0: emitting} if options.pop("events", 0) else {}
        self._cluster = kind(workers, slots, Limits(**options), interval_s, wanted)
        self._cluster.versions.update(versions)
        run(self._cluster, "")
        self._cluster.trace = []

    def finish(self) -> None:
        """The replies, and the state if nothing is open, are those of a serial execution: whatever the file says."""
        cluster = self._cluster
        if cluster is not None:
            check_history(
                app,
                cluster.storage.sent,
                cluster.storage.replies,
                cluster.state() if cluster.at_rest else None,
                limits=cluster.limits,
                n_slots=cluster.n_slots,
                externals=cluster.outcomes,
                around=as_replied,
                versions={began: cluster.versions.get(number, app) for began, number in cluster.began.items()},
            )


# Requests ------------------------------------------------------------------------------------------------------


def request(cluster: Cluster, rest: str, function: str = "run") -> None:
    match = re.fullmatch(r"(\S+) (\S+?)(?: (local|contended))?(?: once=(\S+))?: (.+)", rest)
    assert match is not None, f"request ID KEY [local | contended] [once=KEY]: SCRIPT, not {rest!r}"
    request_id, key, kind, once, script = match.groups()
    slot = slot_digit(key)
    function = {"local": "near", "contended": "hot"}.get(kind, function)
    cluster.storage.append_request(slot, script_request(request_id, key, script, once or "", function))
    cluster.feed(slot)


def look(cluster: Cluster, rest: str) -> None:
    request(cluster, rest, "look")


def load(cluster: Cluster, rest: str) -> None:
    request_id, *words = rest.split()
    replace = "replace" in words
    options = dict(word.split("=") for word in words if "=" in word)
    once = options.pop("once", "")
    pairs = [encode_pair(key, encode_strict(int(number))) for key, number in options.items()]
    first = next(iter(options))
    chunk = Request(request_id, entity.name, first, LOAD_FUNCTION, load_arguments(pairs, replace), once)
    cluster.storage.append_request(slot_digit(first), chunk)
    cluster.feed(slot_digit(first))


def given(cluster: Cluster, rest: str) -> None:
    for word in rest.split():
        key, _, number = word.partition("=")
        request(cluster, f"given-{len(cluster.storage.sent)} {key}: put {number}")
    run(cluster, "")
    cluster.trace = []


def garbage(cluster: Cluster, rest: str) -> None:
    cluster.storage.append(Stream.REQUESTS, int(rest), b"\xc1")
    cluster.feed(int(rest))


def redeliver(cluster: Cluster, rest: str) -> None:
    cluster.redeliver(int(rest))


def outcome(cluster: Cluster, rest: str) -> None:
    tid, verb, value, *message = rest.split(" ", 3)
    ended = (
        ExternalOutcome(encode_strict(int(value))) if verb == "=" else ExternalOutcome(None, (value, " ".join(message)))
    )
    cluster.external_ended(int(tid[1:]), ended)


# What happens --------------------------------------------------------------------------------------------------


def run(cluster: Cluster, rest: str) -> None:
    target = re.fullmatch(r"until w(\d+) (\w+)", rest)
    assert target is not None or not rest, f"run, or run until WORKER STEP, not {rest!r}"
    step = Step[target.group(2)] if target is not None else None
    for _ in cluster.deliveries():
        if target is not None and cluster.processes[int(target.group(1))].core.reached is step:
            return
    assert target is None, f"the cluster came to rest before {rest}"


def hold(cluster: Cluster, rest: str) -> None:
    cluster.links.held.add(rest)


def release(cluster: Cluster, rest: str) -> None:
    assert rest in cluster.links.held, f"{rest} is not held"
    cluster.release(rest)


def lose(cluster: Cluster, rest: str) -> None:
    assert rest in cluster.links.held, f"{rest} is not held"
    cluster.links.held.discard(rest)
    assert cluster.links.take(rest), f"nothing is held on {rest}"


def tick(cluster: Cluster, rest: str) -> None:
    cluster.to_coordinator(Tick(float(rest)))


def clock(cluster: Cluster, rest: str) -> None:
    cluster.clock(1_000_000 * int(rest))


def break_(cluster: Cluster, rest: str) -> None:
    worker, peer = (int(word.removeprefix("w")) for word in rest.split())
    cluster.broken(worker, peer)


def deploy(cluster: Cluster, rest: str) -> None:
    number, *kind = rest.split()
    only_check = "check" in kind
    if kind and kind[0] != "check":
        cluster.versions[int(number)] = version(kind[0], int(*kind[1:]))
    cluster.to_coordinator(DeployWanted(int(number), only_check))


def scale(cluster: Cluster, rest: str) -> None:
    cluster.to_coordinator(WorkersWanted(int(rest)))


def operator(cluster: Cluster, rest: str) -> None:
    assert isinstance(cluster, ManagedCluster)
    name, *words = rest.split()
    if name in ("deploy", "check"):
        word, *kind = words
        without = []
        if kind[:3] == ["on", "all", "but"]:
            without, kind = kind[3:4], kind[4:]
        cluster.offer(" ".join([word, *without]), kind, name == "check")
    elif name == "rollback":
        cluster.roll_back()
    elif name == "drain":
        cluster.drain(words[0])
    elif name == "scale":
        cluster.scale(int(words[0]))
    else:
        assert words == ["goes"], rest
        cluster.operator_goes(int(name))


def alive(cluster: Cluster, rest: str) -> None:
    assert isinstance(cluster, ManagedCluster)
    cluster.alive()


def leave(cluster: Cluster, worker: int) -> None:
    cluster.leave(worker)


def stop(cluster: Cluster, rest: str) -> None:
    cluster.to_coordinator(StopWanted())


def snapshot(cluster: Cluster, rest: str) -> None:
    cluster.to_coordinator(SnapshotWanted())


def quiet(cluster: Cluster, rest: str) -> None:
    COMMANDS[rest](cluster, "")
    run(cluster, "")
    cluster.trace = []


# Processes and the store ---------------------------------------------------------------------------------------


def on_worker(action: Callable[[Cluster, int], None]) -> Callable[[Cluster, str], None]:
    return lambda cluster, rest: action(cluster, int(rest.removeprefix("w")))


def restart(cluster: Cluster, rest: str) -> None:
    assert rest == "c", "only the coordinator is restarted at once; kill and start a worker"
    cluster.start_coordinator()


def store(cluster: Cluster, rest: str) -> None:
    assert rest in Storage.STORE_MODES, rest
    cluster.storage.store_mode = rest


def damage(cluster: Cluster, rest: str) -> None:
    name = _newest(cluster, rest)
    data = bytearray(cluster.storage.store.get(name))
    data[-1] ^= 1
    cluster.storage.store.put(name, bytes(data))


def remove(cluster: Cluster, rest: str) -> None:
    cluster.storage.store.delete(_newest(cluster, rest))


def _newest(cluster: Cluster, prefix: str) -> str:
    return cluster.storage.store.list(prefix)[-1]


# Looking -------------------------------------------------------------------------------------------------------


def state(cluster: Cluster, rest: str) -> None:
    found = cluster.state()
    entities = [f"{key}={decode_plain(data)}" for (table, key), data in sorted(found.items()) if not holds_dead(table)]
    entities += [f"(dead: a call of {key[0]}'s)" for table, key in sorted(found) if holds_dead(table)]
    cluster.trace.append(" ".join(entities) or "empty")


def where(cluster: Cluster, rest: str) -> None:
    for process in cluster.processes.values():
        core = process.core
        cluster.trace.append(f"{process.name}: {core.reached.name}, generation {core.generation}, epoch {core.epoch}")


def objects(cluster: Cluster, rest: str) -> None:
    cluster.trace += [narration.short_names(name) for name in cluster.storage.store.list("slots/")]


COMMANDS: dict[str, Callable[[Cluster, str], None]] = {
    "request": request,
    "look": look,
    "load": load,
    "given": given,
    "garbage": garbage,
    "redeliver": redeliver,
    "outcome": outcome,
    "run": run,
    "hold": hold,
    "release": release,
    "lose": lose,
    "tick": tick,
    "clock": clock,
    "break": break_,
    "deploy": deploy,
    "scale": scale,
    "operator": operator,
    "alive": alive,
    "leave": on_worker(leave),
    "stop": stop,
    "snapshot": snapshot,
    "quiet": quiet,
    "kill": on_worker(Cluster.kill),
    "start": on_worker(Cluster.start_worker),
    "disconnect": on_worker(Cluster.disconnect),
    "connect": on_worker(Cluster.connect),
    "restart": restart,
    "store": store,
    "damage": damage,
    "remove": remove,
    "state": state,
    "where": where,
    "objects": objects,
}
