"""The classes that JSON arguments are read into -> what pydantic takes for each of their fields.

Loaded by `walk.py` beside it, in the environment of the release; it imports nothing of servec. What
is taken is told by pydantic's own core schema, and where the release's validators stand before it,
by the validators themselves, asked of values. What neither tells is `any`, and left out.

    @config
    class Transfer: rank: int | None; role: Literal["both", "one"]; passes: Passes
      -> Transfer.rank: int|null; Transfer.role: word, of both and one; Transfer.passes: json:Passes
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

Schema = dict[str, Any]
BEFORE = ("function-before", "function-wrap")
INSIDE = {
    "default": "schema", "function-after": "schema", "nullable": "schema", "definitions": "schema",
    "json-or-python": "json_schema", "lax-or-strict": "lax_schema",
}  # fmt: skip
"""Where the schema of the value itself stands."""
PLAIN = {"bool": "bool", "str": "str", "none": "null"}
LISTS = ("list", "tuple", "set", "frozenset")
BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
NOT_ONE = "not-one"
USUAL = ("auto", "all", "none", "default")
"""Words that a validator often takes beside those of the type."""
BATTERY: tuple[Any, ...] = (
    None, True, 0, 1, -1, 1.5, "", NOT_ONE, "1", "true", *USUAL, [], [1], [NOT_ONE], {}, {"a": 1},
    {"a": NOT_ONE},
)  # fmt: skip
"""Values by which two readings are told apart."""


class Said(NamedTuple):
    """What a value may be: members of a union, and the choices of its member `word`."""

    members: tuple[str, ...]
    choices: tuple[Any, ...] = ()

    @property
    def is_any(self) -> bool:
        return "any" in self.members

    @property
    def text(self) -> str:
        return "|".join(dict.fromkeys(self.members))


ANY = Said(("any",))


class Classes:
    """Classes with their fields: those that are added, and those inside them. `undecided` is what
    a stand-in raises where its answer is asked for."""

    def __init__(self, undecided: type[Exception]) -> None:
        self.undecided = undecided
        self.fields: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, list[str]] = {}
        self.closed: set[str] = set()
        self._shared: dict[str, Schema] = {}

    def add(self, owner: type) -> None:
        """A class that an argument is read into; one that pydantic cannot read is left out."""
        try:
            self._said(import_module("pydantic").TypeAdapter(owner).core_schema)
        except self.undecided:
            raise
        except Exception as error:
            print(f"{owner.__name__} was not read: {error!r}")

    def told(self) -> dict[str, Any]:
        """The keys of each class, its fields, and the classes that refuse other keys."""
        closed = sorted(self.closed)
        return {"config_keys": self.keys, "fields": self.fields, "closed": closed}

    def _said(self, schema: Schema) -> Said:
        for shared in schema.get("definitions", ()):
            self._shared[shared["ref"]] = shared
        kind = schema["type"]
        if kind == "definition-ref":
            return self._said(self._shared[schema["schema_ref"]])
        if kind == "nullable":
            inner = self._said(schema["schema"])
            return Said((*inner.members, "null"), inner.choices)
        if kind in INSIDE:
            return self._said(schema[INSIDE[kind]])
        if kind in BEFORE:
            return self._asked(schema, self._said(schema["schema"]))
        if kind in ("literal", "enum"):
            return self._words(schema, _candidates(schema))
        if kind == "union":
            return self._union(schema["choices"])
        if kind == "dataclass":
            return self._class(schema)
        if kind == "dict":
            return self._holding("dict", schema.get("values_schema"))
        if kind in LISTS:
            return self._holding("list", _item(schema))
        if kind in ("int", "float"):
            said = (f"{sign}{schema[word]}" for word, sign in BOUNDS.items() if word in schema)
            return Said((kind + "".join(said),))
        return Said((PLAIN[kind],)) if kind in PLAIN else ANY

    def _class(self, schema: Schema) -> Said:
        name = schema["cls"].__name__
        arguments = schema["schema"]
        while arguments["type"] != "dataclass-args":
            arguments = arguments["schema"]
        if name not in self.keys:
            own = [field for field in arguments["fields"] if field.get("init") is not False]
            self.keys[name] = sorted(field["name"] for field in own)
            if schema.get("config", {}).get("extra_fields_behavior") == "forbid":
                self.closed.add(name)
            for field in own:
                said = self._said(field["schema"])
                if not said.is_any:
                    told: dict[str, Any] = {"type": said.text}
                    told |= {"choices": list(said.choices)} if said.choices else {}
                    self.fields[f"{name}.{field['name']}"] = told
        return Said((f"json:{name}",))

    def _union(self, choices: Iterable[Any]) -> Said:
        parts = [self._said(part[0] if isinstance(part, tuple) else part) for part in choices]
        words = tuple(word for part in parts for word in part.choices)
        members = tuple(member for part in parts for member in part.members)
        if "str" in members and all(isinstance(word, str) for word in words):
            return Said(tuple(item for item in members if not item.startswith("word")))
        return ANY if {"word", "word/i"} <= set(members) else Said(members, words)

    def _holding(self, outer: str, schema: Schema | None) -> Said:
        inner = self._said(schema) if schema else ANY
        return Said((outer if inner.is_any else f"{outer}[{inner.text}]",), inner.choices)

    def _asked(self, schema: Schema, inner: Said) -> Said:
        """What a validator before the reading leaves of it: the same, or null too, or any. What
        words it knows inside a list or a mapping is not asked; nor what texts it makes a class
        of, so that any may be one."""
        if {"word", "word/i"} & set(inner.members):
            return self._words(schema, _candidates(schema))
        if inner.choices:
            inner = Said(tuple(member.partition("[")[0] for member in inner.members))
        taken = self._taken(schema, BATTERY)
        plain = schema["schema"]
        for members, other in (
            (inner.members, plain),
            ((*inner.members, "null"), {"type": "nullable", "schema": plain}),
        ):
            if self._taken(other, BATTERY) == taken:
                is_class = any("json:" in member for member in members)
                return inner._replace(members=(*members, "str") if is_class else members)
        return ANY

    def _words(self, schema: Schema, candidates: list[Any]) -> Said:
        """The words that are taken, whatever else the schema says; any where others are too."""
        words = self._taken(schema, candidates)
        texts = [word for word in words if isinstance(word, str) and word.upper() != word.lower()]
        other = [form for word in texts for form in (word.upper(), word.lower(), word.title())]
        folds = bool(texts) and self._taken(schema, other) == other
        if folds:
            words = list({str(word).lower(): word for word in reversed(words)}.values())[::-1]
        strange = [item for item in BATTERY if item is not None and item not in words]
        if not words or any(_is_strange(item, words) for item in self._taken(schema, strange)):
            return ANY
        null = ("null",) if self._taken(schema, [None]) else ()
        return Said(("word/i" if folds else "word", *null), tuple(words))

    def _taken(self, schema: Schema, values: Iterable[Any]) -> list[Any]:
        """Those of some values that are taken."""
        shared = list(self._shared.values())
        whole: Any = {"type": "definitions", "schema": schema, "definitions": shared}
        validator = import_module("pydantic_core").SchemaValidator(whole if shared else schema)
        return [value for value in values if self._takes(validator, value)]

    def _takes(self, validator: Any, value: Any) -> bool:
        try:
            validator.validate_json(json.dumps(value))
        except self.undecided:
            raise
        except Exception:  # also what a validator of the release raises: the command ends with it
            return False
        return True


def _is_strange(value: Any, words: list[Any]) -> bool:
    """Whether a value is none of the words, nor a number that equals one."""
    return isinstance(value, bool) or str(value) not in map(str, words)


def _item(schema: Schema) -> Schema | None:
    """The schema of a list's items, where all have one."""
    items = schema.get("items_schema")
    if isinstance(items, list):
        return items[0] if len(items) == 1 and "variadic_item_index" in schema else None
    return items


def _candidates(schema: Schema) -> list[Any]:
    """The words that a schema of words may take: values and names, as they are and in lower case;
    numbers also as text; and the usual ones."""
    found: dict[tuple[type, Any], None] = {}
    for value in (*_named(schema), *USUAL):
        if isinstance(value, str | int):
            found[type(value), value] = None
    for value in [value for _, value in found]:
        other = str(value).lower()
        found.setdefault((str, other), None)
    return [value for _, value in found]


def _named(schema: Schema) -> Iterator[Any]:
    while "schema" in schema:
        schema = schema["schema"]
    if schema["type"] == "enum":
        yield from (member.name for member in schema["members"])
        yield from (member.value for member in schema["members"])
    elif schema["type"] == "union":
        for part in schema["choices"]:
            yield from _named(part[0] if isinstance(part, tuple) else part)
    else:
        yield from schema.get("expected", ())
