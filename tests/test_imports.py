"""The import rule of docs/ARCHITECTURE.md, the public names, and that start-up loads nothing heavy."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pagelift

PACKAGE = Path(pagelift.__file__).parent
LOWER = {"core", "schema", "documents", "evidence", "layout", "backends", "weights", "models", "decoding", "runtime"}
MAY_IMPORT = {
    "core": set(),
    "schema": {"core"},
    "documents": {"core"},
    "evidence": {"core", "schema"},
    "layout": {"core", "schema", "documents", "evidence"},
    "backends": {"core"},
    "weights": {"core", "backends"},
    "models": {"core", "weights", "backends"},
    "decoding": {"core", "schema"},
    "runtime": {"core", "models", "weights", "decoding", "backends"},
    "extract": LOWER,
    "server": LOWER | {"extract"},
    "batch": LOWER | {"extract"},
    "evals": LOWER | {"extract"},
    "quantization": LOWER | {"extract", "evals"},
    "commands": LOWER | {"extract", "server", "batch", "evals", "quantization"},
    "cli": LOWER | {"commands", "extract", "server", "batch", "evals", "quantization", "__init__"},
    "__main__": {"cli"},
    "__init__": {"core", "schema", "extract", "runtime"},
}
ONLY_THEIR_PROTOCOL = {"models", "runtime"}  # written once for all backends, so they may not name one


def imports(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and dotted name of everything of pagelift that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            pytest.fail(f"{file}:{node.lineno} is a relative import; write the full name")
        else:
            continue
        yield from ((node.lineno, name.split(".")) for name in found if name.split(".")[0] == "pagelift")


def module_of(steps: list[str]) -> str:
    """The module of the table that a dotted name lies in; names of the package itself lie in __init__."""
    return steps[1] if len(steps) > 1 and ((PACKAGE / steps[1]).is_dir() or (PACKAGE / f"{steps[1]}.py").is_file()) else "__init__"


def test_imports_go_downward_only() -> None:
    broken = []
    for file in sorted(PACKAGE.rglob("*.py")):
        own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        assert own in MAY_IMPORT, f"{own} is not in the module table; add it there and to docs/ARCHITECTURE.md"
        for line, steps in imports(file):
            target = module_of(steps)
            if target != own and target not in MAY_IMPORT[own]:
                broken.append(f"{file}:{line} {own} imports {target}")
            if own in ONLY_THEIR_PROTOCOL and target == "backends" and len(steps) > 2 and steps[2] in ("reference", "cpu", "mlx"):
                broken.append(f"{file}:{line} {own} names the backend {steps[2]}")
    assert not broken, "\n".join(broken)


def test_public_names_are_these() -> None:
    assert set(pagelift.__all__) == {
        "extract", "Extractor", "Extraction", "Field", "Box", "Schema", "Limits", "load_model",
        "PageliftError", "DocumentError", "DocumentNotFound", "UnsupportedDocument", "CorruptDocument", "PasswordRequired",
        "LimitExceeded", "DocumentTimeout", "SchemaError", "SchemaNotFound", "InvalidSchema", "SchemaRefused",
        "ExtractionError", "UnfilledValue", "InvalidOutput", "EngineError", "ConfigError", "WeightsError", "ShapeError",
    }  # fmt: skip
    for name in pagelift.__all__:
        assert getattr(pagelift, name).__name__ == name
    assert set(pagelift.__all__) < set(dir(pagelift))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pagelift.nothing


def test_extract_stays_the_function_when_its_module_is_imported() -> None:
    from pagelift.extract import Extractor

    assert pagelift.extract is pagelift.extract.__globals__["extract"]
    assert pagelift.Extractor is Extractor


def test_every_error_is_public() -> None:
    from pagelift.core import errors

    assert {name for name, value in vars(errors).items() if isinstance(value, type)} <= set(pagelift.__all__)


@pytest.mark.parametrize("start", ["import pagelift", "import pagelift.cli; pagelift.cli.app(['--help'], standalone_mode=False)"])
def test_start_up_loads_nothing_heavy(start: str) -> None:
    heavy = ("numpy", "PIL", "pypdfium2", "onnxruntime", "rapidocr", "cv2", "pydantic", "jsonschema_rs", "rich")
    code = f"{start}\nimport sys; print('loaded:', [m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("loaded: []")
