# Makes .venv: `prepare` what runs remit, for tools/run, and `prepare tests` what the gate needs besides,
# for tools/test. Sourced with $root set.
#
# Promises:
# - Ready means that the stamp fits the lock, pyproject.toml, the interpreter and this folder.
#   The stamp goes first and comes back last, so a cut-off run is never taken for a ready one.
# - The tools of the tests have a stamp of their own. They are added to what runs remit and change nothing
#   of it, and whoever has them keeps them when the locks change.
# - What was complete is brought up to date where it is, unless something lies in it that no lock names.
# - Built where it will stay: the scripts of a virtual environment carry its path.
# - Two runs at once: the kernel holds the lock, so a killed run leaves nothing to clean up.
# - Only stderr is written to, and nothing at all when there is nothing to do.

venv=$root/.venv
stamp=$venv/.remit-ready
tests_stamp=$venv/.remit-ready-tests
unfinished="not finished"
watch=                      # the lock whose installation is told of while it runs
quiet=yes                   # what an installer says is left out, unless it fails
pip_options="--disable-pip-version-check --no-input --no-compile"
python_names="python3 python3.14 python3.13 python3.12 python3.11 python"

# As measured on Debian 12 with its Python 3.11.2 and pip, on two cores. A test holds the megabytes on disk
# to what is installed where it runs.
run_takes="270 MB on disk, 80 MB to download, about half a minute"
tests_add="105 MB more on disk, 40 MB to download, a quarter of a minute"
tests_take="375 MB on disk, 120 MB to download, about a minute"

say() { printf 'remit: %s\n' "$*" >&2; }

give_up() { # WHAT FIX
    printf 'remit: %s\n  fix: %s\n' "$1" "$2" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# One line that changes with the files that a part of .venv is made from.
sources() { # [tests]
    # shellcheck disable=SC2046 # the words are wanted apart, to be joined into one line
    if [ "${1:-}" = tests ]; then
        set -- $(cd "$root" && cksum requirements-test.lock 2>/dev/null)
    else
        set -- $(cd "$root" && cksum requirements.lock pyproject.toml 2>/dev/null)
    fi
    printf '%s\n' "$*"
}

# No Python is started here: every command pays for this check.
is_ready() { # [tests]
    was_complete && [ "$made_from" = "$(sources)" ] || return 1
    [ "${1:-}" != tests ] || has_tests
}

# Made to the end once, in this folder and by an interpreter that is still there. Sets $made_from.
was_complete() {
    [ -f "$stamp" ] || return 1
    { read -r made_from && IFS= read -r made_in && IFS= read -r made_by; } <"$stamp" || return 1
    [ "$made_in" = "$root" ] && [ "$venv/bin/python" -ef "$made_by" ]
}

has_tests() {
    [ -f "$tests_stamp" ] && read -r tests_from <"$tests_stamp" &&
        [ "$tests_from" = "$(sources tests)" ]
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
        watched uv pip install ${quiet:+--quiet} --python "$venv/bin/python" "$@"
    elif [ -e "$venv/bin/pip" ]; then
        watched "$venv/bin/python" -m pip install ${quiet:+-qq} $pip_options "$@"
    else
        watched "$python" -m pip --python "$venv/bin/python" install ${quiet:+-qq} $pip_options "$@"
    fi >&2
}

watched() { # COMMAND...
    if [ -n "$watch" ]; then
        "$python" "$root/tools/lib/progress.py" "$watch" "$venv" "$@"
    else
        "$@"
    fi
}

# Tells whether the tools of the tests were being added when a run ended: what lies there may be half a package.
was_cut_off() {
    [ -f "$tests_stamp" ] && read -r tests_from <"$tests_stamp" && [ "$tests_from" = "$unfinished" ]
}

# Tells whether everything in .venv is named by a lock: the others are what people add, as the pages say.
is_known() {
    "$venv/bin/python" -c '
import re, sys
from importlib.metadata import distributions
from pathlib import Path

def plain(name):
    return re.sub("[-_.]+", "-", name).lower()

known = {"remit", "pip", "setuptools"}
for lock in Path(sys.argv[1]).glob("requirements*.lock"):
    known |= {plain(name) for name in re.findall("^([A-Za-z0-9._-]+)==", lock.read_text(), re.M)}
sys.exit(not {plain(one.name) for one in distributions()} <= known)
' "$root" 2>/dev/null
}

fill_venv() { # LOCK
    watch=$root/$1 quiet=
    (cd "$root" && install --require-hashes -r "$1") ||
        give_up "the packages of $1 could not be installed (see above)" \
            "check the network or the package index that pip and uv are told to use, and start again"
    watch='' quiet=yes
}

put_checkout() {
    (cd "$root" && install --no-deps --no-build-isolation -e .) ||
        give_up "the checkout itself could not be installed (see above)" \
            "mend pyproject.toml or the files it names, and start again"
}

write_stamp() { # FILE LINE...
    file=$1
    shift
    { printf '%s\n' "$@" >"$file.new" && mv "$file.new" "$file"; } ||
        give_up "$file could not be written" "free some disk space"
}

made_by() {
    "$venv/bin/python" -c 'import os, sys; print(os.path.realpath(sys.executable))'
}

make_ready() { # run|tests
    # Read before the work: what changes meanwhile must count as stale.
    for_run=$(sources) for_tests=$(sources tests)
    lock=requirements.lock
    [ "$1" = run ] || lock=requirements-test.lock
    if is_ready && ! was_cut_off; then # to add something makes nobody wait who only runs remit
        write_stamp "$tests_stamp" "$unfinished"
        fill_venv "$lock"
    else
        again=
        ! { was_complete && ! was_cut_off && is_known; } || again=yes
        rm -f "$tests_stamp" "$stamp"
        [ -n "$again" ] || make_venv
        fill_venv "$lock"
        put_checkout
        write_stamp "$stamp" "$for_run" "$root" "$(made_by)"
    fi
    [ "$1" = run ] || write_stamp "$tests_stamp" "$for_tests"
}

announce() { # run|tests
    if [ "$1" = run ]; then
        say "preparing .venv to run remit, once: $run_takes"
    elif is_ready && ! was_cut_off; then
        say "adding to .venv what the tests need, once: $tests_add"
    else
        say "preparing .venv to run remit and its tests, once: $tests_take"
    fi
}

prepare() { # [tests]
    ! is_ready "${1:-}" || return 0
    [ -w "$root" ] || give_up "$root cannot be written to" "chown or copy the checkout, and start again"
    need_python
    take_lock
    if ! is_ready "${1:-}"; then
        parts=${1:-run}
        [ ! -e "$venv/bin/pytest" ] || parts=tests # whoever has the tools of the tests keeps them
        announce "$parts"
        began=$(date +%s)
        make_ready "$parts"
        size=$(du -sk "$venv")
        say "ready: $((${size%%[!0-9]*} / 1024)) MB in $(($(date +%s) - began)) seconds"
    fi
    exec 9>&-
}
