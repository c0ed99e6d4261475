import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from loadlab.generators import registry
from loadlab.plan.check_options import BOUNDS, CLIENTS_ENDPOINT
from loadlab.run.catalog import load_yaml
from loadlab.stacks import servers
from loadlab.stacks.contract import contracts, expected_body
from loadlab.tuning import ledger, profiles

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "roles/metronome/files/build.sh"
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
APPS = sorted(path for path in (ROOT / "apps").iterdir() if path.is_dir())
MANIFESTS: dict[str, Any] = {
    app.name: load_yaml(app / "app.yml") for app in APPS if (app / "app.yml").exists()
}
# Whatever has requirements: the lab itself, the Python clients, the profiler, and applications.
LOCKED = sorted(
    path.parent
    for pattern in (
        "requirements.in",
        "files/*/requirements.in",
        "apps/*/requirements.in",
        "files/servers/*/requirements.in",
    )
    for path in ROOT.glob(pattern)
)
PROFILES = sorted((ROOT / "files" / "tuning").glob("*.yml"))
ENDPOINTS = contracts(ROOT)
INTERFACES = servers.interfaces(ROOT)
SERVERS = servers.servers(ROOT)

each_role = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
each_app = pytest.mark.parametrize("app", sorted(MANIFESTS))
each_server = pytest.mark.parametrize("name", SERVERS)


def variables(role: Path, folder: str) -> dict[str, Any]:
    path = role / folder / "main.yml"
    return (load_yaml(path) or {}) if path.exists() else {}


def specs(role: Path) -> dict[str, dict[str, Any]]:
    """Entry point to its options."""
    document = load_yaml(role / "meta" / "argument_specs.yml")
    points = document["argument_specs"]
    assert "main" in points
    return {name: point.get("options", {}) for name, point in points.items()}


def test_there_are_roles_apps_and_profiles() -> None:
    """Where a folder is moved, the tests below have nothing to look at."""
    assert len(ROLES) > 10
    assert len(INTERFACES) > 5
    assert len(SERVERS) > 5
    assert len(LOCKED) > 5
    assert [app.name for app in APPS] == sorted(MANIFESTS)
    assert PROFILES


@each_role
def test_a_role_documents_its_entry_points(role: Path) -> None:
    entries = specs(role)
    for name in entries:
        assert (role / "tasks" / f"{name}.yml").exists(), f"{role.name} has no tasks/{name}.yml"


@each_role
def test_every_default_is_documented_as_it_is(role: Path) -> None:
    defaults = variables(role, "defaults")
    documented: dict[str, list[Any]] = {}
    for point, options in specs(role).items():
        for name, option in options.items():
            assert option.get("description"), f"{role.name} {point}: {name} has no description"
            if "default" in option:
                documented.setdefault(name, []).append(option["default"])
            else:
                assert name not in defaults, f"{role.name} {point}: {name} lacks its default"
    # The main variables have no role's name, and their defaults stand in the specs alone.
    if role.name == "run":
        assert not defaults
        return
    assert set(documented) == set(defaults)
    for name, values in documented.items():
        for default in values:
            assert (type(default), default) == (type(defaults[name]), defaults[name]), name


@each_role
def test_names_tell_whose_variable_it_is(role: Path) -> None:
    # What the user says of a generator begins with its name.
    generators = [name for name, entry in registry.GENERATORS.items() if entry.role == role.name]
    prefixes = tuple(f"{name}_" for name in (role.name, *generators))
    assert [n for n in variables(role, "defaults") if not n.startswith(prefixes)] == []
    own = re.compile(rf"__{role.name}(_[a-z0-9_]+)?")
    assert [n for n in variables(role, "vars") if not own.fullmatch(n)] == []


def test_the_table_of_the_architecture_names_every_role() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition("\n## Roles\n")[2].partition("\n## ")[0]
    named = re.findall(r"^\| (\w+) \| \S.* \|$", section, re.MULTILINE)
    assert sorted(set(named) - {"role"}) == [role.name for role in ROLES]
    assert len(named) == len(ROLES) + 1


