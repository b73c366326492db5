"""Do pagelift, transformers and mlx-vlm choose the same tokens? Greedy answers to generated documents, in float32, without a grammar.

    python benchmarks/same_tokens.py models/pagelift-nano --count 20 --tokens 24 --peers PYTHON

PYTHON has torch, transformers, mlx and mlx-vlm. All get the same tokens and patches of pictures. Transformers reads no quantized
checkpoints, so it is left out there. Prints one JSON object; where another one chooses differently, with both tokens and by how much (in
logits) `cpu-exact` prefers its own. Goes on with the next one if one fails; what each chose is kept in the file
--keep, so that the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pagelift.evals.forced import Forced

BACKENDS = ("cpu-exact", "mlx", "cpu")
PEERS = ("transformers", "mlx-vlm")


def prompts_of(folder: Path, given: argparse.Namespace) -> list[Forced]:
    """Generated documents with prompts that are not too long."""
    from pagelift.evals.forced import Forcer
    from pagelift.evals.synthetic import make_samples

    forcer = Forcer(folder)
    every = (forcer.sample(sample) for sample in make_samples(given.seed, "test"))
    return list(islice((forced for forced in every if forced.answer <= given.longest), given.count))


def write_cases(prompts: Sequence[Forced], out: Path) -> None:
    """Tokens, patches and grids of the prompts, for the peers."""
    arrays = {}
    for number, forced in enumerate(prompts):
        pictures = [placed.picture for placed in forced.pictures]
        arrays[f"tokens{number}"] = forced.tokens[: forced.answer]
        arrays[f"patches{number}"] = np.concatenate([picture.patches() for picture in pictures])
        arrays[f"grids{number}"] = np.array([[1, picture.grid.rows, picture.grid.columns] for picture in pictures])
    np.savez(out, **arrays)


def ours(folder: Path, backend: str, prompts: Sequence[Forced], most: int) -> list[list[int]]:
    """Greedy tokens of a backend."""
    from pagelift.decoding import Sampling
    from pagelift.models.prompt import Prompt
    from pagelift.runtime import load_model

    model, found = load_model(folder, backend), []
    for forced in prompts:
        end = forced.answer
        prompt = Prompt(forced.tokens[:end], forced.positions[:, :end], int(forced.positions[0, end]), forced.pictures)
        generation = model.stream(prompt, Sampling(max_tokens=most))
        for _ in generation:
            pass
        found.append([token.id for token in generation.tokens])
    return found


def preference(folder: Path, forced: Forced, before: Sequence[int], tokens: tuple[int, int]) -> float:
    """By how much `cpu-exact` prefers the first token to the second behind a prompt and some tokens, in logits."""
    from pagelift.backends import Ragged, open_backend
    from pagelift.models import PictureRows, Step, open_model
    from pagelift.models.positions import text_positions

    model, end = open_model(folder, open_backend("cpu-exact")), forced.answer
    positions = np.concatenate([forced.positions[:, :end], text_positions(int(forced.positions[0, end]), len(before))], axis=1)
    ids = np.concatenate([forced.tokens[:end], np.array(before, np.int64)])
    pictures = tuple(PictureRows(p.start, model.encode(p.picture.patches(), [p.picture.grid])) for p in forced.pictures)
    hidden = model.forward(Step(ids, positions, Ragged.of([(model.new_cache(), len(ids), False)]), pictures))
    logits = model.logits(hidden, np.array([len(ids) - 1]))[0]
    return float(logits[tokens[0]] - logits[tokens[1]])


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


def theirs(given: argparse.Namespace, peer: str, prompts: Sequence[Forced]) -> list[list[int]] | None:
    """Greedy tokens of another program in a process of its own, or None if it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        cases = Path(scratch) / "cases.npz"
        write_cases(prompts, cases)
        command = [given.peers, __file__, str(given.model), "--peer", peer, "--cases", str(cases)]
        command += ["--count", str(given.count), "--tokens", str(given.tokens)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(f"{peer} failed: {done.stderr[-2000:]}\n")
        return None
    found: list[list[int]] = json.loads(done.stdout.splitlines()[-1])
    return found


def differences(folder: Path, prompts: Sequence[Forced], first: list[list[int]], other: list[list[int]]) -> list[dict[str, Any]]:
    """Where two rows of answers part, document by document."""
    found = []
    for number, (one, two) in enumerate(zip(first, other, strict=True)):
        if one != two:
            at = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
            pair = [answer[at] if at < len(answer) else None for answer in (one, two)]
            entry = {"document": number, "token": at, "chosen": pair}
            if None not in pair:
                entry["preferred by"] = preference(folder, prompts[number], one[:at], (one[at], two[at]))
            found.append(entry)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare greedy tokens of pagelift, transformers and mlx-vlm.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--tokens", type=int, default=200, help="longest answer")
    parser.add_argument("--backends", nargs="*", choices=BACKENDS, default=list(BACKENDS), help="beside cpu-exact")
    parser.add_argument(
        "--longest", type=int, default=100_000, help="longest prompt, in tokens; documents with longer ones are passed over"
    )
    parser.add_argument("--keep", type=Path, help="a file for the answers, which are not asked for again; delete it for other weights")
    parser.add_argument("--peers", default="", help="a Python that has torch, transformers and mlx-vlm")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--cases", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        run = transformers_tokens if given.peer == "transformers" else mlx_vlm_tokens
        cases = np.load(given.cases)
        sys.stdout.write(json.dumps(run(given.model, cases, given.count, given.tokens, stop_tokens(given.model))) + "\n")
        return
    stops, prompts = stop_tokens(given.model), prompts_of(given.model, given)
    answers: dict[str, list[list[int]]] = json.loads(given.keep.read_text()) if given.keep and given.keep.is_file() else {}
    quantized = "quantization" in json.loads((given.model / "config.json").read_text())
    asked = [*dict.fromkeys((BACKENDS[0], *given.backends)), *(PEERS[quantized:] if given.peers else ())]
    for name in asked:
        if name not in answers:
            start = time.perf_counter()
            found = ours(given.model, name, prompts, given.tokens) if name in BACKENDS else theirs(given, name, prompts)
            if found is None:
                continue
            answers[name] = [_until(one, stops) for one in found]
            sys.stderr.write(f"{name}: {time.perf_counter() - start:.0f} s\n")
            if given.keep:
                given.keep.write_text(json.dumps(answers))
    first = answers[BACKENDS[0]]
    same = {name: sum(one == two for one, two in zip(first, others, strict=True)) for name, others in answers.items()}
    parted = {name: differences(given.model, prompts, first, others) for name, others in answers.items() if same[name] < len(first)}
    report = {"model": str(given.model), "documents": len(first), "tokens": sum(map(len, first)), f"equal to {BACKENDS[0]}": same}
    sys.stdout.write(json.dumps(report | {"different": parted}) + "\n")


if __name__ == "__main__":
    main()
