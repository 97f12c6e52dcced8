"""A release's sources -> the options of its own argument parser, as JSON.

Run by `observe.py` as a program of its own, in the environment that was made for the release. It
imports nothing of servec. The request is JSON on the standard input, the answer JSON on the
standard output; whatever the release prints goes to the standard error.

    {"root": ".../sources", "builder": "pkg.args:make", "parser": "argparse:ArgumentParser", ...}
    {"flags": [{"dest": "port", "flags": ["--port"], "kind": "value", "type": "int"}], ...}
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

Tell = Callable[[argparse.ArgumentParser, dict[str, Any]], dict[str, Any]]
POSITIONAL = "<positional>"
FILE_BYTES = 256 << 20
"""The longest file that a parser may write, its output included."""
KINDS = {
    "_StoreAction": "value", "_StoreTrueAction": "store_true", "_StoreFalseAction": "store_false",
    "_StoreConstAction": "store_const", "_AppendAction": "append", "_ExtendAction": "extend",
    "_AppendConstAction": "append_const", "_CountAction": "count", "_VersionAction": "version",
}  # fmt: skip
DEPRECATED = re.compile(
    r"\W*(?:(?:--[\w-]+|this (?:option|flag|argument|parameter)) is )?deprecated\b"
    r"|[^\0]*?\n\s*\W?(?-i:Deprecated|DEPRECATED)\b",
    re.IGNORECASE,
)
"""How a help text says it: at its beginning, or at that of a line."""


class NotPlain(Exception):
    """What a stand-in would have to say is asked for, so the parser cannot be trusted."""


class StandIn:
    """Any object of a module that is not installed: it can be called, subclassed, compared and
    subscribed, and has every attribute that is not said to be absent. It must never reach the
    answer."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> StandIn:
        return _attribute(self.__name__, name)

    def __call__(self, *positional: Any, **named: Any) -> Any:
        is_decorator = len(positional) == 1 and callable(positional[0]) and not named
        return positional[0] if is_decorator else StandIn(self.__name__)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[()]:
        return ()

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: object) -> bool:
        return False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, str]:
        return {"type": "any"}

    def __iter__(self) -> Iterator[Any]:
        raise NotPlain(f"{self.__name__} is needed, and its module is not installed")

    def __getitem__(self, item: Any) -> StandIn:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class StandInModule(ModuleType):
    """A module of which every attribute is a `StandIn`, and every submodule such a module."""

    __version__ = "0.0.0"
    __path__: list[str] = []

    def __getattr__(self, name: str) -> StandIn:
        return _attribute(self.__name__, name)


ABSENT: set[str] = set()


def _attribute(owner: str, name: str) -> StandIn:
    whole = f"{owner}.{name}"
    if whole in ABSENT or (name.startswith("__") and name.endswith("__")):
        raise AttributeError(name)
    return StandIn(whole)


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for the modules that are named, after all that is installed."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self.used: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not any(name == known or name.startswith(known + ".") for known in self.names):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        self.used.add(next(n for n in self.names if (spec.name + ".").startswith(n + ".")))
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


class TypeNames:
    """Names of the types that values are read with. `rules` name functions that are made by other
    functions: `{"function": "_optional", "holds": "inner", "name": "{}?"}`."""

    def __init__(self, rules: Sequence[dict[str, str]]) -> None:
        self.rules = {rule["function"]: rule for rule in rules}

    def of(self, reader: Any) -> str | None:
        if reader is None or isinstance(reader, str):
            return reader
        name = str(getattr(reader, "__name__", type(reader).__name__))
        if reader is json.loads:
            return "json"
        rule = self.rules.get(name)
        held = _held(reader, rule["holds"]) if rule else None
        if rule is None or held is None:
            return name
        return rule["name"].format(self.of(held))

    def json_class(self, reader: Any) -> type | None:
        """The class that a JSON value is read into; None where it is read into none."""
        rule = self.rules.get(str(getattr(reader, "__name__", "")))
        held = _held(reader, rule["holds"]) if rule else None
        if rule is None or held is None:
            return None
        if rule["name"].startswith("json:"):
            return held if isinstance(held, type) else None
        return self.json_class(held)


