"""Container file, systemd units and Kubernetes manifests: whole, without secrets, and ours.

Nothing here is built, started or applied: the machine has no container engine, no systemd that runs
and no cluster. What can be checked without them is.
"""

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from ringfence.connector.errors import ConfigError
from ringfence.jobs.cli.app import app
from ringfence.jobs.config.load import load, variable
from ringfence.jobs.config.settings import SECRETS
from ringfence.jobs.config.sources.secret_files import FILE_SUFFIX
from ringfence.jobs.setup.checks.environment import check_environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
UNITS = sorted((EXAMPLES / "systemd").glob("ringfence*"))
MANIFESTS = {
    path.name: [one for one in yaml.safe_load_all(path.read_text("utf-8")) if one]
    for path in sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
}
SECRET_VARIABLES = {variable(section, name) for section, names in SECRETS.items() for name in names}


def parse(words):
    """Let the command line read a verb and its options, without running it; wrong ones raise."""
    command = typer.main.get_command(app)
    verb, *rest = words
    found = command.get_command(typer.Context(command), verb)
    assert found is not None, f"no verb {verb!r}"
    found.make_context(verb, list(rest))


def pod_specs():
    for name, objects in MANIFESTS.items():
        for one in objects:
            spec = one.get("spec", {})
            spec = spec.get("jobTemplate", {}).get("spec", spec)
            if "template" in spec:
                yield f"{name}: {one['metadata']['name']}", spec["template"]["spec"]


def given_values(container):
    return {one["name"]: one.get("value") for one in container.get("env", ())}


def test_there_are_manifests_for_both_ways_of_running():
    kinds = {one["kind"] for objects in MANIFESTS.values() for one in objects}
    assert kinds == {"ConfigMap", "CronJob", "Deployment", "PersistentVolumeClaim", "Service"}
    assert all(one["apiVersion"] for objects in MANIFESTS.values() for one in objects)


def test_every_pod_runs_a_verb_of_ours_without_rights():
    specs = dict(pod_specs())
    assert len(specs) == 4
    for name, spec in specs.items():
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        for container in spec["containers"]:
            parse(container["args"])
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["capabilities"]["drop"] == ["ALL"], name
            assert container["resources"]["limits"]["memory"], name
            mounted = {one["name"] for one in container["volumeMounts"]}
            assert mounted == {one["name"] for one in spec["volumes"]}, name


