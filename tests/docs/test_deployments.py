"""The files of the examples that start processes: their schemas, and that our parsers take what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from celery_pgbeat.errors import InvalidSetting
from tests.docs.checkers import checker, require_program
from tests.docs.command_lines import check, check_settings, commands_of, settings_in
from tests.docs.pages import EXAMPLES, ROOT, blocks, name_of

COMPOSE = ROOT / "examples" / "many_nodes" / "compose.yaml"
MANIFESTS = sorted((ROOT / "examples" / "kubernetes").glob("*.yaml"))
UNITS = sorted((ROOT / "examples" / "systemd").glob("*.service"))
KUBERNETES = "1.37"  # the version whose schemas the manifests are checked against
OUR_FOLDER = "/srv/shop/venv/bin/"
EXPOSED_AT_MOST = 2.0  # of 10, as systemd counts


def documents() -> list[dict[str, Any]]:
    """Return all objects of the manifests, except the list of the files."""
    every = [found for path in MANIFESTS for found in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return [each for each in every if each["kind"] != "Kustomization"]


def pods() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Iterate over (object, specification of its pod)."""
    for each in documents():
        if each["kind"] in ("Deployment", "Job"):
            yield each, each["spec"]["template"]["spec"]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return found


def unit(path: Path) -> dict[str, list[str]]:
    """Return the values of each key of a unit."""
    values: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            values.setdefault(key, []).append(value)
    return values


@pytest.mark.parametrize("page", EXAMPLES, ids=name_of)
def test_the_commands_and_settings_of_a_readme_exist(page: Path) -> None:
    for block in blocks(page):
        if block.language == "sh":
            check_settings(settings_in(block.text))
            for words in commands_of(block.text):
                check(words)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("celery-pgbeat helth", "No such command"),
        ("docker compose exec worker celery-pgbeat health --hear", "No such option"),
        ("celery-pgbeat health --only leader", "leader"),
        ("celery -A shop pgbeat jobs --state ended", "ended"),
        ("celery -A shop beet & true", "no such command"),
        ("celery -A shop worker --concurency 4", "No such option"),
    ],
)
def test_a_wrong_command_is_found(line: str, wrong: str) -> None:
    (words,) = commands_of(line)

    with pytest.raises(click.UsageError) as raised:
        check(words)

    assert wrong in raised.value.format_message()


def test_a_wrong_setting_is_found() -> None:
    with pytest.raises(KeyError):
        check_settings(settings_in("export PGBEAT_LEESE=3 CELERY_BROKER_URL=redis://localhost"))
    with pytest.raises(InvalidSetting):
        check_settings({"PGBEAT_LEASE": "soon"})


def test_the_compose_file_has_three_beats_and_two_workers_whose_commands_exist() -> None:
    services = compose()["services"]

    for service in services.values():
        assert service.keys() & {"image", "build"}
        if "command" in service:
            check(service["command"])
    check(services["beat"]["healthcheck"]["test"][1:])
    assert (3, 2) == tuple(services[name]["deploy"]["replicas"] for name in ("beat", "worker"))
    variables = {name: re.sub(r"^\$\{.*\}$", "a good password", value) for name, value in settings_of("web").items()}
    assert {"PGBEAT_URL", "PGBEAT_AUTO_MIGRATE", "PGBEAT_WEB_PASSWORD"} == set(check_settings(variables))
    assert "PGBEAT_WEB_PASSWORD" not in check_settings(settings_of("beat"))
    waits = {name: set(service.get("depends_on", ())) for name, service in services.items()}
    assert all(others <= services.keys() for others in waits.values())


def settings_of(service: str) -> dict[str, str]:
    variables: dict[str, str] = compose()["services"][service]["environment"]
    return variables


def test_the_compose_file_is_one_for_the_compose_specification() -> None:
    compose_spec = checker("compose_spec", "compose-spec")
    text = yaml.safe_dump(compose())  # without YAML's own references, which the package does not follow

    compose_spec.PyCompose.from_yaml(text).validate()
    assert {*compose()["services"]} == compose_spec.PyCompose.from_yaml(text).to_spec().services.keys()
    with pytest.raises(ValueError, match="replica"):
        compose_spec.PyCompose.from_yaml(text.replace("replicas:", "replica:")).to_spec()


@pytest.mark.parametrize("document", documents(), ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_a_manifest_has_the_form_that_kubernetes_takes(document: dict[str, Any]) -> None:
    kubernetes_validate = checker("kubernetes_validate", "kubernetes-validate")

    kubernetes_validate.validate(document, KUBERNETES, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**document, "specs": {}}, KUBERNETES, strict=True)


