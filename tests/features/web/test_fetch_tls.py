"""Over TLS the address was checked and the name is proved."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.features.web.web_server import PUBLIC, Outside, page, serving

from remit.errors import FetchError
from remit.features.web import fetch as fetching

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="nobody here makes certificates")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and a certificate for good.test that nobody has signed."""
    folder = tmp_path_factory.mktemp("tls")
    file = folder / "both.pem"
    subject = ["-subj", "/CN=good.test", "-addext", "subjectAltName=DNS:good.test"]
    made = ["-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    subprocess.run(  # noqa: S603 - our own words
        [str(OPENSSL), "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made, *subject],
        check=True,
        capture_output=True,
    )
    file.write_bytes((folder / "key").read_bytes() + (folder / "cert").read_bytes())
    return file


@pytest.fixture
def presented(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    presented: ssl.SSLContext,
) -> None:
    async with serving({"/": page()}, tls=presented) as server:
        with pytest.raises(FetchError) as caught:
            await Outside(server).fetcher().fetch("https://good.test/")
        assert caught.value.details == {"reason": "connection"}
        assert server.asked == []


async def test_a_name_is_proved_though_an_address_is_dialled(
    presented: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(fetching, "_ssl_context", lambda: trusting)
    async with serving({"/": page()}, tls=presented) as server:
        outside = Outside(server)
        assert (await outside.fetcher().fetch("https://good.test/")).body == b"hello"
        assert outside.detour.dialled == [PUBLIC]
        with pytest.raises(FetchError, match=r"other\.test"):
            await outside.fetcher().fetch("https://other.test/")
