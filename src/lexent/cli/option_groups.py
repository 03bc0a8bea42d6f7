"""Groups of options: several options of a command that reach its function as one value.

There are two kinds. `settings_group` makes an option of each field of a settings dataclass, with the field's doc line
as its help; the function gets a dict of what was given. `option_group` marks a dataclass whose fields are annotated
options; the function gets an instance of it.

    @with_option_groups
    def index(source: Path, columns: options.Columns, settings: Annotated[Settings, options.RECIPE]) -> None: ...
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from lexent.cli.fields import Field, fields_of

Settings = dict[str, Any]
"""What was given of a group of settings, by the names of the fields."""
Convert = Callable[[Any], Any]
Group = TypeVar("Group", bound=type)

_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool}
_MARK = "__option_group__"


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Parameters of a command, and how their values become one."""

    parameters: tuple[inspect.Parameter, ...]
    collect: Callable[[Settings], Any]
    flags: Mapping[str, str] = field(default_factory=dict)
    """The flag of each parameter, as it is typed."""

    def __add__(self, other: OptionGroup) -> OptionGroup:
        """Both groups of settings as one."""
        return OptionGroup(
            (*self.parameters, *other.parameters),
            lambda given: {**self.collect(_split(self, given)), **other.collect(_split(other, given))},
            {**self.flags, **other.flags},
        )


def settings_group(
    file: str,
    name: str,
    names: Sequence[str],
    *,
    panel: str | None = None,
    flags: Mapping[str, str] | None = None,
    more_help: Mapping[str, str] | None = None,
    convert: Mapping[str, Convert] | None = None,
    prefix: str = "--",
    with_defaults: bool = True,
) -> OptionGroup:
    """An option for each of some fields of the settings class `name` in a file of the package.

    An option is named after its field, or by `flags`. Its type is the field's; a field that is neither a number nor a
    bool is given as text, and `convert` makes its value. with_defaults: say the default in the help.
    """
    declared = fields_of(file, name)
    parameters, typed = [], {}
    for each in names:
        found = declared[each]
        flag = (flags or {}).get(each, prefix + each.replace("_", "-"))
        kind = _type_of(found)
        if kind is bool and "/" not in flag:
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        default = f" Default: {found.default}." if with_defaults and found.default else ""
        more = (more_help or {}).get(each, "")
        option = typer.Option(
            flag, help=f"{found.help}{default} {more}".strip(), rich_help_panel=panel, show_default=False
        )
        parameters.append(_parameter(each, Annotated[kind | None, option], None))
        typed[each] = flag.partition("/")[0]
    return OptionGroup(tuple(parameters), lambda given: _given(parameters, given, convert or {}), typed)


def values_group(file: str, name: str, *, panel: str, prefix: str = "--", flags: Mapping[str, str] = {}) -> OptionGroup:
    """An option for each field of a settings class that has a default, which the help shows; all values are given."""
    parameters, typed = [], {}
    for each, found in fields_of(file, name).items():
        flag = flags.get(each, prefix + each.replace("_", "-"))
        option = typer.Option(flag, help=found.help, rich_help_panel=panel)
        parameters.append(_parameter(each, Annotated[_type_of(found), option], ast.literal_eval(found.default)))
        typed[each] = flag
    return OptionGroup(tuple(parameters), dict, typed)


def options_of(convert: Mapping[str, Convert] | None = None, **annotated: Any) -> OptionGroup:
    """A group of settings from options that are declared one by one; the default of a bool is False, else None."""
    parameters = [
        _parameter(name, annotation, False if get_args(annotation)[0] is bool else None)
        for name, annotation in annotated.items()
    ]
    flags = {one.name: _flag(one) for one in parameters}
    return OptionGroup(tuple(parameters), lambda given: _given(parameters, given, convert or {}), flags)


def option_group(group: Group) -> Group:
    """Mark a dataclass whose fields are annotated options as a group."""
    hints = get_type_hints(group, include_extras=True)
    parameters = tuple(
        _parameter(one.name, hints[one.name], inspect.Parameter.empty if one.default is MISSING else one.default)
        for one in fields(group)
    )
    setattr(group, _MARK, OptionGroup(parameters, lambda given: group(**given), {p.name: _flag(p) for p in parameters}))
    return group


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups in the place of each group, as Typer reads it."""
    groups: dict[str, OptionGroup] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = _group_of(parameter.annotation)
        if group is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = group
            parameters += group.parameters
    names = [parameter.name for parameter in parameters]
    assert len(set(names)) == len(names), f"{command.__name__} has two options of one name: {sorted(names)}"

    @wraps(command)
    def run(**given: Any) -> None:
        values = {name: group.collect(_split(group, given, pop=True)) for name, group in groups.items()}
        command(**given, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _type_of(found: Field) -> Any:
    return _TYPES.get(found.annotation.removesuffix(" | None"), str)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _flag(parameter: inspect.Parameter) -> str:
    option = next(one for one in get_args(parameter.annotation)[1:] if isinstance(one, typer.models.OptionInfo))
    names = [option.default, *(option.param_decls or ())]
    return next(str(one).partition("/")[0] for one in names if str(one).startswith("--"))


def _group_of(annotation: Any) -> OptionGroup | None:
    if get_origin(annotation) is Annotated:
        return next((one for one in get_args(annotation)[1:] if isinstance(one, OptionGroup)), None)
    found: OptionGroup | None = getattr(annotation, _MARK, None)
    return found


def _split(group: OptionGroup, given: Settings, *, pop: bool = False) -> Settings:
    """The values of a group's parameters."""
    names = [one.name for one in group.parameters]
    return {name: given.pop(name) if pop else given[name] for name in names if name in given}


def _given(parameters: Sequence[inspect.Parameter], values: Settings, convert: Mapping[str, Convert]) -> Settings:
    """The values that are not the defaults."""
    usual = {one.name: one.default for one in parameters}
    changed = {name: value for name, value in values.items() if value is not None and value != usual[name]}
    return {name: convert[name](value) if name in convert else value for name, value in changed.items()}
