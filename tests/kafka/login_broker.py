"""A broker that asks for a login, beside the one of `tests.real_services`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from styx.process.ports import free_port
from tests.real_services import RealKafka

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@contextmanager
def login_broker(passwords: Mapping[str, str], more: str = "") -> Iterator[int]:
    """Its port. `passwords` by user, the first of whom is the broker's own; `more` settings."""
    folder, port = Path(tempfile.mkdtemp(prefix=f"styx-test-services-{os.getpid()}-")), free_port(following=1)
    own = next(iter(passwords))
    users = " ".join(f'user_{user}="{password}"' for user, password in passwords.items())
    settings = folder / "more.properties"
    settings.write_text(
        f"listeners=CLIENT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}\n"
        f"advertised.listeners=CLIENT://127.0.0.1:{port}\n"
        "inter.broker.listener.name=CLIENT\n"
        "listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "sasl.enabled.mechanisms=PLAIN\n"
        "sasl.mechanism.inter.broker.protocol=PLAIN\n"
        f"listener.name.client.plain.sasl.jaas.config={PLAIN} required "
        f'username="{own}" password="{passwords[own]}" {users};\n{more}'
    )
    broker = RealKafka(folder, port, {"STYX_KAFKA_SETTINGS": str(settings)})
    try:
        broker.start()
        yield port
    finally:
        broker.stop()
        shutil.rmtree(folder)
