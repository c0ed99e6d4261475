"""Check what the user gave with -e: unknown names, empty values, and options that have no effect.

Values of an inventory or a study are defaults for many runs, so an unused one is not refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import yaml
from jinja2 import Environment, TemplateSyntaxError, nodes

from loadlab.generators import registry
from loadlab.model import GivenOptions
from loadlab.plan.option_specs import Spec, Specs, choices, range_of, specs_of
from loadlab.run.catalog import load_yaml, names
from loadlab.run.errors import PlanError

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
}


# Pattern of each type, and the text for a value that does not match.
_WRITTEN = {
    "bool": "true|false|yes|no|on|off|y|n|t|f|0|1",
    "int": r"[+-]?\d+",
    "float": r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?",
}
_OTHER = {"bool": "neither true nor false", "int": "not a whole number", "float": "not a number"}


_TEMPLATES = Environment()


class _Tagged(yaml.CSafeLoader):
    """Loads a playbook and ignores the values of Ansible's tags, such as !vault."""


_Tagged.add_multi_constructor("!", lambda loader, suffix, node: None)


def refuse_names(
    root: Path,
    main: Sequence[str],
    given: GivenOptions,
    playbooks: Iterable[Path],
    inventory: Collection[Mapping[str, object]],
) -> None:
    """Raise PlanError for a renamed option, a name that nothing reads, and a wrong value of a
    role's option, also in the inventory: Ansible would refuse it in words of its own.

    ``main``: the main variables, whose narrower limits the plan checks. ``playbooks``: those that
    were called. ``inventory``: the variables of each host and group.
    """
    refuse_renamed(given, "-e")
    refuse_renamed(dict.fromkeys(name for each in inventory for name in each), "the inventory")
    options = role_options(root)
    if given:
        refuse_unknown(given, main, known(root, options, playbooks, inventory))
    for variables in (given, *inventory):
        refuse_wrong(variables, {name: spec for name, spec in options.items() if name not in main})


@cache
def role_options(root: Path) -> dict[str, Spec]:
    """Return the options of every role: name -> its spec in meta/argument_specs.yml."""
    return {
        name: spec
        for path in root.glob("roles/*/meta/argument_specs.yml")
        for point in load_yaml(path)["argument_specs"].values()
        for name, spec in specs_of(point.get("options", {})).items()
    }


