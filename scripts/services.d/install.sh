# Gets the servers from package registries into $home: Kafka's jars with Maven, MinIO built with Go. Never changes
# anything outside $home and the two tools' own caches. A part is there completely or not at all, because it is moved
# into place when it is finished. Sourced by scripts/services.

# MinIO is published as source only; this is a commit of 2026-02-12.
MINIO_MODULE=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
JAVA_OLDEST=17
PROGRESS_SECONDS=15

WITHOUT_TOOLS="or use containers instead: docker compose up --wait"

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
kafka_version="$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$parts/kafka/pom.xml")"

install_all() {
    [ -x "$home/bin/minio" ] || require_go # told before Kafka is fetched
    install_kafka
    install_minio
}

install_kafka() {
    require_java
    [ -f "$(kafka_jar)" ] || alone kafka fetch_kafka
}

install_minio() {
    [ -x "$home/bin/minio" ] || alone minio build_minio
}

kafka_jar() { echo "$home/kafka/libs/kafka_2.13-$kafka_version.jar"; }

require_java() {
    local version
    version="$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')" || true
    [ -n "$version" ] ||
        fail "java is missing. Install version $JAVA_OLDEST or newer (Debian: apt install default-jre-headless), $WITHOUT_TOOLS"
    [ "$version" -ge $JAVA_OLDEST ] ||
        fail "$java is version $version; Kafka needs $JAVA_OLDEST or newer. Set JAVA_HOME to one, $WITHOUT_TOOLS"
}

require_maven() {
    command -v mvn >/dev/null || fail "mvn is missing. Install Maven (Debian: apt install maven), $WITHOUT_TOOLS"
}

require_go() {
    command -v go >/dev/null || fail "go is missing. Install Go 1.21 or newer (https://go.dev/dl), $WITHOUT_TOOLS"
}

# One installer at a time, so that tests that need a service wait for an installation under way. Without flock, two do
# the same work twice and the later one's result stays.
alone() { # NAME FUNCTION
    (
        if command -v flock >/dev/null; then
            exec 9>"$home/$1.lock"
            flock -n 9 || {
                say "$1: waiting for an installation under way"
                flock 9
            }
        fi
        "$2"
    )
}

fetch_kafka() {
    local work
    [ ! -f "$(kafka_jar)" ] || return 0
    require_maven
    work="$(mktemp -d "$home/kafka.XXXXXX")"
    say "kafka: fetching $kafka_version, 43 MB"
    with_progress kafka "$work" mvn -q -B -f "$parts/kafka/pom.xml" \
        dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$work/libs"
    mkdir -p "$home/kafka"
    rm -rf "$home/kafka/libs"
    mv "$work/libs" "$home/kafka/libs"
    rm -rf "$work"
}

build_minio() {
    local work
    [ ! -x "$home/bin/minio" ] || return 0
    require_go
    work="$(mktemp -d "$home/minio.XXXXXX")"
    say "minio: building; this takes 4 to 10 minutes, once"
    GOBIN="$work" CGO_ENABLED=0 with_progress minio "$work" \
        nice go install -trimpath -ldflags '-s -w' "$MINIO_MODULE"
    mkdir -p "$home/bin"
    mv "$work/minio" "$home/bin/minio"
    rm -rf "$work"
}

# Runs COMMAND with its output in WORK/log, and says from time to time that it still runs.
with_progress() { # NAME WORK COMMAND…
    local name="$1" work="$2" job begun=$SECONDS told=0
    shift 2
    "$@" >"$work/log" 2>&1 </dev/null &
    job=$!
    trap 'kill $job 2>/dev/null; rm -rf "$work"; exit 143' TERM INT
    while kill -0 "$job" 2>/dev/null; do
        sleep 0.2
        if [ $(((SECONDS - begun) / PROGRESS_SECONDS)) -gt $told ]; then
            told=$(((SECONDS - begun) / PROGRESS_SECONDS))
            say "$name: $((SECONDS - begun)) s"
        fi
    done
    trap - TERM INT
    wait "$job" || {
        tail -n 20 "$work/log" >&2
        rm -rf "$work"
        fail "$name: the installation failed, for the reason above. Needs a way to the package registries."
    }
}
