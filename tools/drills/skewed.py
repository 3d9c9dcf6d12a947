"""A daemon whose wall clock a drill can set: `python skewed.py FILE serve ...`. For drills only.

FILE holds the seconds by which `time.time` of this process is ahead. The machine's clock, and the
monotonic one, stay as they are.
"""

import sys
import time
from pathlib import Path

AHEAD = Path(sys.argv.pop(1))
_real_time = time.time


def _skewed_time() -> float:
    return _real_time() + float(AHEAD.read_text(encoding="ascii"))


# Before remit is imported: its parts take the function itself as their clock.
time.time = _skewed_time

if __name__ == "__main__":
    from remit.cli.main import main

    main()
