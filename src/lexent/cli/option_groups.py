"""Groups of options: several options of a command that reach its function as one value.

`option_group` makes a frozen dataclass of a class whose fields are options: a field's name is the flag and its doc line
the help. `settings_group` makes an option of each field of a settings dataclass elsewhere in the package; the function
gets a dict of what was given.

    @option_group
    class Columns:
        text: Annotated[str | None, typer.Option(metavar="COLUMN")] = None
        "The column that holds the text."

    def index(source: Path, columns: Columns, settings: Annotated[Settings, options.RECIPE]) -> Output: ...
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

import typer

from lexent.cli.console import Output
from lexent.cli.fields import Field, docs_of, fields_of

Settings = dict[str, Any]
"""What was given of a group of settings, by the names of the fields."""
Convert = Callable[[Any], Any]
Group = TypeVar("Group", bound=type)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs, and nothing else on stdout.")]

_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool}
_MARK = "__option_group__"


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Parameters of a command, and how their values become one."""

    parameters: tuple[inspect.Parameter, ...]
    collect: Callable[[Settings], Any]

    @property
    def flags(self) -> dict[str, str]:
        """The flag of each option, as it is typed."""
        infos = {one.name: get_args(one.annotation)[1] for one in self.parameters}
        options = {name: _names(info) for name, info in infos.items() if isinstance(info, typer.models.OptionInfo)}
        return {
            name: next(each.partition("/")[0] for each in names if each.startswith("--"))
            for name, names in options.items()
        }

    def __add__(self, other: OptionGroup) -> OptionGroup:
        """Both groups of settings as one."""
        return OptionGroup(
            (*self.parameters, *other.parameters),
            lambda given: {**self.collect(_split(self, given)), **other.collect(_split(other, given))},
        )


def settings_group(
    file: str,
    name: str,
    names: Sequence[str] = (),
    *,
    panel: str | None = None,
    flags: Mapping[str, str] = {},
    help: Mapping[str, str] = {},
    more_help: Mapping[str, str] = {},
    convert: Mapping[str, Convert] = {},
    ranges: Mapping[str, Settings] = {},
    prefix: str = "--",
    with_defaults: bool = True,
) -> OptionGroup:
    """An option for each of some or all fields of the settings class `name` in a file of the package.

    An option is named after its field, or by `flags`. Its type is the field's; a field that is neither a number nor a
    bool is given as text, and `convert` makes its value. with_defaults: say the default in the help. help: in place of
    the field's doc line, where the option says the opposite or has another value for None. ranges: `min` and `max`.
    """
    declared = fields_of(file, name)
    within = prefix.removeprefix("--").replace("-", "_")
    parameters = []
    for each in names or declared:
        found = declared[each]
        flag = flags.get(each, prefix + each.replace("_", "-"))
        kind = _TYPES.get(found.annotation.removesuffix(" | None"), str)
        if kind is bool and "/" not in flag:
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        choices = f" One of: {', '.join(map(str, found.choices))}." if found.choices else ""
        default = _default_of(found, flag) if with_defaults else ""
        text = help.get(each) or " ".join(filter(None, [found.help + choices, more_help.get(each), default]))
        option = typer.Option(flag, help=text, rich_help_panel=panel, show_default=False, **ranges.get(each, {}))
        parameters.append(_parameter(within + each, Annotated[kind | None, option], None))
    return _changes(parameters, convert, within)


def _default_of(found: Field, flag: str) -> str:
    """The default of a field, as Typer shows those of other options; nothing for None and for what is no literal."""
    try:
        value = ast.literal_eval(found.default or "None")
    except ValueError:
        return ""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        value = flag.split("/")[0 if value else 1].removeprefix("--")
    return f"[default: {', '.join(map(str, value)) if isinstance(value, tuple) else value}]"


def changes_of(group: type) -> OptionGroup:
    """The options of an option group whose function gets a dict of the values that are not the defaults."""
    return _changes(getattr(group, _MARK).parameters)


def _changes(
    parameters: Sequence[inspect.Parameter], convert: Mapping[str, Convert] = {}, prefix: str = ""
) -> OptionGroup:
    """A group whose function gets the values that are not the defaults, by name without the prefix."""
    usual = {one.name: one.default for one in parameters}

    def collect(values: Settings) -> Settings:
        given = {name: value for name, value in values.items() if value is not None and value != usual[name]}
        changed = {name.removeprefix(prefix): value for name, value in given.items()}
        return {name: convert[name](value) if name in convert else value for name, value in changed.items()}

    return OptionGroup(tuple(parameters), collect)