def _held(function: Any, name: str) -> Any:
    """What a function closes over, or has as the default of a parameter, by that name."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        if variable == name:
            return cell.cell_contents
    defaults = function.__defaults__ or ()
    arguments = code.co_varnames[: code.co_argcount]
    own = dict(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=False))
    return own.get(name)


def describe(parser: argparse.ArgumentParser, names: TypeNames) -> list[dict[str, Any]]:
    """All options of a parser, hidden ones too, in the order of their names."""
    strings: dict[int, list[str]] = {}
    for option, action in parser._option_string_actions.items():
        strings.setdefault(id(action), []).append(option)
    seen: dict[int, argparse.Action] = {}
    for action in (*parser._actions, *parser._option_string_actions.values()):
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            seen.setdefault(id(action), action)
    deprecated = _deprecated(parser)
    flags = [
        _flag(parser, action, strings.get(key, []), names, key in deprecated)
        for key, action in seen.items()
    ]
    return sorted(flags, key=lambda flag: (flag["flags"], flag["dest"]))


def _deprecated(parser: argparse.ArgumentParser) -> set[int]:
    marked = {id(action) for action in getattr(parser, "_deprecated", ()) if action is not None}
    for action in parser._actions:
        about = action.help if isinstance(action.help, str) else ""
        named = "deprecated" in type(action).__name__.lower()
        said = DEPRECATED.match(about)
        if named or said or getattr(action, "deprecated", False):
            marked.add(id(action))
    return marked


def _flag(
    parser: argparse.ArgumentParser,
    action: argparse.Action,
    strings: list[str],
    names: TypeNames,
    deprecated: bool,
) -> dict[str, Any]:
    negative = [option for option in strings if _says_no(parser, action, option)]
    positive = [option for option in strings if option not in negative]
    kind = _kind(action)
    choices = _choices(action.choices, action.type)
    suggested: list[Any] = _choices(action.metavar) if isinstance(action.metavar, list) else []
    flag: dict[str, Any] = {"dest": action.dest, "flags": positive or [POSITIONAL]}
    flag |= {"negative": negative} if negative else {}
    flag |= {"kind": kind}
    flag |= {"nargs": action.nargs} if _has_nargs(action, kind) else {}
    flag |= {"choices": choices} if choices else {}
    flag |= {"suggested": suggested} if suggested and not choices else {}
    flag |= {"type": names.of(action.type)} if action.type is not None else {}
    flag |= _default(action.default)
    flag |= {"required": True} if action.required and (strings or action.nargs is None) else {}
    flag |= {"deprecated": True} if deprecated else {}
    return flag | ({"removed": True} if deprecated and _refuses(parser, action) else {})


def _refuses(parser: argparse.ArgumentParser, action: argparse.Action) -> bool:
    """Whether a flag without a value is only there to be refused: asked of the action, since one
    class of that name raises in a release and warns in the next."""
    if action.nargs != 0 or type(action).__module__ == "argparse" or not action.option_strings:
        return False
    try:
        action(parser, argparse.Namespace(), [], action.option_strings[0])
    except (ValueError, argparse.ArgumentError):
        return True
    return False


def _kind(action: argparse.Action) -> str:
    if isinstance(action, argparse.BooleanOptionalAction):
        return "bool_optional"
    name = type(action).__name__
    if type(action).__module__ == "argparse" and name in KINDS:
        return KINDS[name]
    return f"flag:{name}" if action.nargs == 0 else f"value:{name}"


def _has_nargs(action: argparse.Action, kind: str) -> bool:
    return action.nargs is not None and action.nargs != 0 and kind != "bool_optional"


def _says_no(parser: argparse.ArgumentParser, action: argparse.Action, option: str) -> bool:
    """Whether an option of an on/off pair is the one that turns it off: asked of the action."""
    if not isinstance(action, argparse.BooleanOptionalAction):
        return False
    said = argparse.Namespace()
    action(parser, said, [], option)
    return getattr(said, action.dest, None) is False


def _choices(values: Any, reader: Any = None) -> list[Any]:
    """The words of a choice. A type that reads the word `None` as none makes it one where none is a
    choice, and takes it from the choices where it is only a word."""
    if values is None or isinstance(values, str):
        return []
    absent = (None,) if not _reads_none(reader) else () if None in values else ("None",)
    plain = [_word(value) for value in values if value not in absent]
    return sorted(plain, key=str) if isinstance(values, set | frozenset) else plain


def _word(value: Any) -> Any:
    value = value.value if isinstance(value, Enum) else _real(value)
    return value if isinstance(value, bool | int | float) else str(value)


def _reads_none(reader: Any) -> bool:
    try:
        return callable(reader) and reader("None") is None
    except Exception:
        return False


def _default(value: Any) -> dict[str, Any]:
    """The default, or its class where JSON cannot say it; no key where there is none."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or value == argparse.SUPPRESS:
        return {}
    if isinstance(_real(value), set | frozenset):
        value = sorted(value, key=str)
    try:
        return {"default": json.loads(json.dumps(value, allow_nan=False, default=_refuse))}
    except (TypeError, ValueError):
        return {"default": f"<{type(value).__name__}>"}


