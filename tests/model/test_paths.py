"""Paths of the session file system: one way to write each, and none that leads elsewhere."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import InvalidDataError
from remit.model.paths import inside, parents, parse_file_path

TEXTS = st.text(alphabet=st.sampled_from("/.\\ aé\u0301\0\n~%\ud800"), max_size=12) | st.text()


@given(TEXTS)
def test_an_accepted_path_is_its_own_normal_form(text: str) -> None:
    try:
        path = parse_file_path(text)
    except InvalidDataError:
        return
    assert path == text == posixpath.normpath(text)
    assert path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/")[1:]) or path == "/"
    assert path.isprintable()


@given(TEXTS)
def test_what_lies_above_an_accepted_path_is_accepted_too(text: str) -> None:
    try:
        path = parse_file_path(f"/{text}")
    except InvalidDataError:
        return
    for above in parents(path):
        assert parse_file_path(above) == above
        assert path.startswith(inside(above))


def test_half_a_sign_is_refused() -> None:
    with pytest.raises(InvalidDataError):
        parse_file_path("/\ud800")


def test_the_directories_above_are_told_nearest_first_and_without_the_root() -> None:
    assert parents("/a/b/c") == ["/a/b", "/a"]
    assert parents("/a") == []
    assert (inside("/"), inside("/a")) == ("/", "/a/")