@pytest.mark.parametrize(
    "path",
    [
        *(ROOT / "playbooks").glob("*.yml"),
        *(
            path
            for name in ("measure", "collect", "deployment_stamp", "tuning", "report", "run")
            for path in (ROOT / "roles" / name).glob("*/*.yml")
        ),
    ],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_expressions_are_short(path: Path) -> None:
    expressions = re.findall(r"\{\{(.*?)\}\}", path.read_text(), re.DOTALL)
    assert [text for text in expressions if len(" ".join(text.split())) >= 160] == []


def test_rsync_forwards_nothing() -> None:
    """It does not share the connection that is kept, which has the forwards of the inventory."""
    copies = [task for _, task in TASKS if "ansible.posix.synchronize" in task]
    assert len(copies) > 3
    for task in copies:
        words = task["vars"]["ansible_ssh_extra_args"]
        assert words.startswith("-o ClearAllForwardings=yes"), task["name"]


def test_the_limits_are_the_ones_that_are_documented() -> None:
    options = specs(ROOT / "roles" / "run")["main"]
    ranges = {}
    for name, option in options.items():
        numbers = option.get("elements", option["type"]) in ("int", "float")
        # Which may also be a word.
        if numbers or name == "connections":
            (bounds,) = re.findall(r"\b([0-9.]+) to ([0-9]+)\b", option["description"])
            ranges[name] = tuple(float(bound) for bound in bounds)
            default = option.get("default")
            (first,) = default if option["type"] == "list" else [default]
            # Without one it depends on the host or the stack, or a file has it.
            if name not in ("workers", "server_keepalive", "backlog", "request_timeout", "matrix"):
                assert ranges[name][0] <= first <= ranges[name][1]
    assert ranges == {name: (low, high) for name, (low, high, _) in BOUNDS.items()}


def test_no_play_has_a_variable_named_as_a_main_one() -> None:
    """What is given with -e would take its place."""
    main = set(specs(ROOT / "roles" / "run")["main"])
    for path in [*(ROOT / "playbooks").glob("*.yml"), ROOT / "lab.yml"]:
        for play in load_yaml(path):
            assert main.isdisjoint(play.get("vars", {})), path.name


def imported(playbook: Path) -> Iterator[Path]:
    """A playbook and all that it imports."""
    yield playbook
    for play in load_yaml(playbook):
        if "ansible.builtin.import_playbook" in play:
            yield from imported(playbook.parent / play["ansible.builtin.import_playbook"])


def test_the_stages_of_a_run_are_planned_once() -> None:
    """A later one that planned again would go on with results/latest, another's by then."""
    plans = []
    for path in imported(ROOT / "lab.yml"):
        for task in tasks(load_yaml(path)):
            roles = [role["role"] for role in task.get("roles", [])]
            assert "preflight" not in roles or path.name == "preflight.yml", path
            if task.get("ansible.builtin.include_role", {}).get("name") == "preflight":
                plans.append((path.name, task["when"]))
    guarded = ("context.yml", "hosts.yml", "untune.yml", "report.yml")
    assert set(plans) == {(name, "preflight_plan is not defined") for name in guarded}


# Files that deploy writes and the next run need not find: copied again each time, used up, or a
# part of what `installed` below /opt/loadlab/deps stands for.
NOT_STAMPED = {
    "reverse_proxy": {
        "/usr/local/lib/loadlab/{{ reverse_proxy_address }}.pem",
        # Of each by name, from the filter proxy_files.
        "{{ __reverse_proxy_own.configuration }}",
        "/etc/systemd/system/{{ reverse_proxy_name }}.service.d/loadlab.conf",
    },
    "app_server": {
        "/var/lib/loadlab-application.sql",
        "{{ __app_server_deps }}/server/requirements.txt",
        "{{ __app_server_locked }}/requirements.txt",
        "{{ __app_server_deps }}/{{ item }}",
    },
    "load_tools": {"/usr/local/bin/wrk2"},
    "fixtures": {"/var/lib/postgresql/loadlab-dataset.sql"},
}


def written(role: str) -> Iterator[str]:
    """The files that a role's tasks copy and render, as far as its variables tell their paths."""
    own = variables(ROOT / "roles" / role, "vars")
    for path in (ROOT / "roles" / role / "tasks").glob("*.yml"):
        for task in tasks(load_yaml(path) or []):
            for module in ("copy", "template"):
                if (dest := task.get(f"ansible.builtin.{module}", {}).get("dest")) is None:
                    continue
                name = re.fullmatch(r"\{\{ (\w+) \}\}", dest)
                dest = own[name[1]] if name and name[1] in own else dest
                ends = task["loop"] if dest.endswith("/") and "loop" in task else [""]
                if dest.endswith("/") and "loop" not in task:
                    ends = [task["ansible.builtin.copy"]["src"]]
                yield from (f"{dest}{end}" for end in ends)


def test_a_file_that_deploy_writes_is_not_missed_by_the_next_run() -> None:
    """Where one is gone, the host is deployed again."""
    (play,) = (
        play for play in load_yaml(ROOT / "playbooks/deploy.yml") if play["name"] == "Deploy"
    )
    roles = [role["role"] for role in play["roles"]] + ["stack", "app_server", "reverse_proxy"]
    stamped = json.dumps(play["vars"])
    written_files = {role: set(written(role)) - NOT_STAMPED.get(role, set()) for role in roles}
    assert sum(map(len, written_files.values())) > 13
    missed = [path for paths in written_files.values() for path in paths if path not in stamped]
    assert missed == []


def test_the_main_variables_describe_the_generators() -> None:
    options = specs(ROOT / "roles" / "run")["main"]
    assert options["generator"]["default"] == registry.first("constant")
    for name, entry in registry.GENERATORS.items():
        assert name in options["generator"]["description"]
        assert f"{entry.duration_min_s or ''}" in options["duration"]["description"]
        assert f"{entry.connections or ''}" in options["connections"]["description"]
    # The clients decide.
    for path in (ROOT / "inventory").glob("*/group_vars/*.yml"):
        assert not {"generator", "default_generator"} & set(load_yaml(path))
    assert CLIENTS_ENDPOINT in ENDPOINTS


@each_server
def test_the_stacks_of_a_server_are_made_of_what_can_be_asked_for(name: str) -> None:
    options = specs(ROOT / "roles" / "run")["main"]
    written = load_yaml(ROOT / servers.FOLDER / name / "server.yml")
    for interface, rows in written["stacks"].items():
        assert interface in INTERFACES
        for row in rows:
            # As the main variable says, connections are kept unless asked otherwise.
            assert row["upstream_keepalive"] in (True, False, [True, False])
            assert ("python_below" in row) == ("python_reason" in row)
            assert ("worker_class" in row) == (name == "gunicorn")
        for stack in servers.offered(ROOT, interface):
            for key in ("transport", "protocol", "event_loop"):
                # Not every server lets one choose a loop; nginx alone has no socket behind it.
                any_loop = key == "event_loop" and stack.event_loop is None
                no_socket = key == "transport" and stack.transport == interface == "none"
                chosen = getattr(stack, key)
                assert any_loop or no_socket or chosen in options[key]["choices"], (key, stack)


@each_server
def test_a_server_has_the_packages_that_its_command_starts(name: str) -> None:
    locked = (ROOT / servers.FOLDER / name / "requirements.txt").exists()
    assert locked == (SERVERS[name].command.startswith("{venv}"))


def test_every_interface_has_its_default_server() -> None:
    for name, interface in INTERFACES.items():
        assert servers.offered(ROOT, name)[0].server == interface.default
        assert name in {key for server in SERVERS.values() for key in server.stacks}
        assert set(interface.refused) <= set(SERVERS)


def test_every_interface_and_every_endpoint_is_some_apps() -> None:
    assert {app["interface"] for app in MANIFESTS.values()} == set(INTERFACES)
    assert {name for app in MANIFESTS.values() for name in app["endpoints"]} == set(ENDPOINTS)


@each_app
def test_an_app_tells_what_it_is(app: str) -> None:
    manifest = MANIFESTS[app]
    keys = {"description", "language", "interface", "endpoints", "pool_size"}
    if manifest["language"] == "python":
        keys |= {"module"}
        if "agents" in manifest["endpoints"]:
            keys |= {"drivers"}
    # uWSGI runs no event loop but its own, which needs an entrance of its own.
    if manifest["interface"] in ("tornado", "twisted"):
        keys |= {"uwsgi_module"}
    stacks = [asdict(stack) for stack in servers.offered(ROOT, manifest["interface"])]
    for refused in manifest.get("refused", []):
        named = set(refused) - {"reason"}
        assert any(all(stack[key] == refused[key] for key in named) for stack in stacks), refused
    assert set(manifest) - {"refused"} == keys
    assert manifest["endpoints"]
    assert len(set(manifest["endpoints"])) == len(manifest["endpoints"])
    assert set(manifest["endpoints"]) <= set(ENDPOINTS)
    for key in {"module", "uwsgi_module"} & set(manifest):
        module, name = manifest[key].split(":")
        text = (ROOT / "apps" / app / f"{module}.py").read_text()
        assert re.search(rf"^(((async )?def|class|from .* import) )?{name}\b", text, re.MULTILINE)


@each_app
def test_an_app_has_what_its_language_is_started_by(app: str) -> None:
    language = MANIFESTS[app]["language"]
    files = {
        "python": {"app.py", "requirements.in", "requirements.txt"},
        "node": {"app.js", "package.json", "package-lock.json"},
        "go": {"main.go", "go.mod", "go.sum"},
        "none": set(),
    }[language]
    assert files <= {path.name for path in (ROOT / "apps" / app).iterdir()}
    # Every other interface is Python's.
    interface = MANIFESTS[app]["interface"]
    assert language == (interface if interface in ("node", "go", "none") else "python")


@each_app
def test_an_app_has_a_pool_where_its_endpoints_need_one(app: str) -> None:
    manifest = MANIFESTS[app]
    needs = {need for name in manifest["endpoints"] for need in ENDPOINTS[name].needs}
    assert manifest["pool_size"] >= ("agents_with_pool" in manifest["endpoints"])
    assert manifest["pool_size"] == 0 or "database" in needs
    if manifest["language"] == "none":
        # nginx answers them from its configuration, in single quotes, or from a file.
        assert needs <= {"book"}
        for contract in (ENDPOINTS[name] for name in manifest["endpoints"]):
            own = b"" if contract.text_from else expected_body(contract, {})
            assert not set("'$\\") & set(own.decode())


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def asked_for(folder: Path) -> set[str]:
    lines = (folder / "requirements.in").read_text().splitlines()
    matches = [re.match(r"[A-Za-z0-9._-]+", line) for line in lines if not line.startswith("#")]
    return {normal(match[0]) for match in matches if match}


def lock(folder: Path) -> dict[str, set[str]]:
    """Package to its locked versions, of which it has several where one suits not every Python."""
    text = (folder / "requirements.txt").read_text()
    assert "://" not in text
    assert not re.search(r"^--|index-url|find-links|trusted-host", text, re.MULTILINE)
    # A requirement begins at the margin; what is indented goes on with it.
    entries = [e for e in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if e and e[0] != "#"]
    locked: dict[str, set[str]] = {}
    for entry in entries:
        pin = re.match(r"([A-Za-z0-9._-]+)(?:\[.*?\])?==([^\s;]+)", entry)
        assert pin, entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry[:80]
        locked.setdefault(normal(pin[1]), set()).add(pin[2])
    return locked


PINS = [
    line.partition("==")
    for line in (ROOT / "apps" / "constraints.txt").read_text().splitlines()
    if not line.startswith("#")
]
CONSTRAINTS = {normal(name): version for name, _, version in PINS}


def test_the_constraints_are_exact_and_in_order() -> None:
    assert len(PINS) > 10
    assert list(CONSTRAINTS) == sorted(CONSTRAINTS)
    assert len(CONSTRAINTS) == len(PINS)
    for name, version in CONSTRAINTS.items():
        assert re.fullmatch(r"[0-9]+(\.[0-9]+)*", version), name


@pytest.mark.parametrize("folder", LOCKED, ids=lambda path: path.name)
def test_requirements_are_locked_as_constrained_and_name_no_index(folder: Path) -> None:
    locked = lock(folder)
    names = asked_for(folder)
    assert names
    assert names <= set(locked)
    # All that several of them use is the same in each.
    shared = set(locked) & set(CONSTRAINTS)
    assert {name: locked[name] for name in shared} == {name: {CONSTRAINTS[name]} for name in shared}


@pytest.mark.parametrize(
    "app", sorted(name for name, app in MANIFESTS.items() if app["language"] == "python")
)
def test_a_python_app_asks_for_what_its_stacks_run(app: str) -> None:
    needed = set()
    for stack in servers.offered(ROOT, MANIFESTS[app]["interface"]):
        needed |= {"uvloop"} if stack.event_loop == "uvloop" else set()
        needed |= {"greenlet"} if "--greenlet" in stack.started.command else set()
    package = {"psycopg2": "psycopg2-binary"}
    needed |= {package.get(name, name) for name in MANIFESTS[app].get("drivers", [])}
    assert needed <= asked_for(ROOT / "apps" / app)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("apps/*/package-lock.json")), ids=lambda path: path.parent.name
)
def test_a_node_app_is_locked_and_names_no_registry(path: Path) -> None:
    dependencies = json.loads((path.parent / "package.json").read_text())["dependencies"]
    packages = json.loads(path.read_text())["packages"]
    assert packages.pop("")["dependencies"] == dependencies
    assert {
        name: packages[f"node_modules/{name}"]["version"] for name in dependencies
    } == dependencies
    for name, package in packages.items():
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", package["integrity"]), name
        assert "resolved" not in package, name


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("apps/*/go.mod")), ids=lambda path: path.parent.name
)
def test_a_go_app_is_locked(path: Path) -> None:
    modules = re.findall(r"(\S+/\S+ v[0-9]\S+)", path.read_text())
    locked = (path.parent / "go.sum").read_text()
    assert modules
    for module in modules:
        assert re.search(rf"^{re.escape(module)} h1:[A-Za-z0-9+/]{{43}}=$", locked, re.MULTILINE)


