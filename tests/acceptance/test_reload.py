"""Editing definitions under a running daemon."""

import pytest
from tests.acceptance.site import Site, eventually

from remit_client.sync import Client

WIDER = "extends: minimal\ncapabilities: {state_write: true, catalogue_read: true}\n"
BROKEN = "extends: minimal\ncapabilities: {state_rwite: true}\n"
PARTS = ["upstreams", "cards", "skills"]


def revision(client: Client) -> int:
    return int(client.call("system:health")["revision"])


def is_stale(client: Client) -> bool:
    return bool(client.call("system:health")["stale"])


def test_an_edit_changes_the_answers_of_those_who_are_connected(site: Site) -> None:
    with site.serving() as daemon, daemon.client("bob", "observer") as bob:
        assert not bob.allowed("state:set")
        site.add_profile("observer", WIDER)
        assert not bob.allowed("state:set"), "nothing changes before the reload"
        daemon.reload()
        assert eventually(lambda: revision(bob), lambda number: number > 1) == 2
        assert bob.allowed("state:set")
        answer = bob.ask("state:set", {"key": "a", "value": 1}, min_revision=2)
        assert answer.revision == 2


def test_a_broken_edit_keeps_the_old_grants_and_is_told_by_health(site: Site) -> None:
    with site.serving() as daemon, daemon.client("bob", "observer") as bob:
        site.add_profile("observer", BROKEN)
        daemon.reload()
        eventually(lambda: is_stale(bob), bool)
        assert (revision(bob), bob.call("system:health")["status"]) == (1, "stale")
        assert bob.allowed("state:get")
        assert "state_rwite" in daemon.log()
        site.add_profile("observer", WIDER)
        daemon.reload()
        eventually(lambda: is_stale(bob), lambda stale: not stale)
        assert bob.allowed("state:set")


def test_a_client_whose_profile_was_removed_holds_what_everybody_has_until_it_is_back(
    site: Site,
) -> None:
    site.add_profile("passing", "extends: observer\n")
    with (
        site.serving() as daemon,
        daemon.operator() as operator,
        daemon.client("bob", "passing") as bob,
    ):
        assert bob.allowed("state:get")
        text = (site.compositions / "passing.yaml").read_text()
        (site.compositions / "passing.yaml").unlink()
        daemon.reload()
        eventually(lambda: revision(operator), lambda number: number == 2)
        checked = operator.call("permission:check", {"event": "state:get", "agent": "bob"})
        assert (checked["allowed"], checked["reason"]) == (False, "no_grant")
        assert bob.allowed("system:health")
        (site.compositions / "passing.yaml").write_text(text)
        daemon.reload()
        eventually(lambda: revision(operator), lambda number: number == 3)
        assert bob.allowed("state:get")


def test_a_plan_without_folders_compares_the_daemon_with_the_files(site: Site) -> None:
    with site.serving():
        assert site.answer("plan")["summary"]["profiles"] == 0
        site.add_profile("observer", WIDER)
        report = site.answer("plan")
        assert report["profiles"]["observer"]["granted"] == ["state:delete", "state:set"]
        assert report["profiles"]["observer"]["revoked"] == ["system:stats"]
        assert list(report) == ["source", "profiles", "agents", "summary"]
        assert site.answer("call", "system:health")["revision"] == 1


def test_a_plan_is_refused_when_the_files_are_broken(site: Site) -> None:
    with site.serving():
        site.add_profile("observer", BROKEN)
        done = site.run("plan")
        assert done.returncode == 2
        assert "state_rwite" in done.stderr
        assert "did you mean 'state_write'?" in done.stderr


def write_everything(site: Site, word: str) -> None:
    """A card, a skill and an upstream server that tell of a word."""
    for folder in ("cards", f"skills/{word}"):
        (site.folder / folder).mkdir(parents=True, exist_ok=True)
    card = f"---\nid: {word}\nname: N\ndescription: D\ntriggers: {{keywords: [{word}]}}\n---\nT\n"
    (site.folder / "cards" / f"{word}.md").write_text(card, encoding="utf-8")
    skill = f"---\nname: {word}\ndescription: What {word} is\n---\nText\n"
    (site.folder / "skills" / word / "SKILL.md").write_text(skill, encoding="utf-8")
    server = f"upstreams: {{{word}: {{command: /bin/false}}}}\n"
    (site.home / "upstreams.yaml").write_text(f"version: 1\n{server}", encoding="utf-8")


def known(operator: Client) -> tuple[set[str], set[str], set[str]]:
    """The cards, skills and upstream servers that a daemon goes by."""
    cards = {one["id"] for one in operator.call("awareness:cards")["items"]}
    skills = {one["name"] for one in operator.call("skill:list")["items"]}
    servers = {one["name"] for one in operator.call("upstream:list")["items"]}
    return cards, skills, servers


@pytest.mark.parametrize("how", ["config:reload", "SIGHUP"])
def test_whoever_asks_everything_is_read_again(site: Site, how: str) -> None:
    site.configure(card_dirs=["cards"], capability_dirs=["."])
    site.home.mkdir(0o700)
    write_everything(site, "first")
    with site.serving() as daemon, daemon.operator() as operator:
        assert all("first" in names for names in known(operator))
        write_everything(site, "second")
        if how == "SIGHUP":
            daemon.reload()
        else:
            operator.call("config:reload")
        eventually(lambda: known(operator), lambda all_: all("second" in names for names in all_))


def test_a_reload_tells_of_servers_cards_and_skills_too(site: Site) -> None:
    site.configure(card_dirs=["cards"], capability_dirs=["."])
    site.home.mkdir(0o700)
    write_everything(site, "first")
    with site.serving():
        done = site.run("reload")
        assert "definitions: nothing changed, revision 1 stays in force" in done.stdout
        assert "cards: nothing changed (1 in all)" in done.stdout
        write_everything(site, "second")
        (site.folder / "cards" / "first.md").write_text("no card", encoding="utf-8")
        report = site.answer("reload")
        assert report["changed"] is False
        assert [name for name in report if name in PARTS] == PARTS
        assert (report["upstreams"]["added"], report["upstreams"]["removed"]) == (
            *(["second"], ["first"]),
        )
        assert (report["cards"]["added"], report["cards"]["removed"]) == (["second"], ["first"])
        assert report["cards"]["problems"][0]["file"].endswith("cards/first.md")
        assert report["skills"]["added"] == ["skill:second"]
        write_everything(site, "third")
        done = site.run("reload")
        assert "upstream servers: added third; removed second (1 in all)" in done.stdout
        assert "cards: added third; 1 problem (2 in all)" in done.stdout
        assert "skills and manifests: added skill:third (3 in all)" in done.stdout
        assert "cards/first.md:1" in done.stderr
