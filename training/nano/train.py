"""Train pagelift-nano: lessons that are passed by accuracy, a checkpoint every few minutes, resumed after a kill.

    python -m nano.train --run runs/nano             one CPU or one GPU, whichever there is
    python -m nano.train --run runs/nano --cooldown 3000   the last steps, with a falling learning rate
    python -m nano.train --run runs/more --checkpoint ../models/pagelift-nano --lesson 4 --rate 0.3 --cooldown 1200   go on

The run folder holds tokenizer.json, config.json, state.pt, curve.jsonl (a line per report and per check) and train.log.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import multiprocessing
import os
import shutil
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import torch
from tokenizers import Tokenizer

from nano import assistants
from nano.assistants import Shared
from nano.examples import Example
from nano.export import FILES
from nano.lessons import LESSONS, Lesson, batches, check_lot, lots, padded
from nano.model import Batch, Nano, load_checkpoint
from nano.optimizers import Optimizers
from nano.precision import autocast, products
from nano.shape import SHAPES, write_settings
from nano.teacher_forced import Tally, tally
from nano.tokens import fit_tokenizer, training_texts, write_tokenizer
from pagelift.evals.synthetic import Split

log = logging.getLogger("nano")
WARM_UP = 100
"""Batches until the learning rate is full."""
LAST_RATE = 0.02
POINTING = 0.5
CHECKED: dict[Split, str] = {"train": "fresh", "validation": "check"}
"""The splits that checks are made on, and their names in the curve."""
AHEAD = 3
"""So many lots are asked of each process before they are needed."""
OWN_LOTS = 100_000
"""Assistants begin with lots so many further on."""
LOTS = 8
"""Batches are sorted by length among the examples of so many of them, at least."""


@dataclass(frozen=True, slots=True)
class Settings:
    """tokens: of a batch. together: so many batches make a step. cooldown: so many last steps at a falling rate, 0 to train on.

    steps: stop after so many, 0 for never. minutes: likewise, of this start. rate: factor of the learning rates. assistants: processes that
    compute gradients beside this one. checkpoint: folder whose weights and tokenizer a new run begins with. lesson: with which it begins.
    """

    run: Path
    shape: str
    tokens: int
    together: int
    workers: int
    cooldown: int
    steps: int
    minutes: float
    rate: float
    assistants: int
    save_s: float
    check_s: float
    checked: int
    checkpoint: Path | None = None
    lesson: int = 0


@dataclass(slots=True)
class Progress:
    """Where a run is. lot: the next lot of documents. seconds: of training, all starts together. passed: step at which lessons were."""

    step: int = 0
    lesson: int = 0
    lot: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cooldown_from: int = -1
    passed: list[int] = field(default_factory=list)


class Run:
    """A run folder with its model. pool: processes that make documents."""

    def __init__(self, settings: Settings, pool: ProcessPoolExecutor | None = None) -> None:
        self.settings = settings
        self.pool = pool
        self.checked: tuple[int, dict[Split, list[Example]]] = (-1, {})
        self.start = time.monotonic()
        self.stopping = False
        """Set to save and end after this step."""
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        folder = settings.run
        folder.mkdir(parents=True, exist_ok=True)
        if settings.checkpoint and not (folder / "tokenizer.json").is_file():
            for name in FILES:
                shutil.copyfile(settings.checkpoint / name, folder / name)
        if not (folder / "tokenizer.json").is_file():
            log.info("fitting the tokenizer")
            write_tokenizer(fit_tokenizer(training_texts(3000)), folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        if not (folder / "config.json").is_file():
            write_settings(folder, SHAPES[settings.shape], self.tokenizer)
        torch.manual_seed(0)
        self.model = Nano(json.loads((folder / "config.json").read_text())).to(self.device)
        self.optimizers = Optimizers(self.model.model.model.named_parameters())
        self.progress = Progress()
        self.null, self.image = (self.tokenizer.token_to_id(token) for token in ("null", "<|image_pad|>"))
        self.digits = [self.tokenizer.token_to_id(sign) for sign in "0123456789.-eE"]
        self.pad = self.tokenizer.token_to_id("<|endoftext|>")
        self.load()
        self.parameters = list(self.model.parameters())
        self.shared = Shared(self.parameters) if settings.assistants else None

    def load(self) -> None:
        path = self.settings.run / "state.pt"
        if not path.is_file():
            self.progress.lesson = self.settings.lesson
            if self.settings.checkpoint:
                load_checkpoint(self.model, self.settings.checkpoint)
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizers.load(state["optimizers"])
        self.progress = Progress(**state["progress"])
        self.progress.lot += 1  # the rest of the one that was begun is given up, so that nothing is taught twice
        log.info("resumed at step %d", self.progress.step)

    def save(self) -> None:
        """Replace the state in one move, so that a kill leaves the old one or the new one."""
        path = self.settings.run / "state.pt"
        progress = {name: getattr(self.progress, name) for name in Progress.__slots__}
        state = {"model": self.model.state_dict(), "optimizers": self.optimizers.state(), "progress": progress}
        torch.save(state, path.with_suffix(".new"))
        os.replace(path.with_suffix(".new"), path)

    def record(self, **values: Any) -> None:
        line = {"step": self.progress.step, "seconds": round(self.progress.seconds), "tokens": self.progress.tokens, **values}
        with (self.settings.run / "curve.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        log.info("%s", json.dumps(line))

    def rate(self) -> float:
        progress, settings = self.progress, self.settings
        warm = settings.rate * min(1.0, (progress.step + 1) * settings.together / WARM_UP)
        if not settings.cooldown:
            return warm
        done = (progress.step - progress.cooldown_from) / settings.cooldown
        return warm * max(LAST_RATE, 1 - done)

    def batch(self, examples: list[Example]) -> Batch:
        return Batch.of(padded(examples, self.pad, self.image), self.device)

    def check(self) -> float:
        """Record the teacher-forced accuracy on what the lesson is judged by; returns the share of values by which it is passed.

        fresh: documents of the train split that training never comes to; a lesson is passed by these, since what it teaches is a skill.
        check: the validation split, with wordings, layouts and issuers that are never taught.
        """
        progress, settings = self.progress, self.settings
        if self.checked[0] != progress.lesson:
            lesson = LESSONS[progress.lesson]
            self.checked = progress.lesson, {split: check_lot(lesson, settings.run, settings.checked, split) for split in CHECKED}
        shares = {name: self.tally(self.checked[1][split]).shares() for split, name in CHECKED.items()}
        self.record(lesson=progress.lesson, **shares)
        return shares["fresh"]["values"]

    def tally(self, examples: list[Example]) -> Tally:
        total = Tally()
        self.model.eval()
        for group in batches(examples, self.settings.tokens):
            with torch.no_grad(), autocast(self.device):
                total.include(tally(self.model, self.batch(group), group, self.null, self.digits))
        self.model.train()
        return total

    def train(self) -> None:
        """Lessons one after the other, until stopped or cooled down."""
        if self.settings.cooldown and self.progress.cooldown_from < 0:
            self.progress.cooldown_from = self.progress.step
        while self.lesson():
            pass
        self.save()

    def lesson(self) -> bool:
        """Train until the lesson is passed; False when the run is over."""
        settings, progress = self.settings, self.progress
        lesson = LESSONS[progress.lesson]
        log.info("lesson %d: %s", progress.lesson, lesson.name)
        helping = assistants.start(settings.assistants, self.assist)
        try:
            return self.taught(lesson)
        finally:
            for process in helping:
                process.terminate()

    def taught(self, lesson: Lesson) -> bool:
        settings, progress = self.settings, self.progress
        saved = checked = reported = last = time.monotonic()
        sums: dict[str, float] = {}
        for taken, examples in lots(lesson, progress.lot, settings.run, LOTS * settings.tokens, self.pool, AHEAD * settings.workers):
            made = list(batches(examples, settings.tokens, Random(progress.lot)))
            for k in range(0, len(made), settings.together):
                self.step(made[k : k + settings.together], sums)
                now = time.monotonic()
                progress.seconds += min(now - last, 60.0)  # a pause is no training
                last = now
                if now - reported > 30:
                    mean = {name: round(value / sums["n"], 4) for name, value in sums.items() if name != "n"}
                    self.record(lesson=progress.lesson, rate=round(self.rate(), 3), **mean)
                    sums, reported = {}, now
                if self.stopping:
                    return False
                if self.over():
                    self.check()
                    return False
                if now - saved > settings.save_s:
                    self.save()
                    saved = last = time.monotonic()
            progress.lot += taken
            if now - checked > settings.check_s:
                right = self.check()
                checked = saved = last = time.monotonic()
                self.save()
                if right >= lesson.passed and progress.lesson + 1 < len(LESSONS):
                    progress.lesson += 1
                    progress.passed.append(progress.step)
                    return True
        return False

    def over(self) -> bool:
        progress, settings = self.progress, self.settings
        cooled = settings.cooldown and progress.step - progress.cooldown_from >= settings.cooldown
        late = settings.minutes and time.monotonic() - self.start > 60 * settings.minutes
        return bool(cooled or late or (settings.steps and progress.step >= settings.steps))

    def step(self, groups: list[list[Example]], sums: dict[str, float]) -> None:
        """One step by the mean of the losses of some batches, and of what assistants have done since the last one."""
        for group in groups:
            with autocast(self.device):
                outcome = self.model(self.batch(group), POINTING)
            if not math.isfinite(outcome.choice_loss):
                raise FloatingPointError(f"the loss is {outcome.choice_loss} at step {self.progress.step}")
            outcome.loss.backward()
            self.progress.tokens += sum(map(len, group))
            found = {
                "loss": outcome.choice_loss,
                "right": outcome.right.float().mean().item(),
                "pointed": outcome.pointed,
                "outlined": outcome.outlined,
                "lined": outcome.lined,
                "numbered": outcome.numbered,
                "n": 1.0,
            }
            for name, value in found.items():
                sums[name] = sums.get(name, 0.0) + value
        count = len(groups)
        if self.shared:
            further, tokens = self.shared.take(self.parameters)
            count += further
            self.progress.tokens += tokens
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad /= count
        self.optimizers.step(self.rate())
        if self.shared:
            self.shared.give(self.parameters)
        self.progress.step += 1

    def assist(self, number: int) -> None:
        """What an assistant does: the gradients of one batch after the other of the lesson, from lots of its own, without end."""
        assert self.shared
        settings, lesson = self.settings, LESSONS[self.progress.lesson]
        first, parent = self.progress.step + (number + 1) * OWN_LOTS, os.getppid()  # a lot is several steps: none comes again
        for _, examples in lots(lesson, first, settings.run, LOTS * settings.tokens):
            for group in batches(examples, settings.tokens, Random(first)):
                if assistants.left_alone(parent):
                    return
                self.shared.fetch(self.parameters)
                with autocast(self.device):
                    self.model(self.batch(group), POINTING).loss.backward()
                self.shared.add(self.parameters, sum(map(len, group)))


def parse() -> Settings:
    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description="Train pagelift-nano.")
    parser.add_argument("--run", type=Path, required=True, help="run folder; a run that is there is resumed")
    parser.add_argument("--shape", choices=SHAPES, default="medium" if on_gpu else "small")
    parser.add_argument("--tokens", type=int, default=65536 if on_gpu else 2048, help="tokens of a batch")
    parser.add_argument("--together", type=int, default=1, help="batches of a step; more of them save time where steps are slow")
    parser.add_argument(
        "--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2) if on_gpu else 0, help="processes that make documents"
    )
    parser.add_argument("--assistants", type=int, default=0, help="processes that compute gradients on free cores, one lesson long")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--cooldown", type=int, default=0, help="last steps, at a falling learning rate")
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps; 0: never")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so many; 0: never")
    parser.add_argument("--rate", type=float, default=1.0, help="factor of the learning rates; below 1 to go on with trained weights")
    parser.add_argument("--save-s", type=float, default=240.0, help="seconds between two checkpoints")
    parser.add_argument("--check-s", type=float, default=420.0 if not on_gpu else 45.0, help="seconds between two checks")
    parser.add_argument("--checked", type=int, default=96 if not on_gpu else 384, help="documents of a check")
    parser.add_argument("--checkpoint", type=Path, help="exported folder that a new run begins with, instead of random weights")
    parser.add_argument("--lesson", type=int, default=0, choices=range(len(LESSONS)), help="with which a new run begins")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if products(torch.device("cuda" if on_gpu else "cpu")) is torch.bfloat16:
        torch.set_float32_matmul_precision("medium")  # the delta rule's products too
    return Settings(*(getattr(given, name) for name in Settings.__slots__))


def main() -> None:
    settings = parse()
    settings.run.mkdir(parents=True, exist_ok=True)
    handlers = [logging.FileHandler(settings.run / "train.log"), logging.StreamHandler()]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", handlers=handlers)
    if not settings.workers:
        train(Run(settings))
        return
    with ProcessPoolExecutor(settings.workers, multiprocessing.get_context("fork")) as pool:
        pool.submit(int).result()  # all processes begin here, before there are threads and a GPU
        train(Run(settings, pool))
        pool.shutdown(cancel_futures=True)


def train(run: Run) -> None:
    """Train; being told to terminate, end after the step and lose nothing."""

    def stop(*_: object) -> None:
        run.stopping = True

    signal.signal(signal.SIGTERM, stop)
    run.train()


if __name__ == "__main__":
    main()
