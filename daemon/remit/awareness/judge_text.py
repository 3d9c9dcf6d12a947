"""The texts of one subject, judged by the scanner and by what no text has a need for.

All texts of a subject are scanned as one, far enough apart that the words of one do not excuse the
next: an order may be cut into pieces and spread over the parameters.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from remit.awareness.alarm import Alarm, Level, describe_rule, show
from remit.awareness.described import SourceFile, Subject, Text
from remit.awareness.sanitise_unseen import Unseen, unseen_spans
from remit.awareness.scan_rule import SUSPICIOUS, Category
from remit.awareness.scanner import WINDOW, Finding, scan

LONG = 8_000
"""Characters of a description; the longest of 356 real ones has 6,993."""
_APART = "\n" * 64
"""More than the scanner looks around a match."""
_SHOWN = 60
_NAME_SHOWN = 300
_OWN_VOICE: frozenset[Category] = frozenset({"persona", "pressure", "foreign_task"})
"""What a text that instructs may say, as long as it is nothing worse."""
_NEVER_HONEST = frozenset(
    {"hidden.tag_letters", "hidden.selectors", "hidden.zero_width_run", "hidden.direction"}
)
_WRITTEN_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Scripts that run from right to left: writing that mixes them with others needs such marks."""
_GAP = re.compile(r"\s{40,}")
_LINES_APART, _SPACES_APART = 40, 200
_SECRET_FILE = re.compile(
    r"(?:content|read|dump|copy|cat|file|text|value)[a-z]*_(?:[a-z]+_){0,4}?"
    r"(?:ssh|id_rsa|id_ed25519|passwd|etc_shadow|dot_?env|aws_credentials|private_key|mcp_json)"
)
_SPELLED = re.compile(r"[_\-./]")
_FEWEST_SPELLED = 3


class _Spot(msgspec.Struct, frozen=True):
    """A finding, with the text that it was made in."""

    finding: Finding
    at: int
    """Its offset among all texts of the subject."""
    text: Text
    offset: int
    """Its offset in its own text."""


def judge_texts(subject: Subject) -> list[Alarm]:
    """Everything suspicious in the texts of a subject."""
    spots = _spots(subject)
    hot = _hot(spots, subject)
    alarms = [_alarm(subject, spot, hot=at in hot) for at, spot in enumerate(spots)]
    hidden = {id(spot.text) for spot in spots if spot.finding.category == "hidden_text"}
    for text in subject.texts:
        if id(text) not in hidden:
            alarms += _unseen(subject, text)
        alarms += _shape(subject, text)
    return alarms


def _spots(subject: Subject) -> list[_Spot]:
    """What the scanner finds in all texts together."""
    starts: list[int] = []
    parts: list[str] = []
    length = 0
    texts = [*subject.texts, *filter(_is_spelled, subject.texts)]
    for count, text in enumerate(texts):
        part = text.value if count < len(subject.texts) else _SPELLED.sub(" ", text.value)
        gap = "\n" if text.role == "name" else _APART
        starts.append(length)
        parts += (part, gap)
        length += len(part) + len(gap)
    joined = SourceFile("", "".join(parts))
    found: dict[tuple[str, int, int], _Spot] = {}
    for finding in scan(joined.text).findings:
        at = joined.offset(finding.place)
        index = bisect_right(starts, at) - 1
        text = texts[index]
        offset = min(at - starts[index], max(len(text.value) - 1, 0))
        found.setdefault((finding.rule, id(text), offset), _Spot(finding, at, text, offset))
    return list(found.values())


def _is_spelled(text: Text) -> bool:
    """Tell whether a name is long enough to be a sentence."""
    return text.role == "name" and len(_SPELLED.findall(text.value)) >= _FEWEST_SPELLED