def tasks(document: Any) -> Iterator[dict[str, Any]]:
    """Every task of a file, those in blocks too."""
    for task in document or []:
        yield task
        for part in ("pre_tasks", "tasks", "block", "rescue", "always"):
            yield from tasks(task.get(part))


TASKS = [
    (path, task)
    for folder in ("roles/*/tasks", "playbooks")
    for path in sorted(ROOT.glob(f"{folder}/*.yml"))
    for task in tasks(load_yaml(path))
]


def uses(module: str) -> list[tuple[Path, dict[str, Any]]]:
    arguments = [(path, task[module]) for path, task in TASKS if module in task]
    assert arguments, module
    return arguments


def test_what_is_installed_is_what_was_pinned() -> None:
    """By hash or lock; of the distribution its own signed packages, and of those no newer ones."""
    for path, args in uses("ansible.builtin.pip"):
        assert "--require-hashes --no-deps" in args["extra_args"], path
        assert args["requirements"].endswith("requirements.txt"), path
    for path, args in uses("community.general.npm"):
        assert args["ci"] is True, path
    for path, args in uses("ansible.builtin.get_url"):
        assert args["checksum"].startswith("sha256:"), path
        # Ubuntu's archive has no TLS: there the checksum alone proves the file.
        assert args["url"].startswith(("https://", "{{ __local_hosts_keys_url }}")), path
    for path, args in uses("ansible.builtin.apt"):
        assert not {"deb", "upgrade", "allow_unauthenticated", "force"} & set(args), path
        assert "state" not in args, path
    foreign = ("apt_repository", "apt_key", "deb822_repository", "unarchive", "git")
    assert [
        task for _, task in TASKS if {f"ansible.builtin.{name}" for name in foreign} & set(task)
    ] == []
    built = load_yaml(ROOT / "roles/oha/vars/main.yml")["__oha_cargo"]
    assert "--locked" in built
    assert built[-1] == "oha@{{ oha_version }}"
    assert "cargo build --release --locked " in BUILD.read_text()
    installs = re.compile(r"\b(pip3?|npm|cargo) (install|ci)\b|\bwget\b|\| *(ba)?sh\b")
    shell = [path for path in ROOT.glob("roles/*/files/*.sh") if installs.search(path.read_text())]
    assert shell == []


