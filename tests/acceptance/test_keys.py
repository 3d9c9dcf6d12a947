"""Who may connect: keys are given, limited by their giver, and taken away at once."""

from collections.abc import Iterator

import pytest
from tests.acceptance.site import Daemon, Site, new_site

import remit_client.sync
from remit_client import NotFound, RemitError, Unauthorised
from remit_client.keys import new_key
from remit_client.sync import Client

KEEPER = "capabilities: {state_read: true, key_management: true}\n"
READER = "capabilities: {state_read: true}\n"
SHELL = "extends: reader\nadditional_tools: [Bash]\n"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A daemon with one profile that may give keys and holds little else."""
    with new_site() as site:
        site.add_profile("keeper", KEEPER)
        site.add_profile("reader", READER)
        site.add_profile("shell", SHELL)
        with site.serving() as daemon:
            yield daemon


def give(client: Client, name: str, profile: str) -> str:
    """Register a key; answers the failure's code, or an empty text."""
    data = {"name": name, "public_key": new_key(name).public_key, "profile": profile}
    try:
        client.call("key:add", data)
    except RemitError as error:
        return error.code
    return ""


def test_a_new_key_opens_the_door_under_its_profile(daemon: Daemon) -> None:
    site = daemon.site
    made = site.answer("key", "new", "bob", "--profile", "observer")
    assert (made["name"], made["profile"]) == ("bob", "observer")
    assert (daemon.home / "keys" / "bob.key").stat().st_mode & 0o777 == 0o600
    as_bob = {"REMIT_KEY": made["file"]}
    assert site.answer("call", "state:list", env=as_bob)["total"] == 0
    refused = site.run("call", "state:set", "key=a", "value=1", env=as_bob)
    assert refused.returncode == 1
    assert "[denied]" in refused.stderr


def test_a_revoked_key_is_cut_at_once_and_stays_out(daemon: Daemon) -> None:
    key = daemon.new_key("carol", "observer")
    with remit_client.sync.connect(home=daemon.home, key=key) as carol:
        carol.call("system:health")
        assert daemon.site.answer("key", "revoke", "carol")["name"] == "carol"
        with pytest.raises(RemitError) as cut:
            carol.call("system:health", timeout=5)
    assert cut.value.code in {"connection_lost", "unauthorised", "denied"}
    with (
        pytest.raises(Unauthorised),
        remit_client.sync.connect(home=daemon.home, key=key) as carol,
    ):
        carol.call("system:health")


def test_a_revoked_name_is_not_listed_and_cannot_be_revoked_twice(daemon: Daemon) -> None:
    daemon.new_key("dave", "observer")
    with daemon.operator() as operator:
        operator.call("key:revoke", {"name": "dave"})
        assert "dave" not in {item["name"] for item in operator.call("key:list")["items"]}
        with pytest.raises(NotFound):
            operator.call("key:revoke", {"name": "dave"})


def test_a_giver_gives_what_it_holds_and_nothing_more(daemon: Daemon) -> None:
    with daemon.client("keeper", "keeper") as keeper:
        assert give(keeper, "small", "reader") == ""
        assert give(keeper, "twin", "keeper") == ""
        assert give(keeper, "big", "executor") == "not_found"
        assert give(keeper, "ghost", "no_such_profile") == "not_found"
        assert give(keeper, "armed", "shell") == "not_found"
    with daemon.operator() as operator:
        living = {item["name"] for item in operator.call("key:list")["items"]}
    assert {"small", "twin"} <= living
    assert living.isdisjoint({"big", "ghost", "armed"})


def test_a_giver_of_every_event_cannot_give_a_model_tool_that_it_lacks(daemon: Daemon) -> None:
    with daemon.operator() as operator:  # until then it lacks an event, and does not see all
        review = {"id": "administrator/network_access", "decision": "approve"}
        operator.call("review:decide", review)
    with daemon.client("admin", "administrator") as admin:
        assert give(admin, "fine", "executor") == ""
        assert give(admin, "shelled", "shell") == "exceeds_parent"


def test_a_giver_neither_sees_nor_revokes_the_keys_of_those_above_it(daemon: Daemon) -> None:
    daemon.new_key("above", "executor")
    with daemon.client("warden", "keeper") as warden:
        assert "above" not in {item["name"] for item in warden.call("key:list")["items"]}
        with pytest.raises(NotFound) as hidden:
            warden.call("key:revoke", {"name": "above"})
        with pytest.raises(NotFound) as missing:
            warden.call("key:revoke", {"name": "nobody"})
    assert hidden.value.message.replace("above", "nobody") == missing.value.message


def test_a_name_and_a_key_are_given_once(daemon: Daemon) -> None:
    key = new_key("erin")
    data = {"name": "erin", "public_key": key.public_key, "profile": "reader"}
    with daemon.operator() as operator:
        operator.call("key:add", data)
        for again in (data, data | {"name": "erin2"}, data | {"name": "operator"}):
            with pytest.raises(remit_client.Conflict):
                operator.call("key:add", again)


def test_a_stranger_is_refused_instead_of_kept_waiting(daemon: Daemon) -> None:
    with (
        pytest.raises(Unauthorised),
        remit_client.sync.connect(home=daemon.home, key=new_key("stranger")) as stranger,
    ):
        stranger.call("system:health")


def test_keys_and_revocations_survive_a_restart(site: Site) -> None:
    with site.serving() as daemon:
        kept, gone = daemon.new_key("kept", "observer"), daemon.new_key("gone", "observer")
        with daemon.operator() as operator:
            operator.call("key:revoke", {"name": "gone"})
    with site.serving() as daemon:
        with remit_client.sync.connect(home=daemon.home, key=kept) as client:
            assert client.allowed("state:get")
        with (
            pytest.raises(Unauthorised),
            remit_client.sync.connect(home=daemon.home, key=gone) as client,
        ):
            client.call("system:health")
