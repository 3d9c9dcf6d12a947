"""The definitions that come with remit."""

from pathlib import Path


def starter_dir() -> Path:
    """The starter catalogue's folder: inside the installed package, else the checkout's root."""
    package = Path(__file__).parent.parent
    packaged = package / "starter"
    return packaged if packaged.is_dir() else package.parent.parent