def test_whatever_installs_on_a_host_waits_for_who_else_does() -> None:
    plays = [
        play
        for path in sorted((ROOT / "playbooks").glob("*.yml"))
        for play in load_yaml(path)
        # So marked is each play that may install.
        if "environment" in play
    ]
    assert len(plays) > 3
    for play in plays:
        assert play["module_defaults"] == {"ansible.builtin.apt": {"lock_timeout": 600}}, play[
            "name"
        ]


def test_a_host_is_booted_again_for_its_original_parameters_too() -> None:
    tasks = [
        task["lab.bench.tune"]
        for name in ("main", "restore")
        for task in load_yaml(ROOT / f"roles/tuning/tasks/{name}.yml")
        if task.get("lab.bench.tune", {}).get("part") == "machine"
    ]
    assert [task.get("may_reboot") for task in tasks] == ["{{ tuning_may_reboot }}"] * 2


def test_files_are_copied_between_hosts_that_know_each_other() -> None:
    """The module's own default is to check no host key."""
    for path, args in uses("ansible.posix.synchronize"):
        assert args["verify_host"] is True, path
        assert args["use_ssh_args"] is True, path
        # No links, devices, owners or modes of another host's.
        assert args["archive"] is False, path


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_every_tuned_key_says_why_and_where_that_is_from(profile: Path) -> None:
    document = load_yaml(profile)
    assert profiles.tuning_profile(ROOT, profile.stem).description
    # What is none of these has a key that tells what it is.
    machine = re.compile(r"/sys/\S+|swap|(unit|snap|limit|nic|boot)\.\S+")
    for part in ("sysctl", "machine"):
        for entry in document.get(part, []):
            # Only a capacity can be lowered.
            optional = {"lower"} if entry["key"] in ledger.CAPACITIES else set()
            parts = {"key", "value", "hosts", "required", "reason", "source"}
            assert set(entry) - optional == parts, entry
            assert entry["hosts"]
            assert bool(machine.fullmatch(entry["key"])) == (part == "machine")
    services = {**document.get("reverse_proxies", {}), "postgresql": document.get("postgresql", [])}
    for service, entries in services.items():
        for entry in entries:
            # Where a stack cannot keep connections there is none to set.
            assert entry.get("required", True) == (entry["name"] != "upstream_keepalive")
            # YAML's off is false, which PostgreSQL's answer never equals.
            assert isinstance(entry["value"], (str, dict) if service == "postgresql" else str)
    backlog = [document["backlog"]] if "backlog" in document else []
    sections = [document.get("sysctl", []), document.get("machine", []), *services.values()]
    for entries in sections:
        for entry in [*entries, *backlog]:
            assert entry["reason"]
            assert re.fullmatch(r"https://\S+", entry["source"])
        keys = [entry.get("key") or entry["name"] for entry in entries]
        assert len(set(keys)) == len(keys)
