"""A machine for the tests of `scripts/services` that has only the tools it is given, and a pretended MinIO."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import SCRIPT

TOOLS = [
    "base64",
    "bash",
    "cat",
    "chmod",
    "cut",
    "dirname",
    "flock",
    "grep",
    "head",
    "mkdir",
    "mktemp",
    "mv",
    "nice",
    "nohup",
]
TOOLS += ["rm", "sed", "setsid", "sleep", "tail", "touch", "tr"]
WAIT_SECONDS_MAX = PATIENCE_SECONDS

SERVER = f"""#!{sys.executable}
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/minio/health/ready" else 404)
        self.end_headers()
port = int(sys.argv[sys.argv.index("--address") + 1].rpartition(":")[2])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class Machine:
    """A machine with nothing but the tools that it is given."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.data = folder / "data"
        self.calls = folder / "calls"
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in TOOLS:
            found = shutil.which(name)
            assert found, f"this test needs {name}"
            (self.bin / name).symlink_to(found)
        self.environment = {
            "PATH": str(self.bin),
            "STYX_SERVICES": str(self.home),
            "STYX_SERVICES_DATA": str(self.data),
            "CALLS": str(self.calls),
        }

    def tool(self, name: str, script: str) -> None:
        self._program(self.bin / name, f"#!{self.bin}/bash\n{script}")

    def minio(self, script: str = SERVER) -> None:
        (self.home / "bin").mkdir(parents=True, exist_ok=True)
        self._program(self.home / "bin/minio", script)

    def begin(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT, *words],
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str, **environment: str) -> tuple[int, str]:
        """The exit status, and what it said."""
        with self.begin(*words, **environment) as process:
            said, _ = process.communicate(timeout=WAIT_SECONDS_MAX)
        return process.returncode, said

    def left_in_home(self) -> list[str]:
        return sorted(path.name for path in self.home.iterdir() if path.suffix != ".lock")

    @staticmethod
    def _program(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)
