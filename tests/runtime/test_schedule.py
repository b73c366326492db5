"""Nobody starves: neither answers beside long prompts, nor short prompts beside long ones, nor the other way round."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagelift.backends import SequenceCache
from pagelift.decoding import Sampling
from pagelift.models import load_config, text_positions
from pagelift.models.prompt import Prompt
from pagelift.runtime import Request, Runner, RuntimeSettings
from pagelift.runtime.schedule import Work, schedule
from pagelift.runtime.sequences import Sequence
from runtime.fakes import FOLDER, FakeModel

CONFIG = load_config(FOLDER)


def sequence(prompt: int, computed: int = 0) -> Sequence:
    made = Sequence(Request(Prompt(np.zeros(prompt, np.int64), text_positions(0, prompt), prompt)), SequenceCache([]), 100, frozenset())
    made.computed = computed
    return made


def counts(work: list[Work], sequences: list[Sequence]) -> list[int]:
    given = {id(item.sequence): item.count for item in work}
    return [given.get(id(one), 0) for one in sequences]


def writing() -> Sequence:
    made = sequence(10, 10)
    made.output = [None]  # type: ignore[list-item]
    return made


def test_a_short_prompt_shares_the_step_with_a_long_one() -> None:
    prompts = [sequence(60_000), sequence(300)]
    assert counts(schedule(prompts, 512, 256), prompts) == [256, 256]
    assert counts(schedule(prompts[:1], 512, 256), prompts[:1]) == [512]


def test_the_first_prompt_gets_on_however_many_short_ones_come() -> None:
    prompts = [sequence(60_000), *[sequence(100 + k) for k in range(20)]]
    assert counts(schedule(prompts, 512, 256), prompts)[:2] == [412, 100]


def test_answers_are_in_every_step_and_prompts_then_take_smaller_parts() -> None:
    all_ = [writing(), sequence(60_000), writing()]
    assert counts(schedule(all_, 512, 256), all_) == [1, 256, 1]


def test_more_answers_than_a_step_holds_take_turns() -> None:
    answers = [writing() for _ in range(7)]
    served = [0] * 7
    for _ in range(7):
        work = schedule(answers, 3, 3)
        for item in work:
            item.sequence.counts.passes += 1
        served = [a + b for a, b in zip(served, counts(work, answers), strict=True)]
    assert served == [3] * 7


def test_after_a_failed_step_each_goes_alone() -> None:
    all_ = [sequence(50), sequence(60)]
    all_[1].alone_until = 60
    assert counts(schedule(all_, 512, 256), all_) == [0, 60]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(1, 900), st.booleans()), min_size=1, max_size=12), st.integers(1, 600), st.integers(1, 600))
def test_steps_are_full_and_not_too_full(kinds: list[tuple[int, bool]], step_tokens: int, mixed_tokens: int) -> None:
    all_ = [writing() if writes else sequence(size) for size, writes in kinds]
    given_ = counts(schedule(all_, step_tokens, mixed_tokens), all_)
    answers = sum(n for n, (_, writes) in zip(given_, kinds, strict=True) if writes)
    room = step_tokens - answers
    room = min(room, mixed_tokens) if answers else room
    prompts = [size for size, writes in kinds if not writes]
    assert answers == min(sum(writes for _, writes in kinds), step_tokens)
    assert sum(given_) - answers == min(room, sum(prompts))
    assert all(0 <= n <= one.waiting for n, one in zip(given_, all_, strict=True))


def test_a_request_beside_a_long_answer_is_not_slower() -> None:
    """Steps until its first token, alone and beside an answer that is being written."""
    model = FakeModel(CONFIG, lambda _: np.eye(CONFIG.text.vocab_size)[5])
    prompt = Prompt(np.full(900, 7), text_positions(0, 900), 900)

    def tokens_before(beside: bool) -> int:
        runner = Runner(model, frozenset(), RuntimeSettings(step_tokens=300, mixed_tokens=200, prefix_bytes=0))
        if beside:
            runner.add(Prompt(np.ones(5, np.int64), text_positions(0, 5), 5), Sampling(max_tokens=500))
            runner.step()
        late, begin = runner.add(prompt, Sampling(max_tokens=1)), runner.counters.tokens
        while late.finish_reason is None:
            runner.step()
        return runner.counters.tokens - begin

    assert tokens_before(beside=True) <= 1.1 * tokens_before(beside=False)