@dataclass_transform(frozen_default=True)
def option_group(group: Group) -> Group:
    """A frozen dataclass whose fields are options of a command.

    A field that says nothing else is the option --NAME, with the field's doc line as its help; `Annotated` with a
    typer.Option gives a metavar, a range, a short flag or another name. PANEL of the class is the panel of the help.
    SETTINGS is the file and the name of a settings class: a field without a doc line has the one of that setting.
    """
    file = f"{group.__module__.removeprefix('lexent.').replace('.', '/')}.py"
    panel = group.__dict__.get("PANEL")
    settings = fields_of(*group.__dict__["SETTINGS"]) if "SETTINGS" in group.__dict__ else {}
    made: Any = dataclass(frozen=True, eq=False, repr=False)(group)
    hints = get_type_hints(made, include_extras=True)
    own = docs_of(file, group.__name__)
    parameters = [one for one in getattr(getattr(made, _MARK, None), "parameters", ()) if one.name not in own]
    for one in fields(made):
        if one.name in own:
            default = inspect.Parameter.empty if one.default is MISSING else one.default
            help = own[one.name]
            if not help and one.name in settings:
                help = settings[one.name].help
                assert repr(default) == settings[one.name].default, f"{one.name} has two defaults"
            parameters.append(_parameter(one.name, _documented(one.name, hints[one.name], help, panel), default))
    setattr(made, _MARK, OptionGroup(tuple(parameters), lambda given: made(**given)))
    return made  # type: ignore[no-any-return]


def _documented(name: str, annotation: Any, help: str, panel: str | None) -> Any:
    """The annotation of an option or argument, with the help, the flag and the panel that it does not give itself."""
    kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    info: Any = copy(next((mark for mark in marks if isinstance(mark, typer.models.ParameterInfo)), typer.Option()))
    info.help = info.help or help
    info.rich_help_panel = info.rich_help_panel or panel
    if isinstance(info, typer.models.OptionInfo):
        names = _names(info)
        info.default = ...
        info.param_decls = names if any(each.startswith("--") for each in names) else (_flag(name), *names)
    return Annotated[kind, info]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _names(option: Any) -> tuple[str, ...]:
    """The flags of an option in Annotated, where its first one stands in the place of a default."""
    return tuple(str(each) for each in (option.default, *(option.param_decls or ())) if isinstance(each, str))


def with_option_groups(command: Callable[..., Any]) -> Callable[..., None]:
    """The command as Typer reads it: with the options of its groups in the place of each group.

    A command that returns an Output, or yields one while what it reads is open, has the option --json, and its output
    is printed.
    """
    groups: dict[str, OptionGroup] = {}
    parameters: list[inspect.Parameter] = []
    signature = inspect.signature(command, eval_str=True)
    prints = signature.return_annotation in (Output, Output | None, Iterator[Output])
    for parameter in signature.parameters.values():
        group = _group_of(parameter.annotation)
        if group is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = group
            parameters += group.parameters
    if prints:
        parameters.append(_parameter("json", Json, False))
    names = [parameter.name for parameter in parameters]
    assert len(set(names)) == len(names), f"{command.__name__} has two options of one name: {sorted(names)}"

    @wraps(command)
    def run(**given: Any) -> None:
        json = given.pop("json") if prints else False
        values = {name: group.collect(_split(group, given, pop=True)) for name, group in groups.items()}
        found = command(**given, **values)
        for output in [found] if isinstance(found, Output) else found or ():
            output.print(json=json)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def add_commands(app: typer.Typer, **commands: Callable[..., Any]) -> None:
    """Add commands with option groups to an app, by name."""
    for name, command in commands.items():
        app.command(name)(with_option_groups(command))


def command_group(help: str, **commands: Callable[..., Any]) -> typer.Typer:
    """A group of commands, which prints its help where none of them is given."""
    app = typer.Typer(help=help)

    @app.callback(invoke_without_command=True)
    def verbs(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    add_commands(app, **commands)
    return app


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _group_of(annotation: Any) -> OptionGroup | None:
    if get_origin(annotation) is Annotated:
        return next((one for one in get_args(annotation)[1:] if isinstance(one, OptionGroup)), None)
    found: OptionGroup | None = getattr(annotation, _MARK, None)
    return found


def _split(group: OptionGroup, given: Settings, *, pop: bool = False) -> Settings:
    """The values of a group's parameters."""
    names = [one.name for one in group.parameters]
    return {name: given.pop(name) if pop else given[name] for name in names if name in given}
