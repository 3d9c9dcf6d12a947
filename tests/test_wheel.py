"""The wheel works by itself: built offline, put into an empty environment, run far from here."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest


def run(*command: str | Path, cwd: Path) -> str:
    """Run `command` as a user without any setting of ours would, and return what it printed."""
    inherited = ("REMIT_", "PYTHON", "COVERAGE_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(inherited)}
    done = subprocess.run(  # noqa: S603
        command,
        cwd=cwd,
        env={**env, "HOME": str(cwd), "XDG_STATE_HOME": str(cwd / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=root)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment that holds the wheel; its dependencies are lent by ours."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install = ["install", "--no-deps", "--no-index", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", python, *install, wheel, cwd=folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "lent.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder


def test_the_wheel_carries_both_packages_and_the_starter_yaml(wheel: Path, root: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    profiles = {f"remit/starter/compositions/{path.name}" for path in root.glob("compositions/*")}
    assert {"remit/__init__.py", "remit_client/wire.py"} <= names
    assert {"remit/starter/capabilities.yaml", *profiles} <= names
    assert "remit/features/cards/built_in_cards/permissions.md" in names
    assert "remit/features/cards/built_in_cards/reference/permissions.md" in names
    assert "remit/text/common_words.txt" in names
    assert "remit/features/scan/rules.toml" in names


def test_an_installed_wheel_resolves_a_shipped_profile(installed: Path, tmp_path: Path) -> None:
    answer = run(installed / "bin" / "remit", "resolve", "minimal", "--json", cwd=tmp_path)
    assert "system:health" in json.loads(answer)["allowed_events"]


def test_the_installed_package_is_not_the_checkout(installed: Path, tmp_path: Path) -> None:
    place = run(
        installed / "bin" / "python", "-c", "import remit; print(remit.__file__)", cwd=tmp_path
    )
    assert Path(place.strip()).is_relative_to(installed)
