"""`python -m remit`, and the `remit` command."""

import gc

# A command lives for milliseconds: collecting what its imports leave behind would cost a tenth of
# them. `remit serve` switches the collector on again.
gc.disable()

from remit.cli.main import main  # noqa: E402

__all__ = ["main"]

if __name__ == "__main__":
    main()
