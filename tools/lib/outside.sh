#!/bin/sh
# Installs the parts that nobody here wrote and that tests/outside plays against: Node, the MCP
# conformance suite, the MCP Inspector and five MCP servers. sh tools/lib/outside.sh [--where]
#
# Promises:
# - They lie outside of git, in $REMIT_OUTSIDE or in a cache folder named after what is asked for.
#   The folder appears complete or not at all, so a cut-off run leaves nothing half done.
# - Two runs at once: the kernel holds the lock. Nothing waits forever; each part is tried twice.
# - No scripts of packages are run. The versions are those of the locks in tests/outside.
# - A machine without npm or without a network is told so: code 0, and with CI=true code 1.
# - --where prints the folder, installed or not, and does nothing else.
set -eu

case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac
root=$(CDPATH='' cd -P -- "$here/../.." && pwd -P)
. "$root/tools/lib/prepare.sh"

manifest=$root/tests/outside
servers="mcp-server-time mcp-server-git"
most=115 first=80 # seconds for a part, and for its first try; they are installed side by side

# One word that changes with what is asked for and with the kind of machine.
key() {
    # shellcheck disable=SC2046 # the words are wanted apart, to be joined into one
    set -- $(cat "$manifest/package-lock.json" "$manifest"/*.lock | cksum) $(uname -sm)
    printf '%s-%s-%s-%s\n' "$1" "$2" "$3" "$4"
}

folder=${REMIT_OUTSIDE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/remit-outside/$(key)}

is_complete() { # FOLDER
    [ -f "$1/ready" ] || return 1
    for server in $servers; do
        [ -x "$1/$server/bin/python" ] || return 1 # also no when its Python is gone
    done
}

do_without() { # WHY
    say "no outside parts, so the tests in tests/outside cannot run: $1"
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

# Up to two tries, each in a session of its own, so that everything it started is ended with it.
# Takes the place of the shell: a signal to the job reaches it.
try_twice() { # LOG COMMAND...
    exec "$python" -c '
import os, signal, subprocess, sys, time

most, first, log, command = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]
deadline = time.monotonic() + most

def end(code):
    os.killpg(work.pid, signal.SIGKILL)
    sys.exit(code)

signal.signal(signal.SIGTERM, lambda *_: end(143))
for limit in (first, most):
    with open(log, "w") as out:
        work = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        try:
            if work.wait(min(limit, deadline - time.monotonic())) == 0:
                sys.exit(0)
        except subprocess.TimeoutExpired:
            out.write("given up: it took too long\n")
            os.killpg(work.pid, signal.SIGKILL)
            work.wait()
sys.exit(1)
' "$most" "$first" "$@" 8>&-
}

take_outside_lock() { # FOLDER
    exec 8>>"$1.lock"
    "$python" -c '
import fcntl, sys, time
deadline = time.monotonic() + 150
while True:
    try:
        fcntl.flock(8, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sys.exit(0)
    except OSError:
        if time.monotonic() > deadline:
            sys.exit(1)
    time.sleep(0.1)
' || do_without "another run has been installing them for two minutes and a half"
}

# One try of one part, in a process of its own.
make_part() { # NAME STAGE
    if [ "$1" = npm ]; then
        rm -rf "$2/npm"
        mkdir "$2/npm"
        cp "$manifest/package.json" "$manifest/package-lock.json" "$2/npm/"
        cd "$2/npm"
        npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error >&2
    else
        venv=$2/$1 # it is moved later, so only `bin/python -m` is good in it
        make_venv
        install --require-hashes -r "$manifest/$1.lock"
        "$venv/bin/python" -c "import $(printf '%s' "$1" | tr - _)"
    fi
}

install_all() { # STAGE
    running=
    for part in npm $servers; do
        (try_twice "$1/$part.log" sh "$0" --part "$part" "$1") &
        running="$running $part:$!"
    done
    trap 'for job in $running; do kill "${job#*:}" 2>/dev/null; done; wait; rm -rf "$stage"; exit 130' \
        INT TERM HUP
    failed=
    for job in $running; do
        wait "${job#*:}" || failed="$failed ${job%:*}"
    done
    trap - INT TERM HUP
    for part in $failed; do
        tail -n 12 "$1/$part.log" >&2
        say "$part could not be installed"
    done
    [ -z "$failed" ]
}

if [ "${1:-}" = --where ]; then
    printf '%s\n' "$folder"
    exit 0
elif [ "${1:-}" = --part ]; then
    find_python
    make_part "$2" "$3"
    exit 0
fi

if is_complete "$folder"; then
    touch "$folder" # what nobody has used for a month goes, see below
    say "outside parts for tests/outside: $folder"
    exit 0
fi
have npm || do_without "npm is not on PATH"
need_python
mkdir -p "${folder%/*}" || do_without "${folder%/*} cannot be written to"
take_outside_lock "$folder"
if ! is_complete "$folder"; then
    say "installing outside parts for tests/outside, which takes up to two minutes"
    stage=$folder.new
    rm -rf "$stage"
    mkdir "$stage"
    install_all "$stage" || { rm -rf "$stage"; do_without "see above"; }
    date -u >"$stage/ready"
    rm -rf "$folder"
    mv "$stage" "$folder"
    [ -n "${REMIT_OUTSIDE:-}" ] ||
        find "${folder%/*}" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
fi
say "outside parts for tests/outside: $folder"
