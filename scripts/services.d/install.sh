# Gets the servers from package registries into $home: Kafka's jars with Maven, MinIO built with Go. What only tests
# need comes when it is asked for: the judge, built with Cargo, and helm, built with Go where there is none. Never
# changes anything outside $home and the tools' own caches. A part is there completely or not at all, because it is
# moved into place when it is finished. Sourced by scripts/services.

# MinIO is published as source only; this is a commit of 2026-02-12.
MINIO_MODULE=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
ADYA_VERSION=0.1.0 # as in proof/judge/adya.py
HELM_MODULE=helm.sh/helm/v3/cmd/helm@v3.22.0
JAVA_OLDEST=17
PROGRESS_SECONDS=15

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
kafka_version="$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$parts/kafka/pom.xml")"

install_all() {
    require java_problem maven_problem go_problem # all at once, before the long part
    install_kafka
    install_minio
}

install_kafka() {
    require java_problem maven_problem
    has_kafka || alone kafka fetch_kafka
}

install_minio() {
    require go_problem
    has_minio || alone minio build_minio
}

install_judge() {
    ! has_judge || return 0
    command -v cargo >/dev/null || fail "cargo is missing. Install Rust (https://rustup.rs)."
    alone judge build_judge
}

install_helm() {
    ! has_helm || return 0
    command -v go >/dev/null || fail "go is missing. Install Go (https://go.dev/dl), or helm 3 (https://helm.sh)."
    alone helm build_helm
}

has_kafka() { [ -f "$home/kafka/libs/kafka_2.13-$kafka_version.jar" ]; }
has_minio() { [ -x "$home/bin/minio" ]; }
has_judge() { [ -x "$home/bin/adya" ]; }
has_helm() { [ -x "$home/bin/helm" ]; }

require() { # PROBLEM…, each of which prints a line if there is one
    local problem said
    said="$(for problem; do $problem; done)"
    [ -z "$said" ] || fail "$said
Or use containers instead: docker compose up --wait"
}

java_problem() { # always needed, because the broker runs on it
    local version
    version="$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')" || true
    if [ -z "$version" ]; then
        echo "java is missing. Install version $JAVA_OLDEST or newer (Debian: apt install default-jre-headless)."
    elif [ "$version" -lt $JAVA_OLDEST ]; then
        echo "$java is version $version; Kafka needs $JAVA_OLDEST or newer. Install one, and set JAVA_HOME to it."
    fi
}

maven_problem() {
    has_kafka || command -v mvn >/dev/null || echo "mvn is missing. Install Maven (Debian: apt install maven)."
}

go_problem() {
    has_minio || command -v go >/dev/null || echo "go is missing. Install Go 1.21 or newer (https://go.dev/dl)."
}

# One installer at a time, so that tests that need a service wait for an installation under way. Without flock, two do
# the same work, and the later one's result stays.
alone() { # NAME FUNCTION
    exec 9>"$home/$1.lock"
    if command -v flock >/dev/null && ! flock -n 9; then
        say "$1: waiting for an installation under way"
        flock 9
    fi
    "$2"
    exec 9>&-
}

fetch_kafka() {
    local work
    ! has_kafka || return 0 # somebody else had the lock
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
    ! has_minio || return 0
    work="$(mktemp -d "$home/minio.XXXXXX")"
    say "minio: building; this takes 4 to 10 minutes, once"
    GOBIN="$work" CGO_ENABLED=0 with_progress minio "$work" \
        nice go install -trimpath -ldflags '-s -w' "$MINIO_MODULE"
    mkdir -p "$home/bin"
    mv "$work/minio" "$home/bin/minio"
    rm -rf "$work"
}

build_judge() {
    local work
    ! has_judge || return 0
    work="$(mktemp -d "$home/judge.XXXXXX")"
    say "judge: building; this takes a minute or a few, once"
    # Without what connects to databases, most of the build: it is only asked to check files.
    CARGO_TARGET_DIR="$work/target" with_progress judge "$work" \
        nice cargo install --locked --no-default-features --root "$work" "adya@$ADYA_VERSION"
    mkdir -p "$home/bin"
    mv "$work/bin/adya" "$home/bin/adya"
    rm -rf "$work"
}

build_helm() {
    local work
    ! has_helm || return 0
    work="$(mktemp -d "$home/helm.XXXXXX")"
    say "helm: building; this takes 2 to 5 minutes, once"
    GOBIN="$work" CGO_ENABLED=0 with_progress helm "$work" nice go install -trimpath -ldflags '-s -w' "$HELM_MODULE"
    mkdir -p "$home/bin"
    mv "$work/helm" "$home/bin/helm"
    rm -rf "$work"
}

# Runs COMMAND with its output in WORK/log, and says from time to time that it still runs.
with_progress() { # NAME WORK COMMAND…
    local name="$1" work="$2" job begun=$SECONDS told=0
    shift 2
    "$@" >"$work/log" 2>&1 </dev/null &
    job=$!
    trap 'kill $job 2>/dev/null; wait $job || true; rm -rf "$work"; exit 143' TERM INT
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
