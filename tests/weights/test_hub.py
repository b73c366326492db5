"""Where models are found, and what the hub is asked; the hub itself is played by objects of the test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants, errors

from pagelift.core.errors import WeightsError
from pagelift.weights import hub

ID = "someone/tiny"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def put(cache: Path, name: str, files: dict[str, str], revision: str = "main") -> Path:
    """A snapshot as huggingface_hub lays it out."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / revision).write_text("c0ffee")
    for file, content in files.items():
        (snapshot / file).write_text(content)
    return snapshot


def test_a_folder_is_itself(tmp_path: Path) -> None:
    assert hub.find_model(tmp_path) == tmp_path
    with pytest.raises(WeightsError, match="there is no folder"):
        hub.find_model(str(tmp_path / "nothing"))


def test_a_cached_id_is_found_and_another_names_the_command(cache: Path) -> None:
    snapshot = put(cache, ID, {"config.json": "{}"})
    assert hub.find_model(ID) == snapshot
    assert hub.find_model(f"{ID}@main") == snapshot
    for name in ("someone/else", f"{ID}@v2"):
        with pytest.raises(WeightsError, match=f"pagelift models pull {name}"):
            hub.find_model(name)


def test_only_complete_models_are_chosen_by_themselves(cache: Path) -> None:
    assert hub.first_cached() is None
    put(cache, "mlx-community/lift-oQ4", {"config.json": "{}"})
    assert hub.first_cached() is None
    put(cache, "mlx-community/lift-oQ3", {"config.json": "{}", "model.safetensors": "x"})
    assert hub.first_cached() == "mlx-community/lift-oQ3"


def test_cached_models_are_listed(cache: Path) -> None:
    put(cache, ID, {"config.json": '{"model_type": "qwen3_5"}'})
    put(cache, "someone/empty", {"README.md": ""})
    repositories = [SimpleNamespace(repo_id=name, repo_type="model", size_on_disk=7) for name in (ID, "someone/empty")]
    (found,) = hub.cached_models(lambda: SimpleNamespace(repos=repositories))
    assert (found.id, found.size, found.model_type) == (ID, 7, "qwen3_5")


class Api:
    def __init__(self, card: dict[str, Any] | None) -> None:
        self.card = card

    def model_info(self, _name: str, *, revision: str | None, files_metadata: bool) -> Any:
        assert files_metadata
        assert revision is None
        files = [SimpleNamespace(rfilename="model.safetensors", size=100), SimpleNamespace(rfilename="demo.mp4", size=9)]
        return SimpleNamespace(card_data=self.card, siblings=files)


def test_the_notice_of_a_licence_is_told_before_fetching() -> None:
    assert hub.look_up(ID, Api({"license": "apache-2.0"})) == hub.Offer(ID, "apache-2.0", 100, "")
    assert "gemma" in hub.look_up(ID, Api({"license": "gemma"})).notice
    assert "not stated" in hub.look_up(ID, Api(None)).notice
    assert "OpenRAIL-M" in hub.look_up("datalab-to/lift", Api({"license": "apache-2.0"})).notice


def test_pull_fetches_only_what_is_needed(tmp_path: Path) -> None:
    asked: dict[str, Any] = {}
    folder = hub.pull(f"{ID}@v1", lambda name, **options: asked.update(options, name=name) or str(tmp_path))
    assert folder == tmp_path
    assert (asked["name"], asked["revision"]) == (ID, "v1")
    assert "*.safetensors" in asked["allow_patterns"]
    assert "*.bin" not in asked["allow_patterns"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.OfflineModeIsEnabled("x"), "HF_HUB_OFFLINE"),
        (ConnectionError("no route"), "no route"),
        (OSError(28, "disk full"), "disk full"),
    ],
)
def test_failures_of_the_hub_say_what_to_do(error: Exception, told: str) -> None:
    def fail(*_: Any, **__: Any) -> str:
        raise error

    with pytest.raises(WeightsError, match=told):
        hub.pull(ID, fail)


def test_the_real_library_stays_offline_in_tests() -> None:
    with pytest.raises(WeightsError, match=r"HF_HUB_OFFLINE|offline|cannot be used"):
        hub.pull(ID)


@pytest.mark.parametrize("name", ["", "lift", "a/b/c", "../x/y", "a/..", "http://x/y", "a b/c"])
def test_what_is_no_id_is_refused(name: str) -> None:
    assert not hub.is_hub_id(name)
    with pytest.raises(WeightsError):
        hub.pull(name, lambda *_, **__: "")
