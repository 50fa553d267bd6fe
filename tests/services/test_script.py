"""`scripts/services` with pretended tools and servers: what it says, what it starts and ends, what it leaves behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proof.judge import adya
from styx.process.ports import free_port
from tests.real_services import SCRIPT
from tests.services.machine import WAIT_SECONDS_MAX, Machine

pytestmark = pytest.mark.slow

JAVA = "echo 'openjdk version \"21.0.1\"' >&2"
KAFKA_VERSION = re.findall("<kafka.version>(.*)</", (SCRIPT.parent / "services.d/kafka/pom.xml").read_text("utf-8"))[0]
MAVEN = f"""
    echo called >>"$CALLS"
    for word; do case $word in -DoutputDirectory=*) libs=${{word#*=}} ;; esac; done
    sleep 0.5
    mkdir -p "$libs"
    touch "$libs/kafka_2.13-{KAFKA_VERSION}.jar"
"""


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


@pytest.mark.parametrize("words", [(), ("fly",), ("start",), ("start", "postgres"), ("down", "--all"), ("up", "kafka")])
def test_what_it_cannot_do_is_told_with_what_it_can(machine: Machine, words: tuple[str, ...]) -> None:
    status, said = machine.run(*words)
    assert status == 2
    assert "scripts/services up" in said
    assert not machine.home.exists()


def test_all_missing_tools_are_told_before_anything_is_installed(machine: Machine) -> None:
    wanted = {"java": "apt install default-jre-headless", "mvn": "apt install maven", "go": "go.dev"}
    for name, script in ("java", JAVA), ("mvn", MAVEN):
        status, said = machine.run("up")
        assert status == 1
        assert "docker compose up" in said
        for tool, advice in wanted.items():
            assert f"{tool} is missing" in said
            assert advice in said
        machine.tool(name, script)
        del wanted[name]
    assert not machine.calls.exists()


def test_tools_are_not_asked_for_once_the_servers_are_installed(machine: Machine) -> None:
    machine.tool("java", JAVA)
    machine.tool("mvn", MAVEN)
    machine.minio()
    assert machine.run("install")[0] == 0
    (machine.bin / "mvn").unlink()
    assert machine.run("install") == (0, "")


def test_an_old_java_is_told(machine: Machine) -> None:
    machine.tool("java", "echo 'openjdk version \"11.0.2\"' >&2")
    status, said = machine.run("install", "kafka")
    assert status == 1
    assert "is version 11; Kafka needs 17" in said


def test_a_failed_installation_says_why_and_leaves_nothing(machine: Machine) -> None:
    machine.tool("java", JAVA)
    machine.tool("mvn", "echo 'cannot reach the repository'; exit 1")
    status, said = machine.run("install", "kafka")
    assert status == 1
    assert "cannot reach the repository" in said
    assert machine.left_in_home() == []


def test_the_judge_is_installed_only_when_it_is_asked_for(machine: Machine) -> None:
    machine.tool("java", JAVA)
    machine.tool("mvn", MAVEN)
    machine.minio()
    assert machine.run("install")[0] == 0
    status, said = machine.run("install", "judge")
    assert status == 1
    assert "cargo is missing" in said
    machine.tool(
        "cargo",
        """
        echo "$@" >>"$CALLS"
        [ "$1 $2 $3 $4" = "install --locked --no-default-features --root" ] && mkdir -p "$5/bin" "$CARGO_TARGET_DIR"
        echo '#!/bin/true' >"$5/bin/adya"
        chmod +x "$5/bin/adya"
        """,
    )
    assert machine.run("install", "judge")[0] == 0
    assert machine.run("install", "judge") == (0, "")
    assert machine.left_in_home() == ["bin", "kafka"]
    assert sorted(path.name for path in (machine.home / "bin").iterdir()) == ["adya", "minio"]
    # Packages have no scripts, so the version is written twice.
    assert f" adya@{adya.VERSION}\n" in machine.calls.read_text()


def test_helm_is_built_only_when_it_is_asked_for(machine: Machine) -> None:
    status, said = machine.run("install", "helm")
    assert status == 1
    assert "go is missing" in said
    machine.tool("go", 'echo "$@" >>"$CALLS"; echo "#!/bin/true" >"$GOBIN/helm"; chmod +x "$GOBIN/helm"')
    assert machine.run("install", "helm")[0] == 0
    assert machine.run("install", "helm") == (0, "")
    assert machine.left_in_home() == ["bin"]
    assert "helm.sh/helm/v3/cmd/helm@v3." in machine.calls.read_text()


def test_two_installations_at_once_fetch_once(machine: Machine) -> None:
    machine.tool("java", JAVA)
    machine.tool("mvn", MAVEN)
    both = [machine.begin("install", "kafka") for _ in range(2)]
    for process in both:
        said, _ = process.communicate(timeout=WAIT_SECONDS_MAX)
        assert process.returncode == 0, said
    assert machine.calls.read_text() == "called\n"
    assert machine.left_in_home() == ["kafka"]


def test_an_installation_that_is_ended_ends_what_it_had_begun(machine: Machine) -> None:
    machine.tool("go", 'echo $$ >"$CALLS"; exec sleep 600')
    installation = machine.begin("install", "minio")
    _wait_for(machine.calls)
    installation.terminate()
    installation.communicate(timeout=WAIT_SECONDS_MAX)
    assert installation.returncode != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(machine.calls.read_text()), 0)
    assert machine.left_in_home() == []


def test_the_life_of_a_server(machine: Machine) -> None:
    machine.minio()
    port = free_port()
    status, said = machine.run("start", "minio", STYX_MINIO_PORT=str(port))
    assert status == 0, said
    assert (machine.data / "minio/disk/styx").is_dir()

    status, said = machine.run("status")
    assert status == 3
    assert "kafka: does not run" in said
    assert f"minio: runs on 127.0.0.1:{port}" in said

    assert machine.run("start", "minio")[0] == 0
    status, said = machine.run("start", "minio", STYX_MINIO_PORT=str(port + 1))
    assert status == 1
    assert f"runs on port {port}" in said

    for verb in ("kill", "stop"):
        pid = int((machine.data / "minio/pid").read_text())
        assert machine.run(verb, "minio") == (0, "services: minio: stopped\n")
        assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()
        assert machine.run(verb, "minio") == (0, "services: minio: does not run\n")
        status, said = machine.run("start", "minio")
        assert (status, said) == (0, f"services: minio: runs on 127.0.0.1:{port}\n")

    assert machine.run("down", "--wipe")[0] == 0
    assert list(machine.data.iterdir()) == []


ENDS_BIT_BY_BIT = f"""#!{sys.executable}
import ctypes, http.server, os, pathlib, signal, sys, threading, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

def last():
    while not pathlib.Path(os.environ["CALLS"]).exists():
        time.sleep(0.01)
    os._exit(0)

def end(*_):
    threading.Thread(target=last).start()
    ctypes.CDLL(None).pthread_exit(None)

port = int(sys.argv[sys.argv.index("--address") + 1].rpartition(":")[2])
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
threading.Thread(target=server.serve_forever).start()
signal.signal(signal.SIGTERM, end)
while True:
    signal.pause()
"""
"""Its first thread ends on SIGTERM, and takes the command line along; the others go on listening until they are let go,
as a killed server's do for a moment on a busy machine."""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the command line is all there is to look at")
def test_a_stopped_server_has_let_go_of_its_port(machine: Machine) -> None:
    machine.minio(ENDS_BIT_BY_BIT)
    port = free_port()
    status, said = machine.run("start", "minio", STYX_MINIO_PORT=str(port))
    assert status == 0, said
    pid = int((machine.data / "minio/pid").read_text())
    with machine.begin("stop", "minio") as stopping:
        while Path(f"/proc/{pid}/cmdline").read_bytes():
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            stopping.wait(0.5)
        machine.calls.touch()
        assert stopping.wait(WAIT_SECONDS_MAX) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_process_that_only_has_the_recorded_pid_is_left_alone(machine: Machine) -> None:
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        (machine.data / "minio").mkdir(parents=True)
        for verb in ("stop", "kill"):
            (machine.data / "minio/pid").write_text(f"{stranger.pid}\n")
            assert machine.run(verb, "minio") == (0, "services: minio: does not run\n")
        assert stranger.poll() is None
    finally:
        stranger.send_signal(signal.SIGKILL)
        stranger.wait()


def test_a_taken_port_is_told(machine: Machine, tmp_path: Path) -> None:
    machine.minio()
    port = str(free_port())
    assert machine.run("start", "minio", STYX_MINIO_PORT=port)[0] == 0
    other = str(tmp_path / "other")
    status, said = machine.run("start", "minio", STYX_MINIO_PORT=port, STYX_SERVICES_DATA=other)
    assert status == 1
    assert f"port {port} is taken" in said
    assert "STYX_MINIO_PORT" in said


@pytest.mark.parametrize("port", ["nine", "0", "65536", "-1", "0900"])
def test_a_port_must_be_one(machine: Machine, port: str) -> None:
    machine.minio()
    status, said = machine.run("start", "minio", STYX_MINIO_PORT=port)
    assert status == 1
    assert f'"{port}" is not a port' in said


def test_a_server_that_ends_while_it_starts_is_told_with_its_last_words(machine: Machine) -> None:
    machine.minio(f"#!{machine.bin}/bash\necho 'the disk is full'; exit 1\n")
    status, said = machine.run("start", "minio", STYX_MINIO_PORT=str(free_port()))
    assert status == 1
    assert "the disk is full" in said
    assert "minio: ended while it started" in said
    assert machine.run("status")[0] == 3
