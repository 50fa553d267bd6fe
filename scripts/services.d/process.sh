# One server as a background process, found again by its PID file. Never ends a process by its name, and never one that
# only happens to have the recorded PID. Sourced by scripts/services; a service is a folder of $data.

READY_SECONDS=540 # from the start to the first answer, on a busy machine
STOP_SECONDS=60   # for a clean end; SIGKILL after that

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

# What /proc says of a process behind its name, which may be anything. Nothing where there is no /proc.
stat_of() { # PID
    local line=""
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    echo "${line##*) }"
}
started_at() { # PID; empty if that is not known
    local stat
    read -ra stat <<<"$(stat_of "$1")"
    echo "${stat[19]:-}"
}

# Whether something is left of it. A killed process loses its command line first, and what it listens on with its last
# thread.
remains() { # NAME PID STARTED_AT
    local stat
    [ -n "$3" ] || {
        is_ours "$1" "$2"
        return
    }
    read -ra stat <<<"$(stat_of "$2")"
    [ "${stat[19]:-}" = "$3" ] && ! { [[ "${stat[0]}" == [ZX] ]] && [ "${stat[17]}" -le 1 ]; }
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# What it runs on. If it does not: the environment's choice, then the port it ran on last, then the default.
port_of() {
    local wanted="${1}_port" default="${1}_default_port"
    if running "$1" || [ -z "${!wanted}" ]; then
        cat "$data/$1/port" 2>/dev/null || echo "${!default}"
    else
        echo "${!wanted}"
    fi
}

# A service that runs keeps its port; asking for another one is told rather than ignored.
runs_already() { # NAME
    local port wanted="${1}_port"
    running "$1" || return 1
    port="$(port_of "$1")"
    [ -z "${!wanted}" ] || [ "${!wanted}" = "$port" ] ||
        fail "$1: runs on port $port, and ${!wanted} is asked for. First stop it: scripts/services stop $1"
    say "$1: runs already, on 127.0.0.1:$port"
}

# The service's port and those after it, COUNT in all.
require_free() { # NAME COUNT
    local name="$1" port variable i
    port="$(port_of "$name")"
    variable="STYX_$(tr '[:lower:]' '[:upper:]' <<<"$name")_PORT"
    [[ "$port" =~ ^[1-9][0-9]{0,4}$ ]] && [ $((port + $2)) -le 65536 ] ||
        fail "$name: \"$port\" is not a port. Set $variable to a number from 1 to $((65536 - $2))."
    for ((i = port; i < port + $2; i++)); do
        ! listens "$i" || fail "$name: port $i is taken by another program. Stop that, or choose another: $variable=…"
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
    local name="$1" signal="${2:-TERM}" pid began deadline
    if ! running "$name"; then
        rm -f "$data/$name/pid"
        say "$name: does not run"
        return
    fi
    pid="$(pid_of "$name")"
    began="$(started_at "$pid")"
    kill "-$signal" "$pid" 2>/dev/null || true
    deadline=$((SECONDS + STOP_SECONDS))
    while remains "$name" "$pid" "$began"; do
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
