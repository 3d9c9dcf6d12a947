"""A revoked key: refused at its next message, cut off, and kept out."""

from pathlib import Path

from tests.faces.zmq.world import until, world


async def test_a_revoked_principal_is_refused_at_its_next_message(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:who")
        await wire.answer()
        served.people.revoke("ann")
        wire.request(2, "test:who")
        error = (await wire.answer())["error"]
        assert (error["code"], error["details"]["reason"]) == ("denied", "revoked")
        assert served.door.seen == ["test:who"]


async def test_a_new_key_for_an_old_name_does_not_revive_the_old_connection(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as served:
        old = served.wire(served.key())
        old.request(1, "test:who")
        await old.answer()
        served.people.revoke("ann")
        new = served.wire(served.key())
        old.request(2, "test:who")
        new.request(1, "test:who")
        assert await old.error() == "denied"
        assert (await new.answer())["data"] == "ann"


async def test_evicting_cuts_every_connection_and_ends_the_jobs(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        key = served.key()
        wires = [served.wire(key), served.wire(key)]
        other = served.wire(served.key("bob"))
        for wire in [*wires, other]:
            wire.request(1, "test:wait")
        await until(lambda: served.face.stats.jobs == 3)
        served.people.revoke("ann")
        assert served.face.evict("ann") == 2
        await until(lambda: served.face.stats.jobs == 1)
        # Both come back by themselves, and are refused.
        await until(lambda: served.face.stats.refused >= 2)
        served.door.gate.set()
        assert (await other.answer())["data"] == "done"
        assert served.face.stats.evicted == 2
        assert served.face.stats.clients == 1


async def test_evicting_a_stranger_cuts_nobody(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        assert served.face.evict("nobody") == 0
