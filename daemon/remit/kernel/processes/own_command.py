"""How others start this program again."""

import shutil
import sys
from pathlib import Path


def own_command() -> tuple[str, ...]:
    """The words that start this program from any folder."""
    found = shutil.which("remit")
    if found is not None:
        return (str(Path(found).absolute()),)
    # -P: a remit.py in the folder that a host was opened in must not become us.
    return (sys.executable, "-P", "-m", "remit")
