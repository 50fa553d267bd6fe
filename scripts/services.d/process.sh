# One server as a background process, found again by its PID file. Never ends a process by its name, and never one that
# only happens to have the recorded PID. Sourced by scripts/services; a service is a folder of $data.

READY_SECONDS=60 # from the start to the first answer, on a busy machine
STOP_SECONDS=30  # for a clean end; SIGKILL after that

say() { echo "services: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

command_line() { # PID; empty for a process that is gone, or dead and not yet reaped
    if [ -d /proc/self ]; then
        { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null || true
    else
        ps -ww -o args= -p "$1" 2>/dev/null | grep -v '<defunct>' || true
    fi
}

pid_of() { cat "$data/$1/pid" 2>/dev/null; }

# Each server's command line names its own folder, which no other process that got this PID does.
is_ours() { [[ "$(command_line "$2")" == *"$data/$1/"* ]]; }

running() {
    local pid
    pid="$(pid_of "$1")" && [ -n "$pid" ] && is_ours "$1" "$pid"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The port it was started with last; a port of the environment comes first, then the default.
port_of() {
    local chosen="$1_port"
    if running "$1" || [ -z "${!chosen}" ]; then
        cat "$data/$1/port" 2>/dev/null || { [ "$1" = kafka ] && echo 9092 || echo 9000; }
    else
        echo "${!chosen}"
    fi
}
kafka_port="${STYX_KAFKA_PORT:-}"
minio_port="${STYX_MINIO_PORT:-}"

require_free() { # NAME PORT…
    local name="$1" port variable
    variable="STYX_$(echo "$name" | tr '[:lower:]' '[:upper:]')_PORT"
    shift
    for port; do
        [[ "$port" =~ ^[0-9]{1,5}$ ]] && [ "$port" -gt 0 ] && [ "$port" -lt 65536 ] ||
            fail "$name: \"$port\" is not a port. Set $variable to a number from 1 to 65534."
        ! listens "$port" ||
            fail "$name: port $port is taken by another program. Stop that, or choose another: $variable=…"
    done
}

# Starts COMMAND and waits until READY succeeds. SIGINT for the caller's group does not reach the server.
launch() { # NAME PORT READY COMMAND…
    local name="$1" port="$2" ready="$3" folder="$data/$1" detach="" pid deadline
    shift 3
    [ ! -f "$folder/log" ] || mv "$folder/log" "$folder/log.previous"
    ! command -v setsid >/dev/null || detach=setsid
    $detach nohup "$@" >"$folder/log" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$folder/pid"
    echo "$port" >"$folder/port"
    deadline=$((SECONDS + READY_SECONDS))
    until "$ready" "$port" 2>/dev/null; do
        if ! kill -0 "$pid" 2>/dev/null; then
            tail -n 20 "$folder/log" >&2
            rm -f "$folder/pid"
            fail "$name: ended while it started. The end of $folder/log is above."
        fi
        if [ $SECONDS -ge $deadline ]; then
            tail -n 20 "$folder/log" >&2
            stop "$name" KILL
            fail "$name: gave no answer for $READY_SECONDS s. The end of $folder/log is above."
        fi
        sleep 0.05
    done
    say "$name: runs on 127.0.0.1:$port"
}

stop() { # NAME [SIGNAL]
    local name="$1" signal="${2:-TERM}" pid deadline
    if ! running "$name"; then
        rm -f "$data/$name/pid"
        say "$name: does not run"
        return
    fi
    pid="$(pid_of "$name")"
    kill "-$signal" "$pid" 2>/dev/null || true
    deadline=$((SECONDS + STOP_SECONDS))
    while is_ours "$name" "$pid"; do
        if [ $SECONDS -ge $deadline ]; then
            say "$name: did not stop within $STOP_SECONDS s, and is killed"
            kill -KILL "$pid" 2>/dev/null || true
            deadline=$((SECONDS + STOP_SECONDS))
        fi
        sleep 0.05
    done
    rm -f "$data/$name/pid"
    say "$name: stopped"
}

# A service that runs already keeps its port; asking for another one is told rather than ignored.
keeps_port() { # NAME VARIABLE WANTED
    local port
    port="$(port_of "$1")"
    [ -z "$3" ] || [ "$3" = "$port" ] ||
        fail "$1: runs already, on port $port, and $2 asks for $3. Stop it first: scripts/services stop $1"
    say "$1: runs already, on 127.0.0.1:$port"
}
