"""Descriptors, indexes and grants for tests of discovery."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from remit.features.discovery.embedders import StaticVectors
from remit.features.discovery.embedding import VectorCache
from remit.features.discovery.index import Index, Indexer
from remit.features.discovery.learning.lessons import NO_LESSONS, Lessons
from remit.model.descriptor import Descriptor, Parameter
from remit.model.grant import Grant
from remit.text.counting import static_folder

VECTORS = StaticVectors() if static_folder() is not None else None


def tool(name: str, description: str = "", **more: Any) -> Descriptor:
    """A tool behind the event `x:name`, unless said otherwise."""
    more.setdefault("event", f"x:{name}")
    return Descriptor(id=f"tool:{name}", kind="tool", name=name, description=description, **more)


def skill(name: str, description: str = "", **more: Any) -> Descriptor:
    return Descriptor(id=f"skill:{name}", kind="skill", name=name, description=description, **more)


def index_of(
    descriptors: Iterable[Descriptor], lessons: Lessons = NO_LESSONS, *, vectors: bool = False
) -> Index:
    return Indexer(VECTORS if vectors else None, VectorCache()).build(descriptors, lessons)


def grant(*events: str, capabilities: tuple[str, ...] = ()) -> Grant:
    return Grant(
        profile="p",
        revision=1,
        bits=0,
        events=frozenset(events),
        exposed=frozenset(events),
        capabilities=capabilities,
    )


OFFICE = (
    tool("send_mail", "Send an e-mail message to somebody", category="mail", tags=("mail", "send")),
    tool("read_mail", "Read the newest messages of a mailbox", category="mail", tags=("mail",)),
    tool("get_weather", "Tell the weather forecast of a city", category="weather"),
    tool(
        "create_invoice",
        "Create an invoice for a customer",
        category="billing",
        parameters=(Parameter("customer", "string", "Who has to pay"),),
    ),
    tool("translate_text", "Translate a text into another language", category="language"),
    skill("billing", "How invoices are numbered here", required_tools=("tool:create_invoice",)),
)

_WORDS = st.sampled_from(["mail", "send", "weather", "invoice", "city", "read", "text", "table"])
_TEXTS = st.lists(_WORDS, max_size=6).map(" ".join)


@st.composite
def descriptors(draw: st.DrawFn, most: int = 12) -> list[Descriptor]:
    """Small catalogues with shared words, tags, categories and dependencies."""
    count = draw(st.integers(0, most))
    found = []
    for at in range(count):
        kind = draw(st.sampled_from(["tool", "skill"]))
        needs = draw(st.lists(st.integers(0, max(count - 1, 0)), max_size=2)) if count else []
        common = {
            "category": draw(st.sampled_from(["", "one", "two"])),
            "tags": tuple(draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True))),
            "required_tools": tuple(f"n{other}" for other in needs if other != at),
        }
        text = draw(_TEXTS)
        if kind == "tool":
            found.append(tool(f"n{at}", text, **common))
        else:
            bound = tuple(draw(st.lists(st.sampled_from(["c1", "c2"]), max_size=1)))
            found.append(skill(f"n{at}", text, capabilities=bound, **common))
    return found


REQUESTS = st.one_of(_TEXTS, st.text(max_size=40), st.sampled_from(["n1", "x:n2", "tool:n3"]))
