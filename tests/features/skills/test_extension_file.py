"""extensions.yaml: one bad entry is left out, the others stay."""

from remit.config.strict.kinds import Report
from remit.errors import Problem
from remit.features.skills.extension_file import read_extension_file
from remit.model.descriptor import Descriptor


def read(text: str) -> tuple[tuple[Descriptor, ...], list[Problem]]:
    report = Report()
    return read_extension_file(text.encode(), "extensions.yaml", report), report.problems


def test_extensions_and_channels_become_descriptors() -> None:
    found, problems = read("""
extensions:
  - name: giphy-search
    description: Finds moving pictures
    category: media
    tags: [gif]
    available: false
    unavailable_because: not installed
    module: remit_giphy.handlers
    requiredSecrets: [GIPHY_KEY]
channels:
  - platform: telegram
    description: Telegram chats
  - name: mail
    platform: imap
    description: Mail
""")
    assert not problems
    giphy, telegram, mail = found
    assert (giphy.id, giphy.title, giphy.available) == (
        "extension:giphy-search",
        "Giphy Search",
        False,
    )
    assert giphy.source.module == "remit_giphy.handlers"
    assert giphy.required_secrets == ("GIPHY_KEY",)
    assert giphy.source.place is not None
    assert giphy.source.place.line == 3
    assert [(one.id, one.category) for one in (telegram, mail)] == [
        ("channel:telegram", "communication"),
        ("channel:mail", "communication"),
    ]


def test_a_bad_entry_is_left_out_and_the_others_stay() -> None:
    found, problems = read("""
extensions:
  - description: without a name
  - {name: a, description: x, capabilities: [Wrong]}
  - {name: b, description: x}
  - {name: c, description: x, module: "os; evil"}
  - text
channels:
  - {description: without a name}
  - {name: d, description: x, category: other}
  - {name: e, description: x}
""")
    assert [one.id for one in found] == ["extension:b", "channel:e"]
    assert [(one.code, one.place.line) for one in problems] == [
        ("missing_key", 3),
        ("invalid_name", 4),
        ("invalid_name", 6),
        ("wrong_type", 7),
        ("missing_key", 9),
        ("unknown_key", 10),
    ]


def test_a_file_that_is_no_catalogue_gives_nothing() -> None:
    for text, code in {
        "": "empty_file",
        "[]": "wrong_type",
        "extension: []": "unknown_key",
        "extensions: {}": "wrong_type",
        "extensions: [{name: a, name: b, description: x}]": "duplicate_key",
    }.items():
        found, problems = read(text)
        assert (found, [one.code for one in problems]) == ((), [code]), text
