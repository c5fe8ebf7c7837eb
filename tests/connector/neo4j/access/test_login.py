"""Ways to log in: what a server without single sign-on says to tokens, and what is refused here."""

import shutil
import subprocess

import pytest

from ringfence.connector.errors import ConfigError, ServerError
from ringfence.connector.neo4j.access.login import ClientCertificateFiles, Login
from ringfence.connector.neo4j.bolt import Neo4jError, TokenExpired
from ringfence.connector.neo4j.driver import explained, log_in


@pytest.mark.parametrize(
    ("method", "words"), [("bearer", "the bearer token"), ("kerberos", "the Kerberos ticket")]
)
def test_a_server_without_single_sign_on_refuses_tokens(graph, method, words):
    with pytest.raises(ServerError) as refused:
        log_in(graph.uri, Login("neo4j", method=method, token="bm9uZQ=="), "neo4j", "required")
    assert refused.value.found == f"{graph.uri} refused {words}"
    assert "RINGFENCE_NEO4J_TOKEN" in refused.value.next_step


def test_a_password_is_no_token():
    with pytest.raises(ConfigError) as refused:
        Login("neo4j", password="secret", method="bearer").driver_options("bolt://localhost")
    assert "there is no token" in refused.value.found


def test_an_expired_token_is_named_as_one():
    error = Neo4jError._hydrate_neo4j(code="Neo.ClientError.Security.TokenExpired", message="old")
    assert isinstance(error, TokenExpired)
    login = Login("neo4j", method="bearer", token="t")
    with pytest.raises(ServerError) as refused, explained("bolt://h", login.secret_name):
        raise error
    assert refused.value.found == "bolt://h says that the bearer token has expired"


def test_no_secret_is_part_of_a_repr():
    files = ClientCertificateFiles("c.pem", "k.pem", "hidden")
    assert "hidden" not in repr(Login("neo4j", "hidden", "bearer", "hidden", files))


@pytest.fixture
def pem(tmp_path):
    """A certificate and its encrypted key, made by openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-passout", "pass:word", "-days", "1",
         "-subj", "/CN=ringfence", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return str(certificate), str(key)


def test_a_client_certificate_is_loaded_with_its_keys_password(pem):
    login = Login("neo4j", "secret", certificate=ClientCertificateFiles(*pem, "word"))
    assert "client_certificate" in login.driver_options("bolt+s://localhost")
    for password in (None, "wrong"):
        files = ClientCertificateFiles(*pem, password)
        with pytest.raises(ConfigError) as refused:
            Login("neo4j", "secret", certificate=files).driver_options("bolt+s://localhost")
        assert "can't be loaded" in refused.value.found
    missing = ClientCertificateFiles(pem[0] + "x")
    with pytest.raises(ConfigError, match="No such file"):
        Login("neo4j", "secret", certificate=missing).driver_options("bolt+s://localhost")
