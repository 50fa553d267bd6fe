"""A release with everything on, and what its operator has: certificates, keys, and who signs tokens. And what releases
that are run have in common.
"""

from __future__ import annotations

import json
import secrets
import ssl
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from styx.gateway.auth import api_keys
from tests.gateway.auth.signers import Signer, jwks
from tests.kubernetes.charts import CHARTS, rendered
from tests.kubernetes.node import Answer, Node, ask
from tests.real_services import RealKafka, RealMinio
from tests.transport.conftest import Authority

LOGIN: Final = "login.example.com"
SECRET: Final = b"a-secret-of-the-whole-cluster"
FACTS: Final = b"a-token-that-shows-facts"
BACKUPS: Final = "s3://styx/backups-of-r1"
SIGNER: Final = Signer("k1", "ES256")


def made(name: str) -> tuple[str, api_keys.ApiKey]:
    return api_keys.new_key(name, datetime.now(UTC))


class Shop:
    """The release with everything on, and what its operator has: certificates, keys, and who signs tokens."""

    def __init__(self, folder: Path, kafka: RealKafka, minio: RealMinio, helm: Path) -> None:
        self.authority = Authority(folder, "shop")
        self.key, self.entry = made("admin")
        gateway = self.pair("gateway", "r1-styx-gateway")
        self.login = _Login(self.authority.files("login", LOGIN))
        values = external(kafka, minio) | {
            "access": {
                "existingSecret": "users-access",
                "keysKey": "keys",
                "apiKeyKey": "one-of-them",
                "factsTokenKey": "token",
                "jwt": {"keys": f"https://{LOGIN}:{self.login.port}/jwks.json"},
                "rateLimit": None,
            },
            "gateway": {
                "replicas": 1,
                "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/etc/login/ca.crt"}],
                "extraVolumes": [{"name": "login", "configMap": {"name": "users-login"}}],
                "extraVolumeMounts": [{"name": "login", "mountPath": "/etc/login"}],
            },
            "backup": {"enabled": True, "to": BACKUPS},
            "tests": {"bank": {"seconds": 3, "clients": 4}},
        }
        names = [f"{CHARTS}/styx/ci/{each}.yaml" for each in ("existing-secret", "guarded", "tls")]
        own = folder / "values.json"
        own.write_text(json.dumps(values))
        words = [word for name in [*names, str(own)] for word in ("--values", name)]
        authority = self.authority.certificate.read_bytes()
        peers = self.authority.files("peers", "styx.invalid")
        more = {
            ("Secret", "users-s3"): s3_keys(minio),
            ("Secret", "users-styx-secret"): {"value": SECRET},
            ("Secret", "users-access"): {
                "keys": api_keys.encode([self.entry]),
                "one-of-them": self.key.encode(),
                "token": FACTS,
            },
            ("Secret", "users-styx-tls"): {
                "tls.crt": Path(peers.certificate).read_bytes(),
                "tls.key": Path(peers.key).read_bytes(),
                "ca.crt": authority,
            },
            ("Secret", "users-gateway-certificate"): {**gateway, "ca.crt": authority},
            ("ConfigMap", "users-login"): {"ca.crt": authority},
        }
        self.node = Node(folder / "node", rendered(helm, "styx", *words), more, {LOGIN: "127.0.0.1"})
        self.gateway = self.node.pod("styx-gateway-0")
        self.trust = ssl.create_default_context(cafile=self.authority.certificate)

    def pair(self, name: str, host: str) -> dict[str, bytes]:
        """A fresh certificate, with its key, as a Secret has them."""
        files = self.authority.files(name, host)
        return {"tls.crt": Path(files.certificate).read_bytes(), "tls.key": Path(files.key).read_bytes()}

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """As the Service's clients do."""
        sent = {"Host": "r1-styx-gateway:8080", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            sent["Content-Type"] = "application/json"
        address, tls = (self.gateway.address, 8080), (self.trust, "r1-styx-gateway")
        return ask(address, method, path, sent, None if body is None else body.encode(), tls)

    def certificate(self) -> bytes:
        """What the gateway shows to new connections."""
        return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((self.gateway.address, 8080)))


class _Login:
    """Where the signing keys are fetched from, by https."""

    def __init__(self, files: Any) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(jwks(SIGNER)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(files.certificate, files.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def external(kafka: RealKafka, minio: RealMinio) -> dict[str, Any]:
    """Values of a release whose Kafka and S3 are these, in a prefix of its own."""
    return {
        "log": {"url": f"kafka://{kafka.bootstrap}", "existingSecret": ""},
        "store": {
            "url": f"s3://styx/release-{secrets.token_hex(4)}",
            "endpoint": f"http://{minio.endpoint}",
            "existingSecret": "users-s3",
            "accessKeyKey": "accessKey",
            "secretKeyKey": "secretKey",
        },
        "coordinator": {"slots": 4, "replyPartitions": 2},
    }


def s3_keys(minio: RealMinio) -> dict[str, bytes]:
    return {"accessKey": minio.access_key.encode(), "secretKey": minio.secret_key.encode()}


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}
