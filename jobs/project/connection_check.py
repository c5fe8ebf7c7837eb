"""What can be wrong with the connection to Neo4j, said before its driver is imported."""

from __future__ import annotations

from ringfence.connector.neo4j.address import check_uri, require_answer, require_password
from ringfence.jobs.config.settings import Settings


def check_connection(settings: Settings) -> None:
    """Raise where URI or password can't be used, or nobody answers; an embedded server is asked
    later, since it may have to be started.
    """
    neo4j = settings.neo4j
    if neo4j.uri == "embedded":
        return
    check_uri(neo4j.uri, neo4j.tls)
    password = None if neo4j.password is None else neo4j.password.get_secret_value()
    require_password(neo4j.uri, neo4j.user, password)
    require_answer(neo4j.uri)
