"""Kafka addresses: what is read from URL and environment, and what is refused with which words."""

from __future__ import annotations

import pytest

from styx.errors import ConfigurationError
from styx.kafka.address import KafkaAddress, parse_kafka_url

SECRETS = {"STYX_KAFKA_USERNAME": "alice", "STYX_KAFKA_PASSWORD": "open sesame"}


def test_several_brokers_and_the_port_that_is_left_out() -> None:
    assert parse_kafka_url("kafka://h1:9093,h2,[::1]:9095", {}) == KafkaAddress("h1:9093,h2:9092,[::1]:9095")
    assert KafkaAddress("h1:1").options() == {"bootstrap_servers": "h1:1", "security_protocol": "PLAINTEXT"}


def test_secrets_come_from_the_environment_and_are_not_shown() -> None:
    address = parse_kafka_url("kafka://h1:9093?protocol=sasl_plaintext&mechanism=scram-sha-512", SECRETS)
    assert address.options() == {
        "bootstrap_servers": "h1:9093",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "open sesame",
    }
    assert "sesame" not in repr(address)
    assert "sesame" not in str(address)


def test_encryption_brings_a_context() -> None:
    assert "ssl_context" in parse_kafka_url("kafka://h1:9093?protocol=SSL", {}).options()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://h1:9092", "is not a Kafka address"),
        ("kafka://", "is not a Kafka address"),
        ("kafka://h1:9092/bank", "is not a Kafka address"),
        ("kafka://h1:99999", "is not HOST:PORT"),
        ("kafka://h1:9092,,h2", "is not HOST:PORT"),
        ("kafka://alice:pw@h1:9092", "STYX_KAFKA_PASSWORD"),
        ("kafka://h1?protocl=SSL", "unknown option 'protocl'"),
        ("kafka://h1?protocol=TLS", "must be one of PLAINTEXT"),
        ("kafka://h1?protocol=SASL_SSL&mechanism=GSSAPI", "must be one of PLAIN,"),
        ("kafka://h1?protocol=SASL_SSL", "needs STYX_KAFKA_USERNAME"),
    ],
)
def test_bad_addresses_are_refused(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_kafka_url(url, {})
