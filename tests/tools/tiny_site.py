"""A checkout as small as can be, with the real scripts, and packages that lie beside it.

pip and venv are the real ones; nothing is fetched, because PIP_NO_INDEX keeps pip to a folder.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PROJECT = """\
[build-system]
requires = []
build-backend = "tiny_backend"
backend-path = ["."]
[project]
name = "remit"
version = "1"
"""
BACKEND = """\
import shutil
def build_editable(folder, config_settings=None, metadata_directory=None):
    shutil.copy("../wheels/remit-1-py3-none-any.whl", folder)
    return "remit-1-py3-none-any.whl"
"""
SAYS_WHAT_IT_IS_GIVEN = "import sys; print('remit', *sys.argv[1:])\n"
TOOL = "#!/bin/sh\necho {}\n"
GATE = ("ruff", "mypy", "lint-imports", "pytest")


def write_wheel(folder: Path, name: str, files: dict[str, str], version: str = "1") -> str:
    """Write a wheel; answers its line for a lock."""
    info = f"{name}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},{_digest(text.encode())},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    folder.mkdir(exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16  # scripts stay scripts
            archive.writestr(entry, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def _digest(data: bytes) -> str:
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={text}"


class TinySite:
    """The folder of the checkout, and its two commands."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.root = folder / "a check out"
        shutil.copytree(tools, self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        self.packages = folder / "wheels"
        write_wheel(self.packages, "remit", {"remit/__main__.py": SAYS_WHAT_IT_IS_GIVEN})
        (self.root / "pyproject.toml").write_text(PROJECT)
        (self.root / "tiny_backend.py").write_text(BACKEND)
        self.lock()

    def lock(self, version: str = "1") -> None:
        """Write both locks; the version is that of the package that runs remit."""
        needed = write_wheel(self.packages, "needed", {"needed.py": f"v = {version}\n"}, version)
        scripts = {f"gate-1.data/scripts/{name}": TOOL.format(name) for name in GATE}
        gate = write_wheel(self.packages, "gate", scripts)
        (self.root / "requirements.lock").write_text(needed)
        (self.root / "requirements-test.lock").write_text(needed + gate)

    def run(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run one of the two commands as a machine without uv would."""
        env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.packages), "HOME": str(self.root)}
        return subprocess.run(  # noqa: S603 - our own script
            ["/bin/sh", str(self.root / "tools" / name), *arguments],
            env={**env, "PATH": str(self._commands()), "PIP_CONFIG_FILE": os.devnull},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def _commands(self) -> Path:
        folder = self.root / "bin"
        if not folder.exists():
            folder.mkdir()
            base = getattr(sys, "_base_executable", sys.executable)
            (folder / "python3").symlink_to(base)
            for name in ("cksum", "rm", "mv", "du", "date", "cat"):
                found = shutil.which(name)
                assert found is not None
                (folder / name).symlink_to(found)
        return folder

    def package(self, name: str) -> Path | None:
        """Where a module of a package lies in .venv, if it is installed."""
        found = list((self.root / ".venv").glob(f"lib/python*/site-packages/{name}"))
        return found[0] if found else None
