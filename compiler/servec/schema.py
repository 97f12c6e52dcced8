"""Declarations -> JSON Schema, draft 2020-12.

Made from the same shapes that the compiler reads by, so an editor and the compiler agree.
"""

from __future__ import annotations

from typing import Any

from servec.extract import recipe
from servec.ir import decl, knowledge, manifest, releases, shard
from servec.ir.shape import (
    Anything,
    Bool,
    Choice,
    Either,
    Int,
    Key,
    Later,
    ListOf,
    MapOf,
    Number,
    OrNull,
    Parameters,
    Record,
    Shape,
    Text,
    keys_of,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"
KINDS: dict[str, type[Any]] = {
    "project": decl.Project,
    "spec": decl.Spec,
    "recipe": knowledge.RecipeFile,
    "manifest": manifest.Manifest,
    "extract": recipe.Recipe,
    "accelerators": knowledge.Accelerators,
    "instances": knowledge.Instances,
    "machine_images": knowledge.MachineImages,
    "images": knowledge.Images,
    "releases": releases.EngineCatalogue,
    "shard": shard.Request,
}

Schema = dict[str, Any]


def schema_of(kind: str) -> Schema:
    """The schema of one kind of file."""
    definitions: dict[str, Schema] = {}
    root = _record(KINDS[kind], definitions)
    root = {"$schema": DRAFT, "title": f"servec {kind}", **root}
    return {**root, "$defs": dict(sorted(definitions.items()))} if definitions else root


def _shape(shape: Shape, definitions: dict[str, Schema]) -> Schema:
    match shape:
        case Text(pattern):
            # Python's end of text is `\Z`, ECMA's is `$`, which there never means "before a \n".
            form = pattern.replace(r"\Z", "$")
            found = {"pattern": f"^(?:{form})"} if form else {}
            return {"type": "string", **found}
        case Bool():
            return {"type": "boolean"}
        case Int(minimum, maximum):
            most = {} if maximum is None else {"maximum": maximum}
            return {"type": "integer", "minimum": minimum, **most}
        case Number(minimum):
            return {"type": "number", "minimum": minimum}
        case Choice(words):
            return {"enum": list(words)}
        case Anything():
            return {"not": {"type": "null"}}
        case ListOf(item, minimum, maximum):
            least = {"minItems": minimum} if minimum else {}
            most = {} if maximum is None else {"maxItems": maximum}
            return {"type": "array", "items": _shape(item, definitions), **least, **most}
        case MapOf(value, key):
            named = {"propertyNames": names} if (names := _names(key)) else {}
            values = _shape(value, definitions)
            return {"type": "object", "additionalProperties": values, **named}
        case Parameters():
            return {"type": "object"}
        case Later():
            return _shape(shape.record(), definitions)
        case Record(of):
            if of.__name__ not in definitions:
                definitions[of.__name__] = {}
                definitions[of.__name__] = _record(of, definitions)
            return {"$ref": f"#/$defs/{of.__name__}"}
        case Either(scalar, mapping):
            of_mapping = {"if": {"type": "object"}, "then": _shape(mapping, definitions)}
            return {**of_mapping, "else": _shape(scalar, definitions)}
        case OrNull(inner):
            return {"anyOf": [_shape(inner, definitions), {"type": "null"}]}


def _names(key: Text | Choice) -> Schema:
    schema = _shape(key, {})
    return {} if schema == {"type": "string"} else schema


def _record(of: type[Any], definitions: dict[str, Schema]) -> Schema:
    keys = keys_of(of)
    rest = next((key for key in keys.values() if key.rest), None)
    required = [key.name for key in keys.values() if key.required]
    schema: Schema = {"type": "object", "description": _sentence(of.__doc__ or "")}
    schema["properties"] = {
        key.name: _property(key, definitions) for key in keys.values() if not key.rest
    }
    if required:
        schema["required"] = required
    if rest is None:
        schema["additionalProperties"] = False
    else:
        schema["patternProperties"] = {"^[^_]": _shape(rest.shape, definitions)}
        schema["additionalProperties"] = False
    return schema


def _property(key: Key, definitions: dict[str, Schema]) -> Schema:
    return {"description": key.doc, **_shape(key.shape, definitions)}


def _sentence(doc: str) -> str:
    """The first sentence of a docstring; the rest is for who reads the code."""
    first, end, _ = " ".join(doc.split()).partition(". ")
    return first + end.strip()
