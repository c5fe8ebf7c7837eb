"""`[neo4j]`: how the graph database is reached."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from ringfence.jobs.config.section import Section


class Neo4jSettings(Section):
    """The graph database."""

    uri: str = Field(
        "embedded",
        description="`embedded` starts or finds the zero-install server of this project; "
        "otherwise bolt://, bolt+s://, neo4j:// or neo4j+s:// without user or password in it.",
    )
    user: str = Field("neo4j", description="Name to log in with.")
    password: SecretStr | None = Field(
        None, description="Environment only. Not needed for `embedded`, which makes its own."
    )
    database: str = Field(
        "neo4j",
        description="Which database of the server; empty for the user's home database. `ringfence "
        "init` writes the name of the one that it inspected.",
    )
    credentials: str = Field(
        "",
        description="A file with NEO4J_URI, NEO4J_USERNAME, NEO4J_PASSWORD and NEO4J_DATABASE, as "
        "Neo4j Aura offers for download: it gives the password, and what this table leaves open.",
    )
    auth: Literal["password", "bearer", "kerberos"] = Field(
        "password",
        description="How to log in: user and password, a bearer token of single sign-on, or a "
        "Kerberos ticket. The last two are the driver's and were not tried on a server that "
        "accepts them.",
    )
    token: SecretStr | None = Field(
        None, description="Environment only. The token or the base64 ticket of `auth`."
    )
    client_certificate: str = Field(
        "",
        description="PEM file of the certificate that a server with mutual TLS asks for; not tried "
        "on such a server.",
    )
    client_key: str = Field(
        "", description="PEM file of its key, where the certificate's file does not hold it."
    )
    client_key_password: SecretStr | None = Field(
        None, description="Environment only. Password of that key."
    )
    tls: Literal["required", "off"] = Field(
        "required",
        description="A server that isn't on this machine must be reached by an encrypted scheme "
        "(bolt+s, neo4j+s); `off` allows plain text on purpose.",
    )
