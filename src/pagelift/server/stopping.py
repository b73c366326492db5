"""Stop sequences: the answer ends before the first one, and no part of it goes out before that is known."""

from __future__ import annotations

from collections.abc import Sequence


class StopText:
    """Takes text in pieces and gives it back without what might be the beginning of a stop sequence."""

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = [sequence for sequence in sequences if sequence]
        self._held = ""
        self.hit = False

    def put(self, text: str) -> str:
        """What may go out. After a stop sequence `hit` is set and nothing more comes."""
        if self.hit:
            return ""
        text = self._held + text
        ends = [place for place in map(text.find, self._sequences) if place >= 0]
        if ends:
            self.hit, self._held = True, ""
            return text[: min(ends)]
        keep = max((_overlap(text, sequence) for sequence in self._sequences), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back, when the answer ends by itself."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, sequence: str) -> int:
    """How much of the end of `text` is a beginning of `sequence`."""
    return next((n for n in range(min(len(text), len(sequence) - 1), 0, -1) if text.endswith(sequence[:n])), 0)
