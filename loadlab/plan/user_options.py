"""What a stage asks to be planned, and what the user gave for it with -e: names that nothing reads,
empty values, and options that have no effect.

Values of an inventory or a study are defaults for many runs, so an unused one is not refused.
"""

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import yaml
from jinja2 import Environment, TemplateSyntaxError, nodes
from msgspec import Struct

from loadlab.generators import registry
from loadlab.model import DIRECT, GivenOptions, Original
from loadlab.plan.check_options import Spec, Specs, choices, range_of, refuse_role_options, specs_of
from loadlab.run.catalog import load_yaml, names
from loadlab.run.errors import PlanError
from loadlab.stacks.reverse_proxies import reverse_proxies

# Prefix of Ansible's own variables.
ANSIBLE = "ansible_"
# Options that had another name before: old name -> name.
RENAMED = {
    "default_generator": "generator",
    "front": "reverse_proxy",
    "reuse": "python_keepalive",
    "internet": "hosts_online",
    "yes": "aws_hosts_auto_approve",
    "max_lifetime": "aws_hosts_max_lifetime",
}
# Main variables whose values name files, and where these files are.
_CATALOGUES = {
    "framework": ("apps", "*/app.yml"),
    "tuning": ("files/tuning", "*.yml"),
    "network": ("files/network", "*.yml"),
    "study": ("files/studies", "*.yml"),
    "lesson": ("files/lessons", "*.yml"),
    "load": ("files/loads", "*.yml"),
}

_TEMPLATES = Environment()


class StageRequest(Struct, kw_only=True, frozen=True):
    """What a stage asks to be planned, as it stands in the playbook."""

    root: Path  #: Top directory of the lab.
    user: Sequence[str] = ()  #: Names of the variables of -e.
    #: True starts a new run unless run_id names one; False resumes run_id or results/latest.
    begin: bool = True
    #: False for stages that measure nothing, which then plan no cells.
    needs_framework: bool = True
    needs_run: bool = False  #: Whether the run must exist.
    cross_check: bool = False  #: Whether each client has the generator of cross-checks.
    python: str | None = None  #: The server's Python version, None where it is not known yet.
    #: Name of the kind of run (kinds/kind.py) whose options the user must give; None for none.
    kind: str | None = None
    stage: str = "run"  #: Of STAGES in kinds/lesson/plan.py; "run" of everything that is no lesson.
    pairs: int = 1  #: Number of host pairs.
    clients: int = 1  #: Of each pair.
    host_kind: str = ""  #: What the hosts are, in words.
    inventory_args: str = ""  #: The options that select them, "" where none are needed.


class Request(StageRequest, kw_only=True, frozen=True):
    """A stage's request with all that a plan follows from."""

    specs: Specs  #: Option name -> its spec, from roles/run/meta/argument_specs.yml.
    #: Option name -> value, from -e and the inventory; None or "" where it has none.
    given_options: GivenOptions
    now: datetime.datetime  #: The time, for a new run's id.
    lab: str | None = None  #: The lab's revision, None where unknown.
    #: The run that the new one repeats, None where it repeats none.
    original: Original | None = None


class _Tagged(yaml.CSafeLoader):
    """Loads a playbook and ignores the values of Ansible's tags, such as !vault."""


_Tagged.add_multi_constructor("!", lambda loader, suffix, node: None)


def refuse_names(
    root: Path,
    main: Sequence[str],
    extra_vars: GivenOptions,
    playbooks: Iterable[Path],
    inventory: Collection[Mapping[str, object]],
) -> None:
    """Raise PlanError for a renamed option, a name that nothing reads, and a wrong value of a
    role's option, also in the inventory: Ansible would refuse it in words of its own.

    ``main``: the main variables, whose narrower bounds the plan checks. ``extra_vars``: from -e.
    ``playbooks``: those that were called. ``inventory``: the variables of each host and group.
    """
    refuse_renamed(extra_vars, "-e")
    names_in_inventory = (name for variables in inventory for name in variables)
    refuse_renamed(dict.fromkeys(names_in_inventory), "the inventory")
    specs = role_options(root)
    if extra_vars:
        refuse_unknown(extra_vars, main, readable(root, specs, playbooks, inventory))
    own = {name: spec for name, spec in specs.items() if name not in main}
    for variables in (extra_vars, *inventory):
        refuse_role_options(variables, own)


@cache
def role_options(root: Path) -> dict[str, Spec]:
    """Return the options of every role: name -> its spec in meta/argument_specs.yml."""
    return {
        name: spec
        for path in root.glob("roles/*/meta/argument_specs.yml")
        for point in load_yaml(path)["argument_specs"].values()
        for name, spec in specs_of(point.get("options", {})).items()
    }


def readable(
    root: Path,
    options: Iterable[str],
    playbooks: Iterable[Path],
    inventory: Iterable[Mapping[str, object]],
) -> set[str]:
    """Return the names that may be given with -e.

    These are options of the roles; variables that the lab's inventories or the present one set or
    read; and variables that playbooks and role defaults read but do not set. ``options``: from
    role_options(). ``playbooks``: those called besides the lab's own. ``inventory``: the variables
    of each host and group, not templated.
    """
    files = {*root.glob("playbooks/*.yml"), *root.glob("roles/*/defaults/main.yml"), *playbooks}
    uses = [_variables(path) for path in files]
    roles = tuple(f"{path.name}_" for path in root.glob("roles/*"))
    # Facts that a role sets are not options of it.
    read = {name for reads, _ in uses for name in reads if not name.startswith(("__", *roles))}
    are_set = {name for _, sets in uses for name in sets}
    groups = map(load_yaml, root.glob("inventory/*/group_vars/*.yml"))
    hosts = [*inventory, *groups]
    own = {name for variables in hosts for name in variables}
    return set(options) | (read - are_set) | own | set(_read(hosts))


