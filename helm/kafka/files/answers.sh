#!/bin/bash
# Whether this node has joined its cluster, and its broker answers requests now. A JVM for each question would cost more
# than the broker, so it speaks the protocol itself: ApiVersions, version 0, which is answered before a login.
set -euo pipefail

# Log4j makes the file when the broker says that it is started, which is after it was let in.
[ -s /run/kafka/started ] || { echo "the broker has not joined yet" >&2; exit 1; }
[ "${1:-}" != --joined ] || exit 0

exec 3<>"/dev/tcp/127.0.0.1/9092"
# Under TLS it is enough that somebody takes the connection.
[[ "$KAFKA_PROTOCOL" != *SSL ]] || exit 0
# length 10; API key 18, version 0, correlation id 7, no client id
printf '\0\0\0\12\0\22\0\0\0\0\0\7\377\377' >&3
# length, correlation id, error code 0
answer="$(head -c 10 <&3 | od -An -v -tx1 -j 4 | tr -d ' \n')"
[ "$answer" = 000000070000 ] || { echo "the broker answers ${answer:-nothing}" >&2; exit 1; }
