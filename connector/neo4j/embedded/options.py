"""The embedded server's settings: limits, addresses, disabled features, and the JVM's flags."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["ServerOptions", "configuration", "jvm_arguments"]


# CPU seconds until the server answers: 9 quick, 11 lasting, 15 with the JVM's own thresholds
QUICK = ("-XX:TieredStopAtLevel=1",)
LASTING = (  # the optimising compiler waits until a method is ten times as hot as usual
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Limits of one server; sizes as the JVM writes them ("512m", "2g").

    `heap` holds queries and open transactions, `page_cache` the graph's pages, `off_heap` the
    network buffers: together they bound the process. `port` 0 keeps the last port where it is
    still free, else takes any free one.

    `quick` compiles Java lightly: the start and the first minutes are faster, which suits tests
    and demos. Without it a busy server that stays up comes to scan 2 to 3 times faster.
    """

    heap: str = "512m"
    page_cache: str = "128m"
    off_heap: str = "256m"
    port: int = 0
    quick: bool = True


def configuration(options: ServerOptions, port: int) -> str:
    """The text of `neo4j.conf` for a server on `127.0.0.1:port` (0: any free port)."""
    settings = {
        # reachable from this machine only, with a password
        "server.bolt.enabled": "true",
        "server.bolt.listen_address": f"127.0.0.1:{port}",
        "server.default_listen_address": "127.0.0.1",
        "dbms.security.auth_enabled": "true",
        # LOAD CSV, which any reader may use, reaches neither this machine's files nor an address
        "dbms.security.allow_csv_import_from_file_urls": "false",
        "internal.dbms.cypher_ip_blocklist": "0.0.0.0/0,::/0",
        # nothing leaves the machine
        "dbms.usage_report.enabled": "false",
        "client.allow_telemetry": "false",
        "server.bolt.telemetry.enabled": "false",
        "server.fleet_discovery.enabled": "false",
        "dbms.fleet_manager.enabled": "false",
        # memory and disk stay small
        "server.memory.pagecache.size": options.page_cache,
        "db.tx_log.rotation.size": "32m",
        "db.tx_log.preallocate": "false",
        "db.tx_log.rotation.retention_policy": "2 files",
        "db.logs.query.enabled": "OFF",
        # Netty waits this long for late messages before it closes: there are none
        "internal.dbms.bolt.netty_server_shutdown_quiet_period_duration": "0s",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def jvm_arguments(options: ServerOptions, logs: Path) -> list[str]:
    """The flags of the JVM: limits, what Neo4j needs opened, and a short start."""
    opened = ("java.nio", "java.io", "sun.nio.ch")
    return [
        *(QUICK if options.quick else LASTING),
        f"-Xmx{options.heap}",
        f"-XX:MaxDirectMemorySize={options.off_heap}",
        "-XX:+UseSerialGC",  # one small heap: the collector with the least overhead
        "-XX:+ExitOnOutOfMemoryError",  # a dead server is restarted, a crippled one is not
        f"-XX:ErrorFile={logs}/hs_err_%p.log",
        "-XX:-UsePerfData",
        "-Xrs",  # signals belong to the Python side, which shuts the database down
        "-Djava.awt.headless=true",
        "-Dfile.encoding=UTF-8",
        "-Dlog4j2.disable.jmx=true",
        "--enable-native-access=ALL-UNNAMED",
        "--sun-misc-unsafe-memory-access=allow",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened),
    ]
