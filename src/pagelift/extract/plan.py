"""What a long document or a wide schema is divided into, decided before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagelift.core import Budget, EngineError, Json
from pagelift.extract.fields import Group, field_groups, restrict
from pagelift.extract.questions import Asker, Question, SeenPage
from pagelift.schema import Schema
from pagelift.schema import keywords as kw

Window = tuple[int, ...]
"""Indexes of neighbouring pages."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions that will be asked: every group of fields about every window of pages, windows first.

    tokens: about how many the prompt for each window takes. limit: how many it may take.
    """

    pages: tuple[SeenPage, ...]
    schema: Schema
    windows: tuple[Window, ...]
    groups: tuple[Group, ...]
    tokens: tuple[int, ...]
    limit: int

    def question(self, window: Window, group: Group) -> Question:
        count = len(self.pages) if len(self.windows) > 1 else None
        return Question(restrict(self.schema, group), tuple(self.pages[k] for k in window), count)

    def to_dict(self) -> dict[str, Json]:
        """For the metadata of a result: page numbers of each window and pointers of each group."""
        return {
            "questions": len(self.windows) * len(self.groups),
            "windows": [[self.pages[k].number for k in window] for window in self.windows],
            "groups": [[kw.join("", *path) for path in group] for group in self.groups],
            "prompt_tokens": list(self.tokens),
            "prompt_tokens_limit": self.limit,
        }


def make_plan(pages: Sequence[SeenPage], schema: Schema, asker: Asker, budget: Budget) -> Plan:
    """The smallest number of questions whose prompts stay within the budget; a page that is too large alone is asked alone.

    Raises EngineError when a part of the schema that cannot be divided fills the model's context.
    """
    limit = min(budget.prompt_tokens, asker.prompt_tokens or budget.prompt_tokens)
    if asker.context is not None:
        limit = max(1, min(limit, asker.context - budget.answer_tokens if asker.context > 2 * budget.answer_tokens else asker.context // 2))
    sizes = [asker.page_tokens(page) for page in pages]
    groups, text = _fitting_groups(schema, asker, budget.fields, max(limit - max(sizes), limit // 2), len(pages))
    if asker.context is not None and text >= asker.context:
        raise EngineError(
            f"the prompt takes {text} tokens without any page, and the model's context is {asker.context}; give a smaller schema"
        )
    windows = page_windows(sizes, max(1, limit - text), budget.overlap_pages)
    tokens = tuple(text + sum(sizes[k] for k in window) for window in windows)
    return Plan(tuple(pages), schema, tuple(windows), tuple(groups), tokens, limit)


def _fitting_groups(schema: Schema, asker: Asker, fields: int, limit: int, page_count: int) -> tuple[list[Group], int]:
    """Groups of at most `fields` fields, smaller ones while a prompt without pages is over the limit; and the tokens of the longest one."""
    groups: list[Group] = []
    text = 0
    while fields and (not groups or text > limit):
        smaller = field_groups(schema, fields)
        if smaller != groups:
            groups = smaller
            text = max(asker.text_tokens(asker.prompt_text(Question(restrict(schema, group), (), page_count))) for group in groups)
        fields //= 2
    return groups, text


def page_windows(sizes: Sequence[int], limit: int, overlap: int) -> list[Window]:
    """Runs of pages whose sizes stay within the limit together, each beginning with the last pages of the one before.

    A page that is too large makes a window alone. Windows overlap less where they would not get on otherwise.
    """
    windows: list[Window] = []
    start = 0
    while start < len(sizes):
        end, total = start + 1, sizes[start]
        while end < len(sizes) and total + sizes[end] <= limit:
            total += sizes[end]
            end += 1
        windows.append(tuple(range(start, end)))
        if end == len(sizes):
            break
        start = max(start + 1, end - overlap)
        while start < end and sum(sizes[start : end + 1]) > limit:  # the shared pages leave no room for the next one
            start += 1
    return windows
