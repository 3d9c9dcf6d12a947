# Makes .venv from requirements.lock, for tools/run and tools/test. Sourced with $root set.
#
# Promises:
# - Ready means that the stamp fits the lock, pyproject.toml, the interpreter and this folder.
#   The stamp goes first and comes back last, so a cut-off run is never taken for a ready one.
# - Built where it will stay: the scripts of a virtual environment carry its path.
# - Two runs at once: the kernel holds the lock, so a killed run leaves nothing to clean up.
# - Only stderr is written to, and nothing at all when there is nothing to do.

venv=$root/.venv
stamp=$venv/.remit-ready
python_names="python3 python3.14 python3.13 python3.12 python3.11 python"

say() { printf 'remit: %s\n' "$*" >&2; }

give_up() { # WHAT FIX
    printf 'remit: %s\n  fix: %s\n' "$1" "$2" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# One line that changes with the files that .venv is made from.
sources() {
    # shellcheck disable=SC2046 # the words are wanted apart, to be joined into one line
    set -- $(cd "$root" && cksum requirements.lock pyproject.toml 2>/dev/null)
    printf '%s\n' "$*"
}

# No Python is started here: every command pays for this check.
is_ready() {
    [ -f "$stamp" ] || return 1
    { read -r made_from && IFS= read -r made_in && IFS= read -r made_by; } <"$stamp" || return 1
    [ "$made_in" = "$root" ] && [ "$venv/bin/python" -ef "$made_by" ] &&
        [ "$made_from" = "$(sources)" ]
}

# Sets $python to an interpreter outside of any virtual environment, or to nothing.
find_python() {
    for name in $python_names; do
        python=$("$name" -c '
import sys
if sys.version_info >= (3, 11):
    print(getattr(sys, "_base_executable", None) or sys.executable)
' 2>/dev/null) || python=
        [ -z "$python" ] || return 0
    done
    if have uv; then
        python=$(uv python find --no-python-downloads '>=3.11' 2>/dev/null) || python=
    fi
}

python_fix() {
    as_root=
    ! have sudo || as_root="sudo "
    if have uv; then
        echo "uv python install 3.12"
    elif have brew; then
        echo "brew install python@3.13"
    elif have apt-get && have python3; then # the default one is too old
        echo "${as_root}apt-get install python3.11 python3.11-venv"
    elif have apt-get; then
        echo "${as_root}apt-get install python3 python3-venv"
    elif have dnf; then
        echo "${as_root}dnf install python3.12"
    elif have apk; then
        echo "${as_root}apk add python3"
    elif have pacman; then
        echo "${as_root}pacman -S python"
    else
        echo "install Python 3.11 or newer, and put it on PATH as python3"
    fi
}

need_python() {
    find_python
    [ -z "$python" ] || return 0
    found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || found=
    give_up "Python 3.11 or newer is needed; ${found:+python3 here is }${found:-none is on PATH}" \
        "$(python_fix)"
}

# Holds until descriptor 9 is closed by every process that has it.
take_lock() {
    exec 9>>"$root/.venv.lock"
    "$python" -c '
import fcntl, sys, time
deadline = time.monotonic() + 300
told = False
while True:
    try:
        fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sys.exit(0)
    except OSError:
        if time.monotonic() > deadline:
            sys.exit(1)
    if not told:
        told = True
        sys.stderr.write("remit: waiting for another run that prepares .venv\n")
    time.sleep(0.1)
' || give_up "another run has been preparing .venv for five minutes" \
        "end that run, then start this one again"
}

make_venv() {
    rm -rf "$venv"
    if have uv; then
        uv venv --quiet --no-project --python "$python" "$venv" && return 0
    elif "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv "$venv" && return 0
    elif "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --without-pip "$venv" && return 0
    else
        give_up "this Python has neither pip nor ensurepip" "$(pip_fix)"
    fi >&2
    give_up "$python could not make a virtual environment" "$(pip_fix)"
}

pip_fix() {
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    as_root=
    ! have sudo || as_root="sudo "
    if have apt-get; then
        echo "${as_root}apt-get install python$version-venv"
    else
        echo "install uv, or pip for $python, and start again"
    fi
}

install() { # ARGS of "pip install"
    if have uv; then
        uv pip install --quiet --python "$venv/bin/python" "$@"
    elif [ -e "$venv/bin/pip" ]; then
        "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input "$@"
    else
        "$python" -m pip --python "$venv/bin/python" install \
            -qq --disable-pip-version-check --no-input "$@"
    fi >&2
}

fill_venv() {
    (cd "$root" && install --require-hashes -r requirements.lock) ||
        give_up "the packages of requirements.lock could not be installed (see above)" \
            "check the network or the package index that pip and uv are told to use, and start again"
    (cd "$root" && install --no-deps --no-build-isolation -e .) ||
        give_up "the checkout itself could not be installed (see above)" \
            "mend pyproject.toml or the files it names, and start again"
}

write_stamp() {
    {
        printf '%s\n%s\n' "$1" "$root"
        "$venv/bin/python" -c 'import os, sys; print(os.path.realpath(sys.executable))'
    } >"$stamp.new" && mv "$stamp.new" "$stamp"
}

prepare() {
    ! is_ready || return 0
    [ -w "$root" ] || give_up "$root cannot be written to" "chown or copy the checkout, and start again"
    need_python
    take_lock
    if ! is_ready; then
        rm -f "$stamp"
        say "preparing .venv from requirements.lock (once; under a minute)"
        # Read before the work: what changes meanwhile must count as stale.
        made_from=$(sources)
        make_venv
        fill_venv
        write_stamp "$made_from" || give_up "$stamp could not be written" "free some disk space"
        say "ready"
    fi
    exec 9>&-
}