def _real(value: Any) -> Any:
    """The value, which must not be a stand-in."""
    if isinstance(value, StandIn):
        raise NotPlain(f"{value.__name__} is needed, and its module is not installed")
    return value


def _refuse(value: Any) -> Any:
    raise TypeError(f"JSON cannot say {type(_real(value)).__name__}")


def find(name: str) -> Any:
    """The object that `module:path.to.it` names."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def build(request: dict[str, Any]) -> argparse.ArgumentParser:
    """The release's own parser: the first parser class and builder that it has."""
    parser: argparse.ArgumentParser = find(request["parser"])(prog="serve")
    for addition in request["additions"]:
        add(parser, request["root"], addition)
    built = find(request["builder"])(parser)
    return built if isinstance(built, argparse.ArgumentParser) else parser


def add(parser: argparse.ArgumentParser, root: str, addition: dict[str, str]) -> None:
    """Repeat the `receiver.add_argument(...)` calls of a source file on the parser."""
    tree = ast.parse((Path(root) / addition["file"]).read_text(encoding="utf-8"))
    receiver = addition["receiver"]
    scope: dict[str, Any] = {**vars(builtins), "argparse": argparse, receiver: parser}
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), "add_argument")) if name == receiver:
                exec(compile(ast.unparse(node), addition["file"], "exec"), scope)


def claim(distribution: dict[str, str], folder: str) -> None:
    """Let `importlib.metadata` tell of the release as of an installed package."""
    name, version = distribution["name"], distribution["version"]
    home = Path(folder) / f"{name.replace('-', '_')}-{version}.dist-info"
    home.mkdir()
    said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (home / "METADATA").write_text(said, encoding="utf-8")
    sys.path.insert(0, folder)


def bound(limits: dict[str, int]) -> None:
    """Hold this process to a size of memory and of files, and a time, also of computing; it ends
    in time even where the one that waits for it was killed. Lower bounds that it has stay."""
    size, seconds = limits["memory_bytes"], limits["seconds"]
    signal.alarm(seconds + 5)
    own = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_CORE: 0}
    for what, most in {**own, resource.RLIMIT_AS: size}.items():
        hard = resource.getrlimit(what)[1]
        top = most + (5 if what == resource.RLIMIT_CPU else 0)
        top = top if hard == resource.RLIM_INFINITY else min(top, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS has no bound of memory
            resource.setrlimit(what, (min(most, top), top))


def options(parser: argparse.ArgumentParser, request: dict[str, Any]) -> dict[str, Any]:
    """The options of a parser."""
    names = TypeNames(request["type_names"])
    told: dict[str, Any] = {
        "flags": describe(parser, names),
        "allow_abbrev": bool(parser.allow_abbrev),
    }
    classes = beside("json_fields").Classes(NotPlain)
    for action in parser._actions:
        if (owner := names.json_class(action.type)) is not None:
            classes.add(owner)
    told.update(classes.told())
    return told


def beside(name: str) -> ModuleType:
    """A module of this folder, which is in no package here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """What `tell` has to say of the parser, or what was missing, or why there is no parser."""
    own = {place.stem for place in Path(request["root"]).iterdir()}
    finder = StandInFinder(request["stand_ins"])
    ABSENT.update(request["absent"])
    sys.meta_path.append(finder)
    sys.path.insert(1, request["root"])  # after the folder of `claim`
    # Some explain their options only to one who asks for help; as the program's name, it is no
    # argument, for others leave options out where it is one.
    sys.argv = ["--help"]
    try:
        told = tell(build(request), request)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        outside = missing and missing not in own | sys.stdlib_module_names
        traceback.print_exc()
        return {"error": str(error), "missing": missing if outside else None}
    except BaseException as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:500], "missing": None}
    return {**told, "stood_in": sorted(finder.used)}


def main(tell: Tell = options) -> None:
    request = json.load(sys.stdin)
    bound(request["limits"])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        claim(request["distribution"], folder)
        reply = answer(request, tell)
    json.dump(reply, out)
    out.flush()
    os._exit(0)  # threads that the release started are not waited for


if __name__ == "__main__":
    main()
