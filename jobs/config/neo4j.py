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
    database: str = Field("neo4j", description="Which database of the server.")
    tls: Literal["required", "off"] = Field(
        "required",
        description="A server that isn't on this machine must be reached by an encrypted scheme "
        "(bolt+s, neo4j+s); `off` allows plain text on purpose.",
    )
