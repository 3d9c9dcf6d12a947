"""What somebody does to the files of the audit is found, with and without a daemon."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.site import Site, new_site

from remit.kernel.audit.chain import GENESIS

KEEP = 8


@pytest.fixture(scope="module")
def served() -> Iterator[Site]:
    """A home in which rows were archived twice and a daemon ended well, and an earlier head."""
    with new_site() as site:
        site.configure(audit_keep=KEEP)
        for _ in range(3):
            write(site, 15)
            shutil.copy(site.home / "audit.head", site.folder / "earlier.head")
        write(site, 5)
        yield site


def write(site: Site, count: int) -> None:
    """Serve for some changes, and end."""
    with site.serving() as daemon, daemon.operator() as operator:
        for number in range(count):
            operator.call("state:set", {"key": "a", "value": number})


@pytest.fixture
def site(served: Site) -> Iterator[Site]:
    """A copy of it to do harm to."""
    with new_site() as site:
        site.configure(audit_keep=KEEP)
        shutil.copytree(served.home, site.home)
        shutil.copy(served.folder / "earlier.head", site.folder)
        yield site


def verdict(site: Site, *options: str) -> dict[str, Any]:
    done = site.run("audit", "verify", "--json", *options)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if found["ok"] else 1), done.stderr
    return found


def change(site: Site, *statements: str) -> None:
    """What somebody does who can write the database; the guards inside do not hold him."""
    with closing(sqlite3.connect(site.home / "remit.db", isolation_level=None)) as intruder:
        guards = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'audit%'"
        for (name,) in intruder.execute(guards).fetchall():
            intruder.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            intruder.execute(statement)


def test_an_untouched_audit_is_whole_without_a_daemon_and_with_one(site: Site) -> None:
    found = verdict(site)
    assert (found["ok"], found["source"]) == (True, "files")
    assert found["archived"]["files"] >= 2
    assert found["signed"]["behind"] == 0
    assert "the audit is whole" in site.run("audit", "verify").stdout
    with site.serving():
        again = verdict(site)
        assert (again["ok"], again["source"]) == (True, "daemon")
        beside = verdict(site, "--files")
        assert (beside["ok"], beside["source"]) == (True, "files")


def cut_the_tail(site: Site) -> None:
    change(site, "DELETE FROM audit WHERE seq > (SELECT max(seq) - 2 FROM audit)")


def cut_one_row(site: Site) -> None:
    change(site, "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)")


def empty_the_table(site: Site) -> None:
    change(site, "DELETE FROM audit")


def begin_anew(site: Site) -> None:
    change(site, "DELETE FROM audit", f"UPDATE audit_anchor SET seq = 0, hash = '{GENESIS}'")  # noqa: S608 - our own words


def replace_the_database(site: Site) -> None:
    (site.home / "remit.db").unlink()
    with new_site() as other:
        write(other, 3)
        shutil.copy(other.home / "remit.db", site.home)


def move_the_anchor(site: Site) -> None:
    change(
        site,
        "UPDATE audit_anchor SET seq = (SELECT min(seq) + 2 FROM audit)",
        "UPDATE audit_anchor SET hash = (SELECT hash FROM audit WHERE seq = audit_anchor.seq)",
        "DELETE FROM audit WHERE seq <= (SELECT seq FROM audit_anchor)",
    )


def lose_the_anchor(site: Site) -> None:
    change(site, "DELETE FROM audit_anchor")


def archives(site: Site) -> list[Path]:
    return sorted((site.home / "audit").glob("*.jsonl"))


def lose_the_first_archive(site: Site) -> None:
    archives(site)[0].unlink()


def lose_the_last_archive(site: Site) -> None:
    archives(site)[-1].unlink()


def lose_all_archives(site: Site) -> None:
    shutil.rmtree(site.home / "audit")


def edit_an_archive(site: Site) -> None:
    path = archives(site)[0]
    path.write_bytes(path.read_bytes().replace(b'"operator"', b'"somebody"', 1))


def cut_an_archive(site: Site) -> None:
    path = archives(site)[-1]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def lose_the_head(site: Site) -> None:
    (site.home / "audit.head").unlink()


def edit_the_head(site: Site) -> None:
    path = site.home / "audit.head"
    path.write_bytes(path.read_bytes().replace(b'"seq":', b'"seq":1', 1))


def empty_the_head(site: Site) -> None:
    (site.home / "audit.head").write_bytes(b"")


def take_an_earlier_head(site: Site) -> None:
    shutil.copy(site.folder / "earlier.head", site.home / "audit.head")


def take_the_head_of_another_server(site: Site) -> None:
    with new_site() as other:
        write(other, 1)
        shutil.copy(other.home / "audit.head", site.home)


def lose_the_database(site: Site) -> None:
    for path in site.home.glob("remit.db*"):
        path.unlink()


HARM = [
    lose_the_database,
    cut_the_tail,
    cut_one_row,
    empty_the_table,
    begin_anew,
    replace_the_database,
    move_the_anchor,
    lose_the_anchor,
    lose_the_first_archive,
    lose_the_last_archive,
    lose_all_archives,
    edit_an_archive,
    cut_an_archive,
    lose_the_head,
    edit_the_head,
    empty_the_head,
    take_an_earlier_head,
    take_the_head_of_another_server,
]


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_harm_is_found_without_a_daemon(site: Site, harm: Callable[[Site], None]) -> None:
    harm(site)
    found = verdict(site)
    assert not found["ok"]
    assert found["problem"]


@pytest.mark.parametrize(
    "harm",
    [cut_one_row, empty_the_table, move_the_anchor, lose_the_head, take_an_earlier_head],
    ids=lambda harm: harm.__name__,
)
def test_harm_is_found_by_a_daemon_that_goes_on_and_stays_found(
    site: Site, harm: Callable[[Site], None]
) -> None:
    harm(site)
    write(site, 3)
    with site.serving():
        found = verdict(site)
        assert not found["ok"]
        done = site.run("audit", "verify")
        assert done.returncode == 1
        assert "the audit is broken" in done.stdout
    assert not verdict(site)["ok"]


def test_a_table_that_is_gone_is_found_and_keeps_the_daemon_from_starting(site: Site) -> None:
    change(site, "DROP TABLE audit")
    found = verdict(site)
    assert not found["ok"]
    assert "no such table" in found["problem"]
    done = site.run("serve")
    assert done.returncode == 1
    assert "no such table: audit" in done.stderr


def test_what_is_cut_off_under_a_running_daemon_is_found(site: Site) -> None:
    with site.serving() as daemon, daemon.operator() as operator:
        operator.call("state:set", {"key": "a", "value": 1})
        change(site, "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)")
        assert not verdict(site)["ok"]
        operator.call("state:set", {"key": "a", "value": 2})
        assert not verdict(site)["ok"]
    assert not verdict(site)["ok"]


def test_a_head_that_is_changed_under_a_running_daemon_is_found(site: Site) -> None:
    with site.serving():
        take_an_earlier_head(site)
        assert not verdict(site)["ok"]
        lose_the_head(site)
        assert not verdict(site)["ok"]
    assert not verdict(site)["ok"]


def test_an_operator_accepts_what_was_found_and_it_is_a_row(site: Site) -> None:
    cut_the_tail(site)
    problem = verdict(site)["problem"]
    assert site.run("audit", "accept").returncode == 1  # nobody says yes
    assert verdict(site)["problem"] == problem
    accepted = site.answer("audit", "accept", "--yes")
    assert (accepted["ok"], accepted["accepted"]) == (True, problem)
    assert verdict(site)["ok"]
    write(site, 3)
    with site.serving():
        assert verdict(site)["ok"]
        (row,) = site.answer("audit", "--event", "audit:accept")["items"]
        assert row["details"]["problem"] == problem
        assert site.run("audit", "accept", "--yes").returncode == 2


def test_archives_that_were_moved_away_are_accepted_from_the_oldest_on(site: Site) -> None:
    lose_the_first_archive(site)
    assert not verdict(site)["ok"]
    assert site.answer("audit", "accept", "--yes")["ok"]
    lose_the_last_archive(site)
    assert not verdict(site)["ok"]


def test_a_home_of_an_earlier_version_begins_to_keep_a_head(site: Site) -> None:
    before = verdict(site)
    assert before["signed"]["since"] == 0
    lose_the_head(site)
    change(site, "DELETE FROM migration WHERE name LIKE '%_audit_head'")
    write(site, 1)
    found = verdict(site)
    assert (found["ok"], found["signed"]["since"]) == (True, before["signed"]["seq"])
    assert "nobody vouches" in site.run("audit", "verify").stdout


def test_doctor_names_an_audit_that_does_not_end_where_it_should(site: Site) -> None:
    assert '"audit"' not in site.run("doctor", "--json").stdout
    cut_one_row(site)
    done = site.run("doctor")
    assert done.returncode == 1
    assert "the newest rows were cut off" in done.stdout


def test_a_kill_leaves_the_head_at_the_last_commit(site: Site) -> None:
    for _ in range(3):
        daemon = site.start()
        try:
            with daemon.operator() as operator:
                for number in range(20):
                    operator.call("state:set", {"key": "a", "value": number})
        finally:
            daemon.kill()
        found = verdict(site)
        assert (found["ok"], found["signed"]["behind"]) == (True, 0)
