"""What ./tools/run and ./tools/test install, when, and what they say meanwhile."""

import re
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest
from tests.tools.tiny_site import GATE, TinySite

READY = re.compile(r"remit: ready: \d+ MB in \d+ seconds")


@pytest.fixture
def site(root: Path, tmp_path: Path) -> TinySite:
    return TinySite(tmp_path, root / "tools")


def test_what_runs_remit_is_installed_first_and_the_tools_of_the_tests_are_added(
    site: TinySite,
) -> None:
    first = site.run("run", "demo")
    assert (first.returncode, first.stdout) == (0, "remit demo\n"), first.stderr
    assert "preparing .venv to run remit, once: " in first.stderr
    assert "installing packages: " in first.stderr
    assert READY.search(first.stderr)
    assert not (site.root / ".venv" / "bin" / "pytest").exists()
    needed = site.package("needed.py")
    assert needed is not None
    before = needed.stat()

    added = site.run("test")
    assert added.returncode == 0, added.stderr
    assert "adding to .venv what the tests need" in added.stderr
    assert set(GATE) <= set(added.stdout.split())
    assert needed.stat() == before  # neither made again nor touched

    for name in ("run", "test"):
        again = site.run(name)
        assert (again.returncode, again.stderr) == (0, "")


def test_an_environment_with_the_tools_of_the_tests_keeps_them_when_the_locks_change(
    site: TinySite,
) -> None:
    assert "to run remit and its tests" in site.run("test").stderr
    pip = site.package("pip")
    assert pip is not None
    before = pip.stat()
    site.lock(version="2")
    done = site.run("run")
    assert READY.search(done.stderr), done.stderr
    needed = site.package("needed.py")
    assert needed is not None
    assert needed.read_text() == "v = 2\n"
    assert site.run("test").stderr == ""
    assert pip.stat() == before  # brought up to date where it is


def test_what_has_something_foreign_in_it_or_is_half_made_is_made_anew(site: TinySite) -> None:
    assert site.run("run").returncode == 0
    needed = site.package("needed.py")
    assert needed is not None
    foreign = needed.parent / "foreign-1.dist-info"
    foreign.mkdir()
    (foreign / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1\n")
    assert site.run("run").stderr == ""  # nothing changed: it is nobody's business
    site.lock(version="2")
    assert READY.search(site.run("run").stderr)
    assert site.package("foreign-1.dist-info") is None

    (site.root / ".venv" / ".remit-ready").unlink()
    needed.unlink()
    assert READY.search(site.run("run").stderr)
    assert site.package("needed.py") is not None


def test_tools_that_were_being_added_when_a_run_was_cut_off_are_not_trusted(site: TinySite) -> None:
    assert site.run("test").returncode == 0
    pytest_ = site.root / ".venv" / "bin" / "pytest"
    pytest_.write_text("half")
    (site.root / ".venv" / ".remit-ready-tests").write_text("not finished\n")
    assert site.run("run").stderr == ""  # remit itself was complete before
    assert "preparing .venv to run remit and its tests" in site.run("test").stderr
    assert "echo pytest" in pytest_.read_text()


def test_a_package_that_cannot_be_had_is_told_with_the_words_of_pip_and_nothing_is_ready(
    site: TinySite,
) -> None:
    lock = site.root / "requirements.lock"
    lock.write_text(lock.read_text() + "nowhere==1 --hash=sha256:" + "0" * 64 + "\n")
    done = site.run("run")
    assert done.returncode == 1
    assert "No matching distribution found for nowhere==1" in done.stderr
    assert "fix: check the network or the package index" in done.stderr
    assert not (site.root / ".venv" / ".remit-ready").exists()


def megabytes_of(lock: Path) -> float:
    total = 0
    for name in re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(encoding="utf-8"), re.M):
        try:
            listed = files(name) or []
        except PackageNotFoundError:  # for other machines
            continue
        paths = {Path(str(one.locate())) for one in listed if not one.name.endswith(".pyc")}
        # du counts whole blocks
        total += sum(-(-path.stat().st_size // 4096) * 4096 for path in paths if path.exists())
    return total / 2**20


def test_the_megabytes_that_are_announced_are_those_that_are_installed(root: Path) -> None:
    script = (root / "tools" / "lib" / "prepare.sh").read_text(encoding="utf-8")
    told = {key: int(mb) for key, mb in re.findall(r'^(\w+)="(\d+) MB', script, re.M)}
    runs = megabytes_of(root / "requirements.lock")
    tests = megabytes_of(root / "requirements-test.lock")
    assert told["run_takes"] == pytest.approx(runs, rel=0.2)
    assert told["tests_take"] == pytest.approx(tests, rel=0.2)
    assert told["tests_add"] == pytest.approx(tests - runs, rel=0.3)