def test_the_pods_run_without_rights_on_a_file_system_that_they_cannot_write() -> None:
    for _, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
            assert ["ALL"] == context["capabilities"]["drop"]
            assert container["resources"]["limits"].keys() >= {"memory"}


def test_the_commands_probes_and_settings_of_the_pods_exist() -> None:
    settings = next(each for each in documents() if each["kind"] == "ConfigMap")
    probes = 0
    for _, pod in pods():
        for container in pod["containers"]:
            check(container["command"])
            assert [settings["metadata"]["name"]] == [
                source["configMapRef"]["name"] for source in container["envFrom"] if "configMapRef" in source
            ]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if probe in container:
                    probes += 1
                    check(container[probe]["exec"]["command"])

    assert 2 == probes
    assert ["PGBEAT_AUTO_MIGRATE", "PGBEAT_METRICS_HOST", "PGBEAT_METRICS_PORT"] == check_settings(settings["data"])


def test_the_manifests_fit_together() -> None:
    labels = {each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"] for each, _ in pods()}
    selectors = {
        (each["kind"], each["metadata"]["name"]): each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
        for each in documents()
        if "selector" in each.get("spec", {})
    }
    listed = yaml.safe_load((MANIFESTS[0].parent / "kustomization.yaml").read_text(encoding="utf-8"))
    beats = next(each for each, _ in pods() if each["metadata"]["name"] == "beat")

    assert {("Deployment", "beat"), ("PodDisruptionBudget", "beat")} < selectors.keys()
    assert all(selector == labels[name] for (_, name), selector in selectors.items())
    assert {path.name for path in MANIFESTS} - {"kustomization.yaml"} == set(listed["resources"])
    assert {"shop"} == {container["image"] for _, pod in pods() for container in pod["containers"]}
    assert ["shop"] == [image["name"] for image in listed["images"]]
    assert 2 == beats["spec"]["replicas"]


def test_the_manifest_of_the_page_has_the_probes_of_the_example() -> None:
    page = next(block for block in blocks(ROOT / "docs" / "operations.md") if "kind: Deployment" in block.text)
    shown = yaml.safe_load(page.text)["spec"]["template"]["spec"]
    (ours,) = [pod for each, pod in pods() if each["metadata"]["name"] == "beat"]

    assert shown["terminationGracePeriodSeconds"] == ours["terminationGracePeriodSeconds"]
    for probe in ("startupProbe", "livenessProbe"):
        assert shown["containers"][0][probe] == ours["containers"][0][probe]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_the_command_and_settings_of_a_unit_exist(path: Path) -> None:
    found = unit(path)
    (command,) = found["ExecStart"]
    variables = dict(word.split("=", 1) for word in found.get("Environment", []))
    (environment,) = found["EnvironmentFile"]
    lines = path.with_name(Path(environment).name).read_text(encoding="utf-8").splitlines()
    file = dict(line.split("=", 1) for line in lines if not line.startswith("#"))

    assert command.startswith(OUR_FOLDER)
    check(command.removeprefix(OUR_FOLDER).split())
    check_settings({name: value.replace("%i", "9181") for name, value in variables.items()})
    migrates = command.endswith(" migrate")
    assert (["PGBEAT_URL"] if migrates else ["PGBEAT_AUTO_MIGRATE", "PGBEAT_URL"]) == check_settings(file)


def test_each_process_has_a_database_user_of_its_own() -> None:
    units = [path.with_name(Path(value).name) for path in UNITS for value in unit(path)["EnvironmentFile"]]
    urls = [re.findall("^PGBEAT_URL=.*//([a-z_]+):", path.read_text(encoding="utf-8"), re.MULTILINE) for path in units]
    secrets = [
        source["secretRef"]["name"]
        for _, pod in pods()
        for container in pod["containers"]
        for source in container["envFrom"]
        if "secretRef" in source
    ]

    assert [["shop_beat"], ["shop_owner"], ["shop_worker"]] == sorted(urls)
    assert ["shop-beat", "shop-migrate", "shop-web", "shop-worker"] == sorted(secrets)


def test_systemd_takes_the_units_and_finds_little_exposed(tmp_path: Path) -> None:
    require_program("systemd-analyze")
    programs = f"{Path(sys.executable).parent}/"
    for path in UNITS:  # it looks whether the program exists
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8").replace(OUR_FOLDER, programs))

    def analyze(*words: str) -> str:
        done = subprocess.run(
            ["systemd-analyze", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    names = [f"./{path.name.replace('@', '@9181')}" for path in UNITS]
    assert "" == analyze("verify", *names)
    for path in UNITS:
        (exposed,) = re.findall(r"exposure level for \S+: ([\d.]+)", analyze("security", "--offline=true", path.name))
        assert float(exposed) <= EXPOSED_AT_MOST
