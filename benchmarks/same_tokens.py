"""Do pagelift, transformers and mlx-vlm choose the same tokens? Greedy answers to generated documents, in float32, without a grammar.

    python benchmarks/same_tokens.py models/pagelift-nano --count 20 --peers PYTHON

PYTHON has torch, transformers, mlx and mlx-vlm. All get the same tokens and patches of pictures. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

BACKENDS = ("cpu-exact", "mlx", "cpu")
PEERS = ("transformers", "mlx-vlm")


def write_cases(folder: Path, count: int, seed: int, out: Path) -> list[list[int]]:
    """Tokens, patches and grids of the prompts, for the peers; returns the answers that are true, for the length."""
    from pagelift.evals.forced import Forcer
    from pagelift.evals.synthetic import make_samples

    forcer, arrays, answers = Forcer(folder), {}, []
    for number, sample in enumerate(islice(make_samples(seed, "test"), count)):
        forced = forcer.sample(sample)
        pictures = [placed.picture for placed in forced.pictures]
        arrays[f"tokens{number}"] = forced.tokens[: forced.answer]
        arrays[f"patches{number}"] = np.concatenate([picture.patches() for picture in pictures])
        arrays[f"grids{number}"] = np.array([[1, picture.grid.rows, picture.grid.columns] for picture in pictures])
        answers.append(forced.tokens[forced.answer :].tolist())
    np.savez(out, **arrays)
    return answers


def ours(folder: Path, backend: str, count: int, seed: int, most: int) -> list[list[int]]:
    """Greedy tokens of a backend."""
    from pagelift.decoding import Sampling
    from pagelift.evals.forced import Forcer
    from pagelift.evals.synthetic import make_samples
    from pagelift.models.prompt import Prompt
    from pagelift.runtime import load_model

    model, forcer, found = load_model(folder, backend), Forcer(folder), []
    for sample in islice(make_samples(seed, "test"), count):
        forced = forcer.sample(sample)
        end = forced.answer
        prompt = Prompt(forced.tokens[:end], forced.positions[:, :end], int(forced.positions[0, end]), forced.pictures)
        generation = model.stream(prompt, Sampling(max_tokens=most))
        for _ in generation:
            pass
        found.append([token.id for token in generation.tokens])
    return found


def transformers_tokens(folder: Path, cases: Any, count: int, most: int, stops: set[int]) -> list[list[int]]:
    """Greedy tokens of transformers."""
    import torch
    from transformers import Qwen3_5ForConditionalGeneration

    model = Qwen3_5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    found = []
    for number in range(count):
        tokens = torch.tensor(cases[f"tokens{number}"])[None]
        kinds = (tokens == model.config.image_token_id).int()
        with torch.no_grad():
            made = model.generate(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                mm_token_type_ids=kinds,
                pixel_values=torch.tensor(cases[f"patches{number}"]),
                image_grid_thw=torch.tensor(cases[f"grids{number}"]),
                max_new_tokens=most,
                do_sample=False,
                eos_token_id=sorted(stops),
            )
        found.append(_until(made[0, tokens.shape[1] :].tolist(), stops))
    return found


def mlx_vlm_tokens(folder: Path, cases: Any, count: int, most: int, stops: set[int]) -> list[list[int]]:
    """Greedy tokens of mlx-vlm."""
    import mlx.core as mx
    from mlx.utils import tree_map
    from mlx_vlm.models.cache import make_prompt_cache
    from mlx_vlm.utils import load_model

    model = load_model(folder)
    model.update(tree_map(lambda x: x.astype(mx.float32) if mx.issubdtype(x.dtype, mx.floating) else x, model.parameters()))
    found = []
    for number in range(count):
        cache = make_prompt_cache(model.language_model)
        tokens = mx.array(cases[f"tokens{number}"])[None]
        output = model(tokens, mx.array(cases[f"patches{number}"]), cache=cache, image_grid_thw=mx.array(cases[f"grids{number}"]))
        chosen: list[int] = []
        while len(chosen) < most and not (chosen and chosen[-1] in stops):
            chosen.append(int(output.logits[0, -1].argmax()))
            output = model.language_model(mx.array([[chosen[-1]]]), cache=cache)
        found.append(_until(chosen, stops))
    return found


def _until(tokens: list[int], stops: set[int]) -> list[int]:
    """The tokens before the first that ends the answer."""
    end = next((index for index, token in enumerate(tokens) if token in stops), len(tokens))
    return tokens[:end]


def stop_tokens(folder: Path) -> set[int]:
    ids = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
    return set(ids if isinstance(ids, list) else [ids])


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare greedy tokens of pagelift, transformers and mlx-vlm.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--tokens", type=int, default=200, help="longest answer")
    parser.add_argument("--peers", default="", help="a Python that has torch, transformers and mlx-vlm")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--cases", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        run = transformers_tokens if given.peer == "transformers" else mlx_vlm_tokens
        cases = np.load(given.cases)
        sys.stdout.write(json.dumps(run(given.model, cases, given.count, given.tokens, stop_tokens(given.model))) + "\n")
        return
    stops, answers = stop_tokens(given.model), {}
    for backend in BACKENDS:
        answers[backend] = [_until(one, stops) for one in ours(given.model, backend, given.count, given.seed, given.tokens)]
    with tempfile.TemporaryDirectory() as scratch:
        cases = Path(scratch) / "cases.npz"
        write_cases(given.model, given.count, given.seed, cases)
        for peer in PEERS if given.peers else ():
            command = [given.peers, __file__, str(given.model), "--peer", peer, "--cases", str(cases)]
            command += ["--count", str(given.count), "--tokens", str(given.tokens)]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            answers[peer] = json.loads(lines[-1])
    first = answers[BACKENDS[0]]
    report = {name: sum(one == two for one, two in zip(first, others, strict=True)) for name, others in answers.items()}
    lengths = sum(map(len, first))
    sys.stdout.write(
        json.dumps({"model": str(given.model), "documents": len(first), "tokens": lengths, f"equal to {BACKENDS[0]}": report}) + "\n"
    )


if __name__ == "__main__":
    main()
