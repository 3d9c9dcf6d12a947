"""`python -m remit`, and the `remit` command."""

import gc
from typing import Any

# A command lives for milliseconds: collecting what its imports leave behind would cost a tenth of
# them. `remit serve` switches the collector on again.
gc.disable()

from remit.cli.main import main as run  # noqa: E402

__all__ = ["main"]


def main() -> Any:
    """Run the command line of this process."""
    try:
        return run()
    finally:
        gc.freeze()  # nor is anything of it looked at when the interpreter ends


if __name__ == "__main__":
    main()
