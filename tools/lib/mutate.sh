#!/bin/sh
# Mutation tests of what decides: sh tools/lib/mutate.sh [MUTMUT ARGS...], by default "run".
# Needs: .venv/bin/python -m pip install --require-hashes -r requirements-bench.lock
#
# mutmut only knows packages that lie in ./src, so it works on a copy in build/mutation.
set -eu

case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac
root=$(CDPATH='' cd -P -- "$here/../.." && pwd -P)
. "$root/tools/lib/prepare.sh"
prepare tests
[ -x "$venv/bin/mutmut" ] || give_up "mutmut is not installed" \
    ".venv/bin/python -m pip install --require-hashes -r requirements-bench.lock"

stage=$root/build/mutation
mkdir -p "$stage"
cd "$stage"
rm -rf src tests compositions capabilities.yaml pyproject.toml
mkdir src tests
cp -R "$root/daemon/remit" "$root/socket_client/remit_client" src/
cp -R "$root"/tests/*.py "$root"/tests/model "$root"/tests/policy tests/
cp -R "$root/capabilities.yaml" "$root/compositions" . # a test draws what remit ships
# A mutant is dead at the first counterexample; making it small takes most of the time.
cat >>tests/conftest.py <<'END'

from hypothesis import Phase  # noqa: E402

_SHORT = (Phase.explicit, Phase.generate)
settings.register_profile("mutation", settings.get_profile("ci"), phases=_SHORT, database=None)
settings.load_profile("mutation")
END
cat >pyproject.toml <<'END'
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib", "-p", "anyio", "-p", "no:cacheprovider"]
anyio_mode = "auto"
pythonpath = ["."]

[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/remit/model/*", "src/remit/policy/*"]
also_copy = ["capabilities.yaml", "compositions"]
pytest_add_cli_args_test_selection = ["tests/model", "tests/policy"]
END

[ "$#" -gt 0 ] || set -- run
# The profile "ci" has the same examples each time: a mutant must not survive by luck.
CI=true exec "$venv/bin/python" -m mutmut "$@"
