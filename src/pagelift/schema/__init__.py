"""JSON Schema: read, check, normalise, validate, infer."""

from pagelift.schema.conform import Conformed
from pagelift.schema.infer import infer_schema
from pagelift.schema.nodes import Array, Node, Object, Scalar, ScalarType, Union
from pagelift.schema.places import Refusal
from pagelift.schema.report import ReportRow, SchemaReport, render_report, schema_report_text
from pagelift.schema.schema import Schema, ValidationProblem, check_schema, save_schema
from pagelift.schema.shaping import Dropped
from pagelift.schema.source import saved_schemas

__all__ = [
    "Array",
    "Conformed",
    "Dropped",
    "Node",
    "Object",
    "Refusal",
    "ReportRow",
    "Scalar",
    "ScalarType",
    "Schema",
    "SchemaReport",
    "Union",
    "ValidationProblem",
    "check_schema",
    "infer_schema",
    "render_report",
    "save_schema",
    "saved_schemas",
    "schema_report_text",
]
