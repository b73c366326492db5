"""JSON Schema: read, check, normalise, validate, infer."""

from pagelift.schema.nodes import Array, Node, Object, Scalar, ScalarType, Union
from pagelift.schema.schema import Schema, ValidationProblem
from pagelift.schema.source import saved_schemas

__all__ = ["Array", "Node", "Object", "Scalar", "ScalarType", "Schema", "Union", "ValidationProblem", "saved_schemas"]
