"""What the checkout itself promises: a lock without hosts, declared layers, scripts that help."""

import os
import re
import shutil
import subprocess
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.lib.shape import PACKAGE, Shape

LOCKS = ["requirements.lock", "requirements-test.lock", "requirements-bench.lock"]
SCRIPTS = ["tools/run", "tools/test", "tools/walk", ".ci/run"]

# Written with brackets so that this file does not find itself.
MACHINE_TEXT = re.compile(
    r"/roo[t]/|/hom[e]/[a-z]|/User[s]/[A-Za-z]"
    r"|py[p]i\.org|pythonho[s]ted\.org|registry\.np[m]js|de[b]\.debian\.org"
)

# design: a module imports only from rows below it; siblings in one row do not import each other.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"app"},
    {"faces"},
    {"features"},
    {"kernel"},
    {"config"},
    {"text"},
    {"policy"},
    {"model"},
    {"errors"},
]


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def locked_versions(lock: Path) -> dict[str, str]:
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", lock.read_text(encoding="utf-8"), re.M)
    return {canonicalize_name(name): version for name, version in pins}


def files_for_git(root: Path) -> list[Path]:
    """Every file that is tracked, or would be after `git add`."""
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    if shutil.which("git") is None:
        pytest.skip("git is not installed, so nobody can say which files belong to the checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [root / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_host(root: Path, name: str) -> None:
    text = (root / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_carries_a_hash(root: Path, name: str) -> None:
    entries = (root / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize(
    ("lock", "groups"),
    [
        ("requirements.lock", ["checkout"]),
        ("requirements-test.lock", ["checkout", "dev"]),
        ("requirements-bench.lock", ["checkout", "dev", "bench"]),
    ],
)
def test_a_lock_satisfies_what_the_project_asks_for(
    root: Path, project: dict[str, Any], lock: str, groups: list[str]
) -> None:
    versions = locked_versions(root / lock)
    asked = [*project["project"]["dependencies"]]
    for group in groups:
        asked += [one for one in project["dependency-groups"][group] if isinstance(one, str)]
    unmet = [
        text
        for text in asked
        if not (need := Requirement(text)).specifier.contains(
            versions.get(canonicalize_name(need.name), "0"), prereleases=True
        )
    ]
    assert unmet == [], f"refresh {lock} as CONTRIBUTING.md says"


def test_each_lock_adds_to_the_one_before_and_changes_nothing_of_it(root: Path) -> None:
    runs, tests, bench = (locked_versions(root / name) for name in LOCKS)
    assert runs.items() < tests.items() < bench.items()


def test_what_only_the_gate_needs_is_not_installed_to_run_remit(root: Path) -> None:
    runs = locked_versions(root / "requirements.lock")
    assert runs.keys().isdisjoint({"mypy", "ruff", "pytest", "cedarpy", "hypothesis", "coverage"})


def test_no_file_names_a_home_folder_or_a_package_registry(root: Path) -> None:
    found = []
    for path in files_for_git(root):
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(root)}: {hit}" for hit in MACHINE_TEXT.findall(text)]
    assert found == []


def test_the_architecture_can_be_read_in_one_sitting(root: Path) -> None:
    page = root / "ARCHITECTURE.md"
    assert not page.exists() or len(page.read_text(encoding="utf-8").splitlines()) < 120


def test_all_layers_of_the_design_are_declared(project: dict[str, Any]) -> None:
    contracts = {entry["id"]: entry for entry in project["tool"]["importlinter"]["contracts"]}
    rows = [
        {name.strip().strip("()") for name in row.split("|")}
        for row in contracts["layers"]["layers"]
    ]
    assert rows == LAYERS
    assert contracts["layers"]["exhaustive"]
    assert {"pure", "client", "acyclic", "faces"} <= contracts.keys()


def test_the_contract_says_of_every_feature_which_others_it_uses(
    root: Path, project: dict[str, Any]
) -> None:
    contracts = {entry["id"]: entry for entry in project["tool"]["importlinter"]["contracts"]}
    folders = (root / "daemon/remit/features").glob("*/__init__.py")
    there = {f"remit.features.{path.parent.name}" for path in folders}
    assert set(contracts["features"]["modules"]) == there
    uses: dict[str, set[str]] = {name: set() for name in there}
    for edge in contracts["features"]["ignore_imports"]:
        user, used = edge.replace(".**", "").split(" -> ")
        if user != "remit":  # which names the types that plug-ins import from it
            uses[user].add(used)
    TopologicalSorter(uses).prepare()  # raises when the list goes in a circle


def test_everything_in_the_package_stands_in_a_layer(root: Path) -> None:
    package = root / "daemon" / "remit"
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert modules | packages <= set().union(*LAYERS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_be_run_and_parses(root: Path, name: str) -> None:
    script = root / name
    assert os.access(script, os.X_OK)
    shell = "bash" if "bash" in script.read_text(encoding="utf-8").splitlines()[0] else "sh"
    assert subprocess.run([shell, "-n", script], check=False).returncode == 0  # noqa: S603


@pytest.mark.parametrize("name", ["run", "test", "walk"])
def test_a_machine_without_python_is_told_the_fix(root: Path, tmp_path: Path, name: str) -> None:
    checkout = tmp_path / "a check out"
    shutil.copytree(root / "tools", checkout / "tools")
    nothing = tmp_path / "bin"
    nothing.mkdir()
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", checkout / "tools" / name],
        env={"PATH": str(nothing)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "fix: " in done.stderr


# ---- the shape of the tree: `python tools/lib/shape.py lazy chain same sibling` says more ----

# What none of these may exceed.
SHAPE = {
    "modules": 312,  # 299 without features/registry, which came after the house was built
    "lazy_own_imports": 15,
    "longest_chain": 14,
    "of_one_sibling": 29,
    "same_type_names": 0,
    "function_median": 7,
    "function_p90": 19,
}
MODULES_IN_A_FOLDER = 20
LONG, SHORT = 400, 30
LARGE_FOLDERS: set[str] = set()
LONG_MODULES: set[str] = set()
SHORT_MODULES = {"remit.__main__"}
TESTS_TO_CODE = 0.9


@pytest.fixture(scope="module")
def shape() -> Shape:
    return Shape()


@pytest.mark.parametrize("name", SHAPE)
def test_the_shape_of_the_tree_grows_no_worse(shape: Shape, name: str) -> None:
    assert shape.figures()[name] <= SHAPE[name], f"python tools/lib/shape.py shows {name}"


def test_a_folder_can_be_looked_over(shape: Shape) -> None:
    large = {name for name, count in shape.folders.items() if count > MODULES_IN_A_FOLDER}
    assert large <= LARGE_FOLDERS


def test_a_module_is_neither_long_nor_a_scrap(shape: Shape) -> None:
    assert {one.name for one in shape.modules if one.lines > LONG} <= LONG_MODULES
    short = {one.name for one in shape.modules if not one.is_package and one.lines < SHORT}
    assert short <= SHORT_MODULES


def test_no_module_imports_itself_by_way_of_others(shape: Shape) -> None:
    assert shape.cycles == []


# What vulture takes for dead at 80 % and why it is not: a name that nothing reads must be listed.
NOT_DEAD = {
    "tools_gained": "a field of permission:changed, whose handler only describes what is pushed",
    "tools_lost": "the same",
}


def test_no_code_is_dead(root: Path) -> None:
    vulture = pytest.importorskip("vulture", reason="./tools/test installs it")
    finder = vulture.Vulture()
    finder.scavenge([str(root / "daemon/remit"), str(root / "socket_client/remit_client")])
    # It does not read annotations in quotes: ruff finds imports that nobody needs, these included.
    dead = {
        str(one.name) for one in finder.get_unused_code(min_confidence=80) if one.typ != "import"
    }
    assert dead == NOT_DEAD.keys()


def test_there_are_nearly_as_many_lines_of_tests_as_of_code(shape: Shape) -> None:
    assert shape.figures()["tests_to_code"] >= TESTS_TO_CODE


# Folders of tests that are about no one package, and what they are about instead.
OTHER_TESTS = {
    "acceptance": "a daemon and commands as processes",
    "bench": "tools/bench",
    "client": "socket_client",
    "docs": "the pages",
    "drills": "tools/drills",
    "outside": "parts that others wrote",
    "tools": "tools",
}


def test_tests_stand_where_their_code_does(root: Path) -> None:
    folders = {
        path.parent.relative_to(root / "tests") for path in root.glob("tests/*/**/test_*.py")
    }
    ours = {folder for folder in folders if folder.parts[0] not in OTHER_TESTS}
    assert len(ours) > 20
    assert {str(folder) for folder in ours if not (PACKAGE / folder).is_dir()} == set()


def test_every_feature_and_package_of_the_kernel_has_tests_of_its_own(root: Path) -> None:
    packages = [path.parent for path in PACKAGE.glob("features/*/__init__.py")]
    packages += [path.parent for path in PACKAGE.glob("kernel/*/__init__.py")]
    missing = {
        str(package.relative_to(PACKAGE))
        for package in packages
        if not any((root / "tests" / package.relative_to(PACKAGE)).glob("**/test_*.py"))
    }
    assert missing == set()
