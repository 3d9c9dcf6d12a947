"""Subjects, judged: their texts, how a server is started, and how tools stand to each other.

All texts of a subject are scanned as one, far enough apart that the words of one do not excuse the
next: an order may be cut into pieces and spread over the parameters. What a server downloads and
runs unseen can be anything tomorrow. Tools are compared with those of other servers only: what a
server says about its own tools is its own.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from remit.features.scan.alarms import Alarm, Level, describe_rule, show
from remit.features.scan.rules import SUSPICIOUS, Category
from remit.features.scan.scanner import WINDOW, ScanFinding, scan
from remit.features.scan.subjects import SourceFile, Subject, SubjectText
from remit.text.unicode import Unseen, look_of, unseen_spans

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
_PIPE = re.compile(
    r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,400}?(?:\|\s*(?:sudo\s+)?"
    r"(?:(?:ba|z|da|k|fi)?sh|python3?|node|perl|iex)\b|[<$]\()"
    r"|\b(?:ba|z|da|k)?sh\b[^\n]{0,40}(?:<\(|\$\(|`)\s*(?:curl|wget)\b",
    re.IGNORECASE,
)
_READ = 20_000
"""Characters of one argument; no command line is longer."""
MAX_TOLD = 20
"""Pairs that are told of one name."""
_SEPARATORS = re.compile(r"[^0-9a-z]+")
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_DISTINCT = re.compile(r"[_-]|[a-z][A-Z]")
"""What tells a name from a word of the language."""
_SHORTEST = 6
_AROUND = 400
_SENTENCE_END = re.compile(r"[.!?](?:\s|\Z)|\n\s*\n")
_STEERS = re.compile(
    r"\b(?:always|must|never|instead|before|after|whenever|when (?:you )?(?:call|us)\w*"
    r"|first|do not|don't|should|ignore|disregard|replaces?|deprecated|only|rather than"
    r"|every time)\b",
    re.IGNORECASE,
)


class _Spot(msgspec.Struct, frozen=True):
    """A finding, with the text that it was made in."""

    finding: ScanFinding
    at: int
    """Its offset among all texts of the subject."""
    text: SubjectText
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


def _is_spelled(text: SubjectText) -> bool:
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


def _points(finding: ScanFinding, subject: Subject) -> int:
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


def _alone(finding: ScanFinding) -> Level:
    """How bad a finding is that stands in no suspicious part: hidden text has no honest reason."""
    if finding.category != "hidden_text" or finding.severity == "low":
        return "note"
    return "error" if finding.rule in _NEVER_HONEST else "warning"


def alarm(  # noqa: PLR0913 - what an alarm is made of
    subject: Subject,
    text: SubjectText,
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


def _unseen(subject: Subject, text: SubjectText) -> Iterator[Alarm]:
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


def _shape(subject: Subject, text: SubjectText) -> Iterator[Alarm]:
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


def judge_server(subject: Subject) -> Iterator[Alarm]:
    """Commands that run what they download."""
    for text in subject.texts:
        if found := _PIPE.search(text.value[:_READ]):
            yield alarm(
                subject,
                text,
                found.start(),
                "server.pipe_to_shell",
                severity="warning",
                excerpt=found.group(),
            )


def judge_names(subjects: Iterable[Subject]) -> list[Alarm]:
    """Everything suspicious about how tools stand to each other."""
    tools = [one for one in subjects if one.kind == "tool" and one.name]
    alarms = [*_same_names(tools), *_lookalikes(tools), *_not_ascii(tools)]
    owners: dict[str, set[str]] = {}
    for tool in tools:
        owners.setdefault(tool.name, set()).add(tool.server)
    known = {name for name in owners if len(name) >= _SHORTEST and _DISTINCT.search(name)}
    for tool in tools:
        alarms += _mentions(tool, known, owners)
    return alarms


def _not_ascii(tools: list[Subject]) -> Iterator[Alarm]:
    for tool in tools:
        if not tool.name.isascii():
            yield _about_name(tool, "name.not_ascii", "warning")


def _same_names(tools: list[Subject]) -> Iterator[Alarm]:
    by_name: dict[str, list[Subject]] = {}
    for tool in tools:
        by_name.setdefault(tool.name, []).append(tool)
    for group in by_name.values():
        first, told = group[0], _prose(group[0])
        others = [one for one in group[1:] if one.server != first.server and _prose(one) != told]
        for other in others[:MAX_TOLD]:
            yield _about_name(other, "tools.same_name", "note", f"({first.id})")


def _prose(tool: Subject) -> tuple[str, ...]:
    return tuple(text.value for text in tool.texts if text.role == "prose")


def _lookalikes(tools: list[Subject]) -> Iterator[Alarm]:
    by_look: dict[str, dict[str, Subject]] = {}
    for tool in tools:
        by_look.setdefault(look_of(tool.name), {}).setdefault(tool.name, tool)
    for group in by_look.values():
        # The plainest name is the one that the others look like.
        ordered = sorted(group.values(), key=lambda one: (not one.name.isascii(), one.server))
        first = ordered[0]
        for other in ordered[1 : MAX_TOLD + 1]:
            level = _alike(first.name, other.name)
            if level != "error" and first.server == other.server:
                continue
            yield _about_name(other, "tools.lookalike_name", level, f"({first.id})")


def _alike(one: str, other: str) -> Level:
    """Other letters deceive; another way to join words is a habit."""
    if not (one.isascii() and other.isascii()):
        return "error"
    plain = {_SEPARATORS.sub("", name.lower()) for name in (one, other)}
    return "note" if len(plain) == 1 else "warning"


def _mentions(tool: Subject, known: set[str], owners: dict[str, set[str]]) -> Iterator[Alarm]:
    told: set[str] = set()
    for text in tool.texts:
        if text.role == "name":
            continue
        for match in _WORD.finditer(text.value):
            name = match.group()
            if name in told or name not in known or tool.server in owners[name]:
                continue
            told.add(name)
            sentence, start = _sentence(text.value, match.start())
            steers = _STEERS.search(sentence) is not None
            yield alarm(
                tool,
                text,
                start,
                "tools.steers_other" if steers else "tools.names_other",
                severity="warning" if steers else "note",
                excerpt=sentence,
                more=f"({name} of {', '.join(sorted(map(_whose, owners[name])))})",
            )


def _whose(server: str) -> str:
    return server or "remit"


def _sentence(text: str, at: int) -> tuple[str, int]:
    """The sentence around an offset, as far as it is worth reading, and where it starts."""
    start, stop = max(0, at - _AROUND), min(len(text), at + _AROUND)
    for end in _SENTENCE_END.finditer(text, start, stop):
        if end.start() >= at:
            stop = end.start() + 1
            break
        start = end.end()
    return text[start:stop], start


def _about_name(tool: Subject, rule: str, severity: Level, more: str = "") -> Alarm:
    text: SubjectText = next((one for one in tool.texts if one.role == "name"), tool.texts[0])
    return alarm(tool, text, 0, rule, severity=severity, excerpt=tool.name, more=more)
