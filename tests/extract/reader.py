"""A model that reads the pages it is shown without fault, and the documents that it reads; no weights, no pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pagelift.core import Box, PageContent, Word
from pagelift.extract.questions import Question, Reply, SeenPage
from pagelift.schema.nodes import Array, Object

LINE_PT = 14.0


@dataclass(frozen=True)
class Printed:
    """A value, as it is printed on a page (from 1), on a line, at a column."""

    value: Any
    page: int
    line: int
    x: float

    def word(self) -> Word:
        text = f"{self.value:.2f}" if isinstance(self.value, float) else str(self.value)
        return Word(text, Box(self.x, 40 + LINE_PT * self.line, self.x + 6 * len(text), 50 + LINE_PT * self.line))


@dataclass(frozen=True)
class FakePage:
    number: int
    content: PageContent
    picture_words: tuple[Word, ...] = ()

    def image(self, dpi: float) -> Any:  # noqa: ARG002
        raise AssertionError("no pictures are needed")


@dataclass
class FakeDocument:
    """scalars: by property. lists: by property, rows of cells by column."""

    scalars: dict[str, Printed]
    lists: dict[str, list[dict[str, Printed]]]
    page_count: int

    def pages(self) -> list[FakePage]:
        cells = [*self.scalars.values(), *(cell for rows in self.lists.values() for row in rows for cell in row.values())]
        return [
            FakePage(number, PageContent(number, 600, 800, tuple(c.word() for c in cells if c.page == number)))
            for number in range(1, self.page_count + 1)
        ]

    def truth(self) -> dict[str, Any]:
        columns = {name: {key for row in rows for key in row} for name, rows in self.lists.items()}
        lists = {
            name: [{key: row[key].value if key in row else None for key in columns[name]} for row in rows]
            for name, rows in self.lists.items()
        }
        return {name: cell.value for name, cell in self.scalars.items()} | lists


@dataclass
class Reader:
    """Answers by the document. characters: where its answers are cut off. repeats: entries that it says again when it goes on."""

    document: FakeDocument
    characters: int = 1_000_000
    repeats: int = 0
    context: int | None = None
    prompt_tokens: int | None = None
    concurrency: int = 1
    asked: list[Question] = field(default_factory=list)
    _given: dict[tuple[int, ...], dict[str, int]] = field(default_factory=dict)

    def text_tokens(self, text: str) -> int:  # noqa: ARG002
        return 10

    def page_tokens(self, page: SeenPage) -> int:  # noqa: ARG002
        return 100

    def prompt_text(self, question: Question) -> str:  # noqa: ARG002
        return ""

    def ask(self, question: Question) -> Reply:
        self.asked.append(question)
        seen = tuple(page.number for page in question.pages)
        given = self._given.setdefault(seen, {})
        root = question.schema.root
        assert isinstance(root, Object)
        answer: dict[str, Any] = {}
        for name, node in root.properties.items():
            if not isinstance(node, Array):
                cell = self.document.scalars[name]
                answer[name] = cell.value if cell.page in seen else None
                continue
            rows = self._rows(name, node, seen)
            start = given.get(name, 0) if f"/{name}" in question.after else 0
            assert self.repeats or list(question.after.get(f"/{name}", [])) == rows[max(0, start - 3) : start]
            answer[name] = rows[max(0, start - self.repeats) if start else 0 :]
        text = json.dumps(answer)
        if len(text) <= self.characters:
            return Reply(text, metadata={"passes": 1})
        text = text[: self.characters]
        self._remember(question, answer, text, given)
        return Reply(text, truncated=True, metadata={"passes": 1})

    def _rows(self, name: str, node: Array, seen: tuple[int, ...]) -> list[dict[str, Any]]:
        assert isinstance(node.items, Object)
        rows = []
        for row in self.document.lists[name]:
            visible = {key: cell.value for key, cell in row.items() if cell.page in seen}
            if visible:
                rows.append({key: visible.get(key) for key in node.items.properties})
        return rows

    def _remember(self, question: Question, answer: dict[str, Any], text: str, given: dict[str, int]) -> None:
        """How many entries of each list the caller will know after this answer was cut off."""
        for name, rows in answer.items():
            if isinstance(rows, list):
                start = given.get(name, 0) if f"/{name}" in question.after else 0
                said = min(self.repeats, start)
                whole = sum(1 for k in range(len(rows)) if f'"{name}": {json.dumps(rows[: k + 1])[:-1]}' in text)
                given[name] = start - said + whole
