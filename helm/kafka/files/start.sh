#!/bin/bash
# Starts this pod's node: adds what only it knows to the settings, prepares an empty volume, becomes the broker.
set -euo pipefail

node="${POD_NAME##*-}"
properties=/run/kafka/server.properties
started=/run/kafka/started

fail() { echo "start: $*" >&2; exit 1; }

# They stand between quotes in the settings; other characters would end the quotes, or mean something there.
check_secret() { # FILE PATTERN WHAT
    local text
    text="$(<"$1")" || fail "cannot read $1"
    [[ "$text" =~ $2 ]] && [ "${#text}" -eq "$(wc -c <"$1")" ] || fail "the Secret's $3, without a line end"
}

if [ -n "${KAFKA_USERNAME_FILE:-}" ]; then
    check_secret "$KAFKA_USERNAME_FILE" '^[A-Za-z0-9_.-]+$' "user name is to be of letters, digits, and any of _.-"
    check_secret "$KAFKA_PASSWORD_FILE" '^[][A-Za-z0-9 !#%&()*+,./:;<=>?@^_`{|}~-]+$' \
        "password is to be of ASCII characters other than quotes, \$ and backslashes"
fi

{
    cat /etc/kafka-start/server.properties
    echo
    echo "node.id=$node"
    echo "advertised.listeners=CLIENT://$POD_NAME.$KAFKA_DOMAIN:9092,CONTROLLER://$POD_NAME.$KAFKA_DOMAIN:9093"
} >"$properties"

if [ ! -f /var/lib/kafka/data/topics/meta.properties ]; then
    # Also what an interrupted attempt has left.
    KAFKA_HEAP_OPTS=-Xmx128m /opt/kafka/bin/kafka-storage.sh format --ignore-formatted \
        --cluster-id "$KAFKA_CLUSTER" --config "$properties"
fi

# A container that is started again finds the file of its predecessor.
rm -f "$started"
exec /opt/kafka/bin/kafka-server-start.sh "$properties"
