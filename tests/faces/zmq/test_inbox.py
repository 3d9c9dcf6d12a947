"""What was read and waits: each client within its bytes, and each in turn."""

import zmq

from remit.faces.zmq.frames import MSGPACK
from remit.faces.zmq.inbox import Inbox, Letter
from remit.faces.zmq.peers import Peer

EACH = 1000


def letter(peer: Peer) -> Letter:
    return peer, MSGPACK, b"Q", zmq.Frame(b"x" * (EACH - 512))


def client(name: str) -> Peer:
    return Peer(name.encode(), f"key of {name}", name)


def test_clients_take_turns_however_much_one_of_them_sends() -> None:
    inbox, ann, bob = Inbox(100 * EACH), client("ann"), client("bob")
    for peer in (ann, ann, ann, bob, bob):
        assert inbox.add(letter(peer))
    order = [inbox.next()[0].name for _ in range(5)]
    assert order == ["ann", "bob", "ann", "bob", "ann"]
    assert not inbox


def test_a_client_keeps_so_many_bytes_and_one_message_in_any_case() -> None:
    inbox, ann, bob = Inbox(2 * EACH), client("ann"), client("bob")
    assert [inbox.add(letter(ann)) for _ in range(4)] == [True, True, False, False]
    assert inbox.add(letter(bob))
    inbox.next()
    assert inbox.add(letter(ann))
    assert Inbox(1).add(letter(ann))


def test_other_connections_of_a_client_share_its_bytes() -> None:
    inbox = Inbox(2 * EACH)
    one, other = client("ann"), Peer(b"other", "key of ann", "ann")
    assert [inbox.add(letter(peer)) for peer in (one, other, other)] == [True, True, False]


def test_who_goes_on_as_long_again_floods() -> None:
    inbox, ann = Inbox(2 * EACH), client("ann")
    for _ in range(4):
        inbox.add(letter(ann))
        assert not inbox.is_flooded(ann)
    inbox.add(letter(ann))
    assert inbox.is_flooded(ann)
    while inbox:
        inbox.next()
    assert not inbox.is_flooded(ann)
