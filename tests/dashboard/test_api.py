"""What programs ask for: the JSON API and its description, metrics, health, the command."""

import json
import signal
import subprocess
import sys
from http.client import HTTPConnection

import pytest

from tests.patience import PATIENCE_SECONDS


def test_metrics_and_health_answer(site):
    text = site.ask("/metrics").body.decode()
    assert "ringfence_coverage_ratio{" in text
    assert "ringfence_alarm{" in text
    assert site.ask("/healthz").body == b"ok\n"
    assert site.ask("/readyz").status == 200


@pytest.mark.slow
def test_the_api_keeps_what_its_description_says(site):
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given
    from hypothesis import settings as effort

    schema = schemathesis.openapi.from_url(f"{site.url}/api/openapi.json")
    operations = [operation.ok() for operation in schema.get_all_operations()]
    assert len(operations) == 10
    for operation in operations:

        @given(case=operation.as_strategy())
        @effort(max_examples=12, deadline=None, database=None, derandomize=True,
                suppress_health_check=list(HealthCheck))  # fmt: skip
        def keeps(case):
            case.call_and_validate()

        keeps()


@pytest.mark.slow
def test_the_command_says_where_it_serves_and_ends_by_ctrl_c(site):
    folder = site.dashboard.settings.engine.folder.parent
    (folder / "ringfence.toml").write_text(
        f"project = {json.dumps(site.dashboard.settings.project)}\n[graph]\nlabel = 'A'\n"
        "key = 'id'\nfeatures = 'f'\nclass_property = 'kind'\n"
    )
    command = [sys.executable, "-c", "from ringfence.jobs.cli.app import main; main()"]
    with subprocess.Popen(
        [*command, "serve", "--port", "0", "--json"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            lines = [process.stdout.readline() for _ in range(3)]
            url = json.loads("".join(lines))["url"]
            connection = HTTPConnection("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 0, process.stderr.read()
        finally:
            process.kill()


@pytest.mark.slow
def test_serving_needs_no_torch():
    script = (
        "import sys\n"
        "import ringfence.jobs.dashboard.server, ringfence.jobs.dashboard.app\n"
        "import ringfence.jobs.report.write\n"
        "import ringfence.jobs.report.page, ringfence.jobs.views.explain\n"
        "assert not {'torch', 'torch_geometric'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