def _hot(spots: list[_Spot], subject: Subject) -> set[int]:
    """Which findings stand in a part that is suspicious as a whole."""
    hot: set[int] = set()
    counted = [_points(spot.finding, subject) for spot in spots]
    for first, spot in enumerate(spots):
        near = [at for at in range(first, len(spots)) if 0 <= spots[at].at - spot.at <= WINDOW]
        weights: dict[str, int] = {}
        for at in near:
            rule = spots[at].finding.rule
            weights[rule] = max(weights.get(rule, 0), counted[at])
        if sum(weights.values()) >= SUSPICIOUS:
            hot |= {at for at in near if counted[at]}
    return hot


def _points(finding: Finding, subject: Subject) -> int:
    excused = subject.instructs and finding.category in _OWN_VOICE
    return 0 if excused and finding.weight < SUSPICIOUS else finding.weight


def _alarm(subject: Subject, spot: _Spot, *, hot: bool) -> Alarm:
    finding = spot.finding
    length = max(len(finding.excerpt), _SHOWN)
    return alarm(
        subject,
        spot.text,
        spot.offset,
        finding.rule,
        severity="error" if hot else _alone(finding),
        category=finding.category,
        excerpt=spot.text.value[spot.offset : spot.offset + length],
    )


def _alone(finding: Finding) -> Level:
    """How bad a finding is that stands in no suspicious part: hidden text has no honest reason."""
    if finding.category != "hidden_text" or finding.severity == "low":
        return "note"
    return "error" if finding.rule in _NEVER_HONEST else "warning"


def alarm(  # noqa: PLR0913 - what an alarm is made of
    subject: Subject,
    text: Text,
    at: int,
    rule: str,
    *,
    severity: Level,
    excerpt: str,
    category: Category | None = None,
    more: str = "",
) -> Alarm:
    """An alarm about the text at an offset; what the rule means is looked up."""
    about = describe_rule(rule, category)
    return Alarm(
        rule=rule,
        severity=severity,
        title=about.title,
        more=show(f"{more} {subject.note}", _NAME_SHOWN),
        excerpt=show(excerpt),
        place=text.place(at),
        subject=show(subject.id, _NAME_SHOWN),
        repair=about.repair,
    )


def _unseen(subject: Subject, text: Text) -> Iterator[Alarm]:
    """The first character of each kind that nobody sees, with how many there are."""
    value = text.value
    if value.isascii() and value.isprintable():
        return
    first: dict[Unseen, int] = {}
    counts: dict[Unseen, int] = {}
    begin = 0
    for line in value.split("\n"):
        for start, _, kind, _ in unseen_spans(line.rstrip("\r")):
            first.setdefault(kind, begin + start)
            counts[kind] = counts.get(kind, 0) + 1
        begin += len(line) + 1
    for kind, at in first.items():
        yield alarm(
            subject,
            text,
            at,
            f"unseen.{kind}",
            severity="note" if kind == "direction" and _WRITTEN_LEFT.search(value) else "warning",
            excerpt=value[max(0, at - 20) : at + 40],
            more=f"(at {counts[kind]} places)" if counts[kind] > 1 else "",
        )


def _shape(subject: Subject, text: Text) -> Iterator[Alarm]:
    """Texts that are too long, have a gap in them, or are names that ask for something."""
    value = text.value
    if subject.kind == "tool" and len(value) > LONG:
        more = f"({len(value):,} characters)"
        yield alarm(
            subject, text, 0, "text.very_long", severity="note", excerpt=value[:_SHOWN], more=more
        )
    if (behind := _behind_a_gap(value)) is not None:
        excerpt = value[behind : behind + _SHOWN]
        yield alarm(subject, text, behind, "text.padding", severity="warning", excerpt=excerpt)
    if text.role == "name" and (found := _SECRET_FILE.search(value.lower())):
        yield alarm(
            subject,
            text,
            found.start(),
            "name.secret_file",
            severity="error",
            excerpt=value,
        )


def _behind_a_gap(value: str) -> int | None:
    """Where text goes on after so much nothing that a reader takes it for the end."""
    for gap in _GAP.finditer(value):
        blank = gap.group()
        is_wide = len(blank) >= _SPACES_APART or blank.count("\n") >= _LINES_APART
        if is_wide and gap.end() < len(value):
            return gap.end()
    return None