def known(
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
    variables = [_variables(path) for path in files]
    roles = tuple(f"{path.name}_" for path in root.glob("roles/*"))
    # Facts that a role sets are not options of it.
    read = {name for each, _ in variables for name in each if not name.startswith(("__", *roles))}
    made = {name for _, each in variables for name in each}
    groups = map(load_yaml, root.glob("inventory/*/group_vars/*.yml"))
    hosts = [*inventory, *groups]
    own = {name for each in hosts for name in each}
    return set(options) | (read - made) | own | set(_read(hosts))


@cache
def _variables(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return two sets of variables: those that a file reads, and those that it sets.

    The file is a playbook, or the defaults of a role.
    """
    content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Tagged)
    return frozenset(_read(content)), frozenset(_set(content))


def _read(value: object) -> Iterator[str]:
    """Yield the variables that templates in the value name."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _read(each)
    elif isinstance(value, list):
        for each in value:
            yield from _read(each)
    elif isinstance(value, str) and "{{" in value:
        try:
            yield from (name.name for name in _TEMPLATES.parse(value).find_all(nodes.Name))
        except TemplateSyntaxError:
            # Text that is not a valid template names no variable.
            return


def _set(value: object) -> Iterator[str]:
    """Yield the variables that plays and tasks set themselves."""
    if isinstance(value, list):
        for each in value:
            yield from _set(each)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key in ("vars", "ansible.builtin.set_fact") and isinstance(each, Mapping):
                yield from each
            elif key in ("register", "loop_var", "index_var"):
                yield str(each)
            yield from _set(each)


def refuse_renamed(names: Iterable[str], where: str) -> None:
    """Raise PlanError for names that options had before. ``where``: what gives these names."""
    told = [f"{name} is now called {RENAMED[name]}" for name in names if name in RENAMED]
    if told:
        raise PlanError(f"{', '.join(told)}. Use the new name in {where}; the values are the same.")


def refuse_unknown(given: Iterable[str], main: Sequence[str], there_are: set[str]) -> None:
    """Raise PlanError for a name that is not in ``there_are``, with the closest known name.

    ``main``: the main variables, which are suggested first.
    """
    wrong = [name for name in given if name not in there_are and not name.startswith(ANSIBLE)]
    if not wrong:
        return
    near = {
        # Roles have many options, so suggest only an almost identical one.
        name: get_close_matches(name, main, 1) or get_close_matches(name, sorted(there_are), 1, 0.8)
        for name in wrong
    }
    told = [
        f"{name}: nothing reads a variable of this name."
        + (f" Did you mean {near[name][0]}?" if near[name] else "")
        for name in wrong
    ]
    if not all(near.values()):
        told.append(f"The main ones are: {', '.join(main)}.")
    told.append(
        "All are described in roles/*/meta/argument_specs.yml; yours are to stand in the inventory."
    )
    raise PlanError(" ".join(told))


def refuse_wrong(variables: Mapping[str, object], options: Specs) -> None:
    """Raise PlanError where an option has a value that its spec does not allow."""
    for name, value in variables.items():
        spec, text = options.get(name), str(value)
        # A template's value is known only where it is used.
        if spec is None or "{{" in text:
            continue
        if spec.choices and text not in map(str, spec.choices):
            there_are = ", ".join(map(str, spec.choices))
            raise PlanError(f"{name}: '{text}' is not known. There are: {there_are}.")
        if not re.fullmatch(_WRITTEN.get(spec.type, ".*"), text, re.DOTALL | re.I):
            raise PlanError(
                f"{name}: '{text}' is {_OTHER[spec.type]}. It stands for: {spec.description}"
            )


def refuse_empty(root: Path, specs: Specs, given: GivenOptions, asked: Iterable[str]) -> None:
    """Raise PlanError where a main variable was given without a value."""
    for name in asked:
        value = given.get(name)
        if name in specs and (value is None or value == [] or not str(value).strip()):
            raise PlanError(f"{name}: it is empty. {_wanted(root, name, specs[name])}")


def _wanted(root: Path, name: str, spec: Spec) -> str:
    there_are = choices(name, spec)
    if name in _CATALOGUES:
        folder, pattern = _CATALOGUES[name]
        there_are = names(root / folder, pattern)
    elif name == "endpoint":
        there_are = sorted(load_yaml(root / "files" / "endpoints.yml"))
    elif spec.type == "bool":
        there_are = ["true", "false"]
    if there_are:
        return f"There are: {', '.join(there_are)}. Give one, or leave {name} out."
    if (spec.elements or spec.type) in ("int", "float"):
        return f"{range_of(name)}, or leave {name} out."
    return f"Give -e {name}=<value>, or leave {name} out."


def refuse_unused(
    asked: Iterable[str],
    given: GivenOptions,
    what: str,
    cells: Sequence[tuple[Iterable[str], str]],
    cross_check: bool,
) -> None:
    """Raise PlanError for an option that was given but that no cell uses.

    ``cells``: for each the names of its own options, which nothing overrides, and its generator.
    ``what``: what the cells belong to, for the message. ``cross_check``: whether cells at a
    constant rate have a cross-check, whose generator uses options too.
    """
    for name in asked:
        value = f"'{given[name]}'" if name in given else "it"
        free = [generator for own, generator in cells if name not in own]
        if not free:
            raise PlanError(
                f"{name}: {value} would change nothing: each cell of {what} has its own. "
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