def test_a_claim_of_one_machine_is_used_by_one_deployment():
    (claim,) = [o for o in MANIFESTS["configuration.yaml"] if o["kind"] == "PersistentVolumeClaim"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    deployments = [
        o for objects in MANIFESTS.values() for o in objects if o["kind"] == "Deployment"
    ]
    assert len(deployments) == 1
    assert deployments[0]["spec"]["replicas"] == 1
    assert deployments[0]["spec"]["strategy"]["type"] == "Recreate"


def test_the_dashboard_is_probed_and_its_service_finds_it():
    (deployment,) = [o for o in MANIFESTS["scheduler.yaml"] if o["kind"] == "Deployment"]
    (service,) = [o for o in MANIFESTS["scheduler.yaml"] if o["kind"] == "Service"]
    containers = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["containers"]}
    dashboard = containers["dashboard"]
    assert dashboard["args"] == ["serve"]
    probes = {kind: dashboard[kind] for kind in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert [probe["httpGet"]["path"] for probe in probes.values()] == [
        "/healthz", "/readyz", "/healthz",
    ]  # fmt: skip
    settings = _settings_of_the_config_map()
    for probe in probes.values():
        (header,) = probe["httpGet"]["httpHeaders"]
        assert header["name"] == "Host"
        assert header["value"] in settings["serve"]["hosts"]  # others get 400
    (port,) = dashboard["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["containerPort"] == 8470
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def _settings_of_the_config_map():
    (config,) = [o for o in MANIFESTS["configuration.yaml"] if o["kind"] == "ConfigMap"]
    return tomllib.loads(config["data"]["ringfence.toml"])


def test_jobs_that_share_a_claim_of_one_machine_run_on_one_machine():
    jobs = [o["spec"]["jobTemplate"]["spec"]["template"] for o in MANIFESTS["cronjob.yaml"]]
    assert len(jobs) == 3
    for template in jobs:
        claims = [v for v in template["spec"]["volumes"] if "persistentVolumeClaim" in v]
        assert [v["persistentVolumeClaim"]["claimName"] for v in claims] == ["ringfence"]
        (term,) = template["spec"]["affinity"]["podAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["labelSelector"]["matchLabels"] == template["metadata"]["labels"]
    (service,) = [o for o in MANIFESTS["scheduler.yaml"] if o["kind"] == "Service"]
    assert service["spec"]["selector"] != jobs[0]["metadata"]["labels"]


def injected_by(service):
    """The variables that a kubelet gives to every pod beside a Service."""
    name = "_".join(service["metadata"]["name"].upper().split("-"))
    port = service["spec"]["ports"][0]["port"]
    address = f"{name}_PORT_{port}_TCP"
    return {
        f"{name}_SERVICE_HOST": "10.0.0.1",
        f"{name}_SERVICE_PORT": str(port),
        f"{name}_SERVICE_PORT_HTTP": str(port),
        f"{name}_PORT": f"tcp://10.0.0.1:{port}",
        address: f"tcp://10.0.0.1:{port}",
        f"{address}_PROTO": "tcp",
        f"{address}_PORT": str(port),
        f"{address}_ADDR": "10.0.0.1",
    }


def test_variables_that_a_cluster_sets_for_its_services_are_ignored(tmp_path):
    """The example's Service makes RINGFENCE_SERVE_PORT, which is also the name of a setting."""
    (service,) = [o for o in MANIFESTS["scheduler.yaml"] if o["kind"] == "Service"]
    (config,) = [o for o in MANIFESTS["configuration.yaml"] if o["kind"] == "ConfigMap"]
    file = tmp_path / "ringfence.toml"
    file.write_text(config["data"]["ringfence.toml"], "utf-8")
    injected = injected_by(service) | injected_by({**service, "metadata": {"name": "ringfence"}})
    assert "RINGFENCE_SERVE_PORT" in injected
    assert load(file, injected).serve.port == 8470
    assert load(file, {"RINGFENCE_SERVE_PORT": "9000"}).serve.port == 9000
    (finding,) = check_environment(injected)
    assert all(name in finding.text for name in injected)
    assert list(check_environment({"RINGFENCE_SERVE_PORT": "9000"})) == []
    with pytest.raises(ConfigError, match="is no setting"):  # the control: others stay errors
        load(file, {"RINGFENCE_SERVE_PROT": "9000"})


def test_pods_ask_for_no_such_variables():
    assert all(spec["enableServiceLinks"] is False for _, spec in pod_specs())


def mounted_secrets(spec):
    """Where a pod's containers find the files of a Secret."""
    names = {one["name"] for one in spec["volumes"] if "secret" in one}
    mounts = [one for container in spec["containers"] for one in container["volumeMounts"]]
    return {one["mountPath"] for one in mounts if one["name"] in names}


def secrets_in_the_environment(container):
    return SECRET_VARIABLES & {one["name"] for one in container["env"]}


def test_secrets_are_files_of_a_secret_and_stand_in_no_manifest():
    for name, spec in pod_specs():
        (folder,) = mounted_secrets(spec)
        for container in spec["containers"]:
            assert not secrets_in_the_environment(container), name
            files = {k: v for k, v in given_values(container).items() if k.endswith(FILE_SUFFIX)}
            assert {k.removesuffix(FILE_SUFFIX) for k in files} <= SECRET_VARIABLES, name
            assert "RINGFENCE_NEO4J_PASSWORD_FILE" in files, name
            assert {str(Path(path).parent) for path in files.values()} == {folder}, name
    assert not [one for objects in MANIFESTS.values() for one in objects if one["kind"] == "Secret"]


def test_a_pods_settings_are_read_with_its_files(tmp_path):
    """What the manifests name is what is read; keys of the Secret are those of its description."""
    file = tmp_path / "ringfence.toml"
    (config,) = [o for o in MANIFESTS["configuration.yaml"] if o["kind"] == "ConfigMap"]
    file.write_text(config["data"]["ringfence.toml"], "utf-8")
    described = (EXAMPLES / "kubernetes/configuration.yaml").read_text("utf-8").split("apiVersion")
    for name, spec in pod_specs():
        for container in spec["containers"]:
            given = given_values(container)
            environment = {}
            for variable_name, path in given.items():
                if variable_name.endswith(FILE_SUFFIX):
                    key = Path(path).name
                    assert key in described[0], name
                    (tmp_path / key).write_text("ab" * 32 + "\n", "utf-8")
                    environment[variable_name] = str(tmp_path / key)
            settings = load(file, environment)
            assert settings.neo4j.password.get_secret_value() == "ab" * 32


def test_a_secret_in_a_manifest_would_be_noticed():
    """The negative control."""
    container = {"env": [{"name": "RINGFENCE_NEO4J_PASSWORD", "value": "hunter2"}]}
    assert secrets_in_the_environment(container) == {"RINGFENCE_NEO4J_PASSWORD"}
    volumes = [{"name": "data", "persistentVolumeClaim": {}}]
    mounts = [{"name": "data", "mountPath": "/run/secrets/ringfence"}]
    assert mounted_secrets({"volumes": volumes, "containers": [{"volumeMounts": mounts}]}) == set()


def test_the_configuration_in_the_config_map_is_one_that_ringfence_reads(tmp_path, monkeypatch):
    (config,) = [one for one in MANIFESTS["configuration.yaml"] if one["kind"] == "ConfigMap"]
    for name in list(SECRET_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "ringfence.toml"
    file.write_text(config["data"]["ringfence.toml"], "utf-8")
    settings = load(file)
    assert settings.audit.url.startswith("postgresql+psycopg://")
    assert str(settings.engine.folder) == "/srv/ringfence"


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_verbs_of_ours_and_holds_no_secret(unit):
    text = unit.read_text("utf-8")
    started = re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)
    for line in started:
        program, *words = shlex.split(line)
        assert program == "/srv/ringfence/venv/bin/ringfence"
        parse(words)
    assert bool(started) == (unit.suffix == ".service")
    assert not re.search(r"^Environment=.*(PASSWORD|KEY|TOKEN|SECRET)", text, re.MULTILINE)
    if started:
        assert "EnvironmentFile=/etc/ringfence/secrets.env" in text
        assert "NoNewPrivileges=true" in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    program = tmp_path / "ringfence"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    units = []
    for unit in UNITS:
        text = unit.read_text("utf-8")
        text = text.replace("/srv/ringfence/venv/bin/ringfence", str(program))
        units.append(tmp_path / unit.name)
        units[-1].write_text(text, "utf-8")
    done = verify(units)
    assert (done.returncode, done.stderr) == (0, "")
    wrong = tmp_path / "wrong.service"  # the negative control
    wrong.write_text(units[0].read_text("utf-8").replace("[Service]", "[Service]\nRestart=maybe"))
    assert verify([wrong]).stderr


def verify(units):
    return subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, units)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


STAGES = ["build", "scorer", "trainer"]
CONTINUED = {"pip", '"$(grep', "sed", "fi"}  # first words of lines that continue a RUN


def test_a_torch_of_another_index_leaves_out_cudas_packages_and_nothing_else(tmp_path):
    """The two commands of the trainer's stage, on the lock file as it is."""
    text = (EXAMPLES / "container/Containerfile").read_text("utf-8")
    lock = tmp_path / "requirements.lock"
    shutil.copy(EXAMPLES.parent / "requirements.lock", lock)
    before = re.findall(r"^([\w.-]+)==", lock.read_text("utf-8"), re.M)
    (asked,) = re.findall(r'"\$\((grep .*?)\)"', text)
    (edit,) = re.findall(r"^ +(sed .*?);", text, re.M)
    for command in (asked, edit):
        done = subprocess.run(
            ["sh", "-c", command.replace("/tmp/requirements.lock", str(lock))],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        if command == asked:
            assert re.fullmatch(r"torch==[\d.]+\n", done.stdout)
    left = re.findall(r"^([\w.-]+)==", lock.read_text("utf-8"), re.M)
    gone = [name for name in before if name not in left]
    assert "torch" in gone
    assert all(re.match(r"torch$|triton$|nvidia-|cuda-", name) for name in gone)
    assert {"torch-geometric", "scikit-learn", "neo4j"} <= set(left)
    blocks = re.split(r"^(?=[\w.-]+==)", lock.read_text("utf-8"), flags=re.M)[1:]
    assert all("--hash" in block for block in blocks)


def test_the_container_runs_a_verb_of_ours_as_nobody_in_particular():
    text = (EXAMPLES / "container/Containerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    words = {line.split()[0] for line in lines}
    assert words <= {"FROM", "RUN", "COPY", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL",
                     "ENTRYPOINT", "CMD", "ARG"} | CONTINUED  # fmt: skip
    assert 'ENTRYPOINT ["ringfence"]' in lines
    (started,) = [line for line in lines if line.startswith("CMD")]
    parse(re.findall(r'"([^"]+)"', started))
    assert re.findall(r"^FROM (?:scorer|\S+) AS (\w+)$", text, re.M) == STAGES
    assert lines[-1] == "USER 10001"
    assert re.search(r"^USER [1-9]\d+$", text, re.MULTILINE)
    assert not re.search(r"^(ENV|ARG) .*(PASSWORD|KEY|TOKEN|SECRET)", text, re.MULTILINE)
    for source in re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE):
        assert (EXAMPLES.parent / source).exists(), source
