"""What a node of Kubernetes does with a chart's pods, as far as one machine can: their own commands run as processes,
with their environment, and with Secrets and ConfigMaps mounted as kubelet mounts them.

Each pod has a loopback address of its own, so that it listens on the ports that the manifest names; the names of
Services lead there. Paths of mounts are below the pod's folder, and what would listen everywhere listens on the pod's
address. Nothing is isolated: NetworkPolicies are compared with what listens, never enforced. Linux only.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil  # type: ignore[import-untyped]

from styx.testing.patience import PATIENCE_SECONDS
from tests.kubernetes.charts import NAMESPACE, Manifest
from tests.kubernetes.workloads import Workload, of_kind, selects, workloads

REPOSITORY: Final = Path(__file__).parents[2]
POLL_SECONDS: Final = 0.1
_ENTRYPOINT: Final = "styx"
_EVERYWHERE: Final = "0.0.0.0"
_STYX: Final = (sys.executable, "-m", "styx")
_PROGRAMS: Final = {"styx": _STYX, "python": (sys.executable,)}

NAMES: Final = '''
"""Names of Services lead to pods. uvloop would ask the system instead."""
import json, os, socket, sys
sys.modules["uvloop"] = None
_names, _plain = json.loads(os.environ["NODE_NAMES"]), socket.getaddrinfo
def _getaddrinfo(host, *arguments, **more):
    name = host.decode() if isinstance(host, bytes) else host
    return _plain(_names.get(name, host), *arguments, **more)
socket.getaddrinfo = _getaddrinfo
'''


class Answer(NamedTuple):
    """Of a request over HTTP; `headers` have lower-case names."""

    status: int
    body: bytes
    headers: dict[str, str]


def ask(
    address: tuple[str, int],
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    tls: tuple[ssl.SSLContext, str] | None = None,
) -> Answer:
    """One request on a connection of its own; `tls`: with which context, and as whose certificate. Raises `OSError`."""
    with socket.create_connection(address, PATIENCE_SECONDS) as plain:
        connection = http.client.HTTPConnection(*address)
        connection.sock = plain if tls is None else tls[0].wrap_socket(plain, server_hostname=tls[1])
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()})
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()


def until(holds: Any, what: str) -> Any:
    """What `holds()` gives as soon as it is true; an `OSError` of it is as good as not yet."""
    ends_s = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            found = holds()
        except OSError:
            found = None
        if found:
            return found
        assert time.monotonic() < ends_s, what
        time.sleep(POLL_SECONDS)


class Pod:
    """One pod, with its folder and address. Its processes run from `start` on."""

    def __init__(self, node: Node, workload: Workload, name: str, address: str) -> None:
        self.name = name
        self.workload = workload
        self.address = address
        self.folder = node.folder / name
        self.log = self.folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self._node = node
        (self.folder / "tmp").mkdir(parents=True)
        self._volumes = {each["name"]: each for each in workload.pod.get("volumes", [])}
        for volume in self._volumes.values():
            self._fill(volume)

    @property
    def container(self) -> dict[str, Any]:
        """The only one that is not of its start."""
        (found,) = self.workload.pod["containers"]
        return dict(found)

    @property
    def ports(self) -> dict[str, int]:
        """What the manifest says that it listens on."""
        return {each["name"]: each["containerPort"] for each in self.container.get("ports", [])}

    def start(self) -> None:
        """Those of the start, one after the other, then its own."""
        for each in self.workload.pod.get("initContainers", []):
            done = self.run(self.command(each), each)
            assert done.returncode == 0, done.stdout
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(self.container),
                cwd=self.folder,
                env=self.environment(self.container),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def run(self, words: list[str], container: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        """A command in a container, as `kubectl exec` would run it; what it prints is in the pod's log, too."""
        words = [*_PROGRAMS.get(words[0], (words[0],)), *words[1:]]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment(container or self.container),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        with self.log.open("a") as log:
            log.write(done.stdout)
        return done

    def command(self, container: dict[str, Any]) -> list[str]:
        """What it runs: `command`, or the image's entry point, and `args`."""
        words = [*container.get("command", [_ENTRYPOINT]), *container.get("args", [])]
        return [*_PROGRAMS[words[0]], *(self._moved(word, container) for word in words[1:])]

    def environment(self, container: dict[str, Any]) -> dict[str, str]:
        """All of it: nothing of this process' own is passed on but what programs need to be found."""
        said = {each["name"]: self._value(each, container) for each in container.get("env", [])}
        paths = [str(self._node.folder), *filter(None, said.pop("PYTHONPATH", "").split(":")), str(REPOSITORY)]
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "tmp"),
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": ":".join(paths),
            "NODE_NAMES": json.dumps(self._node.names),
            **said,
        }

    def probe(self, which: str) -> bool:
        """Whether it answers as kubelet wants it to. Raises `OSError`."""
        asked = self.container[which]["httpGet"]
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        port = self.ports[asked["port"]]
        secure = asked.get("scheme") == "HTTPS"
        headers = {"Host": f"{self.address}:{port}", "User-Agent": "kube-probe/1.36", "Accept": "*/*"}
        tls = (context, self.address) if secure else None
        return 200 <= ask((self.address, port), "GET", asked["path"], headers, tls=tls).status < 400

    def wait_ready(self) -> None:
        """Until each of its probes succeeds."""
        for which in ("startupProbe", "readinessProbe", "livenessProbe"):
            until(lambda which=which: self._is_up() and self.probe(which), f"{self.name}: {which}\n{self.said()}")

    def listening(self) -> set[int]:
        """Ports on which its processes listen."""
        assert self.process is not None
        first = psutil.Process(self.process.pid)
        found = set()
        for process in [first, *first.children(recursive=True)]:
            for each in process.net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN:
                    assert each.laddr.ip == self.address, f"{self.name} listens on {each.laddr}"
                    found.add(each.laddr.port)
        return found

    def said(self) -> str:
        """All that it has printed."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def swap(self, kind: str, name: str) -> None:
        """As kubelet brings a changed Secret: a new folder, and one link that changes at once."""
        for volume in self._volumes.values():
            if _source(volume)[:2] == (kind, name):
                self._fill(volume)

    def end(self, kill: bool = False) -> int | None:
        """SIGTERM, or SIGKILL, and waits; its exit status."""
        if self.process is None:
            return None
        (self.process.kill if kill else self.process.terminate)()
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.said()}"
        return True

    def _fill(self, volume: dict[str, Any]) -> None:
        kind, name, items = _source(volume)
        if not kind:
            return
        folder = self.folder / "volumes" / volume["name"]
        data = self._node.data(kind, name)
        wanted = {each["path"]: each["key"] for each in items} if items is not None else {key: key for key in data}
        new = folder / f"..{next(self._node.numbers)}"
        new.mkdir(parents=True)
        for path, key in wanted.items():
            assert key in data, f"{self.name}: {kind} {name} has no key {key}, and its pod would never start"
            (new / path).write_bytes(data[key])
            if not (folder / path).is_symlink():
                (folder / path).symlink_to(Path("..data", path))
        old = (folder / "..data").resolve() if (folder / "..data").is_symlink() else None
        (folder / "..data_tmp").symlink_to(new.name)
        os.replace(folder / "..data_tmp", folder / "..data")
        if old is not None:
            shutil.rmtree(old)

    def _value(self, variable: dict[str, Any], container: dict[str, Any]) -> str:
        source = variable.get("valueFrom")
        if source is None:
            return self._moved(str(variable["value"]), container)
        if "fieldRef" in source:
            return {"metadata.name": self.name, "status.podIP": self.address}[source["fieldRef"]["fieldPath"]]
        kind, ref = ("Secret", "secretKeyRef") if "secretKeyRef" in source else ("ConfigMap", "configMapKeyRef")
        return self._node.data(kind, source[ref]["name"])[source[ref]["key"]].decode()

    def _moved(self, text: str, container: dict[str, Any]) -> str:
        """Text of the manifest, with what is elsewhere on this machine."""
        for mount in sorted(container.get("volumeMounts", []), key=lambda each: -len(each["mountPath"])):
            if mount["mountPath"] != "/tmp":
                text = text.replace(mount["mountPath"], str(self.folder / "volumes" / mount["name"]))
        for port in self.ports.values():
            text = text.replace(f"127.0.0.1:{port}", f"{self.address}:{port}")
        return self.address if text == _EVERYWHERE else text


class Node:
    """The pods of one release, and the Secrets and ConfigMaps that they find: the chart's and `more`, by (kind, name).

    `names` lead elsewhere: names by address.
    """

    def __init__(
        self,
        folder: Path,
        manifests: Iterable[Manifest],
        more: Mapping[tuple[str, str], dict[str, bytes]],
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.numbers = count(1)
        self.manifests = list(manifests)
        self._data = dict(more)
        for each in of_kind(self.manifests, "Secret", "ConfigMap"):
            decode = base64.b64decode if each["kind"] == "Secret" else str.encode
            found = {key: decode(value) for key, value in (each.get("data") or {}).items()}
            self._data[each["kind"], each["metadata"]["name"]] = found
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sitecustomize.py").write_text(NAMES)
        base = f"127.{random.randint(64, 254)}.{random.randint(1, 254)}"
        self.names = dict(names or {})
        self.pods: dict[str, Pod] = {}
        for workload in workloads(self.manifests):
            plain = workload.where.partition("/")[2]
            for number in range(workload.replicas if workload.kind in ("Deployment", "StatefulSet") else 1):
                name = f"{plain}-{number}"
                self.pods[name] = Pod(self, workload, name, f"{base}.{len(self.pods) + 1}")
        for service in of_kind(self.manifests, "Service"):
            name = service["metadata"]["name"]
            pod = next(
                each for each in self.pods.values() if selects(service["spec"]["selector"], each.workload.labels)
            )
            for full in (
                name,
                f"{name}.{NAMESPACE}",
                f"{name}.{NAMESPACE}.svc",
                f"{name}.{NAMESPACE}.svc.cluster.local",
            ):
                self.names[full] = pod.address

    def data(self, kind: str, name: str) -> dict[str, bytes]:
        """What the object has."""
        assert (kind, name) in self._data, f"there is no {kind} {name}, and its pod would never start"
        return self._data[kind, name]

    def replace(self, kind: str, name: str, changed: Mapping[str, bytes]) -> None:
        """Changes an object, and brings it to the pods that mount it."""
        self._data[kind, name] = {**self.data(kind, name), **changed}
        for pod in self.pods.values():
            pod.swap(kind, name)

    def pod(self, name: str) -> Pod:
        """By its name without the release's."""
        return next(pod for full, pod in self.pods.items() if full.endswith(f"-{name}"))

    @contextmanager
    def running(self) -> Iterator[Node]:
        """Meanwhile its servers run, all started at once; ready when this begins."""
        servers = [each for each in self.pods.values() if each.workload.kind in ("Deployment", "StatefulSet")]
        try:
            for pod in servers:
                pod.start()
            for pod in servers:
                pod.wait_ready()
            yield self
        finally:
            for pod in reversed(servers):  # gateways and workers first
                pod.end(kill=True)

    def logs(self) -> str:
        """All that all of them have printed."""
        return "".join(pod.said() for pod in self.pods.values())


def _source(volume: dict[str, Any]) -> tuple[str, str, list[dict[str, str]] | None]:
    """(kind, name, items) of what a volume shows; ("", "", None) for an empty one."""
    if "secret" in volume:
        return "Secret", volume["secret"]["secretName"], volume["secret"].get("items")
    if "configMap" in volume:
        return "ConfigMap", volume["configMap"]["name"], volume["configMap"].get("items")
    return "", "", None
