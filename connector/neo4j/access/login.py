"""How ringfence logs in: password, bearer token or Kerberos ticket, with a client certificate.

Each is the driver's own. Passwords were tried on a real server; of tokens and tickets only that a
server without single sign-on refuses them, and of certificates that the driver loads them: the
server that runs here has none of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.neo4j.access.address import require_password

__all__ = ["ClientCertificateFiles", "Login"]

PASSWORD, BEARER, KERBEROS = "password", "bearer", "kerberos"


@dataclass(frozen=True, slots=True)
class ClientCertificateFiles:
    """A certificate that the server asks its clients for, its key, and the key's password."""

    certificate: str
    key: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in, how, and with which secret."""

    user: str
    password: str | None = field(default=None, repr=False)
    method: str = PASSWORD
    token: str | None = field(default=None, repr=False)
    certificate: ClientCertificateFiles | None = None

    @property
    def secret_name(self) -> str:
        """What a server refuses, in words."""
        words = {BEARER: "the bearer token", KERBEROS: "the Kerberos ticket"}
        return words.get(self.method, "the user or the password")

    def driver_options(self, uri: str) -> dict[str, Any]:
        """Return the options of the driver; a `ConfigError` where the secret is missing."""
        options: dict[str, Any] = {"auth": self._auth(uri)}
        if self.certificate is not None:
            options["client_certificate"] = _load_certificate(self.certificate)
        return options

    def _auth(self, uri: str) -> Any:
        if self.method == PASSWORD:
            return self.user, require_password(uri, self.user, self.password)
        if self.token is None:
            raise ConfigError(
                found=f"[neo4j] auth is {self.method}, and there is no token for {uri}",
                needed="the token, from the environment or a file that it names",
                next_step="export RINGFENCE_NEO4J_TOKEN=…, or RINGFENCE_NEO4J_TOKEN_FILE=…",
            )
        from neo4j import bearer_auth, kerberos_auth

        return bearer_auth(self.token) if self.method == BEARER else kerberos_auth(self.token)


def _load_certificate(files: ClientCertificateFiles) -> Any:
    """Return the driver's certificate, after loading it once: the driver's own errors are late."""
    import ssl

    from neo4j.auth_management import ClientCertificate, ClientCertificateProviders

    try:
        context = ssl.create_default_context()
        # an empty password: a key that needs one is an error, not a question on the terminal
        context.load_cert_chain(files.certificate, files.key, files.password or "")
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            found=f"the client certificate {files.certificate} can't be loaded: "
            f"{getattr(error, 'reason', None) or error.strerror or type(error).__name__}",
            needed="[neo4j] client_certificate and client_key as PEM files that belong together, "
            "and RINGFENCE_NEO4J_CLIENT_KEY_PASSWORD where the key is encrypted",
        ) from None
    certificate = ClientCertificate(files.certificate, files.key, files.password)
    return ClientCertificateProviders.static(certificate)
