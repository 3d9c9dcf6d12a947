"""What a new agent shows at the door. Secrets are answered once and kept nowhere."""

import hashlib
import secrets

import zmq


def new_credentials() -> dict[str, str]:
    """A key pair for the socket and a bearer token."""
    public, secret = zmq.curve_keypair()
    return {
        "public_key": public.decode(),
        "secret_key": secret.decode(),
        "token": secrets.token_urlsafe(32),
    }


def new_token() -> str:
    """A bearer token that was asked for; programs that look for leaked secrets know it."""
    return f"remit_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """What is kept of a token; none for no token."""
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


def name_suffix() -> str:
    """A few letters that nobody else has."""
    return secrets.token_hex(3)
