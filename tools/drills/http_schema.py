"""Whatever fits the document of the HTTP API, or does not: `python tools/drills/http_schema.py`.

schemathesis, of the bench group, sends what it makes up from /openapi.json to a daemon of the
starter's definitions: once as the operator, once as an agent that holds little. No answer may be a
5xx, none may have a status, type or shape that the document does not tell of, and no token may be
optional. Prints one line of figures; exit code 1 when something was wrong.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

from stage import Daemon, Stage, arguments, new_folder, report

import remit_client.sync
from remit.config.definitions.files import starter_dir
from remit_client.keys import new_key

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,response_headers_conformance,unsupported_method,ignored_auth"
)
ENDLESS = "/v1/stream"
"""It is tested by itself: an answer of it has no end."""
PROFILES = {"operator": "", "ann": "base_multi_agent"}


def attack(daemon: Daemon, home: Path, name: str, profile: str, examples: int) -> tuple[int, str]:
    """One run; answers how many requests were sent, and what was wrong."""
    with remit_client.sync.connect(home=home) as operator:
        if profile:
            key = {"name": name, "public_key": new_key(name).public_key, "profile": profile}
            operator.call("key:add", key)
        token = operator.call("key:token", {"name": name})["token"]
    url = daemon.ready["endpoints"]["http"]
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"]
    command += ["-H", f"Authorization: Bearer {token}", "--checks", CHECKS]
    command += ["--exclude-path", ENDLESS, "--max-examples", str(examples)]
    done = subprocess.run(  # noqa: S603 - the tool that was asked for
        command, capture_output=True, text=True, check=False, cwd=home
    )
    sent = re.search(r"(\d+) generated", done.stdout)
    wrong = "" if done.returncode == 0 else f"{name}:\n{done.stdout[-4000:]}{done.stderr[-500:]}"
    return int(sent[1]) if sent else 0, wrong


def main() -> int:
    """Send, and tell."""
    options = arguments(__doc__ or "", examples=30)
    if importlib.util.find_spec("schemathesis") is None:
        print("schemathesis is not installed: it is in requirements-bench.lock", file=sys.stderr)
        return 2
    figures: dict[str, int] = {}
    problems: list[str] = []
    with new_folder() as folder:
        stage = Stage(folder)
        shutil.copy(starter_dir() / "capabilities.yaml", folder)
        shutil.copytree(starter_dir() / "compositions", folder / "compositions", dirs_exist_ok=True)
        stage.configure(http="127.0.0.1:0")
        daemon = stage.start()
        try:
            for name, profile in PROFILES.items():
                figures[f"sent_as_{name}"], wrong = attack(
                    daemon, stage.home, name, profile, options.examples
                )
                problems += [wrong] if wrong else []
        finally:
            code, _ = daemon.terminate()
        problems += [f"the daemon ended with {code}"] if code else []
    shown = {"drill": "http_schema"} | figures
    return report(shown, problems, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
