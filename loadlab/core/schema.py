"""Check documents against files/schema/lab-1.schema.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match


class SchemaError(ValueError):
    """A document does not match its definition in the schema."""


def validate(document: dict[str, Any], name: str, schema_path: Path) -> None:
    """Check a document against the schema's definition `name` (result, summary, manifest, ...).

    Raises SchemaError naming the place, the value and the rule it breaks, and where the schema has
    no such definition.
    """
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    known = [key for key in schema["$defs"] if "_" not in key]
    if name not in known:
        raise SchemaError(f"no definition {name!r}, only {', '.join(sorted(known))}")
    validator = Draft202012Validator(
        {"$schema": schema["$schema"], "$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}
    )
    error = best_match(validator.iter_errors(document))
    if error is not None:
        place = "".join(f"/{part}" for part in error.absolute_path) or "/"
        raise SchemaError(f"{name} {place}: {str(error.instance)[:200]!r}: {error.message[:200]}")
