# One Kafka broker that is its own controller (KRaft). Sourced by scripts/services.

KAFKA_HEAP=512m

kafka_port="${STYX_KAFKA_PORT:-}"
kafka_default_port=9092

kafka_start() {
    local folder="$data/kafka" port
    ! runs_already kafka || return 0
    require_free kafka 2
    port="$(port_of kafka)"
    mkdir -p "$folder"
    kafka_configure "$folder" "$port"
    kafka_format "$folder"
    launch kafka "$port" kafka_answers "$java" -Xmx$KAFKA_HEAP -XX:+UseG1GC \
        "-Dlog4j2.configurationFile=$parts/kafka/log4j2.xml" -cp "$home/kafka/libs/*" \
        kafka.Kafka "$folder/server.properties"
}

kafka_configure() { # FOLDER PORT
    {
        cat "$parts/kafka/broker.properties"
        echo "controller.quorum.voters=1@127.0.0.1:$(($2 + 1))"
        echo "listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$(($2 + 1))"
        echo "advertised.listeners=PLAINTEXT://127.0.0.1:$2"
        echo "log.dirs=$1/topics"
        [ -z "${STYX_KAFKA_SETTINGS:-}" ] || cat "$STYX_KAFKA_SETTINGS"
    } >"$1/server.properties"
}

kafka_format() { # FOLDER
    local id
    [ ! -f "$1/topics/meta.properties" ] || return 0
    # 16 random bytes in URL-safe base64; the prefix because an id that begins with a dash would be an option
    id="S$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c 1-20)A"
    "$java" -Xmx128m -XX:TieredStopAtLevel=1 "-Dlog4j2.configurationFile=$parts/kafka/log4j2.xml" \
        -cp "$home/kafka/libs/*" kafka.tools.StorageTool format -t "$id" -c "$1/server.properties" \
        >"$1/format.log" 2>&1 || {
        cat "$1/format.log" >&2
        fail "kafka: could not prepare $1, for the reason above."
    }
}

# The port listens before the broker takes requests; its last line says that it does.
kafka_answers() { # PORT
    grep -q 'Kafka Server started' "$data/kafka/log" && listens "$1"
}

kafka_settings() { echo "export STYX_LOG=kafka://127.0.0.1:$(port_of kafka)"; }
