"""What somebody probably meant."""

from remit.model.suggest import did_you_mean, nearest


def test_the_nearest_word_is_suggested() -> None:
    assert did_you_mean("state_raed", ["state_write", "state_read"]) == "did you mean 'state_read'?"


def test_a_short_list_is_shown_whole_when_nothing_is_near() -> None:
    assert did_you_mean("qqq", ["b", "a"]) == "known: a, b"


def test_a_long_list_is_not_shown() -> None:
    assert did_you_mean("qqq", [f"word{n}" for n in range(13)]) == ""
    assert did_you_mean("qqq", []) == ""


def test_the_order_of_the_known_words_does_not_matter() -> None:
    words = ["agent:spawn1", "agent:spawn2", "agent:spawn3"]
    assert nearest("agent:spawn", words, count=2) == nearest("agent:spawn", words[::-1], count=2)


def test_gibberish_is_near_to_nothing() -> None:
    assert nearest("zzzzqqqq", ["agent:spawn", "state:get", "message:publish"], count=5) == []
