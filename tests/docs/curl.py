"""As much of curl as the pages use, for machines without it: `python curl.py [OPTIONS] URL`."""

import argparse
import http.client
import re
import signal
import sys
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

_HEADER = re.compile(r'header = "([^:]+): (.*)"')
_LATE = 28
"""The exit code of curl when the time of -m is over."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-s", "-N", action="store_true")
    parser.add_argument("-K", type=Path)
    parser.add_argument("-m", type=int, default=0)
    parser.add_argument("-o", type=Path)
    parser.add_argument("-w", default="")
    parser.add_argument("-X")
    parser.add_argument("--json")
    parser.add_argument("url")
    return parser.parse_args()


def late(_number: int, _frame: FrameType | None) -> None:
    sys.exit(_LATE)


def main() -> None:
    asked = options()
    signal.signal(signal.SIGALRM, late)
    signal.alarm(asked.m)
    headers = dict(_HEADER.findall(asked.K.read_text())) if asked.K else {}
    if asked.json is not None:
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    where = urlsplit(asked.url)
    connection = http.client.HTTPConnection(where.netloc)
    target = where.path + (f"?{where.query}" if where.query else "")
    method = asked.X or ("GET" if asked.json is None else "POST")
    connection.request(method, target, body=asked.json, headers=headers)
    answer = connection.getresponse()
    with (asked.o or Path("/dev/stdout")).open("ab", buffering=0) as out:
        while chunk := answer.read1():
            out.write(chunk)
    sys.stdout.write(asked.w.replace("%{http_code}", str(answer.status)).replace("\\n", "\n"))


if __name__ == "__main__":
    main()