@cache
def _variables(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return two sets of variables: those that a file reads, and those that it sets.

    The file is a playbook, or the defaults of a role.
    """
    content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Tagged)
    return frozenset(_read(content)), frozenset(_set(content))


def _read(node: object) -> Iterator[str]:
    """Yield the variables that templates in a YAML value name."""
    if isinstance(node, Mapping):
        for inner in node.values():
            yield from _read(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _read(inner)
    elif isinstance(node, str) and "{{" in node:
        try:
            yield from (name.name for name in _TEMPLATES.parse(node).find_all(nodes.Name))
        except TemplateSyntaxError:
            # Text that is not a valid template names no variable.
            return


def _set(node: object) -> Iterator[str]:
    """Yield the variables that plays and tasks set themselves."""
    if isinstance(node, list):
        for inner in node:
            yield from _set(inner)
    elif isinstance(node, Mapping):
        for key, inner in node.items():
            if key in ("vars", "ansible.builtin.set_fact") and isinstance(inner, Mapping):
                yield from inner
            elif key in ("register", "loop_var", "index_var"):
                yield str(inner)
            yield from _set(inner)


def refuse_renamed(names: Iterable[str], place: str) -> None:
    """Raise PlanError for names that options had before. ``place``: what gives these names."""
    renamed = [f"{name} is now called {RENAMED[name]}" for name in names if name in RENAMED]
    if renamed:
        raise PlanError(
            f"{', '.join(renamed)}. Use the new name in {place}; the values are the same."
        )


def refuse_unknown(names: Iterable[str], main: Sequence[str], readable: set[str]) -> None:
    """Raise PlanError for a name that is not in ``readable``, with the closest of these.

    ``main``: the main variables, which are suggested first.
    """
    wrong = [name for name in names if name not in readable and not name.startswith(ANSIBLE)]
    if not wrong:
        return
    near = {
        # Roles have many options, so suggest only an almost identical one.
        name: get_close_matches(name, main, 1) or get_close_matches(name, sorted(readable), 1, 0.8)
        for name in wrong
    }
    sentences = [
        f"{name}: nothing reads a variable of this name."
        + (f" Did you mean {near[name][0]}?" if near[name] else "")
        for name in wrong
    ]
    if not all(near.values()):
        sentences.append(f"The main ones are: {', '.join(main)}.")
    sentences.append(
        "All are described in roles/*/meta/argument_specs.yml. Put variables of your own into the "
        "inventory."
    )
    raise PlanError(" ".join(sentences))


def refuse_empty(ask: Request) -> None:
    """Raise PlanError where a main variable was given with -e and without a value."""
    for name in ask.user:
        value = ask.given_options.get(name)
        if name in ask.specs and (value is None or value == [] or not str(value).strip()):
            raise PlanError(f"{name}: it is empty. {_remedy(ask.root, name, ask.specs[name])}")


def _remedy(root: Path, name: str, spec: Spec) -> str:
    possible = choices(name, spec)
    if name in _CATALOGUES:
        folder, pattern = _CATALOGUES[name]
        possible = names(root / folder, pattern)
    elif name == "reverse_proxy":
        possible = [*reverse_proxies(root), DIRECT]
    elif name == "endpoint":
        possible = sorted(load_yaml(root / "files" / "endpoints.yml"))
    elif spec.type == "bool":
        possible = ["true", "false"]
    if possible:
        return f"There are: {', '.join(possible)}. Give one, or leave {name} out."
    if (spec.elements or spec.type) in ("int", "float"):
        return f"{range_of(name)}, or leave {name} out."
    return f"Give -e {name}=<value>, or leave {name} out."


def refuse_unused(
    names: Iterable[str],
    values: GivenOptions,
    owner: str,
    cells: Sequence[tuple[Iterable[str], str]],
    cross_check: bool,
) -> None:
    """Raise PlanError for an option that was given with -e but that no cell uses.

    ``cells``: for each the names of its own options, which nothing overrides, and its generator.
    ``owner``: what the cells belong to, for the message. ``cross_check``: whether cells at a
    constant rate have a cross-check, whose generator uses options too.
    """
    for name in names:
        value = f"'{values[name]}'" if name in values else "it"
        free = [generator for own, generator in cells if name not in own]
        if not free:
            raise PlanError(
                f"{name}: {value} would change nothing: each cell of {owner} has its own. "
                f"Leave {name} out."
            )
        users = registry.readers(name) or free
        constant = cross_check and set(registry.names("constant")) & set(free)
        if not set(users) & {*free, *([registry.cross_checking()] if constant else [])}:
            raise PlanError(
                f"{name}: {value} would change nothing: generator={'|'.join(dict.fromkeys(free))} "
                f"does not read it, {', '.join(users)} alone would. Leave {name} out, or give "
                f"-e generator={users[0]}."
            )
