"""Setting a request of a cluster aside: what is refused before a log is asked. The rest is in `test_set_aside.py`."""

from pathlib import Path

import pytest

from styx import ConfigurationError
from styx.cluster.asides import put_aside
from styx.kafka.address import parse_kafka_url
from styx.store.directory import DirectoryStore

NOWHERE = parse_kafka_url("kafka://127.0.0.1:1")


@pytest.mark.parametrize(
    ("place", "why"), [("3", "SLOT:OFFSET"), ("3:1041", "no cluster has this store: give the one")]
)
def test_what_is_refused_at_once(tmp_path: Path, place: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        put_aside(place, NOWHERE, DirectoryStore(tmp_path), dry_run=False)
