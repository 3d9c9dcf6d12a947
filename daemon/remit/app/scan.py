"""`remit scan`: everything that is put before a model, scanned on this machine."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from remit.app.scan_files import subjects_of, walk
from remit.config.settings.table import Settings
from remit.features.scan.alarms import LEVELS, OWN_RULES, Alarm, by_place, show
from remit.features.scan.judge import judge_names, judge_server, judge_texts
from remit.features.scan.subjects import Kind, Subject
from remit.model.place import DefinitionError, Place


class Scanned(msgspec.Struct, frozen=True):
    """What was looked at, and what was found, in order of place."""

    alarms: tuple[Alarm, ...]
    subjects: dict[str, int]
    """How many of each kind were looked at."""

    def counts(self) -> dict[str, int]:
        """How many alarms there are of each severity, the worst first."""
        return {level: sum(one.severity == level for one in self.alarms) for level in LEVELS}


def scan_installation(settings: Settings) -> Scanned:
    """Scan what this installation shows to models.

    Raises:
        DefinitionError: the definitions cannot be read.
    """
    from remit.app import scan_installed  # noqa: PLC0415 - the handlers: not for named files
    from remit.app.handlers import load_all_handlers  # noqa: PLC0415 - the same

    loaded = load_all_handlers(settings)
    subjects = [
        *scan_installed.event_subjects(loaded.handlers),
        *scan_installed.definition_subjects(settings),
    ]
    alarms = [_unread(one.place, one.message) for one in loaded.failures]
    return _judge(subjects, scan_installed.installed_files(settings), alarms)


def scan_paths(paths: Sequence[Path]) -> Scanned:
    """Scan these files and folders, and nothing else.

    Raises:
        DefinitionError: one of them is not there, or is a file that cannot be scanned.
    """
    subjects: list[Subject] = []
    files: list[tuple[Path, Kind | None]] = []
    for path in paths:
        if path.is_dir():
            files += ((inner, None) for inner in walk(path))
        else:
            subjects += subjects_of(path, named=True)
    return _judge(subjects, files, [])


def _judge(
    subjects: list[Subject], files: Iterable[tuple[Path, Kind | None]], alarms: list[Alarm]
) -> Scanned:
    for path, kind in dict(files).items():
        try:
            subjects += subjects_of(path, kind)
        except DefinitionError as error:
            problem = error.problems[0]
            alarms.append(_unread(problem.place, problem.message))
    for subject in subjects:
        alarms += judge_texts(subject)
        if subject.kind == "server":
            alarms += judge_server(subject)
    alarms += judge_names(subjects)
    kinds = Counter(subject.kind for subject in subjects)
    return Scanned(tuple(sorted(set(alarms), key=by_place)), dict(sorted(kinds.items())))


def _unread(place: Place, why: str) -> Alarm:
    """One file among many ends no scan, and is not passed over in silence either."""
    about = OWN_RULES["file.unreadable"]
    return Alarm(
        rule="file.unreadable",
        severity="warning",
        title=about.title,
        excerpt=show(why),
        place=place,
        subject=f"file:{place.file}",
        repair=about.repair,
    )
