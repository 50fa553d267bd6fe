#!/bin/bash
# Before a node ends in order: waits until every partition has all its copies, so that without this node none has too
# few. Waits as many seconds as its argument says at most. If it cannot find out it does not wait: the node just ends.
set -euo pipefail

deadline=$((SECONDS + $1))
properties=/run/kafka/client.properties
login='s/^listener.name.client.plain.sasl.jaas.config=\(.*\) user_.*/sasl.jaas.config=\1;/p'

# As the broker speaks to its peers: with the same login, from the same mounted files.
{
    echo "security.protocol=$KAFKA_PROTOCOL"
    echo "sasl.mechanism=PLAIN"
    grep -E '^(config\.providers|ssl\.truststore)' /run/kafka/server.properties || true
    sed -n "$login" /run/kafka/server.properties
} >"$properties"

lacking() {
    KAFKA_HEAP_OPTS='-Xmx128m -XX:TieredStopAtLevel=1' KAFKA_LOG4J_OPTS='' timeout 30 \
        /opt/kafka/bin/kafka-topics.sh --bootstrap-server "$POD_NAME.$KAFKA_DOMAIN:9092" \
        --command-config "$properties" --describe --under-replicated-partitions
}

while [ "$SECONDS" -lt "$deadline" ]; do
    partitions="$(lacking)" || exit 0
    [ -n "$partitions" ] || exit 0
    sleep 2
done
